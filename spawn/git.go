package spawn

import (
	"slices"
	"strconv"
	"strings"
)

// GitSetting is one setting of git.
type GitSetting struct{ Key, Value string }

// WithGitSettings returns an environment in which git has settings besides,
// behind those that the environment gives it already. A count of settings that
// is no number stays as it is: git says what it thinks of it.
func WithGitSettings(environ []string, settings ...GitSetting) []string {
	const counter = "GIT_CONFIG_COUNT"
	var given string
	if at := slices.IndexFunc(environ, names(counter)); at >= 0 {
		given = strings.TrimPrefix(environ[at], counter+"=")
	}
	count, err := strconv.ParseUint("0"+given, 10, 31)
	if err != nil || len(settings) == 0 {
		return environ
	}
	env := slices.DeleteFunc(slices.Clone(environ), names(counter))
	for i, setting := range settings {
		number := strconv.FormatUint(count+uint64(i), 10)
		// What lies beyond the count had no effect.
		env = slices.DeleteFunc(env, names("GIT_CONFIG_KEY_"+number))
		env = slices.DeleteFunc(env, names("GIT_CONFIG_VALUE_"+number))
		env = append(env, "GIT_CONFIG_KEY_"+number+"="+setting.Key, "GIT_CONFIG_VALUE_"+number+"="+setting.Value)
	}
	return append(env, counter+"="+strconv.FormatUint(count+uint64(len(settings)), 10))
}

// gitInForeground are the settings with which git tidies up before it ends. It
// would put that into a session of its own, and fail where it may not.
func gitInForeground() []GitSetting {
	return []GitSetting{{"gc.autoDetach", "false"}, {"maintenance.autoDetach", "false"}}
}

// names returns what tells whether an entry of an environment is that variable.
func names(name string) func(entry string) bool {
	return func(entry string) bool { return strings.HasPrefix(entry, name+"=") }
}
