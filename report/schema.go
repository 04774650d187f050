package report

import _ "embed"

// The compiler wants variables here; nothing assigns to them.
//
//go:embed schema/gantry.cage-report.v1.schema.json
var schema string

// Schema returns the JSON Schema (draft 2020-12) of [Document] and [Failure].
func Schema() string { return schema }

//go:embed schema/gantry.cage-check.v1.schema.json
var checkSchema string

// CheckSchema returns the JSON Schema (draft 2020-12) of [Check] and of the
// [Failure] of a check.
func CheckSchema() string { return checkSchema }

//go:embed schema/gantry.cage-suggest.v1.schema.json
var suggestSchema string

// SuggestSchema returns the JSON Schema (draft 2020-12) of [Suggestions] and of
// the [Failure] of a proposal.
func SuggestSchema() string { return suggestSchema }

//go:embed schema/gantry.cage-doctor.v1.schema.json
var doctorSchema string

// DoctorSchema returns the JSON Schema (draft 2020-12) of [Diagnosis] and of the
// [Failure] of a doctor who does not even know the root.
func DoctorSchema() string { return doctorSchema }

//go:embed schema/gantry.cage-event.v1.schema.json
var eventSchema string

// EventSchema returns the JSON Schema (draft 2020-12) of a line of the session
// log.
func EventSchema() string { return eventSchema }
