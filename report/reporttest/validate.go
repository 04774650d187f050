// Package reporttest judges documents for tests: does what a program printed
// hold to the schema that it ships? It is not part of the program.
package reporttest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"cage/report"
)

// Validate returns what is wrong with a document, by the schema of
// [report.Document] and [report.Failure]. Anything behind the document is an
// error.
func Validate(document []byte) error {
	validate, err := Compile()
	if err != nil {
		return err
	}
	return validate(document)
}

// Compile returns a Validate for many documents: reading the schema takes
// longer than judging by it.
func Compile() (func(document []byte) error, error) {
	schema, err := compile()
	if err != nil {
		return nil, fmt.Errorf("compile the report schema: %w", err)
	}
	return func(document []byte) error {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
		if err != nil {
			return fmt.Errorf("read the document: %w", err)
		}
		return schema.Validate(value)
	}, nil
}

func compile() (*jsonschema.Schema, error) {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(report.Schema()))
	if err != nil {
		return nil, err
	}
	const location = "urn:gantry:cage-report:v1"
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(location, value); err != nil {
		return nil, err
	}
	return compiler.Compile(location)
}
