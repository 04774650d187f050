package rules

import (
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// zone is a forbidden zone, and where it is named first.
type zone struct {
	rel  string
	file string
	line int
}

// readManifest returns the forbidden zones of every skill, sorted, each once.
func readManifest(asYAML, asJSON File, g ground) ([]zone, error) {
	fromYAML, fromJSON := source{CodeManifest, ManifestYAML}, source{CodeManifest, ManifestJSON}
	switch {
	case asYAML.Present && asJSON.Present:
		one, err := fromYAML.document(asYAML.Data)
		if err != nil {
			return nil, err
		}
		other, err := fromJSON.jsonDocument(asJSON.Data)
		if err != nil {
			return nil, err
		}
		if one == nil || !sameContent(one, other) {
			return nil, fromYAML.refuse(0, "remove one of the two files", "differs from %s", ManifestJSON)
		}
		return fromYAML.zones(one, g)
	case asYAML.Present:
		top, err := fromYAML.document(asYAML.Data)
		if err != nil {
			return nil, err
		}
		return fromYAML.zones(top, g)
	case asJSON.Present:
		top, err := fromJSON.jsonDocument(asJSON.Data)
		if err != nil {
			return nil, err
		}
		return fromJSON.zones(top, g)
	}
	return nil, nil
}

// manifestKeys is what a hint says of the keys that count.
const manifestKeys = "the manifest has the keys schema_version and skills; each skill may have forbidden_zones, a list of paths"

func (s source) zones(top *yaml.Node, g ground) ([]zone, error) {
	if top == nil {
		return nil, s.refuse(0, manifestKeys, "the manifest is empty")
	}
	if !isMapping(top) {
		return nil, s.refuse(top.Line, manifestKeys, "the manifest must be a mapping")
	}
	version, skills, err := s.keys(top)
	if err != nil {
		return nil, err
	}
	if version == nil || version.Kind != yaml.ScalarNode || isNull(version) || version.Value == "" {
		return nil, s.refuse(lineOf(version, top), manifestKeys, "schema_version must be set")
	}
	if skills == nil || !isMapping(skills) || len(skills.Content) == 0 {
		return nil, s.refuse(lineOf(skills, top), manifestKeys, "skills must be a mapping that names at least one skill")
	}
	union := make(map[string]zone)
	err = s.pairs(skills, func(key, skill *yaml.Node) error { return s.skill(union, key.Value, skill, g) })
	return slices.SortedFunc(maps.Values(union), func(a, b zone) int { return strings.Compare(a.rel, b.rel) }), err
}

func (s source) keys(top *yaml.Node) (version, skills *yaml.Node, err error) {
	err = s.pairs(top, func(key, value *yaml.Node) error {
		switch key.Value {
		case "schema_version":
			version = value
		case "skills":
			skills = value
		}
		return nil
	})
	return version, skills, err
}

func lineOf(n, otherwise *yaml.Node) int {
	if n == nil {
		return otherwise.Line
	}
	return n.Line
}

func (s source) skill(union map[string]zone, name string, skill *yaml.Node, g ground) error {
	if !isMapping(skill) {
		return s.refuse(skill.Line, manifestKeys, "skill %s must be a mapping", quote(name))
	}
	return s.pairs(skill, func(key, value *yaml.Node) error {
		if key.Value != "forbidden_zones" || isNull(value) {
			return nil
		}
		if !isSequence(value) {
			return s.refuse(value.Line, manifestKeys, "forbidden_zones of skill %s must be a list", quote(name))
		}
		for _, item := range value.Content {
			rel, err := s.literal(item, g)
			if err != nil {
				return err
			}
			if _, named := union[rel]; !named {
				union[rel] = zone{rel, s.file, item.Line}
			}
		}
		return nil
	})
}

// sameContent reports whether two documents say the same, whatever the order
// of their keys and the spelling of their scalars. An alias equals nothing.
func sameContent(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	switch a.Kind {
	case yaml.ScalarNode:
		return sameScalar(a, b)
	case yaml.SequenceNode:
		for i := range a.Content {
			if !sameContent(a.Content[i], b.Content[i]) {
				return false
			}
		}
		return true
	case yaml.MappingNode:
		return sameMapping(a, b)
	}
	return false
}

func sameScalar(a, b *yaml.Node) bool {
	if a.Value == b.Value {
		return true
	}
	var x, y any
	return a.Decode(&x) == nil && b.Decode(&y) == nil && x == y
}

func sameMapping(a, b *yaml.Node) bool {
	values := make(map[string]*yaml.Node, len(a.Content)/2)
	for i := 0; i+1 < len(a.Content); i += 2 {
		values[a.Content[i].Value] = a.Content[i+1]
	}
	for i := 0; i+1 < len(b.Content); i += 2 {
		key := b.Content[i].Value
		value := values[key]
		if value == nil || !sameContent(value, b.Content[i+1]) {
			return false
		}
		// Each key counts once, or a repeated one could hide a missing one.
		delete(values, key)
	}
	return true
}
