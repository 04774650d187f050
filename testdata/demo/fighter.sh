#!/bin/sh
# The demo's second agent: it wants one line in the workflow and does not take
# no for an answer. Beside it runs a helper that ignores SIGTERM. It never ends
# well: either it is halted on the way, or it gives up after twelve attempts
# and exits 1.
#
#   DEMO_EVERY  seconds between two attempts (1.2: over the second that a
#               round lasts)
set -u
ci=.github/workflows/ci.yml

[ -e .throw-away ] || { echo "fighter.sh: $PWD is not the demo's throw-away repository" >&2; exit 2; }

# Bounded, so that it ends without a cage too.
(trap '' TERM; n=0; while [ "$n" -lt 60 ]; do n=$((n + 1)); sleep 1; done) &
echo "$!" >helper.pid
echo "agent: a helper of mine runs in the background and ignores SIGTERM"

was=$(cat "$ci") n=0
while [ "$n" -lt 12 ]; do
  n=$((n + 1))
  echo "agent: attempt $n: I append my step to $ci again"
  echo '      - run: exit 0' >>"$ci"
  left=100
  until [ "$(cat "$ci" 2>/dev/null)" = "$was" ] || [ "$left" -le 0 ]; do
    left=$((left - 1))
    sleep 0.05
  done
  [ "$left" -le 0 ] || echo "agent:   the workflow reads as before: the cage undid it"
  sleep "${DEMO_EVERY:-1.2}"
done
kill -KILL "$!"
wait
echo "agent: nobody stopped me"
exit 1
