/* What the words of an idea are worth. A word is its root where a table knows it, with an ending
 * that changes nothing; else what is left without its ending. A technique weighs most; a number
 * little, since measurement chooses it; a word that any idea could hold next to nothing. */
#include "agents/novelty_words.h"

#include <ctype.h>
#include <string.h>

#define WEIGHT_TELLING 2.0
#define WEIGHT_PLAIN   1.0
#define WEIGHT_NUMBER  0.2
#define WEIGHT_COMMON  0.15

enum { ROOTS_MAX = 14, KIND_NAMES = NOVELTY_KINDS - 1 };

/* Roots of one meaning; the first stands for all. */
static const char *const techniques[][ROOTS_MAX] = {
    {"tile", "til", "block", "chunk", "strip", "subblock", "multiblock"},
    {"vector", "vectori", "simd", "avx", "mm", "zmm", "ymm", "intrinsic", "autovectori"},
    {"unroll", "unrol"},
    {"prefetch"},
    {"parallel", "paralleli", "thread", "openmp", "omp", "multithread", "multicore", "core"},
    {"temporal", "nontemporal", "stream", "nt"},
    {"pack", "repack", "prepack"},
    {"register", "reg"},
    {"fuse", "fus", "merg", "combin", "join"},
    {"fma", "fmadd"},
    {"accumulat", "accum", "acc"},
    {"reciproc"},
    {"microkernel", "micro"},
    {"huge", "hugepage", "thp"},
    {"interchang", "reorder", "permut", "swap", "exchang"},
    {"align", "misalign"},
    {"remainder", "tail", "edge", "boundar", "leftover", "residu"},
    {"polynomial", "approximat"},
    {"transpos"},
    {"schedul", "dynamic", "balanc", "steal"},
    {"split", "splitk"},
    {"pipelin"},
    {"shuffl", "permutevar"},
    {"branch", "branchless", "branchfree"},
    {"mask", "predicat"},
    {"restrict", "alias", "noalias"},
    {"mathematic", "fastmath"},
    {"winograd"},
    {"strassen"},
    {"fft", "fourier"},
    {"im2col"},
    {"online"},
    {"gather", "scatter"},
    {"broadcast"},
    {"buffer", "doublebuffer", "stag"},
    {"bf16", "bfloat16"},
    {"fp16", "float16", "half"},
    {"kahan", "compensat"},
    {"layout", "soa", "aos"},
    {"workspace", "scratch"},
    {"panel"},
};

/* Things of one kind, of which an idea is about one or some. A kind's roots that mean the same
 * stand next to each other in one text. */
static const char *const kinds[][8] = {
    {"inner", "outer", "middl"},
    {"inmost innermost", "outermost"},
    {"row", "column col", "diagonal"},
    {"load read", "stor writ"},
    {"l1", "l2", "l3", "tlb"},
    {"max maxim", "sum", "mean", "varianc", "exp exponent"},
    {"input", "output"},
    {"first", "second", "third", "last"},
    {"numerat", "denominat"},
    {"horizontal", "vertical"},
    {"hoist", "sink"},
};

/* Roots that any idea could hold. */
static const char *const common[] = {
    "us",       "loop",       "kernel",   "code",        "data",     "valu",        "comput",
    "calculat", "add",        "mak",      "apply",       "appli",    "do",          "improv",
    "optimi",   "fast",       "better",   "instead",     "step",     "siz",         "element",
    "small",    "efficien",   "avoid",    "explicit",    "manual",   "work",        "perform",
    "run",      "lin",        "way",      "set",         "tun",      "increas",     "chang",
    "iterat",   "operat",     "larg",     "big",         "hot",      "main",        "whol",
    "final",    "direct",     "replac",   "dimension",   "function", "process",     "handl",
    "non",      "pre",        "multi",    "keep",        "hold",     "introduc",    "implement",
    "enabl",    "version",    "software", "hardware",    "factor",   "multipl",     "access",
    "pattern",  "overhead",   "reduc",    "number",      "several",  "independent", "hand",
    "writ",     "contiguous", "togeth",   "current",     "between",  "across",      "memory",
    "array",    "matri",      "tensor",   "onto",        "loops",    "wid",         "full",
    "time",     "cach",       "path",     "instruction", "size",     "dedicat"};

/* No words of an idea at all. */
static const char *const stop[] = {
    "a",    "an",   "the",  "of",   "in",   "on",    "to",    "with",  "by",    "for",   "from",
    "into", "and",  "or",   "so",   "that", "it",    "its",   "is",    "are",   "be",    "as",
    "at",   "per",  "each", "all",  "this", "then",  "via",   "when",  "than",  "over",  "out",
    "up",   "also", "more", "both", "only", "their", "them",  "very",  "own",   "one",   "while",
    "not",  "no",   "off",  "if",   "but",  "every", "which", "where", "after", "before"};

static const char *const numbers[] = {"two",   "three",  "four",    "five",   "six",   "eight",
                                      "twice", "double", "sixteen", "triple", "single"};

/* Tokens in capitals that are no names of the kernel's own. */
static const char *const acronyms[] = {"cpu", "ilp", "rfo", "gpu", "ipc", "io", "sse", "gcc", "os"};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool listed(const char *const *list, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

/* Endings, longest first where one ends another. */
static const char *const endings[] = {
    "izations", "isations", "ization", "isation", "izing", "ising", "ized", "ised", "izes",
    "ises",     "ize",      "ise",     "ations",  "ation", "ators", "ator", "ates", "ating",
    "ated",     "ate",      "ments",   "ment",    "ings",  "ing",   "ions", "ion",  "ities",
    "ity",      "ors",      "or",      "als",     "al",    "wise",  "ism",  "ers",  "er",
    "ed",       "ies",      "es",      "s",       "ly",    "e",     "y",    "ve"};

/* `word` is `root`, or goes on with an ending, its last letter doubled ("splitting") or digits. */
static bool has_root(const char *word, const char *root, size_t size)
{
    if (strncmp(word, root, size) != 0)
        return false;
    const char *rest = word + size;
    if (*rest == '\0' || strspn(rest, "0123456789") == strlen(rest))
        return true;
    if (listed(endings, COUNT(endings), rest))
        return true;
    return rest[0] == root[size - 1] && listed(endings, COUNT(endings), rest + 1);
}

static void cut_ending(char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; i < COUNT(endings); i++) {
        size_t size = strlen(endings[i]);
        if (length < size + 4 || strcmp(word + length - size, endings[i]) != 0)
            continue;
        length -= size;
        break;
    }
    if (length > 4 && word[length - 1] == word[length - 2])
        length--;
    word[length] = '\0';
}

static void replace(struct word *word, const char *text)
{
    size_t length = strcspn(text, " ");
    memcpy(word->text, text, length);
    word->text[length] = '\0';
}

static bool is_technique(struct word *word)
{
    for (size_t i = 0; i < COUNT(techniques); i++)
        for (size_t j = 0; j < ROOTS_MAX && techniques[i][j] != NULL; j++)
            if (has_root(word->text, techniques[i][j], strlen(techniques[i][j]))) {
                replace(word, techniques[i][0]);
                word->weight = WEIGHT_TELLING;
                return true;
            }
    return false;
}

static bool is_kind(struct word *word)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        for (size_t j = 0; j < COUNT(kinds[i]) && kinds[i][j] != NULL; j++)
            for (const char *root = kinds[i][j]; *root != '\0';) {
                size_t size = strcspn(root, " ");
                if (has_root(word->text, root, size)) {
                    replace(word, kinds[i][j]);
                    word->kind = (unsigned)i + 1;
                    return true;
                }
                root += size + (root[size] == ' ');
            }
    return false;
}

/* `capitals`: the word was written in capitals alone. */
static void judge(struct word *word, bool capitals)
{
    size_t length = strlen(word->text);
    word->weight = WEIGHT_PLAIN;
    if (isdigit((unsigned char)word->text[0]) || listed(numbers, COUNT(numbers), word->text)) {
        word->weight = WEIGHT_NUMBER;
    } else if (is_technique(word) || is_kind(word)) {
        return;
    } else if (length == 1 ||
               (capitals && length <= 3 && !listed(acronyms, COUNT(acronyms), word->text))) {
        word->kind = KIND_NAMES;
    } else {
        for (size_t i = 0; i < COUNT(common); i++)
            if (has_root(word->text, common[i], strlen(common[i])))
                word->weight = WEIGHT_COMMON;
        cut_ending(word->text);
    }
}

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || (c & 0x80) != 0;
}

void words_read(const char *text, struct words *words)
{
    words->count = 0;
    while (words->count < NOVELTY_WORDS_MAX) {
        struct word word = {.kind = 0};
        size_t length = 0;
        bool capitals = true;
        while (*text != '\0' && !is_letter(*text))
            text++;
        if (*text == '\0')
            return;
        for (; is_letter(*text); text++) {
            capitals &= !islower((unsigned char)*text);
            if (length < sizeof word.text - 1)
                word.text[length++] = (char)tolower((unsigned char)*text);
        }
        bool article = strcmp(word.text, "a") == 0 && !capitals;
        if (article || (length > 1 && listed(stop, COUNT(stop), word.text)))
            continue;
        judge(&word, capitals);
        bool known = false;
        for (size_t i = 0; i < words->count; i++)
            known |= strcmp(words->items[i].text, word.text) == 0;
        if (!known)
            words->items[words->count++] = word;
    }
}
