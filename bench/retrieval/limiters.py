#!/usr/bin/env python3
"""Is the passage that a reviewer would pick among the five? limiters.py BENCH STORE LIMITERS

Writes Markdown rows; ends with 1 where one is not.
"""
import json, sys

from quality import ours, rank


def read_limiters(path):
    items = []
    for line in open(path, encoding="utf-8"):
        if line.startswith("- limiter: "):
            items.append({"limiter": json.loads(line[11:])})
        elif line.startswith("  q: "):
            items[-1]["q"] = json.loads(line[5:])
        elif line.startswith("  a: "):
            items[-1]["a"] = [tuple(a.split("#", 1)) for a in json.loads(line[5:])]
    return items


def main():
    bench, store, path = sys.argv[1:4]
    items = read_limiters(path)
    bare = ours(bench, store, [{"q": item["limiter"]} for item in items])
    whole = ours(bench, store, items)
    missed = 0
    print("| limiter | passage | rank, name alone | rank, as diagnosed |\n| --- | --- | ---: | ---: |")
    for item, names, words in zip(items, bare, whole):
        ranks = [rank(found, item["a"]) for found in (names, words)]
        missed += sum(not 0 < r <= 5 for r in ranks)
        print(f"| {item['limiter']} | {item['a'][0][0]}: {item['a'][0][1]} | "
              + " | ".join(str(r or "none of ten") for r in ranks) + " |")
    print(f"\n{2 * len(items) - missed} of {2 * len(items)} among the first five.")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
