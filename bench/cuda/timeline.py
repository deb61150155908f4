#!/usr/bin/env python3
"""Where an evaluation's seconds go: timeline.py FILE [BEGIN_NS] adds up what $TWAGENT_TIMELINE wrote.

BEGIN_NS: time.monotonic_ns() when the process was started; else the first line's. A step's time holds
that of the steps inside it."""
import sys

lines = []
for text in open(sys.argv[1]):
    pid, begin, length, name = text.split()
    lines.append((int(begin), int(length), name))
if not lines:
    sys.exit("no lines")
start = int(sys.argv[2]) if len(sys.argv) > 2 else min(lines)[0]
steps = {}
for begin, length, name in sorted(lines):
    step = steps.setdefault(name, [begin, 0, 0, 0])
    step[1] += 1
    step[2] += length
    step[3] = max(step[3], begin + length)
print(f"{'step':20} {'times':>6} {'sum ms':>9} {'each':>8} {'first begins':>13} {'last ends':>10}")
for name, (begin, count, total, end) in sorted(steps.items(), key=lambda item: item[1][0]):
    print(f"{name:20} {count:6} {total / 1e6:9.1f} {total / count / 1e6:8.2f} "
          f"{(begin - start) / 1e6:13.0f} {(end - start) / 1e6:10.0f}")
