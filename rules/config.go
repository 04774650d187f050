package rules

import (
	"math"
	"strings"

	"gopkg.in/yaml.v3"
)

// config is what `.cage.yaml` says.
type config struct {
	entries              []entry
	contest, ruleContest *int
}

// entry is one item of `protect:`; either rel or a glob.
type entry struct {
	line   int
	mode   Mode
	rel    string
	isGlob bool
	glob   glob
}

func (e *entry) text() string {
	if e.isGlob {
		return e.glob.text
	}
	return e.rel
}

// configReader reads `.cage.yaml` for a root whose git directories it must
// keep out of.
type configReader struct {
	source
	ground ground
	out    config
	mode   Mode
}

func readConfig(data []byte, g ground) (config, error) {
	r := configReader{source: source{CodeConfig, ConfigFile}, ground: g, mode: Revert}
	top, err := r.document(data)
	if err != nil || top == nil {
		return config{}, err
	}
	if err := r.noAlias(top); err != nil {
		return config{}, err
	}
	if !isMapping(top) {
		return config{}, r.refuse(top.Line, "start with `protect:`", "the top level must be a mapping")
	}
	if err := r.top(top); err != nil {
		return config{}, err
	}
	return r.out, nil
}

func (r *configReader) noAlias(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		return r.alias(n.Line)
	}
	for _, child := range n.Content {
		if err := r.noAlias(child); err != nil {
			return err
		}
	}
	return nil
}

func (r *configReader) top(top *yaml.Node) error {
	var protect *yaml.Node
	err := r.pairs(top, func(key, value *yaml.Node) (err error) {
		switch word(key) {
		case "protect":
			protect = value
		case "mode":
			err = r.modeInto(&r.mode, value)
		case "contest_limit":
			r.out.contest, err = r.limit(key.Value, value)
		case "rule_contest_limit":
			r.out.ruleContest, err = r.limit(key.Value, value)
		default:
			err = r.unknown(key, topKeys)
		}
		return err
	})
	if err != nil || protect == nil || isNull(protect) {
		return err
	}
	if !isSequence(protect) {
		return r.refuse(protect.Line, "", "protect must be a list of entries")
	}
	for _, item := range protect.Content {
		e, err := r.entry(item)
		if err != nil {
			return err
		}
		r.out.entries = append(r.out.entries, e)
	}
	return nil
}

// word returns a key's text, "" for a key that is no string.
func word(key *yaml.Node) string {
	if !isString(key) {
		return ""
	}
	return key.Value
}

// What a hint says of the keys that there are.
const (
	topKeys   = "the keys at the top level are protect, mode, contest_limit and rule_contest_limit"
	entryKeys = "the keys of an entry are path, glob and mode"
)

// unknown refuses a key, with the keys that there are.
func (r *configReader) unknown(key *yaml.Node, keys string) error {
	switch strings.ToLower(word(key)) {
	case "relax", "exclude", "excludes", "allow", "allow_override", "allow_overrides", "ignore",
		"unprotect", "override", "overrides", "disable", "skip":
		return r.refuse(key.Line, "to relax a rule for one run, pass --allow-override <path>",
			"%s would take protection away, and this file can only add it", quote(key.Value))
	}
	return r.refuse(key.Line, keys, "unknown key %s", quote(key.Value))
}

func (r *configReader) modeInto(mode *Mode, value *yaml.Node) error {
	switch {
	case isNull(value):
		return nil
	case isString(value) && value.Value == "revert":
		*mode = Revert
	case isString(value) && value.Value == "report":
		*mode = Report
	default:
		return r.refuse(value.Line, "", "mode must be revert or report")
	}
	return nil
}

func (r *configReader) limit(name string, value *yaml.Node) (*int, error) {
	if isNull(value) {
		return nil, nil
	}
	var n int64
	if value.Kind != yaml.ScalarNode || value.ShortTag() != "!!int" || value.Decode(&n) != nil || n < 0 || n > math.MaxInt32 {
		return nil, r.refuse(value.Line, "0 turns it off", "%s must be a whole number from 0 to %d", name, math.MaxInt32)
	}
	limit := int(n)
	return &limit, nil
}

func (r *configReader) entry(item *yaml.Node) (entry, error) {
	if !isMapping(item) {
		return entry{}, r.refuse(item.Line, "write `- path: <path>` or `- glob: <pattern>`", "an entry must be a mapping")
	}
	e := entry{mode: r.mode}
	var path, pattern *yaml.Node
	err := r.pairs(item, func(key, value *yaml.Node) error {
		switch word(key) {
		case "path":
			path = value
		case "glob":
			pattern = value
		case "mode":
			return r.modeInto(&e.mode, value)
		default:
			return r.unknown(key, entryKeys)
		}
		return nil
	})
	if err != nil {
		return entry{}, err
	}
	hasPath, hasGlob := path != nil && !isNull(path), pattern != nil && !isNull(pattern)
	switch {
	case hasPath == hasGlob:
		return entry{}, r.refuse(item.Line, "", "an entry needs exactly one of path and glob")
	case hasPath:
		e.line = path.Line
		e.rel, err = r.literal(path, r.ground)
	default:
		e.line, e.isGlob = pattern.Line, true
		e.glob, err = r.glob(pattern)
	}
	return e, err
}

func (r *configReader) glob(value *yaml.Node) (glob, error) {
	if !isString(value) {
		return glob{}, r.refuse(value.Line, "quote it", "glob must be a string")
	}
	if reason := relative(value.Value); reason != "" {
		hint := rootRelative
		if dir := strings.TrimRight(value.Value, "/"); dir != value.Value && relative(dir) == "" {
			hint = "for a directory write " + inDirectory(dir)
		}
		return glob{}, r.refuse(value.Line, hint, "glob %s %s", quote(value.Value), reason)
	}
	g := newGlob(value.Value)
	if r.ground.gitHolds(g.fixedPart()) {
		return glob{}, r.refuse(value.Line, gitAlready, "glob %s lies in the git directory", quote(g.text))
	}
	return g, nil
}

const (
	rootRelative = "write it relative to the root, like infra/prod.tf"
	gitAlready   = "what matters in git's own directory is protected already"
)

// literal checks a node that names a file or a tree.
func (s source) literal(value *yaml.Node, g ground) (string, error) {
	if !isString(value) {
		return "", s.refuse(value.Line, "quote it", "a path must be a string")
	}
	rel, reason := literal(value.Value)
	if reason != "" {
		return "", s.refuse(value.Line, rootRelative, "path %s %s", quote(value.Value), reason)
	}
	if g.gitHolds(rel) || g.gitWithin(rel) {
		return "", s.refuse(value.Line, gitAlready, "path %s overlaps the git directory", quote(value.Value))
	}
	return rel, nil
}
