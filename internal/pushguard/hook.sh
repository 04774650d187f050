#!/bin/sh
# git runs this under the name of a hook. It runs the repository's own hook of
# that name in its place, as if nothing stood between them. A variable that git
# was called with by one of these names would not come through.
cage_hook=${0##*/}
cage_dir=${0%/*}

ask() {
	if ! [ -x "$cage_dir/cage-push-judge" ]; then
		echo "cage: push refused: nobody is left to judge it: the cage's program is gone from its place, or not executable" >&2
		echo "fix: put it back there, or push when the session has ended" >&2
		return 1
	fi
	"$cage_dir/cage-push-judge" "$cage_dir" <<EOF
$cage_pushed
EOF
}

# What git says on the standard input of this hook is asked about first, and
# then handed on.
cage_pushed=
if [ "$cage_hook" = pre-push ]; then
	cage_pushed=$(cat) || exit 1
	if [ -n "$cage_pushed" ]; then
		ask || exit 1
	fi
fi

# The session's setting goes, wherever in the list it stands; the rest moves up.
cage_given=0 cage_kept=0
while [ "$cage_given" -lt "${GIT_CONFIG_COUNT:-0}" ]; do
	eval "cage_value=\${GIT_CONFIG_VALUE_$cage_given-}"
	if [ "$cage_value" != "$cage_dir/cage-config" ]; then
		if [ "$cage_kept" -ne "$cage_given" ]; then
			eval "GIT_CONFIG_KEY_$cage_kept=\$GIT_CONFIG_KEY_$cage_given GIT_CONFIG_VALUE_$cage_kept=\$cage_value"
		fi
		cage_kept=$((cage_kept + 1))
	fi
	cage_given=$((cage_given + 1))
done
while [ "$cage_given" -gt "$cage_kept" ]; do
	cage_given=$((cage_given - 1))
	unset "GIT_CONFIG_KEY_$cage_given" "GIT_CONFIG_VALUE_$cage_given"
done
GIT_CONFIG_COUNT=$cage_kept
if [ "$cage_kept" -eq 0 ]; then
	unset GIT_CONFIG_COUNT
fi

# A name may end with a newline, which only what stands behind it preserves.
if ! cage_own=$(git rev-parse --git-path "hooks/$cage_hook" </dev/null && echo .); then
	echo "cage: cannot find the repository's own $cage_hook hook" >&2
	exit 1
fi
cage_own=${cage_own%??}

# Whoever sets core.hooksPath to what it was in the session has no own hook.
if [ "$cage_own" = "$0" ]; then
	exit 0
fi
if ! [ -x "$cage_own" ]; then
	if [ -e "$cage_own" ]; then
		# git says what it says of a hook that nobody may execute.
		git hook run --ignore-missing "$cage_hook" </dev/null
	fi
	exit 0
fi
if [ -z "$cage_pushed" ]; then
	exec "$cage_own" "$@"
fi
exec "$cage_own" "$@" <<EOF
$cage_pushed
EOF
