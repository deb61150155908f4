#!/usr/bin/env python3
"""What messages, pages and prompts advise: every --option in them is one of the command that they name, or of some command.
usage: advice.py TWAGENT"""
import glob, os, re, subprocess, sys

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OTHERS = re.compile(r"claude|codex|twagent worker|ptxas")  # texts with another program's options


def help_of(*words):
    done = subprocess.run([PROGRAM, *words, "--help"], capture_output=True, text=True)
    options = set(re.findall(r"^ +(?:-\w, )?--(?:\[no-\])?([a-z][a-z-]*)", done.stdout, re.M))
    return options | {"no-" + name for name in re.findall(r"--\[no-\]([a-z-]+)", done.stdout)} | {"help"}


names = re.findall(r"^  ([a-z]+) ", subprocess.run([PROGRAM, "--help"], capture_output=True, text=True).stdout, re.M)
commands = {name: help_of(name) for name in names}
known = set().union(*commands.values()) | {"version", "man", "completion"}
wrong = []
# Commands as they are to be typed: their own options only.
for path in sorted(glob.glob(ROOT + "/docs/*.md") + glob.glob(ROOT + "/templates/*") + glob.glob(ROOT + "/rag/*.md") +
                   [ROOT + "/README.md"]):
    with open(path) as file:
        text = file.read()
    text = re.sub(r"--launcher '[^']*'", "", text)  # another program's
    for found in re.finditer(r"twagent ([a-z]+)((?: [^`\n;|#()]*)?)", text):
        if found.group(1) in commands:
            wrong += [(path, found.group(0), option) for option in re.findall(r"(?<=\s)--([a-z][a-z-]*)", found.group(2))
                      if option not in commands[found.group(1)] | {"version"}]
# Messages, tools' words and prompts: options of some command.
for path in sorted(glob.glob(ROOT + "/src/cli/**/*.c", recursive=True) + glob.glob(ROOT + "/src/agents/**/*.c", recursive=True) +
                   glob.glob(ROOT + "/src/report/*.c") + glob.glob(ROOT + "/templates/*")):
    with open(path) as file:
        lines = file.read().splitlines()
    for line in lines:
        if line.lstrip().startswith(("*", "/*", "//")):
            continue
        texts = [line] if "/templates/" in path else re.findall(r'"(?:[^"\\]|\\.)*"', line)
        for text in texts:
            if not OTHERS.search(text) and not re.fullmatch(r'"--[a-z-]+"', text):  # a word for a child
                wrong += [(path, text, option) for option in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", text) if option not in known]
for path, text, option in wrong:
    print(f"FAILED: {os.path.relpath(path, ROOT)}: no option --{option}: {text[:120]}")
print(f"{len(commands)} commands, {len(known)} options, {len(wrong)} wrong")
sys.exit(1 if wrong or len(commands) < 20 else 0)
