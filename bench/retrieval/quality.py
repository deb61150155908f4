#!/usr/bin/env python3
"""recall@5 and MRR of the index beside SQLite FTS5's bm25, on the same passages, in the same run.

    quality.py BENCH STORE QUERIES [--half tuned|unseen|both] [--misses]

Writes a Markdown table and the gains, with bootstrap intervals. --misses prints the questions of the tuned half that fail, never the others'.
"""
import argparse, json, os, random, re, sqlite3, subprocess, sys, tempfile

STOP = set("""a about an and any are as at be because been but by can could did do does for from get had has have how
if in instead into is it its may me my of on or our shall should so some such than that the their them then there these
they this those to us was we were what when where which while who why will with would you your""".split())


def read_queries(path):
    """The few forms that queries.yaml uses, so that no package is needed."""
    items = []
    for line in open(path, encoding="utf-8"):
        if line.startswith("- q: "):
            items.append({"q": json.loads(line[5:])})
        elif line.startswith("  a: "):
            items[-1]["a"] = [tuple(re.split("(?=[#~])", a, maxsplit=1)) for a in json.loads(line[5:])]
        elif line.startswith("  half: "):
            items[-1]["half"] = line[8:].strip()
    return items


def records(text):
    """(source, path, title, text) of each passage that bench_retrieval prints."""
    return [tuple(record.split("\x1f")) for record in text.split("\x1e")[:-1]]


def passages(bench, store):
    return records(subprocess.check_output([bench, "passages", store]).decode())


def fits(answer, source, path, title, text=""):
    file, wanted = answer
    if os.path.basename(source) != file:
        return False
    if wanted[0] == "~":
        return wanted[1:] in " ".join(text.split())
    heading = wanted[1:]
    names = path.split(" > ") + [title]
    return heading in names or any(n.split("::")[-1] == heading for n in names)


def rank(found, answers):
    for i, hit in enumerate(found):
        if any(fits(a, *hit) for a in answers):
            return i + 1
    return 0


def terms(text):
    return [w for w in re.findall(r"\w+", text.lower()) if w not in STOP and len(w) > 1]


def fts_rankings(rows, queries):
    db = sqlite3.connect(":memory:")
    db.execute("create virtual table t using fts5(source unindexed, path, title, body, tokenize='porter unicode61')")
    db.executemany("insert into t values (?, ?, ?, ?)", rows)
    out = {}
    for name, order in (("bm25", "bm25(t)"), ("bm25, columns weighted", "bm25(t, 0, 1.5, 3.0, 1.0)")):
        found = []
        for q in queries:
            match = " OR ".join('"%s"' % w for w in dict.fromkeys(terms(q["q"])))
            found.append(db.execute(f"select source, path, title, body from t where t match ? order by {order} limit 10",
                                    (match,)).fetchall())
        out["FTS5 " + name] = found
    return out


def ours(bench, store, queries):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(q["q"] + "\n" for q in queries))
        file.flush()
        text = subprocess.check_output([bench, "answers", store, file.name]).decode()
        return [records(one) for one in text.split("\x1d")[:-1]]


def recall(ranks, chosen):
    return sum(0 < ranks[i] <= 5 for i in chosen) / len(chosen)


def mrr(ranks, chosen):
    return sum(1 / ranks[i] for i in chosen if ranks[i]) / len(chosen)


def gain(figure, ours, theirs, chosen):
    """By how much ours is better, and between which limits 95 of 100 such sets would put it (bootstrap over questions)."""
    def of(some):
        return figure(ours, some) / max(figure(theirs, some), 1e-9) - 1
    draws = random.Random(5)
    drawn = sorted(of(draws.choices(chosen, k=len(chosen))) for _ in range(2000))
    return f"{of(chosen):+.0%} ({drawn[50]:+.0%} to {drawn[1949]:+.0%})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench"), parser.add_argument("store"), parser.add_argument("queries")
    parser.add_argument("--half", default="both")
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    queries = read_queries(options.queries)
    for i, q in enumerate(queries):
        q.setdefault("half", ("tuned", "unseen")[i % 2])  # see the head of queries.yaml
    queries = [q for q in queries if options.half in (q["half"], "both")]
    if not queries:
        sys.exit(f"no question of the half {options.half}")
    rows = passages(options.bench, options.store)
    named = {}
    for r in rows:
        named.setdefault(os.path.basename(r[0]), []).append(r)
    for q in queries:
        q["there"] = any(fits(a, *r) for a in q["a"] for r in named.get(a[0], []))
        if not q["there"] and q["half"] == "tuned":
            print(f"no passage here answers: {q['q']}", file=sys.stderr)
    rankings = {"twagent": ours(options.bench, options.store, queries)}
    rankings.update(fts_rankings(rows, queries))
    ranks = {name: [rank(f, q["a"]) for f, q in zip(found, queries)] for name, found in rankings.items()}
    halves = {}
    for i, q in enumerate(queries):
        if q["there"]:
            halves.setdefault(q["half"], []).append(i)
    if len(halves) > 1:
        halves["all"] = sum(halves.values(), [])
    print("| half | questions | ranking | recall@5 | MRR@10 |\n| --- | ---: | --- | ---: | ---: |")
    for half, chosen in halves.items():
        for name in ranks:
            print(f"| {half} | {len(chosen)} | {name} | {recall(ranks[name], chosen):.3f} | {mrr(ranks[name], chosen):.3f} |")
    print()
    for half, chosen in halves.items():
        for other in list(ranks)[1:]:
            print(f"- {half}, against {other}: recall@5 {gain(recall, ranks['twagent'], ranks[other], chosen)}, "
                  f"MRR {gain(mrr, ranks['twagent'], ranks[other], chosen)}")
    if options.misses:
        for q, found, r in zip(queries, rankings["twagent"], ranks["twagent"]):
            if q["half"] == "tuned" and q["there"] and r != 1:
                print(f"{r:2d} {q['q']}\n     wanted {q['a'][0]}")
                for hit in found[:3]:
                    print("     ", os.path.basename(hit[0]), "|", hit[2])


if __name__ == "__main__":
    main()
