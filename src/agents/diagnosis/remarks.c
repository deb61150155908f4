#include "agents/diagnosis/private.h"

#include <string.h>

enum { LINES_SHOWN = 6, REASONS_SHOWN = 4 };

/* What compilers say (gcc, then clang), and what can be done about it. */
static const struct {
    const char *marker, *reason, *remedy;
} reasons[] = {
    {"control flow in loop", "control flow in the loop",
     "a branch, a call that is not inlined, or an early exit: select by arithmetic or by masks"},
    {"complicated access pattern", "complicated access pattern",
     "strided or indirect: reorder the loops or the data, so that the inner loop walks neighbours"},
    {"no grouped stores", "strided access", "make the inner loop walk neighbours in memory"},
    {"possible dependence", "possible dependence between iterations",
     "restrict pointers, or omp simd where they are independent"},
    {"unsafe dependent memory", "possible dependence between iterations",
     "restrict pointers, or omp simd where they are independent"},
    {"cannot prove it is safe to reorder floating-point", "a sum in a given order",
     "several accumulators by hand, or omp simd reduction, or -ffast-math"},
    {"unsupported use in stmt", "a sum in a given order, or a value carried over",
     "several accumulators by hand, or omp simd reduction, or -ffast-math"},
    {"could not be identified as reduction", "a value carried from one iteration to the next",
     "several accumulators by hand, or omp simd reduction, or -ffast-math"},
    {"number of iterations cannot be computed", "number of iterations not known before the loop",
     "a counted loop with one exit"},
    {"could not determine number of loop iterations",
     "number of iterations not known before the loop", "a counted loop with one exit"},
    {"call instruction cannot be vectorized", "a call in the loop",
     "a polynomial or an intrinsic in its place"},
    {"function call", "a call in the loop", "a polynomial or an intrinsic in its place"},
    {"unsupported data-type", "a type without vectors", "convert outside of the loop"},
    {"not profitable", "not worth it by the compiler's own costs",
     "longer or aligned inner loops, restrict, or omp simd"},
    {"cannot identify array bounds", "bounds of an array not known",
     "plain indices from 0 in an inner loop"},
};

enum { REASONS = sizeof reasons / sizeof reasons[0] };

static size_t reason_of(const struct value *remark)
{
    const char *text = value_text(remark, "text", "");
    size_t i = 0;
    if (strcmp(value_text(remark, "kind", ""), "missed") != 0)
        return REASONS;
    while (i < REASONS && strstr(text, reasons[i].marker) == NULL)
        i++;
    return i;
}

static bool same_reason(const struct value *remark, size_t reason)
{
    size_t i = reason_of(remark);
    return i < REASONS && strcmp(reasons[i].reason, reasons[reason].reason) == 0;
}

void remarks_say(const struct value *remarks, struct buf *out)
{
    int shown = 0;
    if (remarks == NULL || remarks->kind != VALUE_LIST)
        return;
    for (size_t i = 0; i < remarks->count && shown < REASONS_SHOWN; i++) {
        size_t reason = reason_of(remarks->items[i]);
        bool told = reason == REASONS;
        for (size_t j = 0; j < i && !told; j++)
            told = same_reason(remarks->items[j], reason);
        if (told)
            continue;
        int lines = 0;
        int64_t last = -1;
        buf_add_text(out, "- loops that the compiler left as single numbers, in line");
        for (size_t j = i; j < remarks->count && lines < LINES_SHOWN; j++) {
            int64_t line = value_int(remarks->items[j], "line", 0);
            if (!same_reason(remarks->items[j], reason) || line == last)
                continue;
            buf_addf(out, "%s %lld", lines++ > 0 ? "," : "", (long long)line);
            last = line;
        }
        buf_addf(out, " (%s): %s\n", reasons[reason].reason, reasons[reason].remedy);
        shown++;
    }
}
