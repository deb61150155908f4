#!/usr/bin/env python3
"""recall@5 and MRR of the index beside SQLite FTS5's bm25, on the same passages, in the same run.

    quality.py BENCH STORE QUERIES [--half tuned|unseen|both] [--misses]

Writes Markdown rows. --misses prints the questions of the tuned half that fail, never the others'.
"""
import argparse, json, os, re, sqlite3, subprocess, sys, tempfile

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
            items[-1]["a"] = [tuple(a.split("#", 1)) for a in json.loads(line[5:])]
        elif line.startswith("  half: "):
            items[-1]["half"] = line[8:].strip()
    return items


def passages(bench, store):
    """(source, path, title, text) of every passage in the index."""
    text = subprocess.check_output([bench, "passages", store]).decode()
    return [tuple(record.split("\x1f")) for record in text.split("\x1e")[:-1]]


def fits(answer, source, path, title):
    file, heading = answer
    if os.path.basename(source) != file:
        return False
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
            found.append(db.execute(f"select source, path, title from t where t match ? order by {order} limit 10",
                                    (match,)).fetchall())
        out["FTS5 " + name] = found
    return out


def found_in(text):
    """What the programs here print: a line for each passage, an empty one after each query's."""
    found, one = [], []
    for line in text.split("\n")[:-1]:
        if line:
            one.append(tuple(line.split("\t")))
        else:
            found.append(one)
            one = []
    return found


def ours(bench, store, queries):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(q["q"] + "\n" for q in queries))
        file.flush()
        return found_in(subprocess.check_output([bench, "answers", store, file.name], text=True))


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
        q["there"] = any(fits(a, r[0], r[1], r[2]) for a in q["a"] for r in named.get(a[0], []))
        if not q["there"] and q["half"] == "tuned":
            print(f"no passage here answers: {q['q']}", file=sys.stderr)
    rankings = {"twagent": ours(options.bench, options.store, queries)}
    rankings.update(fts_rankings(rows, queries))
    print("| half | questions | ranking | recall@5 | MRR@10 |\n| --- | ---: | --- | ---: | ---: |")
    for half in dict.fromkeys(q["half"] for q in queries):
        chosen = [i for i, q in enumerate(queries) if q["half"] == half and q["there"]]
        for name, found in rankings.items() if chosen else ():
            ranks = [rank(found[i], queries[i]["a"]) for i in chosen]
            recall = sum(0 < r <= 5 for r in ranks) / len(ranks)
            mrr = sum(1 / r for r in ranks if r) / len(ranks)
            print(f"| {half} | {len(chosen)} | {name} | {recall:.3f} | {mrr:.3f} |")
    if options.misses:
        for q, found in zip(queries, rankings["twagent"]):
            r = rank(found, q["a"])
            if q["half"] == "tuned" and q["there"] and r != 1:
                print(f"{r:2d} {q['q']}\n     wanted {q['a'][0]}")
                for hit in found[:3]:
                    print("     ", os.path.basename(hit[0]), "|", hit[2])


if __name__ == "__main__":
    main()
