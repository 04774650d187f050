package spawn

import (
	"slices"
	"strconv"
	"strings"
)

// gitInForeground returns an environment in which git tidies up before it ends.
// It would put that into a session of its own, and fail where it may not. A
// count of settings that is no number stays as it is: git says what it thinks of
// it.
func gitInForeground(environ []string) []string {
	const counter = "GIT_CONFIG_COUNT"
	var given string
	if at := slices.IndexFunc(environ, names(counter)); at >= 0 {
		given = strings.TrimPrefix(environ[at], counter+"=")
	}
	count, err := strconv.ParseUint("0"+given, 10, 31)
	if err != nil {
		return environ
	}
	env := slices.DeleteFunc(slices.Clone(environ), names(counter))
	for i, key := range []string{"gc.autoDetach", "maintenance.autoDetach"} {
		number := strconv.FormatUint(count+uint64(i), 10)
		// What lies beyond the count had no effect.
		env = slices.DeleteFunc(env, names("GIT_CONFIG_KEY_"+number))
		env = slices.DeleteFunc(env, names("GIT_CONFIG_VALUE_"+number))
		env = append(env, "GIT_CONFIG_KEY_"+number+"="+key, "GIT_CONFIG_VALUE_"+number+"=false")
	}
	return append(env, counter+"="+strconv.FormatUint(count+2, 10))
}

// names returns what tells whether an entry of an environment is that variable.
func names(name string) func(entry string) bool {
	return func(entry string) bool { return strings.HasPrefix(entry, name+"=") }
}
