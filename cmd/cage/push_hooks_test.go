package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// workAtGit makes git run nearly all of its hooks on the client's side, and
// those of the other side by pushes of the repository to itself. Times and names
// are fixed, so that two rounds of it give the same commits.
const workAtGit = `
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.invalid GIT_AUTHOR_DATE='1700000000 +0000'
export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.invalid GIT_COMMITTER_DATE='1700000000 +0000'
export GIT_EDITOR=:
say() { echo "$1: $?" >>"$LOG"; }
echo 1 >a; git add a; git commit -m first; say commit
echo 2 >a; git commit -a -m second; say 'commit -a'
git commit --amend -m amended; say amend
git checkout -q -b side HEAD~1; say checkout
echo s >s; git add s; git commit -m side; say commit
git merge -m merge main; say merge
git merge --ff-only main; say 'merge that has nothing to do'
git checkout -q -b base main~1; echo b >b; git add b; git commit -m base
git checkout -q main; git rebase base; say rebase
git format-patch -q -1 --stdout >patch; git reset -q --hard HEAD~1
git am -q patch; say am
git push -q origin main; say push
git push -q origin main; say 'push of nothing'
git push -q origin main~1:refs/heads/other :refs/heads/none main:refs/heads/third; say 'push of several'
git push -q . main:refs/heads/here; say 'push to itself'
(mkdir -p d/e && cd d/e && echo d >d && git add d && git commit -m 'from below'); say 'commit from below'
git -C d/e commit --allow-empty -m 'by -C'; say 'commit by -C'
GIT_DIR=.git GIT_WORK_TREE=. git commit --allow-empty -m 'by GIT_DIR'; say 'commit by GIT_DIR'
# Where the path is relative, git takes post-checkout from the work tree that it
# is called in, which the hook of a session cannot know.
[ -d .githooks -o -d .husky ] && without='-c core.hooksPath=/dev/null'
git $without worktree add -q "$FIELD/linked" base; say 'worktree add'
(cd "$FIELD/linked" && git commit --allow-empty -m linked); say 'commit in a linked work tree'
git worktree remove --force "$FIELD/linked"
git gc -q --auto; say gc
git -c core.hooksPath=/dev/null commit --allow-empty -m none; say 'commit without hooks'
git commit --no-verify --allow-empty -m unverified; say 'commit that is not verified'
: >"$FIELD/fails-pre-commit"; git commit --allow-empty -m refused; say 'commit that is refused'
for name in p4-pre-submit pre-receive sendemail-validate; do
	git hook run --ignore-missing $name -- "two  words" '' "$(printf 'a\nb')" >>"$LOG" 2>&1; say "hook $name"
done
`

// tellingHook writes down all that a hook can know, and ends as its name is
// told to. Left out are names that git makes up, and settings that do not count:
// what git starts for another repository has no count of them any more.
const tellingHook = `#!/bin/sh
name=${0##*/}
# How often git writes the index depends on the time of day.
[ "$name" != post-index-change ] || LOG=$LOG-$name
{
	echo "hook $name at $0 in $(pwd)"
	for word; do echo "  word <$word>"; done
	settings='[KV]'
	[ -z "$GIT_CONFIG_COUNT" ] || settings=-
	set | sed -nE "/^GIT_(INDEX_FILE|OBJECT_DIRECTORY|QUARANTINE_PATH|CONFIG_$settings)/d; s/^GIT_/  &/p"
	git config --get-all core.hooksPath | sed 's/^/  path /'
} >>"$LOG"
case $name in
pre-push | post-rewrite | pre-receive | post-receive | reference-transaction) sed 's/.*/  in <&>/' >>"$LOG" ;;
esac
[ ! -e "$FIELD/fails-$name" ] || exit 7
`

// hookLayouts are ways to have hooks. Each is a script that makes them of the
// file in $HOOK, before the work; the caller's variables are named beside.
func hookLayouts() map[string]struct {
	setUp string
	env   []string
} {
	const all = `for name in $NAMES; do install -m 755 "$HOOK" $dir/$name; done
`
	type layout = struct {
		setUp string
		env   []string
	}
	return map[string]layout{
		"none":               {setUp: ""},
		"the repository's":   {setUp: "NAMES=\"$NAMES" + hotHooks + "\"\ndir=.git/hooks\nmkdir -p $dir\n" + all},
		"a path in the root": {setUp: "dir=.githooks\nmkdir -p $dir\ngit config core.hooksPath .githooks\n" + all},
		"a path in the home": {setUp: "dir=$HOME/my\\ hooks\nmkdir -p \"$dir\"\ngit config core.hooksPath '~/my hooks'\n" +
			`for name in $NAMES; do install -m 755 "$HOOK" "$dir/$name"; done` + "\n"},
		"none by a path": {setUp: "git config core.hooksPath /dev/null\n"},
		"some fail": {setUp: "dir=.git/hooks\nmkdir -p $dir\n" + all +
			"for name in pre-push post-commit pre-rebase p4-pre-submit; do : >\"$FIELD/fails-$name\"; done\n"},
		"not executable, no first line, a broken one": {setUp: `dir=.git/hooks
mkdir -p $dir
` + all + `chmod -x $dir/commit-msg
printf 'echo "a hook without a first line: $*" >>"$LOG"\n' >$dir/post-commit
printf '#!/nowhere/sh\n' >$dir/post-rewrite
ln -sf nowhere $dir/pre-rebase
rm $dir/post-merge; mkdir $dir/post-merge
`},
		"husky's": {setUp: `mkdir -p .husky/_
git config core.hooksPath .husky/_
cat >.husky/_/h <<'EOF'
n=$(basename "$0")
s=$(dirname "$(dirname "$0")")/$n
[ ! -f "$s" ] && exit 0
sh -e "$s" "$@"
EOF
for name in pre-commit commit-msg pre-push post-merge; do
	printf '#!/usr/bin/env sh\n. "$(dirname "$0")/h"' >.husky/_/$name
	chmod 755 .husky/_/$name
	install -m 644 "$HOOK" .husky/$name
done
`},
		"the caller's own settings": {
			setUp: "dir=.githooks\nmkdir -p $dir\n" + all,
			env: []string{
				"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=a 'b' $c \"d\"",
				"GIT_CONFIG_KEY_1=core.hooksPath", "GIT_CONFIG_VALUE_1=.githooks", "GIT_CONFIG_KEY_2=a.b", "GIT_CONFIG_VALUE_2=",
			},
		},
	}
}

// Hooks run inside a session as they do outside: the same ones, in the same
// order, with the same name, words, directory, environment and standard input,
// and what comes of them is the same.
func TestHooksRunAsEver(t *testing.T) {
	for name, layout := range hookLayouts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := hooksTold(t, layout.setUp, layout.env, "sh", "-c", workAtGit)
			caged := hooksTold(t, layout.setUp, layout.env, "cage", "--", "sh", "-c", workAtGit)
			if name != "none" && name != "none by a path" && !strings.Contains(plain, "in <") {
				t.Fatalf("no hook was told anything:\n%s", plain)
			}
			if strings.Contains(layout.setUp, "chmod -x") && strings.HasSuffix(plain, "\n0 times git ignored a hook\n") {
				t.Fatalf("git ignored no hook:\n%s", plain)
			}
			if plain != caged {
				t.Errorf("without a cage:\n%s\nin one:\n%s", plain, caged)
			}
		})
	}
}

// hooksTold returns what hooks wrote down while a program worked in a new
// repository.
func hooksTold(t *testing.T, setUp string, variables []string, program string, args ...string) string {
	f := newField(t)
	f.write("../hook", tellingHook)
	log := filepath.Join(f.work, "log")
	run := func(name string, words ...string) *bytes.Buffer {
		r := f.prepare(name, words...)
		r.cmd.Env = append(append(r.cmd.Env, variables...), "LOG="+log, "HOOK="+filepath.Join(f.work, "hook"), "NAMES="+everyHook,
			"GIT_TEMPLATE_DIR=")
		r.begin()
		r.exits(0)
		return &r.stderr
	}
	run("sh", "-ec", "rm .env; git init -q --bare ../origin.git; git remote add origin ../origin.git; git checkout -q -b main\n"+setUp)
	ignored := strings.Count(run(program, args...).String(), "hook was ignored because")
	told, err := os.ReadFile(log)
	f.must(err)
	_, err = os.Stat(log + "-post-index-change")
	return strings.ReplaceAll(string(told), f.work, "$FIELD") +
		fmt.Sprintf("the index was written: %v\n%d times git ignored a hook\n", err == nil, ignored)
}

const everyHook = "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg " +
	"post-commit pre-rebase post-checkout post-merge pre-push pre-receive update post-receive post-update pre-auto-gc " +
	"post-rewrite sendemail-validate p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit"

// hotHooks are those that git runs several times for all it does.
const hotHooks = " reference-transaction post-index-change"
