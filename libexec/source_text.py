"""A Python file's text as people send it: a byte order mark, no-break spaces and characters that nobody sees are no
mistake where the text is one without them. Used by reference.py and torch_module.py.
"""

SPACES = "\u00a0\u2007\u202f\u2009\u3000"
UNSEEN = "\ufeff\u200b\u200c\u200d\u2060\u00ad"
QUOTES = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
CLEANED = str.maketrans(dict.fromkeys(SPACES, " ") | dict.fromkeys(UNSEEN, "") | QUOTES)


def clean(raw, path):
    """What compile() takes: the file's bytes, or its text without those where only that is Python."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16").translate(CLEANED)
    try:
        compile(raw, path, "exec", dont_inherit=True)
        return raw
    except (SyntaxError, ValueError):
        pass
    try:
        text = raw.decode("utf-8-sig").translate(CLEANED)
        compile(text, path, "exec", dont_inherit=True)
        return text
    except (SyntaxError, ValueError):
        return raw  # what is wrong is told of the file as it is
