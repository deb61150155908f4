#!/usr/bin/env python3
"""Grows a folder of Markdown from the passages of an index until it holds COUNT sections.

    grow.py BENCH STORE FOLDER COUNT

Each new section is a real passage's words with some of them exchanged for words of others, drawn by
how often they occur there, so that terms stay as unequal as they are; the seed is fixed.
"""
import os, random, re, subprocess, sys

bench, store, folder, count = sys.argv[1:4] + [int(sys.argv[4])]
dump = subprocess.check_output([bench, "passages", store]).decode()
texts = [tuple(record.split("\x1f")[2:]) for record in dump.split("\x1e")[:-1]]
draw = random.Random(1)
words = [w for _, text in texts for w in re.findall(r"[A-Za-z_][A-Za-z_0-9.:]*", text)]
os.makedirs(folder, exist_ok=True)
for start in range(0, count, 50):
    with open(os.path.join(folder, f"grown{start:06}.md"), "w", encoding="utf-8") as file:
        file.write(f"# Grown {start}\n")
        for i in range(start, min(start + 50, count)):
            title, text = texts[draw.randrange(len(texts))]
            text = re.sub(r"[A-Za-z_][A-Za-z_0-9.:]*",
                          lambda m: draw.choice(words) if draw.random() < 0.3 else m.group(0), text)
            text = re.sub(r"^(#|```)", r" \1", text, flags=re.M)
            file.write(f"\n## {title or 'part'} {i}\n\n{text}\n")
