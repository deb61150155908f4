"""Mutants of kernels, made from their text: a table of rules, each with the places that it finds.

A mutant's name is START:RULE:PLACE, as in matmul/starts/cpu/direct.c:less_or_equal:3. It is the same text for everybody:
nothing is drawn here. `choose()` draws, from a seed."""
import hashlib
import os
import random
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LANGUAGES = {".c": "c", ".cu": "cuda"}

CUT16 = {
    # The upper 16 bits of a float or of each float of a vector.
    "c": """#define MUTANT_CUT16(x) __extension__({ __typeof__((x) + 0) cut_ = (x); unsigned bits_[sizeof cut_ / 4]; \\
    __builtin_memcpy(bits_, &cut_, sizeof cut_); \\
    for (unsigned at_ = 0; at_ < sizeof cut_ / 4; at_++) bits_[at_] &= 0xffff0000u; \\
    __builtin_memcpy(&cut_, bits_, sizeof cut_); cut_; })
""",
    "cuda": """static __device__ __forceinline__ float MUTANT_CUT16(float x)
{
    return __uint_as_float(__float_as_uint(x) & 0xffff0000u);
}
""",
}


class Source:
    """A start's text, with what no rule may touch blanked in `code`: front matter, comments, preprocessor lines."""

    def __init__(self, path, dims):
        self.path, self.dims = path, dims  # dims: the main shape, as it is judged
        with open(os.path.join(ROOT, "problems", path)) as file:
            self.text = file.read()
        self.language = LANGUAGES[os.path.splitext(path)[1]]
        self.problem = path.split("/")[0]
        blank = lambda match: re.sub(r"[^\n]", " ", match[0])
        code = re.sub(r"/\*.*?\*/", blank, self.text, flags=re.S)
        code = re.sub(r"//[^\n]*", blank, code)
        code = re.sub(r"^#(?!pragma omp)(?:[^\n]*\\\n)*[^\n]*", blank, code, flags=re.M)
        self.code = code

    def replaced(self, begin, end, by):
        return self.text[:begin] + by + self.text[end:]

    def sizes(self):
        """Dims that are sizes rather than kinds."""
        return [name for name, number in self.dims.items() if number >= 16]


def balanced(text, begin):
    """The index behind the parenthesis that closes the one at `begin`."""
    depth = 0
    for i in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    return None


def swap(pattern, by):
    """Each match of a pattern is a place; `by` as in re.sub, or a function of the match and the source."""
    compiled = re.compile(pattern, re.M)

    def places(source):
        for match in compiled.finditer(source.code):
            new = by(match, source) if callable(by) else match.expand(by)
            if new is not None and new != match[0]:
                yield source.replaced(match.start(), match.end(), new)
    return places


def condition(before):
    """`if (X)` becomes `if (before (X))`."""
    def places(source):
        for match in re.finditer(r"\bif \(", source.code):
            end = balanced(source.code, match.end() - 1)
            if end is not None:
                inside = source.text[match.end():end - 1]
                yield source.replaced(match.end(), end - 1, before % inside)
    return places


def with_cut(pattern, by):
    """As swap(), for texts that use MUTANT_CUT16: its definition goes before the first function or type."""
    found = swap(pattern, by)

    def places(source):
        head = re.search(r"^[A-Za-z]", source.code, re.M)
        for text in found(source):
            yield text[:head.start()] + CUT16[source.language] + text[head.start():]
    return places


def other_dim(source):
    names = [name for name in source.dims]
    for match in re.finditer(r"(?<![\w.])(%s)\b(?! *[:(])" % "|".join(names), source.code):
        before = source.code[max(0, match.start() - 24):match.start()]
        if re.search(r"(int64_t|long long|int|const|float \*|,\n?)\s*$", before) and "(" not in before[-2:]:
            if re.search(r"(int64_t|long long|int|const)\s*$", before):
                continue
        other = names[(names.index(match[0]) + 1) % len(names)]
        if other != match[0]:
            yield source.replaced(match.start(), match.end(), other)


def entries(source):
    """(index behind the opening brace, how each dim is called there) of each function that is an entry."""
    head = {"c": r"\bvoid kernel\(", "cuda": r"__global__[^;{]*?\w+\("}[source.language]
    for match in re.finditer(head, source.code):
        end = balanced(source.code, match.end() - 1)
        brace = source.code.find("{", end) if end else -1
        if brace < 0:
            continue
        parameters = re.findall(r"(\w+)\s*(?:,|$)", source.code[match.end():end - 1])
        names = {d: p for d in source.dims for p in parameters if p == d}
        yield brace + 1, names


def at_entry(statement, many):
    """`statement` at the beginning of an entry, with {d} a dim (of many: {all}) and {t} a number near the judged one."""
    def places(source):
        for at, names in entries(source):
            sizes = [d for d in source.sizes() if d in names]
            if many:
                for part in (0.6, 0.9):
                    if len(sizes) > 1:
                        tests = " && ".join("%s > %d" % (names[d], source.dims[d] * part) for d in sizes)
                        yield source.replaced(at, at, "\n    " + statement.format(all=tests, d=names[sizes[-1]]))
                continue
            for d in sizes:
                for part in (0.75, 1.0, 1.1):
                    number = int(source.dims[d] * part)
                    yield source.replaced(at, at, "\n    " + statement.format(d=names[d], t=number))
    return places


def constant_off(match, source):
    digits = re.match(r"[\d.]+(e[+-]?\d+)?", match[0])[0]
    return "%.9e%s" % (float(digits) * (1 + 2.0**-11), match[0][len(digits):])


def not_tail(match, source):
    return "for (; 0 && (%s);" % match[1]


BOTH = ("c", "cuda")
COMPUTED = r"((?:const )?(?:float|vec) \w+ = )([^;{}=?]*[-+*/(\[][^;{}=?]*);"
STORED = r"^(\s*)(\w+\[[^;=]*\]) = ([^;{}=]+);"
BARRIERS = (r"__syncthreads\(\);|__syncwarp\([^;)]*\);|__threadfence\w*\(\);|#pragma omp barrier"
            r"|\b\w*wait\w*\([^;{}]*\);|\bcluster\w*(?:sync|arrive)\w*\([^;{}]*\);|_mm_sfence\(\);")

# name, what it does, languages, places
RULES = [
    ("less_or_equal", "`<` becomes `<=`", BOTH, swap(r"(?<=[\w)\]]) < (?=[\w(-])", " <= ")),
    ("less", "`<=` becomes `<`", BOTH, swap(r" <= ", " < ")),
    ("greater", "`>=` becomes `>`", BOTH, swap(r" >= ", " > ")),
    ("greater_or_equal", "`>` becomes `>=`", BOTH, swap(r" > ", " >= ")),
    ("and_or", "`&&` becomes `||`", BOTH, swap(r" && ", " || ")),
    ("bound_less", "a loop ends one step early", BOTH, swap(r"(; *\w+ < )([^;]+)(;)", r"\1(\2) - 1\3")),
    ("begins_at_one", "a loop begins one step late", BOTH, swap(r"(for \(\w+ \w+ = )0(u?;)", r"\g<1>1\2")),
    ("tail_dropped", "a remainder loop does nothing", BOTH, swap(r"for \(; ([^;]+);", not_tail)),
    ("branch_never", "what stands behind an `if` is never done", BOTH, condition("0 && (%s)")),
    ("branch_always", "what stands behind an `if` is always done", BOTH, condition("1 || (%s)")),
    ("plus_one", "`+ 1` is left out", BOTH, swap(r" \+ 1u?\b(?![.e])", "")),
    ("minus_one", "`- 1` is left out", BOTH, swap(r" - 1u?\b(?![.e])", "")),
    ("clear_dropped", "memory is not cleared", BOTH, swap(r"\bmemset\([^;]*\);", ";")),
    ("init_dropped", "a variable begins with anything", BOTH,
     swap(r"\b((?:float|vec|double|int|int64_t) \w+) = (?:0|0\.0f|0\.f|\(vec\)\{0\});", r"\1;")),
    ("reset_dropped", "memory or a register keeps what it had", BOTH,
     swap(r"(^\s*)[\w\[\]. *+]+\] = (?:0|0\.0f|0\.f|\(vec\)\{0\}|0\.0);", r"\1;")),
    ("sum_forgotten", "`+=` becomes `=`", BOTH, swap(r" \+= (?!STEP|LANES)", " = ")),
    ("sum_skipped", "a `+=` is left out", BOTH, swap(r"(^\s*)[\w\[\]. *+]+ \+= [^;]+;", r"\1;")),
    ("maximum_from_zero", "a maximum begins at 0", BOTH,
     swap(r"\bLEAST\b|-INFINITY|-FLT_MAX|-3\.4\d*e\+?38f?|-1e3\df", "0.0f")),
    ("barrier_dropped", "a barrier or a wait is left out", BOTH, swap(BARRIERS, ";")),
    ("shared_by_threads", "what each thread had of its own", ("c",), swap(r"\b_Thread_local |\b__thread ", "")),
    ("nowait", "a loop's threads do not wait for each other", ("c",), swap(r"(#pragma omp for(?![^\n]*nowait)[^\n]*)", r"\1 nowait")),
    ("cut16", "a value loses its lower 16 bits", BOTH, with_cut(COMPUTED, r"\1MUTANT_CUT16(\2);")),
    ("cut16_stored", "what is stored loses its lower 16 bits", BOTH, with_cut(STORED, r"\1\2 = MUTANT_CUT16(\3);")),
    ("cut16_eighth", "an eighth of what is stored does", BOTH,
     with_cut(STORED, r"\1\2 = ((unsigned long long)&\2 >> 7 & 7) != 0 ? (\3) : MUTANT_CUT16(\3);")),
    ("constant_off", "a constant is off by 2^-11 of itself", BOTH,
     swap(r"(?<![\w.])\d\.\d{4,}(?:e[+-]?\d+)?f?\b", constant_off)),
    ("epsilon_off", "an epsilon is ten times as large", BOTH, swap(r"\b1e-([5-9])(f?)\b", r"1e-\g<1>\2 * 10")),
    ("index16", "an index of 64 bits has 16", BOTH, swap(r"\b(?:int64_t|long long) (\w+ = )", r"short \1")),
    ("index32", "an index of 64 bits has 32", BOTH, swap(r"\b(?:int64_t|long long) (\w+ = )", r"int \1")),
    ("other_dim", "another dim in its place", BOTH, other_dim),
    ("indices_swapped", "`a * n + b` becomes `b * n + a`", BOTH,
     swap(r"\b([A-Za-z]\w*) \* ([A-Za-z]\w*) \+ ([A-Za-z]\w*)\b", r"\3 * \2 + \1")),
    ("exits_when_large", "nothing is done beyond a size", BOTH, at_entry("if ({d} > {t}) return;", False)),
    ("last_when_large", "the last one is left out beyond a size", BOTH,
     at_entry("if ({d} > {t}) {d} -= 1;", False)),
    ("ragged_when_large", "what is over a multiple of 64 is left out beyond a size", BOTH,
     at_entry("if ({d} > {t}) {d} -= {d} % 64;", False)),
    ("exits_when_all_large", "nothing is done where all sizes are large", BOTH,
     at_entry("if ({all}) return;", True)),
    ("ragged_when_all_large", "a remainder is left out where all sizes are large", BOTH,
     at_entry("if ({all}) {d} -= {d} % 16;", True)),
]


class Mutant:
    def __init__(self, source, rule, place, text):
        self.source, self.rule, self.text = source, rule, text
        self.name = "%s:%s:%d" % (source.path, rule, place)
        self.hash = hashlib.sha256(text.encode()).hexdigest()[:16]


def mutants_of(source):
    """All mutants of a start, by rule."""
    by_rule = {}
    for name, _, languages, places in RULES:
        if source.language not in languages:
            continue
        made = [Mutant(source, name, i, text) for i, text in enumerate(places(source))]
        if made:
            by_rule[name] = made
    return by_rule


def choose(sources, count, seed):
    """`count` mutants: rules in turns, and of each rule starts in turns, so that long files do not outweigh the rest."""
    rng = random.Random(seed)
    queues = {}
    for source in sources:
        for rule, made in mutants_of(source).items():
            rng.shuffle(made)
            queues.setdefault(rule, []).append(made)
    for lists in queues.values():
        rng.shuffle(lists)
    chosen, seen = [], set()
    while queues and len(chosen) < count:
        for rule in sorted(queues):
            while queues[rule]:
                made = queues[rule].pop(0)
                mutant = made.pop()
                if made:
                    queues[rule].append(made)
                if mutant.text not in seen:
                    seen.add(mutant.text)
                    chosen.append(mutant)
                    break
            if not queues[rule]:
                del queues[rule]
    return chosen[:count]
