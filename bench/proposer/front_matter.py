"""Just enough of a start's front matter for record: the tune lists and the `where` clause."""
import re


def tune(text):
    match = re.search(r"/\*---\n(.*?)---\*/", text, re.S)
    lists, where, inside = {}, None, False
    for line in (match.group(1) if match else "").splitlines():
        if re.match(r"\S", line):
            inside = line.strip() == "tune:"
        elif inside:
            name, _, value = line.strip().partition(":")
            if name == "where":
                where = value.strip()
            else:
                lists[name] = [int(v) for v in value.strip(" []").split(",")]
    return lists, where


def holds(where, point):
    text = where.replace("&&", " and ").replace("||", " or ")
    functions = {"ceil_div": lambda a, b: -(-a // b), "round_up": lambda a, b: -(-a // b) * b,
                 "min": min, "max": max}
    facts = {"M": 512, "N": 512, "K": 512, "vector_bytes": 64}
    return bool(eval(text.replace("/", "//"), functions, {**facts, **point}))
