/* eval/sets/ties_index: whether an output's integers are indices into an input, and what the
 * definition says where what two of them point at change places, or the whole axis is turned. */
#include "base/mem.h"
#include "eval/sets/session.h"
#include "eval/sets/ties.h"

#include <math.h>
#include <string.h>

double ties_got(const struct ties *ties, size_t i)
{
    return dtype_load(ties->session->problem->outputs[ties->output].dtype, ties->got, i);
}

void ties_explain(struct ties *ties, size_t i)
{
    ties->bad_count -= ties->bad[i];
    ties->bad[i] = 0;
}

static size_t product(const int64_t *extents, size_t from, size_t to)
{
    size_t all = 1;
    for (size_t i = from; i < to; i++)
        all *= (size_t)extents[i];
    return all;
}

/* `axis`: the input's rank for all of it. False: the output has not the extents of such indices. */
static bool pointing_make(const struct ties *ties, size_t input, size_t axis,
                          struct pointing *pointing)
{
    const struct problem *problem = ties->session->problem;
    const struct layout *layout = &ties->set->shape->layout;
    const int64_t *in = layout->inputs[input].extents, *out = layout->outputs[ties->output].extents;
    size_t rank = problem->inputs[input].rank, kept = problem->outputs[ties->output].rank;
    if (axis == rank) {
        *pointing = (struct pointing){input, 1, layout->inputs[input].elements, 1, ties->count};
        return rank != 1 && kept <= 1 && pointing->extent > 1 &&
               pointing->picks <= pointing->extent;
    }
    bool same = kept == rank || kept + 1 == rank;
    for (size_t i = 0; i < rank && same; i++)
        if (i != axis)
            same = in[i] == out[kept == rank || i < axis ? i : i - 1];
    size_t picks = same && kept == rank ? (size_t)out[axis] : 1;
    *pointing = (struct pointing){input, product(in, 0, axis), (size_t)in[axis],
                                  product(in, axis + 1, rank), picks};
    return same && pointing->extent > 1 && pointing->picks <= pointing->extent;
}

/* The axis as a table's. */
static bool pointing_share(const struct ties *ties, size_t input, size_t axis,
                           struct pointing *pointing)
{
    const struct placed *placed = &ties->set->shape->layout.inputs[input];
    size_t rank = ties->session->problem->inputs[input].rank;
    if (axis == rank)
        return false;
    *pointing =
        (struct pointing){input, product(placed->extents, 0, axis), (size_t)placed->extents[axis],
                          product(placed->extents, axis + 1, rank), 0};
    return pointing->extent > 1;
}

static size_t place_in(const struct pointing *pointing, size_t outer, size_t at, size_t inner)
{
    return (outer * pointing->extent + at) * pointing->inner + inner;
}

size_t pointing_place(const struct pointing *pointing, size_t outer, size_t pick, size_t inner)
{
    return (outer * pointing->picks + pick) * pointing->inner + inner;
}

/* answers[]: the definition's integers for what lies in the region. */
static int compute(const struct ties *ties, const struct call *call,
                   enum reference_precision precision, double *answers, struct err *err)
{
    struct session *session = ties->session;
    const struct layout *layout = &ties->set->shape->layout;
    bool exact = precision == PRECISION_EXACT;
    void *results[OUTPUTS_MAX];
    for (size_t i = 0; i < session->problem->output_count; i++)
        results[i] = session_scratch(session, i, layout->outputs[i].elements * sizeof(double));
    if (reference_compute(session->reference, layout, call, precision, results, err) != 0)
        return -1;
    dtype_to_double(exact ? DTYPE_FLOAT64 : session->problem->outputs[ties->output].dtype,
                    results[ties->output], ties->count, answers);
    return 0;
}

static bool is_index(const struct pointing *pointing, double number)
{
    return number >= 0.0 && number < (double)pointing->extent &&
           fabs(number - floor(number)) <= 0.0;
}

static size_t turned(const struct pointing *pointing, const struct turn *turn, size_t at)
{
    size_t to = (at + turn->by) % pointing->extent;
    return turn->around ? pointing->extent - 1 - to : to;
}

bool ties_turn(const struct ties *ties, const struct set *set, const struct pointing *pointing,
               const struct turn *turn, double *answers)
{
    struct session *session = ties->session;
    size_t bytes = dtype_bytes(session->problem->inputs[pointing->input].dtype);
    enum reference_precision precision = turn->honest ? PRECISION_SPEC : PRECISION_EXACT;
    struct call call;
    struct err ignored;
    set_place(session, set, &call);
    unsigned char *to = session->region.inputs + set->shape->layout.inputs[pointing->input].offset;
    MEM_LOCAL double *before = (double *)mem_array(pointing->extent, sizeof *before);
    for (size_t at = 0; at < pointing->extent; at++)
        before[turned(pointing, turn, at)] = (double)at;
    for (size_t o = 0; o < pointing->outer; o++)
        for (size_t at = 0; at < pointing->extent; at++)
            memcpy(to + place_in(pointing, o, turned(pointing, turn, at), 0) * bytes,
                   set->inputs[pointing->input] + place_in(pointing, o, at, 0) * bytes,
                   pointing->inner * bytes);
    if (compute(ties, &call, precision, answers, &ignored) != 0)
        return false;
    for (size_t i = 0; i < ties->count; i++)
        answers[i] = is_index(pointing, answers[i]) ? before[(size_t)answers[i]] : NAN;
    return true;
}

/* Whether the definition's index moves with what it points at. `before`: its answers to `drawn`. */
static bool follows(const struct ties *ties, const struct set *drawn,
                    const struct pointing *pointing, const double *before)
{
    size_t same = 0;
    struct turn turn = {.by =
                            1 + (size_t)random_below(&ties->session->random, pointing->extent - 1)};
    MEM_LOCAL double *after = (double *)mem_array(ties->count + 1, sizeof *after);
    if (!ties_turn(ties, drawn, pointing, &turn, after))
        return false;
    for (size_t i = 0; i < ties->count; i++)
        same += fabs(after[i] - before[i]) < 0.5;
    return same * 2 > ties->count;
}

static bool find_view(const struct ties *ties, const struct set *drawn, const double *before,
                      bool shared, struct pointing *pointing)
{
    enum { TRIED_MOST = 8 };
    const struct problem *problem = ties->session->problem;
    size_t tried = 0;
    for (size_t i = 0; i < problem->input_count; i++)
        for (size_t axis = 0; axis <= problem->inputs[i].rank && tried < TRIED_MOST; axis++) {
            bool fits = shared ? pointing_share(ties, i, axis, pointing)
                               : pointing_make(ties, i, axis, pointing);
            tried += fits;
            if (fits && follows(ties, drawn, pointing, before) &&
                follows(ties, drawn, pointing, before))
                return true;
        }
    return false;
}

/* Of numbers that are drawn, where ties are few. */
bool ties_find_index(const struct ties *ties, struct pointing *pointing)
{
    struct session *session = ties->session;
    struct set drawn = {.shape = ties->set->shape, .distribution = DRAW_NORMAL};
    struct call call;
    struct err ignored;
    MEM_LOCAL double *before = (double *)mem_array(ties->count + 1, sizeof *before);
    set_draw(session, &drawn);
    set_place(session, &drawn, &call);
    bool found = compute(ties, &call, PRECISION_EXACT, before, &ignored) == 0 &&
                 (find_view(ties, &drawn, before, false, pointing) ||
                  find_view(ties, &drawn, before, true, pointing));
    set_free(&drawn);
    return found;
}

/* Where each element of one slice comes from once what the kernel's indices point at and what the
 * definition's do have changed places. False: an index is none, or one of several alike. */
struct slice {
    size_t *from, *by_got; /* [extent]; the pick with this index of the kernel's, from 1 */
    unsigned char *in_exact;
};

static bool exchange(const struct ties *ties, const struct pointing *pointing, size_t o, size_t i,
                     struct slice *slice)
{
    memset(slice->by_got, 0, pointing->extent * sizeof *slice->by_got);
    memset(slice->in_exact, 0, pointing->extent);
    for (size_t at = 0; at < pointing->extent; at++)
        slice->from[at] = at;
    for (size_t k = 0; k < pointing->picks; k++) {
        size_t at = pointing_place(pointing, o, k, i);
        double exact = ties->exact[at], got = ties_got(ties, at);
        if (!is_index(pointing, exact) || !is_index(pointing, got) ||
            slice->by_got[(size_t)got] > 0 || slice->in_exact[(size_t)exact] > 0)
            return false;
        slice->by_got[(size_t)got] = k + 1;
        slice->in_exact[(size_t)exact] = 1;
    }
    for (size_t k = 0; k < pointing->picks; k++) {
        size_t at = pointing_place(pointing, o, k, i);
        size_t exact = (size_t)ties->exact[at], got = (size_t)ties_got(ties, at), end = exact;
        slice->from[exact] = got;
        if (slice->in_exact[got] > 0)
            continue;
        while (slice->by_got[end] > 0) /* a way that ends where the kernel points at nothing */
            end = (size_t)ties->exact[pointing_place(pointing, o, slice->by_got[end] - 1, i)];
        slice->from[got] = end;
    }
    return true;
}

static void put_exchanged(const struct ties *ties, const struct pointing *pointing,
                          unsigned char *usable)
{
    struct session *session = ties->session;
    size_t input = pointing->input;
    size_t bytes = dtype_bytes(session->problem->inputs[input].dtype);
    const unsigned char *values = ties->set->inputs[input];
    unsigned char *to = session->region.inputs + ties->set->shape->layout.inputs[input].offset;
    MEM_LOCAL size_t *from = (size_t *)mem_array(pointing->extent, sizeof *from);
    MEM_LOCAL size_t *by_got = (size_t *)mem_array(pointing->extent, sizeof *by_got);
    MEM_LOCAL unsigned char *in_exact = (unsigned char *)mem_alloc(pointing->extent);
    struct slice slice = {from, by_got, in_exact};
    for (size_t o = 0; o < pointing->outer; o++)
        for (size_t i = 0; i < pointing->inner; i++) {
            usable[o * pointing->inner + i] = exchange(ties, pointing, o, i, &slice);
            for (size_t at = 0; at < pointing->extent && usable[o * pointing->inner + i] > 0; at++)
                memcpy(to + place_in(pointing, o, at, i) * bytes,
                       values + place_in(pointing, o, from[at], i) * bytes, bytes);
        }
}

void ties_exchange(struct ties *ties, const struct pointing *pointing)
{
    struct call call;
    struct err ignored;
    MEM_LOCAL double *answers = (double *)mem_array(ties->count + 1, sizeof *answers);
    MEM_LOCAL unsigned char *usable = (unsigned char *)mem_alloc(pointing->outer * pointing->inner);
    set_place(ties->session, ties->set, &call);
    put_exchanged(ties, pointing, usable);
    if (compute(ties, &call, PRECISION_EXACT, answers, &ignored) != 0)
        return;
    for (size_t o = 0; o < pointing->outer; o++)
        for (size_t i = 0; i < pointing->inner; i++) {
            bool same = usable[o * pointing->inner + i] > 0;
            for (size_t k = 0; k < pointing->picks && same; k++) {
                size_t at = pointing_place(pointing, o, k, i);
                same = fabs(answers[at] - ties->exact[at]) <= 0.0;
            }
            for (size_t k = 0; k < pointing->picks && same; k++)
                ties_explain(ties, pointing_place(pointing, o, k, i));
        }
}
