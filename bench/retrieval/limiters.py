#!/usr/bin/env python3
"""Is the passage that a reviewer would pick among the first five? limiters.py BUILD STORE LIMITERS

Writes Markdown rows; ends with 1 where one is not.
"""
import json, os, re, subprocess, sys, tempfile

from quality import ours, rank

TOKENS = "1600"  # what a prompt has for passages where nobody says otherwise


def read_limiters(path):
    items = []
    for line in open(path, encoding="utf-8"):
        if line.startswith("- limiter: "):
            items.append({"limiter": json.loads(line[11:])})
        elif line.startswith("  ") and items:
            key, value = line.strip().split(": ", 1)
            items[-1][key] = json.loads(value)
    for item in items:
        item["a"] = [tuple(re.split("(?=#)", a, maxsplit=1)) for a in item["a"]]
    return items


def found_in(text):
    """What bench_prompts prints: a line for each passage, an empty one after each query's."""
    found, one = [], []
    for line in text.split("\n")[:-1]:
        if line:
            one.append(tuple(line.split("\t")))
        else:
            found.append(one)
            one = []
    return found


def in_prompts(program, store, items):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        for item in items:
            file.write("\t".join(item[key] for key in ("problem", "backend", "limiter", "evidence")) + "\n")
        file.flush()
        return found_in(subprocess.check_output([program, store, file.name, TOKENS], text=True))


def main():
    build, store, path = sys.argv[1:4]
    folder = os.path.join(build, "bench/retrieval")
    bench = os.path.join(folder, "bench_retrieval")
    items = read_limiters(path)
    ways = [ours(bench, store, [{"q": item["limiter"]} for item in items]),
            ours(bench, store, [{"q": "{problem} {backend}: {limiter}; {evidence}".format(**item)} for item in items]),
            in_prompts(os.path.join(folder, "bench_prompts"), store, items)]
    missed = 0
    print("| limiter | passage | name alone | one query | in the prompt |\n| --- | --- | ---: | ---: | ---: |")
    for item, *found in zip(items, *ways):
        ranks = [rank(way, item["a"]) for way in found]
        missed += sum(not 0 < r <= 5 for r in ranks)
        print(f"| {item['limiter']} | {item['a'][0][0]}: {item['a'][0][1][1:]} | "
              + " | ".join(str(r or "none") for r in ranks) + " |")
    print(f"\n{3 * len(items) - missed} of {3 * len(items)} among the first five.")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
