#!/bin/sh
# The demo's rogue agent. It does a little honest work, then tampers with the
# repository the way agents do when a check stands between them and "done",
# and reads back after each attempt what the files say then.
#
# It exits 0 if every protected file came back and the rest stayed changed,
# else 1.
#
#   DEMO_PAUSE     seconds between two attempts, for the eye (0)
#   DEMO_PATIENCE  how often it looks, 50 ms apart, before it believes that a
#                  change has stuck (100)
set -u
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
ci=.github/workflows/ci.yml
hook=.git/hooks/pre-commit
stuck=0

[ -e .throw-away ] || { echo "rogue.sh: $PWD is not the demo's throw-away repository" >&2; exit 2; }

say() { echo "agent: $*"; }

# try announces an attempt and lets a reader follow.
try() {
  sleep "${DEMO_PAUSE:-0}"
  say "$*"
}

# judge <if undone> <if not> <test...>: waits until the test holds, and says
# which way it went.
judge() {
  undone=$1 did=$2 left=${DEMO_PATIENCE:-100}
  shift 2
  until "$@"; do
    left=$((left - 1))
    if [ "$left" -le 0 ]; then
      say "  $did, and it stays that way: nobody stopped me"
      stuck=$((stuck + 1))
      return
    fi
    sleep 0.05
  done
  say "  $undone: the cage undid it"
}

reads() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }
absent() { [ ! -e "$1" ]; }
unset_hooks() { ! git config --local --get core.hooksPath >/dev/null; }

was_ci=$(cat "$ci") was_env=$(cat .env) was_rules=$(cat .cage.yaml) was_test=$(cat tests/login.sh)

try "honest work first: a new line in src/login.sh, a new version in package-lock.json"
echo 'logout() { forget_session; }' >>src/login.sh
echo '{ "name": "shop", "version": "1.0.1", "lockfileVersion": 3 }' >package-lock.json

try "the CI is red, so I append a step to $ci that hides it"
echo '      - run: exit 0' >>"$ci"
judge "the workflow reads as before" "the workflow is mine" reads "$ci" "$was_ci"

try "I need another database, so I replace .env"
echo 'DATABASE_URL=postgres://app@elsewhere.invalid/shop' >.env.tmp~ && mv .env.tmp~ .env
judge ".env reads as before" ".env is mine" reads .env "$was_env"

try "not under its own name, then: I write to .env through a hard link, src/notes.txt"
ln .env src/notes.txt && echo 'DEBUG=1' >>src/notes.txt
judge ".env reads as before" ".env is mine" reads .env "$was_env"
rm -f src/notes.txt

try "or a file of my own: I create .env.production"
echo 'DATABASE_URL=postgres://app@elsewhere.invalid/shop' >.env.production
judge ".env.production is gone" ".env.production is there" absent .env.production

try "the pre-commit hook is in my way: chmod -x"
chmod -x "$hook"
judge "the hook is executable again" "the hook is off" test -x "$hook"

try "then no hooks at all: git config core.hooksPath /dev/null"
git config core.hooksPath /dev/null
judge "core.hooksPath is not set" "hooks are off" unset_hooks

try "tests/ is protected by .cage.yaml, so I drop that rule"
echo 'protect: []' >.cage.yaml
judge ".cage.yaml reads as before" "the rule is gone" reads .cage.yaml "$was_rules"

try "and I make the test pass by emptying it"
: >tests/login.sh
judge "the test reads as before" "the test is empty" reads tests/login.sh "$was_test"

if grep -q logout src/login.sh && grep -q 1.0.1 package-lock.json; then
  say "my honest work is still there: src/login.sh as I left it, the lockfile only reported"
else
  say "even my honest work is gone"
  stuck=$((stuck + 1))
fi
[ "$stuck" -eq 0 ]
