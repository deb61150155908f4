#!/usr/bin/env bash
# resume.sh TWAGENT FAKE_WORKER STORE_DUMP: kill -9 of twagent at random moments of a search with a model, resumed each
# time: the same tree, nothing paid for twice. RESUME_MOMENTS=N kills (12), KILL_SEED for moments that come again.
set -u
twagent=$(readlink -f "$1") worker=$(readlink -f "$2") dump=$(readlink -f "$3")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap '[ -n "${RESUME_KEEP-}" ] && echo "kept: $work" || rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config TMPDIR=$work/tmp
unset OPENAI_BASE_URL
mkdir "$work/tmp"
cd "$work" || exit 1
python=$(command -v /usr/bin/python3 || command -v python3)
"$python" -B "$here/resume.py" "$twagent" "$worker" "$dump" "$work" "$here/../adversarial/cpu/problems/mm" "$work/result" ||
    { echo "FAILED: resume.py exited $?"; exit 1; }
read -r passed failed <"$work/result"
echo "resume: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
