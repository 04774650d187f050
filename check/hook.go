package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cage/internal/anchors"
	"cage/internal/gitrepo"
	"cage/internal/physical"
	"cage/report"
	"cage/rules"
)

// Call is what a coding agent tells a hook on its standard input, as far as it
// counts here. Claude Code and Codex tell it in the same way.
type Call struct {
	// Event is when the hook is called, such as PreToolUse.
	Event string `json:"hook_event_name"`
	// Dir is where the agent stands; what it names is relative to that.
	Dir  string `json:"cwd"`
	Tool string `json:"tool_name"`
	// Continued is set at the end of a turn that a hook has sent the agent back
	// from before.
	Continued bool            `json:"stop_hook_active"`
	Input     json.RawMessage `json:"tool_input"`
}

// maxCall bounds what is read of a call: an edit tool sends whole files.
const maxCall = 64 << 20

// ReadCall reads a call. An error is a *report.Refusal.
func ReadCall(input io.Reader) (Call, error) {
	var call Call
	data, err := io.ReadAll(io.LimitReader(input, maxCall+1))
	switch {
	case err != nil:
	case len(data) > maxCall:
		err = fmt.Errorf("it is larger than %d bytes", maxCall)
	default:
		err = json.Unmarshal(data, &call)
	}
	if err != nil {
		return Call{}, report.Refuse(codeInput, "call it from a hook of the agent and leave it the hook's standard input",
			fmt.Errorf("standard input is not what an agent tells its hooks: %w", err))
	}
	return call, nil
}

// Hook judges the files that an edit tool is about to change, else index and
// work tree. An error is a *report.Refusal.
func Hook(ctx context.Context, o Options, call Call) (*report.Check, error) {
	files, edits, err := call.edited()
	if err != nil {
		return nil, refuse(err)
	}
	if edits {
		return Edit(ctx, o, call.absolute(files, o.Dir))
	}
	return WorkTree(ctx, o)
}

// edited returns the files that the call is about to change, as the agent names
// them, and whether its tool is one that does so.
func (c Call) edited() (files []string, edits bool, err error) {
	switch c.Event {
	case "PreToolUse", "PermissionRequest", "":
	default:
		return nil, false, nil
	}
	// A map has names as they are spelled. A struct would take FILE_PATH for
	// file_path, which the tool does not.
	var input map[string]json.RawMessage
	switch c.Tool {
	case "Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch":
	default:
		return nil, false, nil
	}
	if err := json.Unmarshal(c.Input, &input); err != nil {
		return nil, true, c.unclear(err)
	}
	files = patched(input["command"])
	for _, name := range []string{"file_path", "notebook_path"} {
		var file string
		if json.Unmarshal(input[name], &file) == nil && file != "" {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, true, c.unclear(errors.New("none is named"))
	}
	return files, true, nil
}

func (c Call) unclear(err error) error {
	return report.Refuse(codeInput, "tell whoever looks after the cage that this agent calls its hooks differently",
		fmt.Errorf("which files the tool %s is about to change is not clear: %w", report.Quote(c.Tool), err))
}

// patched returns the files that a patch of apply_patch names. The command is
// the patch, or a list of words that holds it.
func patched(command json.RawMessage) []string {
	var patch string
	var words []string
	if json.Unmarshal(command, &patch) != nil && json.Unmarshal(command, &words) == nil {
		patch = strings.Join(words, "\n")
	}
	var files []string
	for line := range strings.Lines(patch) {
		for _, mark := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if file, found := strings.CutPrefix(strings.TrimSpace(line), mark); found {
				files = append(files, strings.TrimSpace(file))
			}
		}
	}
	return files
}

// absolute places the names of files.
func (c Call) absolute(files []string, dir string) []string {
	if filepath.IsAbs(c.Dir) {
		dir = c.Dir
	}
	placed := make([]string, len(files))
	for i, file := range files {
		placed[i] = file
		if !filepath.IsAbs(file) {
			placed[i] = dir + "/" + file
		}
	}
	return placed
}

// Edit judges files, by absolute names, that are about to be changed: by the
// rules of the repository of o.Dir, and by those of the one that the file lies
// in. An error is a *report.Refusal.
func Edit(ctx context.Context, o Options, files []string) (*report.Check, error) {
	return run(ctx, o, report.ScopeEdit, func(c *checker) error {
		if err := c.edit(ctx, files); err != nil {
			return err
		}
		for _, dir := range c.otherRoots(files) {
			if err := c.editIn(ctx, dir, files); err != nil {
				return err
			}
		}
		return nil
	})
}

// editIn judges files by the rules of another repository, whose top dir is.
func (c *checker) editIn(ctx context.Context, dir string, files []string) error {
	o := c.Options
	// What is let through or looked at here says nothing of what is there.
	o.Dir, o.Overrides, o.Paths = dir, nil, nil
	other, err := open(ctx, o, report.ScopeEdit)
	if err != nil {
		return err
	}
	if err := other.edit(ctx, files); err != nil {
		return err
	}
	for _, finding := range other.named(c.layout) {
		// In a submodule the rules of both may find the same.
		found := func(f report.CheckFinding) bool { return f.Bytes() == finding.Bytes() && f.Counts == finding.Counts }
		if !slices.ContainsFunc(c.doc.Findings, found) {
			c.doc.Findings = append(c.doc.Findings, finding)
		}
	}
	c.doc.Warnings = append(c.doc.Warnings, other.doc.Warnings...)
	return nil
}

// otherRoots returns the tops of the repositories that files lie in and that are
// not the checker's, each once.
func (c *checker) otherRoots(files []string) []string {
	var tops []string
	for _, file := range files {
		target, err := physical.Path(file)
		if err != nil {
			continue // edit has refused it
		}
		top, err := repositoryAbove(filepath.Dir(target))
		if err == nil && top != "" && top != c.layout.Root && !slices.Contains(tops, top) {
			tops = append(tops, top)
		}
	}
	return tops
}

// named returns the findings with names relative to another root.
func (c *checker) named(other rules.Layout) []report.CheckFinding {
	findings := slices.Clone(c.doc.Findings)
	for i := range findings {
		abs := filepath.Join(c.layout.Root, findings[i].Bytes())
		findings[i].Name = report.NameOf(other.Display(other.Locate(abs)))
	}
	return findings
}

// edit judges files by the rules as they stand in the work tree, in the index
// and in HEAD.
func (c *checker) edit(ctx context.Context, files []string) error {
	plan, _, err := c.present(ctx)
	if err != nil {
		return err
	}
	var places []rules.Path
	for _, file := range files {
		meant, err := c.meant(file)
		if err != nil {
			return err
		}
		for _, place := range meant {
			if place.Rel != "" && !slices.Contains(places, place) {
				places = append(places, place)
			}
		}
	}
	found := slices.DeleteFunc(slices.Clone(places), func(place rules.Path) bool {
		_, err := os.Lstat(c.layout.Abs(place))
		return err != nil || !classified(plan, place)
	})
	if len(c.Overrides) > 0 {
		all, err := c.repo.Paths(ctx, "")
		if err != nil {
			return err
		}
		found = append(found, covered(plan, all)...)
	}
	if plan, err = c.settle(plan, found); err != nil {
		return err
	}
	for _, place := range places {
		c.judgeEdit(plan, place)
	}
	return nil
}

// meant returns the places that a tool may change when it is told to change a
// file: it may follow a link there or replace it, and take ".." as the system
// does, behind links, or as it is spelled.
func (c *checker) meant(file string) ([]rules.Path, error) {
	var places []rules.Path
	for _, spelled := range []string{file, filepath.Clean(file)} {
		named, err := placed(spelled)
		if err != nil {
			return nil, err
		}
		target, err := physical.Path(spelled)
		if err != nil {
			return nil, unclearPath(spelled, err)
		}
		places = append(places, c.layout.Locate(named), c.layout.Locate(target))
	}
	return places, nil
}

// judgeEdit adds a finding for a place that is about to be changed.
func (c *checker) judgeEdit(plan *rules.Plan, place rules.Path) {
	verdict, ok := plan.ClassifyRecorded(place)
	if !ok || !c.within(place) {
		return
	}
	kind := report.Modified
	if _, err := os.Lstat(c.layout.Abs(place)); err != nil {
		kind = report.Added
	}
	c.doc.Findings = append(c.doc.Findings, report.CheckFinding{
		Name: report.NameOf(c.layout.Display(place)), Kind: kind,
		Rule: verdict.Rule, Source: verdict.Source, Counts: verdict.Mode == rules.Revert, Overridden: verdict.Overridden,
	})
}

// present makes the plan of what stands now: the work tree's rules, and those
// of the index and of HEAD. It returns what the index changes too.
func (c *checker) present(ctx context.Context) (*rules.Plan, []gitrepo.Change, error) {
	index, err := c.index(ctx)
	if err != nil {
		return nil, nil, err
	}
	sources, err := anchors.Sources(c.layout.Root)
	if err != nil {
		return nil, nil, err
	}
	plan, err := c.planOf(ctx, sources, []side{index.side(), index.head})
	if err != nil {
		return nil, nil, err
	}
	plan, err = c.withLinked(ctx, plan, index.links, index.changes)
	return plan, index.changes, err
}
