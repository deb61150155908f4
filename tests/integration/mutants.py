#!/usr/bin/env python3
"""A hundred mutants of starts, which a referee has called wrong or right (tests/integration/mutants.txt): `twagent eval`
must refuse the wrong ones and accept the right ones.
    mutants.py TWAGENT

Mutants are made anew from the starts. Where a start has changed so that its mutants have another text, this says so:
`bench/trust/mutants --cheap --results FILE`, then `--record FILE`, asks the referee about them."""
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "bench/trust"))
import judge  # noqa: E402
import rules  # noqa: E402


def recorded():
    """({path of a start: dims of its problem}, {mutant: (truth, hash)})"""
    dims, truths = {}, {}
    with open(os.path.join(ROOT, "tests/integration/mutants.txt")) as file:
        for line in file:
            word, *rest = line.split()
            if word == "dims":
                dims[rest[0]] = {name: int(number) for name, number in (pair.split("=") for pair in rest[1:])}
            elif word != "#":
                truths[rest[1]] = (word, rest[0])
    return dims, truths


def main(twagent):
    dims, truths = recorded()
    sources = {path: rules.Source(path, dims[path.split("/")[0]]) for path in sorted({n.split(":")[0] for n in truths})}
    made = {m.name: m for source in sources.values() for some in rules.mutants_of(source).values() for m in some}
    stale = [name for name, (_, known) in truths.items() if name not in made or made[name].hash != known]
    if stale:
        sys.exit("%d mutants have another text than was judged, as %s: bench/trust/mutants --cheap --results FILE, then --record FILE"
                 % (len(stale), stale[0]))
    judge.share_cores(1)
    faults = []
    for batch in judge.batches([made[name] for name in truths]):
        told = judge.judge(twagent, batch, "cpu", lambda text: print(text))
        for name, wanted in [(batch[0].source.path, "right"), *((m.name, truths[m.name][0]) for m in batch)]:
            said = told.get(name, {"verdict": "no verdict", "reason": ""})
            if said["verdict"] == "no verdict" or (said["verdict"] == "kernel") != (wanted == "right"):
                faults.append("%s is %s: %s %s" % (name, wanted, said["verdict"], said["reason"]))
                print(faults[-1], flush=True)
    print("%d mutants of %d starts, %d as the referee says" % (len(truths), len(sources), len(truths) - len(faults)))
    return 1 if faults else 0


with tempfile.TemporaryDirectory() as cache:
    os.environ["XDG_CACHE_HOME"] = cache
    sys.exit(main(sys.argv[1]))
