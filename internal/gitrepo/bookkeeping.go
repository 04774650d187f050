package gitrepo

import (
	"slices"
	"strings"
)

// Bookkeeping reports whether the difference between two configurations, given
// as the settings of ParseConfig, is one that git and its companions make in
// everyday work:
//
//   - branch.*.remote where it names a remote that after configures, or ".";
//   - branch.*.merge, rebase, description, gh-merge-base, vscode-merge-base;
//   - remote.*.gh-resolved of a remote that after configures;
//   - url and fetch of a remote that before does not mention at all, under a
//     plain name and with an ordinary transport;
//   - submodule.*.url with an ordinary transport, and submodule.*.active;
//   - branch sections that are gone as a whole, with all they held.
//
// Those settings may come, change and go. All others must be the same in the
// same order, since the order decides which of two wins, and what an include
// overrides. No difference at all is bookkeeping too.
//
// It judges steps as well as sums, but a remote that was added and is removed
// again is bookkeeping only against the configuration from before it came.
func Bookkeeping(before, after []Setting) bool {
	c := change{before: index(before), after: index(after)}
	return slices.Equal(c.fixed(before), c.fixed(after)) && c.harmless(after)
}

// change is two configurations, by key and by section.
type change struct{ before, after configuration }

// configuration holds, by key, the settings in their order, and the names of
// all subsections as "section.subsection".
type configuration struct {
	settings map[string][]Setting
	sections map[string]bool
}

// index prepares settings for questions by key and section.
func index(settings []Setting) configuration {
	c := configuration{settings: map[string][]Setting{}, sections: map[string]bool{}}
	for _, setting := range settings {
		c.settings[setting.Key] = append(c.settings[setting.Key], setting)
		if name := split(setting.Key); name.subsection != "" {
			c.sections[name.section+"."+name.subsection] = true
		}
	}
	return c
}

// remote reports whether a remote of that name has a URL.
func (c configuration) remote(name string) bool {
	return name != "" && len(c.settings["remote."+name+".url"]) > 0
}

// keyName is a key taken apart.
type keyName struct{ section, subsection, name string }

// split takes a key apart. Neither section nor name can hold a dot.
func split(key string) keyName {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first < 0 {
		return keyName{name: key}
	}
	if first == last {
		return keyName{section: key[:first], name: key[last+1:]}
	}
	return keyName{section: key[:first], subsection: key[first+1 : last], name: key[last+1:]}
}

// fixed returns those of settings that bookkeeping leaves as they are.
func (c change) fixed(settings []Setting) []Setting {
	var fixed []Setting
	for _, setting := range settings {
		if !c.free(split(setting.Key)) {
			fixed = append(fixed, setting)
		}
	}
	return fixed
}

// free reports whether bookkeeping touches settings of this name.
func (c change) free(key keyName) bool {
	if key.subsection == "" {
		return false
	}
	whole := key.section + "." + key.subsection
	switch key.section {
	case "branch":
		switch key.name {
		case "remote", "merge", "rebase", "description", "gh-merge-base", "vscode-merge-base":
			return true
		}
		return !c.after.sections[whole]
	case "remote":
		switch key.name {
		case "gh-resolved":
			return true
		case "url", "fetch":
			return !c.before.sections[whole]
		}
	case "submodule":
		return key.name == "url" || key.name == "active"
	}
	return false
}

// harmless reports whether every free key that came or changed has only values
// that bookkeeping would give it.
func (c change) harmless(after []Setting) bool {
	for _, setting := range after {
		key := split(setting.Key)
		if !c.free(key) || slices.Equal(c.before.settings[setting.Key], c.after.settings[setting.Key]) {
			continue
		}
		if setting.NoValue || strings.HasPrefix(setting.Value, "-") || !c.ordinary(key, setting.Value) {
			return false
		}
	}
	return true
}

// ordinary reports whether value is one that bookkeeping gives a free key.
func (c change) ordinary(key keyName, value string) bool {
	switch key.section + "." + key.name {
	case "branch.remote":
		return value == "." || c.after.remote(value)
	case "remote.gh-resolved":
		return c.after.remote(key.subsection)
	case "remote.url":
		return plainName(key.subsection) && ordinaryURL(value)
	case "remote.fetch":
		return plainName(key.subsection) && c.after.remote(key.subsection)
	case "submodule.url":
		return ordinaryURL(value)
	}
	return true
}

// plainName reports whether a new remote's name can be nothing but a name. git
// takes a remote's name before a path or a URL of the same spelling, so a
// remote called "../other" or "https://host/x" would divert what is fetched
// from or pushed to there.
func plainName(name string) bool {
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !letter && (i == 0 || c != '-' && c != '.' && c != '+') {
			return false
		}
	}
	return name != ""
}

// ordinaryURL reports whether git would reach url with a transport of its own
// rather than start a helper that the URL chooses, and whether no part of it
// can be taken for an option.
func ordinaryURL(url string) bool {
	if url == "" || strings.HasPrefix(url, "-") || strings.Contains(url, "::") || strings.ContainsFunc(url, control) {
		return false
	}
	scheme, rest, found := strings.Cut(url, "://")
	if !found || strings.Contains(scheme, "/") {
		// A path, or host:path.
		return true
	}
	switch scheme {
	case "https", "http", "ssh", "git", "file", "git+ssh", "ssh+git", "ftp", "ftps":
	default:
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	return !strings.HasPrefix(host, "-") && !strings.HasPrefix(authority, "-")
}

// control reports whether r is a control character.
func control(r rune) bool { return r < 0x20 || r == 0x7f }
