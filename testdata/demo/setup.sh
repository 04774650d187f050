#!/bin/sh
# Fills the empty current directory with the demo's throw-away repository.
set -eu
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

[ -z "$(ls -A)" ] || { echo "setup.sh: $PWD is not empty" >&2; exit 2; }

git -c init.defaultBranch=main init -q --template=
git config user.name "A. Person"
git config user.email person@example.invalid

mkdir -p .github/workflows .git/hooks src tests

cat >.github/workflows/ci.yml <<'END'
name: ci
on: [push]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - run: sh tests/login.sh
END
cat >.env <<'END'
DATABASE_URL=postgres://app:demo-only@localhost/shop
END
cat >.cage.yaml <<'END'
protect:
  - path: tests/
END
cat >.git/hooks/pre-commit <<'END'
#!/bin/sh
exec sh tests/login.sh
END
chmod 0755 .git/hooks/pre-commit
cat >tests/login.sh <<'END'
grep -q 'check_password' src/login.sh || { echo "login does not check the password"; exit 1; }
END
echo 'login() { check_password "$1" "$2"; }' >src/login.sh
echo '{ "name": "shop", "version": "1.0.0", "lockfileVersion": 3 }' >package-lock.json
printf '.env*\n' >.gitignore
: >.throw-away

git add .
git commit -q --no-verify -m "A small shop"
