#!/usr/bin/env bash
# Lanes behind Slurm: a controller, a node and munge of this test's own on the loopback address; eval, doctor,
# problem check and a run of two lanes go through srun.
set -u
twagent=$1
for tool in slurmctld slurmd srun munged; do
    PATH=$PATH:/usr/sbin command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo "skipped: slurmd needs root"; exit 77; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d /tmp/twagent-slurm.XXXXXX)
chmod 755 "$work"
PATH=$PATH:/usr/sbin
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache SLURM_CONF=$work/slurm.conf
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once

# --- a cluster of one node
mkdir "$work"/{state,spool}
dd if=/dev/urandom of="$work/munge.key" bs=1 count=1024 status=none
chmod 400 "$work/munge.key"
munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munge.pid" \
    --log-file="$work/munge.log" --seed-file="$work/munge.seed" --num-threads=2 >"$work/munged.out" 2>&1 &
pids+=($!)
port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
cat >"$SLURM_CONF" <<CONF
ClusterName=loopback
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$(port)
SlurmdPort=$(port)
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
NodeName=localhost NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES OverSubscribe=FORCE:4 MaxTime=INFINITE State=UP
CONF
until [ -S "$work/munge.socket" ] || ! kill -0 "${pids[0]}" 2>/dev/null; do sleep 0.1; done
slurmctld -D -f "$SLURM_CONF" >"$work/slurmctld.log" 2>&1 &
pids+=($!)
slurmd -D -N localhost -f "$SLURM_CONF" >"$work/slurmd.log" 2>&1 &
pids+=($!)
until [ "$(sinfo -h -o %t 2>/dev/null)" = idle ]; do
    for pid in "${pids[@]}"; do
        kill -0 "$pid" 2>/dev/null || { echo "skipped: Slurm does not start here: $(tail -n 2 "$work"/slurm*.log)"; exit 77; }
    done
    sleep 0.2
done

# --- through it
launch=(--launcher 'srun -n1 -c1 --quiet --job-name "a lane"')
"$twagent" doctor --no-measure "${launch[@]}" >"$work/out" 2>&1; grep -q 'everything that a run needs' "$work/out"; say $? "doctor: $(tail -n 3 "$work/out")"
cp -r "$here/../adversarial/cpu/problems/mm" "$work/mm"
mkdir -p "$work/mm/starts/cpu"
cat >"$work/mm/starts/cpu/rows.c" <<'C'
/*---
tune: {BLOCK: [64, 32]}
---*/
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j0 = 0; j0 < N; j0 += BLOCK)
            for (int64_t k = 0; k < K; k++)
                for (int64_t j = j0; j < (j0 + BLOCK < N ? j0 + BLOCK : N); j++)
                    C[i * N + j] = (k ? C[i * N + j] : 0) + A[i * K + k] * B[k * N + j];
}
C
"$twagent" eval "$work/mm" "$work/mm/starts/cpu/rows.c" --effort search --no-profile "${launch[@]}" >"$work/out" 2>&1
grep -q 'checks passed\|passed' "$work/out"; say $? "eval: $(tail -n 3 "$work/out")"
"$twagent" run "$work/mm" --lanes 2 --rounds 1 --branching 1 "${launch[@]}" >"$work/out" 2>&1
code=$?
[[ $code = [014] ]] && grep -q '2 evaluated' "$work/out"; say $? "a run on two lanes ends with 0, 1 or (too noisy) 4, not $code: $(tail -n 5 "$work/out")"
(cd "$work" && exec "$twagent" serve --listen 127.0.0.1:0 --lanes 2 "${launch[@]}") >"$work/address" 2>"$work/serve" &
server=$!
pids+=($server)
until grep -q http "$work/address" || ! kill -0 $server 2>/dev/null; do sleep 0.1; done
/usr/bin/python3 - "$work" >"$work/out" 2>&1 <<'PY'
import json, sys, time, urllib.request
base = open(sys.argv[1] + "/address").read().split("/  ")[0]
ask = lambda path, body=None: json.load(urllib.request.urlopen(urllib.request.Request(base + path, body, {"Content-Type": "application/json"})))
source = open(sys.argv[1] + "/mm/starts/cpu/rows.c").read()
items = [{"problem": "mm", "name": "rows.c", "source": source + "/* %d */" % i, "effort": "search"} for i in range(4)]
ids = ask("/v1/evaluate", json.dumps({"items": items}).encode())["ids"]
found = []
while not found or any(item["state"] != "done" for item in found):
    time.sleep(0.2)
    found = ask("/v1/evaluations/%s-%s" % (ids[0], ids[-1]))["items"]
print([item["evaluation"]["verdict"] for item in found], ask("/v1/evaluations")["lanes"])
sys.exit(0 if all(item["evaluation"]["verdict"] == "kernel" and item["host"] for item in found) else 1)
PY
say $? "serve on two lanes: $(cat "$work/out" "$work/serve")"
kill -INT $server
wait $server; say $? "serve ends: $(tail -n 3 "$work/serve")"
until [ -z "$(squeue -h)" ]; do sleep 0.2; done # a job that outlives its lane would be seen by the time limit
say 0 'no job is left'
"$twagent" run "$work/mm" --launcher "srun 'n1" >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q 'a quote is not closed' "$work/out"; say $? "an open quote: $(cat "$work/out")"
echo "slurm: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
