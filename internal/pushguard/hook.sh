#!/bin/sh
# git runs this under the name of a hook. It runs the repository's own hook of
# that name in its place, as if nothing stood between them.
hook=${0##*/}
dir=${0%/*}

ask() {
	if ! [ -x "$dir/cage-push-judge" ]; then
		echo "cage: push refused: nobody is left to judge it: the cage's program is gone from its place, or not executable" >&2
		echo "fix: put it back there, or push when the session has ended" >&2
		return 1
	fi
	"$dir/cage-push-judge" "$dir" <<EOF
$pushed
EOF
}

# What git says on the standard input of this hook is asked about first, and
# then handed on.
pushed=
if [ "$hook" = pre-push ]; then
	pushed=$(cat)
	if [ -n "$pushed" ]; then
		ask || exit 1
	fi
fi

# The session's setting goes, wherever in the list it stands; the rest moves up.
given=0 kept=0
while [ "$given" -lt "${GIT_CONFIG_COUNT:-0}" ]; do
	eval "value=\${GIT_CONFIG_VALUE_$given-}"
	if [ "$value" != "$dir/cage-config" ]; then
		if [ "$kept" -ne "$given" ]; then
			eval "GIT_CONFIG_KEY_$kept=\$GIT_CONFIG_KEY_$given GIT_CONFIG_VALUE_$kept=\$value"
		fi
		kept=$((kept + 1))
	fi
	given=$((given + 1))
done
while [ "$given" -gt "$kept" ]; do
	given=$((given - 1))
	unset "GIT_CONFIG_KEY_$given" "GIT_CONFIG_VALUE_$given"
done
GIT_CONFIG_COUNT=$kept
if [ "$kept" -eq 0 ]; then
	unset GIT_CONFIG_COUNT
fi
unset value given kept

# A name may end with a newline, which only what stands behind it preserves.
if ! own=$(git rev-parse --git-path "hooks/$hook" </dev/null && echo .); then
	echo "cage: cannot find the repository's own $hook hook" >&2
	exit 1
fi
own=${own%??}

# Whoever sets core.hooksPath to what it was in the session has no own hook.
if [ "$own" = "$0" ]; then
	exit 0
fi
if ! [ -x "$own" ]; then
	if [ -e "$own" ]; then
		# git says what it says of a hook that nobody may execute.
		git hook run --ignore-missing "$hook" </dev/null
	fi
	exit 0
fi
if [ -z "$pushed" ]; then
	exec "$own" "$@"
fi
exec "$own" "$@" <<EOF
$pushed
EOF
