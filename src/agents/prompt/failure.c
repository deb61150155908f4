/* What a failure usually comes from, in a line or two each: the pattern of a wrong output, the
 * inputs on which it showed, a crash, a sanitizer's report, a compiler's word. Each is said only
 * beside what it follows from: which set fails first is chance, so that its shape tells something
 * of a wrong edge alone, and its inputs something of wrong values alone. */
#include "agents/prompt/private.h"

#include <string.h>

enum { CAUSES_MAX = 4 };

/* Where a sign stands, or what more of a pattern tells something. */
enum { NOTHING_MORE, OF_SHAPE, OF_VALUES, OF_BOTH, IN_ERRORS, IN_REASON, IN_REPORT };

struct cause {
    const char *sign, *cause;
};

struct cause_of {
    const char *sign, *cause;
    int of;
};

/* In brackets at the end of the first line: "...; boundary only)". */
static const struct cause_of patterns[] = {
    {"not written at the boundary",
     "elements of the last, not whole tile were never written: the remainder rows or columns are "
     "skipped, or a loop bound is rounded down",
     OF_SHAPE},
    {"not written",
     "elements were never written (outputs hold a NaN pattern before each call): a loop that does "
     "not cover the whole range, a return too early, an accumulator that starts from what the "
     "output held, or a part left to a thread that never ran",
     OF_SHAPE},
    {"NaN",
     "the NaNs were computed: 0/0, inf - inf or 0 * inf, a root or logarithm of a negative number, "
     "or reading memory that was never written (a workspace, or an output, holds NaN before the "
     "call)",
     OF_VALUES},
    {"all zero",
     "zeros were stored (outputs hold NaN before a call): a loop that never ran, an accumulator or "
     "a "
     "factor that stayed 0, or a sum that was stored before it was taken",
     OF_SHAPE},
    {"overflow",
     "infinities where finite numbers are expected: exp without subtracting the maximum, a sum of "
     "squares of large numbers, a division by a sum that became 0, or a narrower type in between",
     OF_VALUES},
    {"transposed",
     "rows and columns are swapped: indices i * N + j against j * M + i, a stride of the wrong "
     "dim, or a tile that is stored as it was loaded",
     NOTHING_MORE},
    {"shifted",
     "right values in the wrong place: an offset or a leading dim is off by one or by a "
     "constant, a "
     "pointer is advanced once too often, or vectors' halves are swapped",
     OF_SHAPE},
    {"off by a constant factor",
     "right but for a factor: a scale is forgotten or applied twice, or a loop is counted twice",
     NOTHING_MORE},
    {"boundary only",
     "right in the middle, wrong at the edges: remainders of a tile, a vector or an unrolled loop, "
     "halo or padding, or threads that both write the seam",
     OF_SHAPE},
    {"low precision",
     "the right values, but too inexact: an intermediate in a narrower type, a fast reciprocal or "
     "exp approximation without a correcting step, one long running sum where several partial sums "
     "are needed, or subtracting large nearly equal numbers",
     OF_VALUES},
    {"scattered",
     "wrong in scattered places: threads that write the same element (a race), a workspace that "
     "two threads share, or something that only certain values meet (ties, signs, large numbers)",
     OF_BOTH},
    {"everywhere",
     "wrong everywhere: the formula itself, the order of the arguments, a loop over the wrong dim, "
     "or an accumulator that is not reset",
     OF_VALUES},
};

enum {
    PATTERNS = sizeof patterns / sizeof patterns[0],
    PATTERNS_OF_NAN = 3 /* the first of them speak of NaN themselves */
};

/* Of the inputs on which it showed. */
static const struct cause inputs[] = {
    {"heavy", "heavy-tailed inputs: a few values are very large; sums and exponentials must not "
              "overflow or lose the small ones"},
    {"sparse", "nine tenths of the inputs are 0: look at divisions and at what is skipped"},
    {"zeros", "all inputs are 0: look at divisions by a sum, a norm or a maximum"},
    {"ones", "all inputs are 1: look at ties and at sums that are exact"},
    {"extremes",
     "the inputs are as large as the type allows sensibly: look at overflow in between"},
    {"one-hot", "one input is not 0: look at which element is reached at all"},
    {"alternating",
     "signs alternate: terms cancel; look at precision and at abs or max of negative "
     "numbers"},
    {"sorted", "the inputs are in order: look at running maxima"},
    {"huge",
     "the inputs are around 1e12: look at clamps, at a narrower type in between and at what "
     "overflows"},
    {"offset",
     "the inputs lie close together and far from 0: look at differences of large nearly equal "
     "numbers, as in a variance in one pass"},
    {"few", "most of the first input is 0, so that sums have few terms and their own rounding is "
            "small: an error there is that of products in less than the spec's precision"},
    {"given",
     "the inputs are as the file's own get_inputs draws them, or uniform over their range"},
    {"tiny", "the inputs are close to 0: look at subnormal numbers, and at an epsilon that is too "
             "large or missing"},
};

/* A compiler's line that says "error"; the first line; anywhere in what a sanitizer reports. */
static const struct cause_of signs[] = {
    {"undeclared",
     "a name that is not declared: a misspelling, a missing header, or a tune parameter that the "
     "front matter lacks",
     IN_ERRORS},
    {"is undefined",
     "a name that is not declared: a misspelling, a missing header, or a tune parameter that the "
     "front matter lacks",
     IN_ERRORS},
    {"implicit declaration", "a function without a header, or that does not exist", IN_ERRORS},
    {"target specific option mismatch",
     "an intrinsic of an instruction set that this machine has not: see `march` above", IN_ERRORS},
    {"conflicting types for 'kernel'",
     "kernel must have exactly the signature given above, under the form of the file", IN_ERRORS},
    {"undefined reference",
     "a function that is declared, but neither defined here nor in libc, libm or OpenMP's runtime",
     IN_ERRORS},
    {"ran out of memory", "the compiler gave up: unroll less", IN_ERRORS},
    {"CPU time limit", "the compiler gave up: unroll less", IN_ERRORS},
    {"wrote out of bounds",
     "a store past the end or before the start of a tensor: a whole vector stored at a remainder, "
     "or a tile at the edge",
     IN_REASON},
    {"read out of bounds",
     "a load past the end or before the start of an input: a whole vector at a remainder, a tile "
     "at the edge, or a load ahead of its use in the last iteration",
     IN_REASON},
    {"wrote to an input", "a store through an input's pointer: inputs are read only", IN_REASON},
    {"work was left behind",
     "a thread wrote an output after the call had returned: all of them must be joined before",
     IN_REASON},
    {"its memory grows", "memory that each call allocates and does not free: declare a workspace",
     IN_REASON},
    {"ran at a time",
     "threads that wait for each other by spinning: use a barrier of OpenMP's, or none", IN_REASON},
    {"low precision",
     "products or sums in a narrower type than the problem's: inputs rounded to 16 bits or tf32, "
     "an approximate reciprocal or exp without a correcting step",
     IN_REASON},
    {"SIGSEGV",
     "a bad address: past the end of a tensor, an aligned vector access that is not aligned, or a "
     "local array too large for the stack (some hundred KiB: use a workspace)",
     IN_REASON},
    {"SIGILL", "an instruction that this machine has not: see `march` above", IN_REASON},
    {"SIGFPE", "an integer division by 0: a dim smaller than a tile", IN_REASON},
    {"SIGSYS", "a system call that kernels may not make: no files, no clocks, no processes",
     IN_REASON},
    {"SIGABRT",
     "the C library or an assertion stopped it: memory freed twice or written past its end",
     IN_REASON},
    {"did not answer within",
     "it hung: a loop that never ends (a step of 0, an unsigned index that goes below 0), or a "
     "barrier that not all threads reach",
     IN_REASON},
    {"did not end within",
     "it hung: a loop that never ends (a step of 0, an unsigned index that goes below 0), or a "
     "barrier that not all threads reach",
     IN_REASON},
    {"no code block", "the whole file must stand in one fenced block", IN_REASON},
    {"seems to be cut off", "the answer ended too early: keep it shorter, and say less around it",
     IN_REASON},
    {"was cut off before its end", "keep it shorter, and say less around it", IN_REASON},
    {"below the bytes floor", "faster than the bytes could move: part of the work is not done",
     IN_REASON},
    {"heap-buffer-overflow",
     "a load or store past the end of a tensor: whole vectors at a remainder (use masks, or a "
     "scalar tail)",
     IN_REPORT},
    {"stack-buffer-overflow",
     "a local array is too small for a tile at this shape or these numbers", IN_REPORT},
    {"misaligned",
     "an aligned load or store at an address that is not: rows are not aligned unless the dim is a "
     "multiple of the vector; use the unaligned forms",
     IN_REPORT},
    {"signed integer overflow", "an index in int: use int64_t for products of dims", IN_REPORT},
    {"out of bounds for type", "an index past the end of a local array", IN_REPORT},
    {"division by zero", "an integer division by 0: a dim smaller than a tile, or no chunks at all",
     IN_REPORT},
};

static void put_cause(const char *cause, size_t *told, struct buf *out)
{
    if ((*told)++ == 0)
        buf_add_text(out, "\nWhat that usually comes from:\n");
    buf_addf(out, "- %s\n", cause);
}

/* "shape: M=1, N=1" against the dims of the main shape. */
static void put_shape_hint(const struct material *material, const char *diagnostics, size_t *told,
                           struct buf *out)
{
    const struct names *main_shape = &material->context->problem->shapes[0];
    const char *shape = strstr(diagnostics, "\nshape: ");
    if (shape == NULL)
        return;
    shape += strlen("\nshape: ");
    BUF_LOCAL(text, 4096);
    for (size_t i = 0; i < main_shape->count; i++)
        buf_addf(&text, "%s%s=%lld", i > 0 ? ", " : "", main_shape->name[i],
                 (long long)main_shape->number[i]);
    size_t length = strcspn(shape, "\n");
    if (length != text.length || memcmp(shape, buf_text(&text), length) != 0)
        put_cause("it showed at a shape that is not the main one: look at remainders, and at dims "
                  "that are smaller than a tile, a vector or the number of threads",
                  told, out);
}

static bool has_word(const char *text, size_t length, const char *word)
{
    return memmem(text, length, word, strlen(word)) != NULL;
}

static const struct cause_of *pattern_of(const char *diagnostics)
{
    size_t line = strcspn(diagnostics, "\n");
    const char *open = memrchr(diagnostics, '(', line);
    for (size_t i = 0; open != NULL && i < PATTERNS; i++)
        if (has_word(open, line - (size_t)(open - diagnostics), patterns[i].sign))
            return &patterns[i];
    return NULL;
}

static void put_wrong(const struct material *material, const char *diagnostics, struct buf *out)
{
    const struct cause_of *found = pattern_of(diagnostics);
    const char *set = strstr(diagnostics, "\ninputs: ");
    size_t told = 0;
    if (found == NULL)
        return;
    put_cause(found->cause, &told, out);
    if (found >= patterns + PATTERNS_OF_NAN &&
        has_word(diagnostics, strcspn(diagnostics, "\n"), ": got nan"))
        put_cause("the worst element is NaN: never written (outputs hold NaN before the call), or "
                  "computed (0/0, inf - inf)",
                  &told, out);
    if (found->of == OF_SHAPE || found->of == OF_BOTH)
        put_shape_hint(material, diagnostics, &told, out);
    bool values = found->of == OF_VALUES || found->of == OF_BOTH;
    for (size_t i = 0; values && set != NULL && i < sizeof inputs / sizeof inputs[0]; i++)
        if (strncmp(set + strlen("\ninputs: "), inputs[i].sign, strlen(inputs[i].sign)) == 0)
            put_cause(inputs[i].cause, &told, out);
}

/* In a line of a compiler's that says "error": what it quotes of the source says nothing. */
static bool in_errors(const char *text, const char *sign)
{
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if ((has_word(line, length, "error") || has_word(line, length, "undefined reference") ||
             line == text) &&
            has_word(line, length, sign))
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

static bool is_there(const struct cause_of *cause, const char *diagnostics, bool compiled)
{
    if (cause->of == IN_ERRORS)
        return !compiled && in_errors(diagnostics, cause->sign);
    size_t length = cause->of == IN_REASON ? strcspn(diagnostics, "\n") : strlen(diagnostics);
    return (compiled || cause->of == IN_REASON) && has_word(diagnostics, length, cause->sign);
}

void put_failure(const struct material *material, size_t most, struct buf *out)
{
    const char *diagnostics = material->diagnostics != NULL ? material->diagnostics : "";
    bool compiled = strcmp(material->failure, PROMPT_NOT_COMPILED) != 0;
    size_t told = 0;
    if (*diagnostics != '\0')
        prompt_fenced(diagnostics, most, "... ", " ...", out);
    if (strncmp(diagnostics, "wrong result: ", strlen("wrong result: ")) == 0) {
        put_wrong(material, diagnostics, out);
        return;
    }
    const char *last = NULL;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0] && told < CAUSES_MAX; i++) {
        if (!is_there(&signs[i], diagnostics, compiled))
            continue;
        if (last == NULL || strcmp(last, signs[i].cause) != 0)
            put_cause(signs[i].cause, &told, out);
        last = signs[i].cause;
    }
}
