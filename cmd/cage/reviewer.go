package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"cage/internal/review"
	"cage/internal/safefile"
	"cage/report"
	"cage/rules"
	"cage/session"
	"cage/snapshot"

	"github.com/spf13/cobra"
)

// reviewer looks at the past.
type reviewer struct {
	*session.Past
	desk     review.Desk
	sessions []review.Session
}

// load reads what is known, and says what cannot be read.
func (r *reviewer) load() error {
	trees, err := snapshot.OpenTrees(r.Layout)
	if err != nil {
		return err
	}
	r.desk = review.Desk{Trees: trees, Sessions: r.Sessions, Spare: r.Spare}
	sessions, unusable, err := review.Sessions(r.Sessions)
	r.sessions = sessions
	for _, u := range unusable {
		fmt.Fprint(os.Stderr, report.Warning("what is kept in "+report.Quote(u.Store)+" is left out: "+u.Err.Error()))
	}
	return err
}

func (r *reviewer) close() {
	if r.desk.Trees != nil {
		r.desk.Trees.Close()
	}
	r.Past.Close()
}

func unknown(hint, format string, args ...any) error {
	return report.Refuse(codeReviewUnknown, hint, fmt.Errorf(format, args...))
}

const listThem = "list them with: cage review"

// find returns the session that is named by its id or the beginning of it.
func (r *reviewer) find(named string) (*review.Session, error) {
	var found []*review.Session
	for i := range r.sessions {
		if strings.HasPrefix(r.sessions[i].ID, named) {
			found = append(found, &r.sessions[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, unknown(listThem, "no session %s displaced anything", report.Quote(named))
	case 1:
		return found[0], nil
	default:
		return nil, unknown("write more of it", "%d sessions begin with %s", len(found), report.Quote(named))
	}
}

// newest returns the newest session of this root that fits.
func (r *reviewer) newest(fits func(*review.Session) bool) *review.Session {
	for i := range slices.Backward(r.sessions) {
		if s := &r.sessions[i]; s.Layout.Root == r.Layout.Root && fits(s) {
			return s
		}
	}
	return nil
}

func spellPath(layout rules.Layout, v *review.Version) string {
	if !v.Known() {
		return "(nobody wrote down where it stood)"
	}
	return report.Quote(layout.Display(v.Path))
}

const clock = "2006-01-02 15:04:05"

// heading is the line of a session.
func heading(s *review.Session) string {
	words := []string{s.ID, s.Started.Local().Format(clock)}
	switch {
	case s.Command != "":
		words = append(words, report.Quote(s.Command))
	case s.Watch:
		words = append(words, "(watch)")
	}
	words = append(words, report.Quote(s.Layout.Root))
	if !s.Ended {
		words = append(words, "(not ended)")
	}
	return strings.Join(words, "  ") + "\n"
}

func (r *reviewer) list() error {
	var out strings.Builder
	for i := range slices.Backward(r.sessions) {
		s := &r.sessions[i]
		out.WriteString(heading(s))
		counts := make(map[string]int)
		var order []string
		for j := range s.Versions {
			name := spellPath(s.Layout, &s.Versions[j])
			if counts[name]++; counts[name] == 1 {
				order = append(order, name)
			}
		}
		slices.Sort(order)
		for _, name := range order {
			fmt.Fprintf(&out, "  %s  %s\n", plural(counts[name], "version"), name)
		}
	}
	if len(r.sessions) == 0 {
		fmt.Fprintln(os.Stderr, "cage: no session displaced anything")
	}
	return printText(out.String())
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (r *reviewer) describe(named string) error {
	s, err := r.find(named)
	if err != nil {
		return err
	}
	var out strings.Builder
	out.WriteString(heading(s))
	for i := range s.Versions {
		v := &s.Versions[i]
		kind := "modified"
		if v.Added() {
			kind = "added"
		}
		fmt.Fprintf(&out, "%3d  %s  %-8s  %s  %s\n", v.Number, v.At.Local().Format(time.TimeOnly), kind, spellPath(s.Layout, v), describeVersion(v))
		fmt.Fprintf(&out, "     %s\n", report.Quote(r.desk.Place(s, v)))
	}
	if s.Untold > 0 {
		fmt.Fprint(os.Stderr, report.Warning(plural(s.Untold, "more version")+" kept, but not listed"))
	}
	return printText(out.String())
}

// describeVersion says what a version is.
func describeVersion(v *review.Version) string {
	text := v.Info.Kind.String()
	if v.Info.Kind == safefile.Regular {
		text = plural(int(v.Info.Size), "byte")
	}
	if v.Times > 1 {
		text += ", " + plural(v.Times, "time")
	}
	return text
}

// diff returns what versions of a session would change.
func (r *reviewer) diff(ctx context.Context, named string, number int) ([]byte, error) {
	s := r.newest(func(*review.Session) bool { return true })
	var err error
	if named != "" {
		s, err = r.find(named)
	} else if s == nil {
		err = unknown(listThem, "no session in %s displaced anything", report.Quote(r.Layout.Root))
	}
	if err != nil {
		return nil, err
	}
	versions := s.Newest()
	if number > 0 {
		v, err := numbered(s, number)
		if err != nil {
			return nil, err
		}
		versions = []review.Version{*v}
	}
	git, run, err := r.Git()
	if err != nil {
		return nil, err
	}
	patch, notes, err := r.desk.Patch(ctx, run, git, r.Temp, s, versions)
	for _, note := range notes {
		fmt.Fprint(os.Stderr, report.Warning(spellPath(s.Layout, &note.Version)+": "+note.Text))
	}
	return patch, err
}

func numbered(s *review.Session, number int) (*review.Version, error) {
	if number > len(s.Versions) {
		return nil, unknown("list them with: cage review "+s.ID, "session %s has no version %d", s.ID, number)
	}
	return &s.Versions[number-1], nil
}

func (r *reviewer) accept(ctx context.Context, named, path string, number int) error {
	if err := r.Hold(ctx, codeReviewInSession); err != nil {
		return err
	}
	s, v, err := r.wanted(named, strings.TrimPrefix(path, "./"), number)
	if err != nil {
		return err
	}
	accepted, err := r.desk.Accept(r.Plan, s, v)
	name := spellPath(s.Layout, v)
	var no *review.Error
	switch {
	case errors.As(err, &no) && no.Changed:
		return report.Refuse(codeReviewChanged, no.Hint, fmt.Errorf("%s is left as it is: %w", name, no))
	case errors.As(err, &no):
		return report.Refuse(codeReviewUnusable, no.Hint, fmt.Errorf("this version of %s is not put back: %w", name, no))
	case err == nil && accepted.Already:
		fmt.Fprintf(os.Stderr, "cage: %s is that version already\n", name)
		return nil
	}
	for _, place := range accepted.Kept {
		fmt.Fprintf(os.Stderr, "cage: what stood there is kept: %s\n", report.Quote(place))
	}
	for _, attr := range accepted.Unset {
		fmt.Fprint(os.Stderr, report.Warning(fmt.Sprintf("%s could not be given its %s: %v", name, attr.Name, attr.Err)))
	}
	if accepted.Late {
		fmt.Fprint(os.Stderr, report.Warning("somebody changed "+name+" in the same moment: compare it with what is kept"))
	}
	if err != nil {
		return fmt.Errorf("put %s back: %w", name, err)
	}
	fmt.Fprintf(os.Stderr, "cage: put back %s: version %d of session %s, displaced at %s\n", name, v.Number, s.ID, v.At.Local().Format(clock))
	return nil
}

// wanted returns the version that a person asks for, by its number or the
// newest of a path.
func (r *reviewer) wanted(named, path string, number int) (*review.Session, *review.Version, error) {
	of := func(s *review.Session, v *review.Version) bool { return v.Known() && s.Layout.Display(v.Path) == path }
	s := r.newest(func(s *review.Session) bool {
		return slices.ContainsFunc(s.Versions, func(v review.Version) bool { return of(s, &v) })
	})
	if named != "" {
		var err error
		if s, err = r.find(named); err != nil {
			return nil, nil, err
		}
	}
	if s == nil {
		return nil, nil, unknown(listThem, "no session in %s displaced a version of %s", report.Quote(r.Layout.Root), report.Quote(path))
	}
	if number > 0 {
		v, err := numbered(s, number)
		if err == nil && !of(s, v) {
			err = unknown("list them with: cage review "+s.ID, "version %d of session %s is not one of %s", number, s.ID, report.Quote(path))
		}
		return s, v, err
	}
	for i := range slices.Backward(s.Versions) {
		if v := &s.Versions[i]; of(s, v) {
			return s, v, nil
		}
	}
	return nil, nil, unknown("list them with: cage review "+s.ID, "session %s displaced no version of %s", s.ID, report.Quote(path))
}

// look opens the past for f.
func look(ctx context.Context, f func(*reviewer) error) error {
	past, err := session.OpenPast(ctx, os.Environ(), os.Stderr)
	if err != nil {
		return err
	}
	r := &reviewer{Past: past}
	defer r.close()
	if err := r.load(); err != nil {
		return err
	}
	return f(r)
}

// completeSessions offers the sessions that displaced something, with what tells
// them apart.
func completeSessions(c *cobra.Command, args []string, _ string) (words []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		offer(c, func(s *review.Session) {
			words = append(words, s.ID+"\t"+strings.TrimSpace(strings.TrimPrefix(heading(s), s.ID)))
		})
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeDisplaced offers the paths of which a session here displaced a version.
func completeDisplaced(c *cobra.Command, _ []string, _ string) (words []string, _ cobra.ShellCompDirective) {
	offer(c, func(s *review.Session) {
		for _, v := range s.Newest() {
			if name := s.Layout.Display(v.Path); !slices.Contains(words, name) {
				words = append(words, name)
			}
		}
	})
	return words, cobra.ShellCompDirectiveNoFileComp
}

// offer calls f for every session of this root, the newest first. A shell that
// completes has no use for what goes wrong.
func offer(c *cobra.Command, f func(*review.Session)) {
	past, err := session.OpenPast(c.Context(), os.Environ(), io.Discard)
	if err != nil {
		return
	}
	defer past.Close()
	sessions, _, _ := review.Sessions(past.Sessions)
	for i := range slices.Backward(sessions) {
		if s := &sessions[i]; s.Layout.Root == past.Layout.Root {
			f(s)
		}
	}
}
