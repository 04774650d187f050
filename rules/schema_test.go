package rules

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// The schema is for editors. It takes whatever the cage takes, and of what the
// cage refuses it knows what can be told without the repository.

func configSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("schema/cage-yaml.v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("urn:gantry:cage-yaml:v1", value); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("urn:gantry:cage-yaml:v1")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON is what an editor holds against a schema.
func asJSON(t *testing.T, text string) (any, error) {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
}

func TestSchemaTakesWhatTheCageTakes(t *testing.T) {
	schema := configSchema(t)
	for name, c := range acceptedConfigs() {
		value, err := asJSON(t, c.text)
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemaRefusesWhatCanBeTold(t *testing.T) {
	schema := configSchema(t)
	// What only YAML itself or the rules know, by the words of the refusal, and
	// what has another meaning in JSON.
	beyond := []string{"invalid YAML", "not UTF-8", "second document", "aliases", "merging", "comes twice", "would weaken"}
	otherwise := []string{
		"path is a date", "exponent", "binary", "binary key", "tagged list", "top level null", "top level of another type",
		"protect is null by tag only", "number by tag only", "null as a key", "number as a key",
	}
	held := 0
	for name, c := range refusedConfigs() {
		if slices.ContainsFunc(beyond, func(words string) bool { return strings.Contains(c.part, words) }) || slices.Contains(otherwise, name) {
			continue
		}
		value, err := asJSON(t, c.text)
		if err != nil {
			continue // an editor complains of it without a schema
		}
		held++
		if schema.Validate(value) == nil {
			t.Errorf("%s: the schema takes what is refused with %q", name, c.part)
		}
	}
	if held < 50 {
		t.Errorf("only %d refusals were held against the schema", held)
	}
}
