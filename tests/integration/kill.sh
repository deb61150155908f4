#!/usr/bin/env bash
# kill -9 of the runner, the worker, the compiler, the reference and the agent at random moments, and what a person's
# Ctrl-C leaves. KILL_MOMENTS=N for the agent's moments, KILL_SEED for moments that come again.
set -u
twagent=$(readlink -f "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config TMPDIR=$work/tmp TWAGENT_LOCKS=$work/locks
mkdir -p "$work/tmp" "$work/config/twagent" && echo 'time-budget: 40ms' >"$work/config/twagent/config.yaml" # no number is looked at
mkdir -p "$work"/locks/cpu{0..255} # no test beside this one is waited for
passed=0 failed=0
for part in orphans steps stop agent; do
    mkdir "$work/$part"
    python=$(command -v /usr/bin/python3 || command -v python3)
    "$python" -B "$here/kill_$part.py" "$twagent" "$work/$part" "$here/../adversarial/cpu/problems/mm" \
        "$work/$part/result" || { echo "FAILED: kill_$part.py exited $?"; failed=$((failed + 1)); }
    [ -f "$work/$part/result" ] || continue
    read -r good bad <"$work/$part/result"
    passed=$((passed + good)) failed=$((failed + bad))
done
echo "kill: $passed passed, $failed failed"
[ $failed -eq 0 ]
