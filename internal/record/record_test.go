package record

import (
	"encoding/json"
	"testing"

	"cage/rules"
)

func TestPath(t *testing.T) {
	for _, a := range rules.Anchors() {
		for _, rel := range []string{"", ".env", "a/b", "odd\n\xff/ .env"} {
			p := rules.Path{Anchor: a, Rel: rel}
			data, err := json.Marshal(PathOf(p))
			if err != nil {
				t.Fatal(err)
			}
			var written Path
			if err := Unmarshal(data, &written); err != nil {
				t.Fatal(err)
			}
			if got, err := written.Read(); err != nil || got != p {
				t.Errorf("%v is read as %v (%v)", p, got, err)
			}
		}
	}
	for _, forged := range []Path{
		{}, {Anchor: "outside"}, PathOf(rules.Path{Anchor: rules.Outside, Rel: "etc/passwd"}),
		{"root", []byte("/etc")}, {"root", []byte("..")}, {"root", []byte("a/../../b")},
		{"root", []byte("a//b")}, {"root", []byte("./a")}, {"root", []byte("a/")}, {"root", []byte("a\x00")},
	} {
		if p, err := forged.Read(); err == nil {
			t.Errorf("%q in %q is read as %v", forged.Rel, forged.Anchor, p)
		}
	}
}

func TestUnmarshal(t *testing.T) {
	for text, fits := range map[string]bool{
		`{"anchor":"root","rel":"YQ=="}`: true,
		` {} ` + "\n":                    true,
		``:                               false,
		`{"anchor":"root","rel":"YQ==","more":1}`:   false,
		`{"anchor":"root","rel":"YQ=="}{}`:          false,
		`{"anchor":"root","rel":"YQ=="} "and more"`: false,
		`{"anchor":"root","rel":"YQ=="`:             false,
		`{"anchor":"root","rel":"not base64"}`:      false,
	} {
		var p Path
		if err := Unmarshal([]byte(text), &p); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
	}
}
