package report_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"cage/report"
	"cage/report/reporttest"
	"cage/rules"
)

// Readers of the format find the fields in the order that it gives them.
func TestFieldOrder(t *testing.T) {
	out, err := uneventful().JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`report_schema status exit_code command command_exit_code command_signal runtime_error root
		revert_mode max_file_bytes protected_files manifest_zones cage_config overrides changes watch push_guard
		trapped_signal recovery limits session contests lifetime hygiene resources`)
	if got := keys(t, out); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	row, err := json.Marshal(workflow())
	if err != nil {
		t.Fatal(err)
	}
	want = strings.Fields(`path kind rule source overridden sha256_before sha256_after outcome error_code
		restores rounds displaced attribute_errors`)
	if got := keys(t, row); !slices.Equal(got, want) {
		t.Errorf("row: got %v", got)
	}
}

// keys returns the names of a document's own fields, in order.
func keys(t *testing.T, document []byte) []string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(document))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

func TestZeroDocumentHasNoNullArray(t *testing.T) {
	for _, v := range []any{report.Document{}, report.Change{}, report.Failure{}} {
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(out, &fields); err != nil {
			t.Fatal(err)
		}
		noNullLists(t, reflect.TypeOf(v), fields)
	}
}

// noNullLists looks below every field of a struct whose Go type is a slice.
func noNullLists(t *testing.T, typ reflect.Type, fields map[string]any) {
	t.Helper()
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch f.Type.Kind() {
		case reflect.Slice:
			if _, ok := fields[name].([]any); !ok {
				t.Errorf("%s.%s is %v", typ, name, fields[name])
			}
		case reflect.Struct:
			if inner, ok := fields[name].(map[string]any); ok {
				noNullLists(t, f.Type, inner)
			}
		}
	}
}

func TestDocumentSortsAndKeepsItsInput(t *testing.T) {
	d := uneventful()
	for _, raw := range []string{"b", "a\xff", "a", "\xffz", "B"} {
		c := workflow()
		c.Name = report.NameOf(raw)
		d.Changes = append(d.Changes, c)
	}
	d.Overrides = []string{"z", "a", "z"}
	d.Watch.Contested = []string{"y", "x"}
	out, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var back report.Document
	if err := json.Unmarshal(out, &back); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, c := range back.Changes {
		order = append(order, c.Bytes())
	}
	if want := []string{"B", "a", "a\xff", "b", "\xffz"}; !slices.Equal(order, want) {
		t.Errorf("rows in the order %q", order)
	}
	if !slices.Equal(back.Overrides, []string{"a", "z"}) || !slices.Equal(back.Watch.Contested, []string{"x", "y"}) {
		t.Errorf("overrides %q, contested %q", back.Overrides, back.Watch.Contested)
	}
	if d.Changes[0].Path != "b" || d.Overrides[0] != "z" || d.Watch.Contested[0] != "y" || d.ReportSchema != "" {
		t.Error("the caller's document was changed")
	}
}

func TestJSONIsForTerminalsNotForHTML(t *testing.T) {
	d := uneventful()
	c := workflow()
	c.Name, c.Displaced = report.NameOf("<a>&b"), []report.Name{report.NameOf("/<a>&b")}
	d.Changes = []report.Change{c}
	out, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte(`"<a>&b"`)) || !bytes.Contains(out, []byte(`"/<a>&b"`)) {
		t.Errorf("escaped:\n%s", out)
	}
}

func TestFailureDocument(t *testing.T) {
	for name, f := range map[string]report.Failure{
		"failed": {
			ErrorCode: "GXT_CAGE_CONFIG_INVALID",
			Message:   ".cage.yaml line 3: unknown key \"relax\"",
			FixHints:  []string{"take it out; --allow-override <path> lifts protection for one run"},
			ExitCode:  2,
		},
		"failed_no_hint": {ErrorCode: "GXT_CAGE_SESSION_ACTIVE", Message: "another cage runs here, pid 4711", ExitCode: 2},
	} {
		out, err := f.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := reporttest.Validate(out); err != nil {
			t.Error(err)
		}
		golden(t, name+".json", string(out))
		golden(t, name+".txt", f.Line())
	}
}

// Whatever bytes a name has, the document is valid and gives them back.
func FuzzNames(f *testing.F) {
	f.Add(".env", "/tmp/x")
	f.Add("\xff", "\xc3\x28")
	f.Add("a\x00\u2028<", "\xed\xa0\x80")
	f.Add("\ufffd", "\xff\ufffd")
	validate, err := reporttest.Compile()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw, other string) {
		if raw == "" || other == "" {
			t.Skip("no path is empty")
		}
		d := uneventful()
		c := dotenv()
		c.Name, c.Displaced = report.NameOf(raw), []report.Name{report.NameOf(other)}
		d.Changes = []report.Change{c}
		d.Command, d.Root = other, "/"+other
		d.Overrides = []string{raw, other}
		d.Watch.Contested, d.Watch.SessionLog = []string{raw, other}, &other
		d.Watch.DegradedReasons, d.RuntimeError = []string{other}, &other
		d.Watch.Halt = &report.Halt{Scope: report.HaltPath, Name: report.NameOf(raw), Rule: rules.Secrets}
		out, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(out) {
			t.Fatalf("not UTF-8:\n%q", out)
		}
		if err := validate(out); err != nil {
			t.Fatal(err)
		}
		var back report.Document
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatal(err)
		}
		row := back.Changes[0]
		if row.Bytes() != raw || row.Displaced[0].Bytes() != other || back.Watch.Halt.Bytes() != raw {
			t.Fatalf("%q, %q read back as %q, %q, %q", raw, other, row.Bytes(), row.Displaced[0].Bytes(), back.Watch.Halt.Bytes())
		}
		if (row.PathBase64 == "") != utf8.ValidString(raw) {
			t.Fatalf("%q: path_base64 %q", raw, row.PathBase64)
		}
		checkSummary(t, d)
	})
}

// The schema knows every field, wants every field that is not optional, and
// tolerates fields it does not know.
func TestSchemaIsStrictAboutWhatItKnows(t *testing.T) {
	optional := []string{"watched", "displaced_lost", "original", "journal_kept", "path_base64", "note"}
	met := map[string]bool{}
	validate, err := reporttest.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples() {
		if !slices.Contains([]string{"halted", "hostile_names", "troubled", "survivors", "unresolved", "not_back", "journal_kept", "watched_program"}, s.name) {
			continue
		}
		var root any
		out, err := s.doc.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &root); err != nil {
			t.Fatal(err)
		}
		judge := func() error {
			out, err := json.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			return validate(out)
		}
		each(root, func(object map[string]any) {
			for _, name := range slices.Collect(maps.Keys(object)) {
				met[name] = true
				value := object[name]
				delete(object, name)
				if err := judge(); (err == nil) != slices.Contains(optional, name) {
					t.Errorf("%s: without %s: %v", s.name, name, err)
				}
				object[name] = 1.5
				if judge() == nil {
					t.Errorf("%s: 1.5 passes for %s", s.name, name)
				}
				object[name] = value
			}
			object["a_later_field"] = 1.5
			if err := judge(); err != nil {
				t.Errorf("%s: a new field is refused: %v", s.name, err)
			}
			delete(object, "a_later_field")
		})
	}
	for _, name := range tags(reflect.TypeFor[report.Document]()) {
		if !met[name] {
			t.Errorf("no sample has the field %s", name)
		}
	}
}

// each visits every object of a JSON value; of an array, the first element.
func each(value any, visit func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			each(inner, visit)
		}
		visit(v)
	case []any:
		if len(v) > 0 {
			each(v[0], visit)
		}
	}
}

// tags returns the names that a type's fields have in JSON, at any depth.
func tags(typ reflect.Type) []string {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice:
		return tags(typ.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	var names []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
		names = append(names, tags(f.Type)...)
	}
	return names
}

func TestSchemaRefuses(t *testing.T) {
	for name, change := range map[string]func(d *report.Document){
		"status of a failure": func(d *report.Document) { d.Status = report.Failed },
		"no root":             func(d *report.Document) { d.Root = "shop" },
		"exit code":           func(d *report.Document) { d.ExitCode = 256 },
		"unknown outcome":     func(d *report.Document) { d.Changes[0].Outcome = "lost" },
		"unknown rule":        func(d *report.Document) { d.Changes[0].Rule = "tests" },
		"digest in capitals":  func(d *report.Document) { d.Changes[0].SHA256After = new(strings.Repeat("A", 64)) },
		"signal by number":    func(d *report.Document) { d.CommandSignal = new("15") },
		"error text":          func(d *report.Document) { d.Changes[0].ErrorCode = new("no space left on device") },
		"path of nothing":     func(d *report.Document) { d.Changes[0].Path = "" },
		"base64 of the web":   func(d *report.Document) { d.Changes[0].PathBase64 = "_-8=" },
		"negative count":      func(d *report.Document) { d.Watch.LiveRestores = -1 },
		"time with an offset": func(d *report.Document) { d.Session.StartedAt = "2026-03-01T09:30:00.000+01:00" },
		"no limits":           func(d *report.Document) { d.Limits = nil },
		"unknown halt": func(d *report.Document) {
			d.Watch.Halt = &report.Halt{Scope: "mood", Name: report.NameOf("a"), Rule: rules.Secrets}
		},
		"unknown resource cage": func(d *report.Document) { d.Resources.Mode = "vm" },
	} {
		d := uneventful()
		d.Changes = []report.Change{workflow()}
		change(&d)
		out, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if reporttest.Validate(out) == nil {
			t.Errorf("passes: %s", name)
		}
	}
	for _, text := range []string{"", "{}", "null", "{} {}", `{"status":"failed"}`} {
		if reporttest.Validate([]byte(text)) == nil {
			t.Errorf("passes: %q", text)
		}
	}
}

// The schema spells the rules as the program does.
func TestSchemaKnowsTheRules(t *testing.T) {
	for _, rule := range []rules.Rule{
		rules.CIConfig, rules.Secrets, rules.GitControl, rules.Lockfile,
		rules.CageConfig, rules.ForbiddenZone, rules.Protect, report.Ground, report.Unseen,
	} {
		for _, source := range []rules.Source{rules.Builtin, rules.Manifest, rules.CageYAML} {
			d := uneventful()
			c := workflow()
			c.Rule, c.Source = rule, source
			d.Changes = []report.Change{c}
			out, err := d.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if err := reporttest.Validate(out); err != nil {
				t.Error(err)
			}
		}
	}
}
