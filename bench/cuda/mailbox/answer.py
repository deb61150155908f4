#!/usr/bin/env python3
"""The model behind a mailbox, with answers written beforehand:

    answer.py MAILBOX ANSWERS        until it is ended; says what it answered on stdout

ANSWERS/ideas.json holds ideas by round, ANSWERS/TITLE.cu the code of one, TITLE.repair.cu what mends it.
A request without such an answer is left alone, for a person: the run then stops with answers awaited.
"""

import glob
import json
import os
import re
import sys
import time


def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower().replace("'", "")).strip("-")


def ideas(request, folder):
    number = re.search(r"round(\d+)", request["asker"])
    with open(os.path.join(folder, "ideas.json"), encoding="utf-8") as file:
        known = [idea for idea in json.load(file) if number and idea["round"] == int(number.group(1))]
    parents = re.findall(r"^## (r\d+-c\d+) ", request["prompt"], re.M)
    for idea in known:
        del idea["round"]
        idea["parent"] = parents[0] if parents else ""
    return json.dumps({"ideas": known}, indent=1) if known else None


def code(request, folder):
    title = re.search(r"^# Idea\n(.+?) \([a-z]+\)$", request["prompt"], re.M)
    if not title:
        return None
    ending = ".repair.cu" if request["purpose"] == "repair" else ".cu"
    path = os.path.join(folder, slug(title.group(1)) + ending)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return "```cuda\n%s```\n" % file.read()


def reply(request, folder):
    """The text of an answer, or None."""
    return (ideas if request["purpose"] == "ideas" else code)(request, folder)


def main():
    mailbox, folder = sys.argv[1:]
    known = set()
    while True:
        for path in sorted(glob.glob(os.path.join(mailbox, "*.request.json"))):
            answer = path.replace(".request.json", ".answer.txt")
            if path in known or os.path.exists(answer):
                continue
            known.add(path)
            with open(path, encoding="utf-8") as file:
                request = json.load(file)
            text = reply(request, folder)
            print("%s for %s: %s" % (request["purpose"], request["asker"], "answered" if text else "left"), flush=True)
            if text:
                with open(answer + ".new", "w", encoding="utf-8") as file:
                    file.write(text)
                os.rename(answer + ".new", answer)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
