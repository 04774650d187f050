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
func Validate(document []byte) error { return ValidateBy(report.Schema(), document) }

// ValidateBy returns what is wrong with a document by a schema.
func ValidateBy(schema string, document []byte) error {
	validate, err := CompileBy(schema)
	if err != nil {
		return err
	}
	return validate(document)
}

// Compile returns a Validate for many documents: reading the schema takes
// longer than judging by it.
func Compile() (func(document []byte) error, error) { return CompileBy(report.Schema()) }

// CompileBy returns a ValidateBy for many documents.
func CompileBy(text string) (func(document []byte) error, error) {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	const location = "urn:gantry:schema"
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(location, value); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	schema, err := compiler.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	return func(document []byte) error {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
		if err != nil {
			return fmt.Errorf("read the document: %w", err)
		}
		return schema.Validate(value)
	}, nil
}
