package spawn

import (
	"slices"
	"strings"
	"testing"
)

func TestEnvironment(t *testing.T) {
	secrets := []string{
		"GITHUB_TOKEN=s", "_TOKEN=s", "APP_SECRET=s", "DB_PASSWORD=s", "OPENAI_API_KEY=s",
		"AWS_PROFILE=s", "AWS_=s", "DYLD_INSERT_LIBRARIES=s", "LD_PRELOAD=s", "LD_LIBRARY_PATH=s", "SSH_AUTH_SOCK=s",
	}
	names := func(entries []string) (names []string) {
		for _, entry := range entries {
			names = append(names, entry[:strings.IndexByte(entry, '=')])
		}
		slices.Sort(names)
		return names
	}
	harmless := []string{"PATH=/bin", "TOKEN=1", "TOKENS_=1", "MY_TOKENX=1", "XAWS_=1", "LD_PRELOADED=1", "my_token=1", "EMPTY=", "TWO=1", "TWO=2"}
	everything := slices.Concat(harmless, secrets, []string{"odd", "=hidden"})
	for _, tt := range []struct {
		name         string
		environment  Environment
		has          []string
		env, dropped []string
	}{
		{"nothing is named", Environment{}, everything, nil, slices.Compact(names(slices.Concat(harmless, secrets)))},
		{"some are named", Environment{Allow: []string{"PATH", "TWO", "absent", "GITHUB_TOKEN"}}, []string{"PATH=/bin", "TWO=1", "TWO=2", "GITHUB_TOKEN=s", "HOME=/"},
			[]string{"PATH=/bin", "TWO=1", "TWO=2", "GITHUB_TOKEN=s"}, []string{"HOME"}},
		{"the denied does not pass, though named", Environment{Allow: []string{"A"}, Deny: []string{"A"}}, []string{"A=1"}, nil, []string{"A"}},
		{"all but secrets", Environment{Policy: Passthrough}, everything, harmless, names(secrets)},
		{"a secret is not let through by name", Environment{Policy: Passthrough, Allow: []string{"GITHUB_TOKEN"}}, []string{"GITHUB_TOKEN=s"}, nil, []string{"GITHUB_TOKEN"}},
		{"also not the denied", Environment{Policy: Passthrough, Deny: []string{"HOME"}}, []string{"HOME=/", "A=1"}, []string{"A=1"}, []string{"HOME"}},
		{"everything", Environment{Policy: Inherit}, everything, everything, nil},
		{"everything but the denied", Environment{Policy: Inherit, Deny: []string{"TWO", "odd"}}, []string{"TWO=1", "odd", "TWO=2", "A=1"}, []string{"A=1"}, []string{"TWO"}},
		{"what is set stays", Environment{Policy: Passthrough, Deny: []string{"A"}, Set: []string{"A=2", "LD_PRELOAD=x"}},
			[]string{"A=1", "LD_PRELOAD=s", "B=1"}, []string{"B=1", "A=2", "LD_PRELOAD=x"}, nil},
		{"the last that is set counts", Environment{Set: []string{"A=1", "B=1", "A=2"}}, []string{"B=0"}, []string{"B=1", "A=2"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			has := slices.Clone(tt.has)
			env, dropped := tt.environment.Apply(has)
			if !slices.Equal(env, tt.env) {
				t.Errorf("the command gets %q, want %q", env, tt.env)
			}
			if !slices.Equal(dropped, tt.dropped) {
				t.Errorf("it does not get %q, want %q", dropped, tt.dropped)
			}
			if !slices.Equal(has, tt.has) {
				t.Error("the caller's environment was changed")
			}
		})
	}
}

// Whatever the caller has: nothing is lost without being named, no name that
// holds a secret passes, and no value is in the names.
func FuzzEnvironment(f *testing.F) {
	f.Add("PATH=/bin\nGITHUB_TOKEN=s\nodd\n=x", uint8(Passthrough), "PATH", "HOME", "A=1\nB=2")
	f.Add("AWS_X=\nAWS_X=1", uint8(AllowList), "AWS_X", "AWS_X", "AWS_X=3")
	f.Fuzz(func(t *testing.T, has string, policy uint8, allow, deny, set string) {
		environ := strings.Split(has, "\n")
		e := Environment{Policy: Policy(policy % 3), Allow: []string{allow}, Deny: []string{deny}}
		for entry := range strings.SplitSeq(set, "\n") {
			if i := strings.IndexByte(entry, '='); i > 0 {
				e.Set = append(e.Set, entry)
			}
		}
		env, dropped := e.Apply(environ)
		isSet := func(name string) bool {
			return slices.ContainsFunc(e.Set, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
		}
		for _, entry := range environ {
			name, _, ok := strings.Cut(entry, "=")
			passed := slices.Contains(env, entry)
			if ok && name != "" && !passed && !isSet(name) && !slices.Contains(dropped, name) {
				t.Fatalf("%q neither passes nor is it named", entry)
			}
			if passed && !isSet(name) && (name == deny || e.Policy == AllowList && name != allow || e.Policy == Passthrough && strings.HasSuffix(name, "_TOKEN")) {
				t.Fatalf("%q passes", entry)
			}
		}
		for _, name := range dropped {
			if strings.Contains(name, "=") {
				t.Fatalf("%q is more than a name", name)
			}
		}
		for _, entry := range e.Set {
			if !slices.Contains(env, entry) && strings.Count("\n"+set, "\n"+entry[:strings.IndexByte(entry, '=')+1]) < 2 {
				t.Fatalf("%q is not set", entry)
			}
		}
	})
}
