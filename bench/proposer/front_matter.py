"""Just enough of a start's front matter for record: the tune lists and the `where` clause."""
import re


def tune(text):
    match = re.search(r"/\*---\n(.*?)---\*/", text, re.S)
    front = match.group(1) if match else ""
    block = re.search(r"^tune:\n((?:[ \t]+.*\n|[ \t]*\n)*)", front, re.M)
    inside = block.group(1) if block else ""
    lists = {name: [int(v) for v in values.split(",")] for name, values in re.findall(r"(\w+):\s*\[([^\]]*)\]", inside)}
    where = re.search(r"^\s+where:\s*(.*(?:\n(?!\s+\w+:).*)*)", inside, re.M)
    where = " ".join(where.group(1).split()).lstrip("> ") if where else None
    return lists, where


def holds(where, point):
    text = where.replace("&&", " and ").replace("||", " or ")
    functions = {"ceil_div": lambda a, b: -(-a // b), "round_up": lambda a, b: -(-a // b) * b,
                 "min": min, "max": max}
    facts = {"M": 512, "N": 512, "K": 512, "vector_bytes": 64}
    return bool(eval(text.replace("/", "//"), functions, {**facts, **point}))
