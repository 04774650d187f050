package scope

import (
	"errors"
	"math"
	"strings"
	"testing"

	"cage/internal/proc"
)

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]Memory{
		"auto":    Auto(),
		"4096":    Bytes(4096),
		"512K":    Bytes(512 << 10),
		"1M":      Bytes(1 << 20),
		"1.5G":    Bytes(3 << 29),
		"0.5M":    Bytes(1 << 19),
		"2T":      Bytes(2 << 40),
		"1%":      {percent: 1},
		"100%":    {percent: 100},
		"007M":    Bytes(7 << 20),
		"1.0625M": Bytes(1<<20 + 1<<16),
	} {
		if got, err := ParseMemory(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "M", ".5M", "1.M", "-1", "+1M", "1m", "1GB", "1 G", "1G ", "0", "0M", "0%", "101%", "1.5%", "%", "infinity", "max", "Auto",
		"1e9", "0x10", "1_000M", "١M", "12", "99999999999999999999", "18446744073709551615T", "16777216T", "1.1234567G", "1..5G", "1.5", "NaN",
	} {
		if got, err := ParseMemory(text); !errors.Is(err, ErrSize) && err == nil {
			t.Errorf("%q is %+v, want a refusal", text, got)
		}
	}
}

func TestAutoMemory(t *testing.T) {
	for _, c := range []struct{ ceiling, want uint64 }{
		{7680 << 20, autoCap},
		{9 << 29, 9 << 28}, // 4.5 GiB: 2.25 GiB
		{4 << 30, 2 << 30},
		{2 << 30, 2 << 30},
		{1 << 30, 1 << 30}, // below the floor, on purpose
		{0, 1},
		{math.MaxUint64, autoCap},
	} {
		if got := autoMemory(&c.ceiling); got != c.want {
			t.Errorf("below %d auto is %d, want %d", c.ceiling, got, c.want)
		}
	}
	if got := autoMemory(nil); got != autoCap {
		t.Errorf("below an unknown ceiling auto is %d", got)
	}
}

func TestMemoryInForce(t *testing.T) {
	ceiling := uint64(1 << 30)
	for _, c := range []struct {
		memory  Memory
		ceiling *uint64
		want    uint64
	}{
		{Bytes(5000), nil, 4096},
		{Bytes(1), nil, 4096},
		{Bytes(4 << 30), &ceiling, 1 << 30}, // a larger number would hold nothing
		{Memory{percent: 25}, nil, 2 << 30},
		{Memory{percent: 25}, &ceiling, 1 << 30},
		{Auto(), &ceiling, 1 << 30},
		{Auto(), nil, autoCap},
	} {
		if got := c.memory.in(c.ceiling, 8<<30, 4096); got > c.want || c.want-got > 8<<20 || got%4096 != 0 {
			t.Errorf("%+v is %d, want %d", c.memory, got, c.want)
		}
	}
}

func FuzzParseMemory(f *testing.F) {
	for _, text := range []string{"1.5G", "25%", "auto", "4096", "1..M"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMemory(text)
		if err != nil {
			return
		}
		if !m.IsSet() || !m.auto && m.percent == 0 && m.bytes < kibibyte || m.percent > 100 {
			t.Errorf("%q is %+v", text, m)
		}
		ceiling := uint64(3 << 30)
		if n := m.in(&ceiling, 8<<30, 4096); n == 0 || n > ceiling || n%4096 != 0 {
			t.Errorf("%q comes to %d bytes", text, n)
		}
	})
}

func TestSanitise(t *testing.T) {
	long := strings.Repeat("a", mostID)
	for id, want := range map[string]string{
		"0123456789abcdef": "0123456789abcdef",
		"A_b.c-d":          "A_b.c-d",
		long:               long,
		"":                 "session-e3b0c442",
		"...":              "session-ab5df625",
		"a b":              "a-b-c8687a08",
		"a:b":              "a-b-6783a31e",
		".a":               "a-36797c3a",
		long + "b":         long + "-630d6e94",
		"ä":                "session-33e6d73f",
	} {
		if got := sanitise(id); got != want {
			t.Errorf("%q becomes %q, want %q", id, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	a := name{label: "a", owner: owner{namespace: 4026531836, ID: proc.ID{PID: 7, Start: 9}}, attempt: 2}
	if got := a.unit(); got != "cage-session-a:4026531836:7:9:2.scope" {
		t.Errorf("it is called %s", got)
	}
	if read, ok := parseName(a.unit()); !ok || read != a {
		t.Errorf("it is read as %+v, %t", read, ok)
	}
	for _, foreign := range []string{
		"", "cage-session-", "cage-session-a.scope", "other-a:1:2:3:4.scope", "cage-session-a:1:2:3.scope", "cage-session-a:1:2:3:0.scope",
		"cage-session-a:1:0:3:1.scope", "cage-session-a:01:2:3:4.scope", "cage-session-a:1:2:3:4:5.scope", "cage-session-a b:1:2:3:4.scope",
		"cage-session-a:1:2:3:-1.scope", "cage-session-:1:2:3:4.scope", "cage-sessions.slice",
	} {
		if read, ok := parseName(foreign); ok {
			t.Errorf("%q is taken for %+v", foreign, read)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a", 1)
	f.Add("a-2", 1)
	f.Add("../../x", 3)
	f.Add(strings.Repeat("é", 200), 1<<20)
	f.Fuzz(func(t *testing.T, id string, attempt int) {
		n := name{label: sanitise(id), owner: owner{math.MaxUint32, proc.ID{PID: MostTasks, Start: math.MaxUint64}}, attempt: 1 + int(uint(attempt)%mostAttempts)}
		unit := n.unit()
		read, ok := parseName(unit)
		if !ok || read != n {
			t.Errorf("%q is read as %+v, %t", unit, read, ok)
		}
		if len(unit) > 255 {
			t.Errorf("a name of %d bytes", len(unit))
		}
		// Nothing that systemd-run would spell in another way.
		const valid = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.-"
		if strings.Trim(unit, valid) != "" {
			t.Errorf("%q is no name of a unit", unit)
		}
	})
}
