/* eval/measure/low_bits: does a win see the lowest bits of its inputs? Behind long sums what a
 * mantissa of 18 bits loses is less than honest rounding, in each element; but it is known what it
 * is, and over all elements it shows (check/response.h). Asked of what calls have left, timed ones
 * among them, on sets like any other: a kernel cannot know which. */
#include "eval/measure/low_bits.h"
#include "base/clock.h"
#include "eval/check/response.h"
#include "eval/measure/session_private.h"
#include "eval/sets/wide.h"

#include <math.h>

enum { MANTISSA = 23, ASKED = 19, COARSE = 16, LEAST = 12 };

/* A share is told where its standard error is no larger. Refused is what then lies more than
 * `apart` from 1, and four errors more: rounding to 20 bits lies 0.26 from it, cutting to 20 bits
 * 0.2, to 21 bits either less than 0.1; rounding to 19 bits 0.6, everything below 1. */
static const double error_most = 0.1, apart = 0.4;
/* Of the lowest 7 bits what is honest leaves a 64th as much: 20 bits rounded 0.004. So a loss in
 * some of the terms or of the elements shows by that share. */
static const double apart_coarse = 0.06;

struct suspicion {
    bool found;
    size_t input, output;
    int bits;
    struct response response;
    struct blocks blocks;
    bool in_block; /* seen in some blocks alone */
    double rest;   /* the largest over the most that is honest, of output `noisy` */
    size_t noisy;
    bool in_terms; /* seen in an eighth of the terms alone */
    struct terms_lost lost;
};

static void measure(const struct bench *bench, const struct kept *kept, size_t output,
                    void *const *results, const float *got, struct response *response)
{
    const struct placed *placed = &kept->set->shape->layout.outputs[output];
    response_measure(&bench->session->problem->outputs[output], placed->extents, placed->elements,
                     kept->set->exact[output], (const double *)results[output], got, response);
}

static void measure_blocks(const struct bench *bench, const struct kept *kept, size_t output,
                           void *const *results, const float *got, struct blocks *blocks)
{
    const struct placed *placed = &kept->set->shape->layout.outputs[output];
    response_blocks(&bench->session->problem->outputs[output], placed->extents, placed->elements,
                    kept->set->exact[output], (const double *)results[output], got, blocks);
}

static double apart_at(int bits)
{
    return bits <= COARSE ? apart_coarse : apart;
}

/* The definition in float32 may lose them, too: next to a large number small ones have fewer. */
static int is_honest(struct bench *bench, const struct kept *kept,
                     const struct suspicion *suspicion, void *const *results, struct err *err)
{
    void *honest[OUTPUTS_MAX];
    struct response response;
    if (session_compute_honest(bench->session, kept->set, honest, err) != 0)
        return -1;
    measure(bench, kept, suspicion->output, results, honest[suspicion->output], &response);
    if (fabs(response.share - 1.0) > apart_at(suspicion->bits) / 2.0 || !suspicion->in_block)
        return fabs(response.share - 1.0) > apart_at(suspicion->bits) / 2.0;
    struct blocks blocks;
    measure_blocks(bench, kept, suspicion->output, results, honest[suspicion->output], &blocks);
    return blocks.off > apart / 2.0;
}

/* What the definition errs by itself is in both of its results, and would look like a kernel that
 * sees nothing. Of numbers four times as far off results are four times as far off, or it is that.
 */
static int is_noise(struct bench *bench, const struct kept *kept, const struct suspicion *suspicion,
                    struct err *err)
{
    enum { FEWER = 2 };
    static const double grown = 8.0; /* in the square; 16 without errors of its own */
    void *results[OUTPUTS_MAX];
    struct response coarser;
    int status = session_coarsen(bench->session, kept->set, suspicion->input,
                                 suspicion->bits - FEWER, NULL, results, err);
    if (status <= 0)
        return status < 0 ? -1 : 1;
    measure(bench, kept, suspicion->output, results, kept->outputs[suspicion->output], &coarser);
    return coarser.size < grown * suspicion->response.size;
}

/* 1: it is the kernel; 0: the definition; -1 with *err. */
static int confirm(struct bench *bench, const struct kept *kept, const struct suspicion *suspicion,
                   void *const *results, struct err *err)
{
    int other = is_honest(bench, kept, suspicion, results, err);
    if (other == 0)
        other = is_noise(bench, kept, suspicion, err);
    return other < 0 ? -1 : other == 0;
}

/* Of a block the rest may be somewhat larger: there are fewer elements, and the largest is taken.
 */
static const double block_room = 1.25;

static void see_rest(const struct kept *kept, size_t output, double left,
                     struct suspicion *suspicion)
{
    double rest = left / kept->set->bounds[output].rest;
    if (!(rest > suspicion->rest))
        return;
    suspicion->rest = rest;
    suspicion->noisy = output;
}

/* One output; what it says of so many bits. Returns how many bits less it takes to tell. */
static int ask_output(struct bench *bench, const struct kept *kept, size_t output, int bits,
                      void *const *results, struct suspicion *suspicion)
{
    struct response response;
    struct blocks blocks;
    measure(bench, kept, output, results, kept->outputs[output], &response);
    see_rest(kept, output, response.rest, suspicion);
    measure_blocks(bench, kept, output, results, kept->outputs[output], &blocks);
    see_rest(kept, output, blocks.rest / block_room, suspicion);
    double off = fabs(response.share - 1.0);
    bool whole = response.error <= error_most && off > apart_at(bits) + 4.0 * response.error;
    if (whole || blocks.off > apart) {
        suspicion->found = true;
        suspicion->output = output;
        suspicion->bits = bits;
        suspicion->response = response;
        suspicion->blocks = blocks;
        suspicion->in_block = !whole;
    }
    if (!isfinite(response.error) || response.error <= error_most)
        return 0;
    return (int)fmax(1.0, floor(log2(response.error / error_most)));
}

/* The most bits of an input at which its share can be told, and a few less. A step coarser shows
 * twice as well. */
static int ask_input(struct bench *bench, const struct kept *kept, struct suspicion *suspicion,
                     struct err *err)
{
    void *results[OUTPUTS_MAX];
    for (int bits = ASKED, lower = 1; lower > 0 && bits >= LEAST; bits -= lower) {
        int status =
            session_coarsen(bench->session, kept->set, suspicion->input, bits, NULL, results, err);
        if (status <= 0)
            return status;
        lower = bits > COARSE ? bits - COARSE : 0;
        int least = 0;
        for (size_t i = 0; i < bench->session->problem->output_count; i++)
            if (kept->outputs[i] != NULL)
                least = (int)fmax(least, ask_output(bench, kept, i, bits, results, suspicion));
        lower = least > 0 && (lower == 0 || least < lower) ? least : lower;
        if (suspicion->found)
            return confirm(bench, kept, suspicion, results, err);
    }
    return 0;
}

static int ask(struct bench *bench, const struct kept *kept, struct suspicion *suspicion,
               struct err *err)
{
    bool there = kept->set != NULL && kept->seed == kept->set->seed && kept->set->expected &&
                 !kept->set->unfit;
    int status = 0;
    *suspicion = (struct suspicion){0};
    for (size_t i = 0; there && i < bench->session->problem->input_count && status == 0; i++) {
        suspicion->input = i;
        status = ask_input(bench, kept, suspicion, err);
        suspicion->found = status > 0;
    }
    if (there && status == 0) {
        status = low_bits_ask_terms(bench, kept, &suspicion->lost, err);
        suspicion->in_terms = status > 0;
    }
    /* Rounding up or down at random is right in the mean, and shows as noise alone. */
    if (status == 0 && suspicion->rest > 1.0)
        status = session_sums_products(bench->session, kept->set, suspicion->noisy, err);
    return status;
}

static void refuse_noise(struct bench *bench, const struct suspicion *suspicion)
{
    const char *output = bench->session->problem->outputs[suspicion->noisy].name;
    bench_reject(bench, VERDICT_REJECTED,
                 "low precision: the error over all elements is larger than any order of summing "
                 "in float32 explains, however small that of each element",
                 arena_printf(bench->arena,
                              "%s has %.2f times the error that rounding leaves at the most in "
                              "sums of %zu products; drawn again: the same\n",
                              output, suspicion->rest, bench->session->shapes[0].reduction));
}

static void refuse_terms(struct bench *bench, const struct terms_lost *lost)
{
    const struct problem *problem = bench->session->problem;
    bench_reject(
        bench, VERDICT_REJECTED,
        arena_printf(bench->arena,
                     "low precision: in some terms the lowest bits of %s's mantissa are cut off or "
                     "rounded away, however small the error of each element",
                     problem->inputs[lost->input].name),
        arena_printf(bench->arena,
                     lost->terms.apart
                         ? "of each eighth term of a sum, from number %zu on, %s moves with the "
                           "lowest %d bits by %.2f of what it should (standard error %.2f); drawn "
                           "again: the same\n"
                         : "of the eighth of a sum's terms numbered %zu, from 0 on, %s moves with "
                           "the lowest %d bits by %.2f of what it should (standard error %.2f); "
                           "drawn again: the same\n",
                     lost->terms.part, problem->outputs[lost->output].name, lost->bits,
                     lost->response.share, lost->response.error));
}

static void refuse(struct bench *bench, const struct suspicion *suspicion)
{
    const struct problem *problem = bench->session->problem;
    const char *input = problem->inputs[suspicion->input].name;
    if (suspicion->in_terms) {
        refuse_terms(bench, &suspicion->lost);
        return;
    }
    if (!suspicion->found) {
        refuse_noise(bench, suspicion);
        return;
    }
    const char *details =
        suspicion->in_block
            ? arena_printf(bench->arena,
                           "in a block of %zu x %zu of %s it moves with these bits of %s by %.2f "
                           "less than it should, beyond chance; drawn again: the same\n",
                           suspicion->blocks.rows, suspicion->blocks.columns,
                           problem->outputs[suspicion->output].name, input, suspicion->blocks.off)
            : arena_printf(bench->arena,
                           "over all elements %s moves with these bits of %s by %.2f of what it "
                           "should (standard error %.2f); drawn again: the same\n",
                           problem->outputs[suspicion->output].name, input,
                           suspicion->response.share, suspicion->response.error);
    bool some = suspicion->in_block || suspicion->bits <= COARSE;
    bench_reject(
        bench, VERDICT_REJECTED,
        arena_printf(
            bench->arena,
            "low precision: %sthe lowest %d of the %d bits of %s's mantissa are cut off or "
            "rounded away, however small the error of each element",
            some ? "in some elements or terms " : "", MANTISSA - suspicion->bits, MANTISSA, input),
        details);
}

int low_bits_of_win(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    struct suspicion first, second;
    uint64_t started = clock_now_ns();
    double each_ms = wide_believed(session) ? 0.0 : session->exact_ns / 1e6;
    if (bench->evaluation->finding != FINDING_FASTER || bench->low_bits == NULL ||
        !bench_affords(bench, each_ms * (double)session->problem->input_count,
                       "whether the lowest bits of its inputs are seen"))
        return 0;
    int status = ask(bench, &bench->low_bits->kept[0], &first, err);
    if (status > 0) /* one set alone is no verdict */
        status = ask(bench, &bench->low_bits->kept[1], &second, err);
    if (status > 0)
        refuse(bench, &second);
    session->costs.spent_ms += (double)(clock_now_ns() - started) / 1e6;
    return status < 0 ? -1 : 0;
}
