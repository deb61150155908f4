/* eval/sets/ties: integers that are not the definition's, and right all the same. The definition
 * itself is asked:
 *
 *   - An index. Where what lies at the kernel's index and at the definition's own change places,
 * and the definition gives what it gave, it cannot tell the two apart, and either is right. That an
 *     output is an index at all shows on drawn numbers: the definition follows where its input is
 *     rotated along the axis.
 *   - A number that was rounded, or an index of what is computed first. The kernel's is right if
 * the definition gives it for inputs that are moved by their last bits, or in its own precision.
 *     Few may be: who is off by one everywhere hangs on no tie.
 *   - What is another one nearly each time the inputs move is any of many, none better than
 * another.
 */
#include "eval/sets/ties.h"
#include "base/mem.h"
#include "eval/reference/private.h"
#include "eval/sets/session.h"
#include "eval/sets/shake.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS = 22, MANY = 4, TURNED = 4 };

static const double last_bits[DTYPES] = {[DTYPE_FLOAT32] = 0x1p-17,
                                         [DTYPE_FLOAT64] = 0x1p-46,
                                         [DTYPE_FLOAT16] = 0x1p-10,
                                         [DTYPE_BFLOAT16] = 0x1p-7};

/* --- what the inputs' last bits decide --- */

struct asked { /* of the elements that are bad */
    size_t count, answers;
    size_t *at;
    double *given;     /* [count][ANSWERS] */
    double low, high;  /* of all that was given anywhere: an index may not lie outside */
    size_t honest_bad; /* of `count`: an index may be no question in a part of the inputs alone */
    size_t honest_off; /* elements where the definition's own precision gives another one */
};

static void take_answers(const struct ties *ties, struct asked *asked, const void *results,
                         enum dtype dtype, bool honest)
{
    for (size_t i = 0; i < ties->count; i++) {
        double number = dtype_load(dtype, results, i);
        asked->low = fmin(asked->low, number);
        asked->high = fmax(asked->high, number);
        asked->honest_off += honest && fabs(number - ties->exact[i]) > 0.0;
    }
    for (size_t k = 0; k < asked->count; k++) {
        double number = dtype_load(dtype, results, asked->at[k]);
        asked->given[k * ANSWERS + asked->answers] = number;
        asked->honest_bad += honest && fabs(number - ties->exact[asked->at[k]]) > 0.0;
    }
    asked->answers++;
}

/* False: the definition does not take such inputs. */
static bool ask(const struct ties *ties, struct asked *asked, const struct shake *shake)
{
    void *results[OUTPUTS_MAX];
    struct err ignored;
    enum dtype dtype = ties->session->problem->outputs[ties->output].dtype;
    if (session_shake(ties->session, ties->set, shake, results, &ignored) != 0)
        return false;
    take_answers(ties, asked, results[ties->output], shake->honest ? dtype : DTYPE_FLOAT64,
                 shake->honest && !(fabs(shake->size) > 0.0));
    return true;
}

static size_t distinct(const double *numbers, size_t count)
{
    size_t different = 0;
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = fabs(numbers[i] - numbers[k]) <= 0.0;
        different += !seen;
    }
    return different;
}

static bool is_given(const struct asked *asked, size_t k, double number)
{
    for (size_t i = 0; i < asked->answers; i++)
        if (fabs(asked->given[k * ANSWERS + i] - number) <= 0.0)
            return true;
    return false;
}

static void range_of(const struct asked *asked, size_t k, double *low, double *high)
{
    const double *given = &asked->given[k * ANSWERS];
    *low = *high = given[0];
    for (size_t i = 1; i < asked->answers; i++) {
        *low = fmin(*low, given[i]);
        *high = fmax(*high, given[i]);
    }
}

/* What was given; of codes also what lies between two of these, which inputs that move by less
 * give. */
static bool is_reached(const struct ties *ties, const struct asked *asked, size_t k, double number)
{
    double low, high;
    range_of(asked, k, &low, &high);
    return ties->index ? is_given(asked, k, number) : number >= low && number <= high;
}

/* Among what the definition gave, or `beside` it. */
static bool is_among(const struct asked *asked, size_t k, double number, double beside)
{
    double low, high;
    range_of(asked, k, &low, &high);
    beside = fmax(beside, high - low);
    return number >= fmax(asked->low, low - beside) && number <= fmin(asked->high, high + beside);
}

/* An answer that was reached explains an element: each of an index's, of others at most a sixteenth
 * of all, or twice as many as the definition gets wrong in its own precision. Where that is more
 * than a quarter of all, the inputs are no question: of indices, those that it gives another one
 * for. There, and where many answers are as good, one may be as far off as the definition's lie
 * apart. */
static void settle(struct ties *ties, const struct asked *asked, bool zeros)
{
    enum { PART = 16, NO_QUESTION = 4 };
    size_t near = 0, most = ties->count / PART;
    double apart = 0.0, low, high;
    most = most > 2 * asked->honest_off ? most : 2 * asked->honest_off;
    most = ties->index ? ties->count : zeros ? 0 : most > 0 ? most : 1;
    bool none = asked->honest_off * NO_QUESTION > ties->count ||
                (ties->index && asked->honest_bad * NO_QUESTION > asked->count);
    for (size_t k = 0; k < asked->count && (none || zeros); k++) {
        range_of(asked, k, &low, &high);
        apart = fmax(apart, high - low);
    }
    for (size_t k = 0; k < asked->count; k++) {
        double number = ties_got(ties, asked->at[k]);
        size_t different = distinct(&asked->given[k * ANSWERS], asked->answers);
        bool any = (none && (different > 1 || !ties->index)) || different >= MANY;
        if ((any && is_among(asked, k, number, apart)) ||
            (is_reached(ties, asked, k, number) && near++ < most))
            ties_explain(ties, asked->at[k]);
    }
}

static void asked_open(const struct ties *ties, struct asked *asked)
{
    *asked = (struct asked){.count = ties->bad_count, .low = INFINITY, .high = -INFINITY};
    asked->at = (size_t *)mem_array(asked->count + 1, sizeof *asked->at);
    asked->given = (double *)mem_array(asked->count + 1, ANSWERS * sizeof *asked->given);
    for (size_t i = 0, k = 0; i < ties->count; i++)
        if (ties->bad[i] > 0)
            asked->at[k++] = i;
}

static void asked_close(struct asked *asked)
{
    mem_free(asked->at);
    mem_free(asked->given);
}

/* What an index points at is put in another order. Of what the definition cannot tell apart it
 * takes the first, or the last, which are others then. */
static void ask_turned(const struct ties *ties, struct asked *asked,
                       const struct pointing *pointing, bool honest)
{
    MEM_LOCAL double *answers = (double *)mem_array(ties->count + 1, sizeof *answers);
    for (size_t i = 0; i < TURNED && ties->index; i++) {
        struct turn turn = {.around = i % 2 == 0, .honest = honest};
        turn.by = i == 0 ? 0 : (size_t)random_below(&ties->session->random, pointing->extent);
        if (ties_turn(ties, ties->set, pointing, &turn, answers))
            take_answers(ties, asked, answers, DTYPE_FLOAT64, false);
    }
}

/* In pairs: what does not tip one way tips the other. */
static void ask_shaken(struct ties *ties, const double *sizes, size_t pairs,
                       const struct pointing *pointing)
{
    struct asked asked;
    asked_open(ties, &asked);
    take_answers(ties, &asked, ties->exact, DTYPE_FLOAT64, false);
    struct shake shake = {.by_type = sizes, .honest = true};
    bool taken = ask(ties, &asked, &shake);
    if (taken)
        ask_turned(ties, &asked, pointing, true);
    for (size_t i = 0; i < pairs && taken; i++) {
        shake.key = random_next(&ties->session->random);
        shake.honest = i % 2 == 1; /* whose own errors may be larger than what moving inputs does */
        shake.size = 1.0;
        taken = ask(ties, &asked, &shake);
        shake.size = -1.0;
        taken = taken && ask(ties, &asked, &shake);
    }
    settle(ties, &asked, false);
    asked_close(&asked);
}

/* What is equal, and stays so however little it moves: zeros move as well. */
static void ask_equal(struct ties *ties, const double *sizes, const struct pointing *pointing)
{
    enum { MOVED = 7 };
    struct asked asked;
    asked_open(ties, &asked);
    take_answers(ties, &asked, ties->exact, DTYPE_FLOAT64, false);
    struct shake shake = {.by_type = sizes, .zeros = true, .size = 1.0};
    bool taken = true;
    for (size_t i = 0; i < MOVED && taken; i++) {
        shake.key = random_next(&ties->session->random);
        taken = ask(ties, &asked, &shake);
    }
    if (taken)
        ask_turned(ties, &asked, pointing, false);
    settle(ties, &asked, true);
    asked_close(&asked);
}

/* --- all of it --- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of indices that lie along `pointing`, or of rows: in none of the definition's, and in one here.
 * Two codes are no such: where they lie a step apart rounding may make them one. */
static bool repeats(const struct ties *ties, const struct pointing *pointing)
{
    MEM_LOCAL double *numbers = (double *)mem_array(pointing->picks + 1, sizeof *numbers);
    bool repeated[2] = {false, false};
    for (size_t own = 0; own < 2; own++)
        for (size_t g = 0; g < pointing->outer * pointing->inner && !repeated[own]; g++) {
            for (size_t k = 0; k < pointing->picks; k++) {
                size_t at = pointing_place(pointing, g / pointing->inner, k, g % pointing->inner);
                numbers[k] = own == 0 ? ties->exact[at] : ties_got(ties, at);
            }
            qsort(numbers, pointing->picks, sizeof *numbers, by_value);
            for (size_t k = 1; k < pointing->picks; k++)
                repeated[own] = repeated[own] || !(numbers[k - 1] < numbers[k]);
        }
    return !repeated[0] && repeated[1];
}

static void all_bad(struct ties *ties)
{
    for (size_t i = 0; i < ties->count; i++) {
        ties->bad[i] = !(fabs(ties_got(ties, i) - ties->exact[i]) <= 0.0);
        ties->bad_count += ties->bad[i];
    }
}

/* The last bits are those of what the spec allows to compute in. */
static void find_sizes(const struct problem *problem, double sizes[DTYPES])
{
    int bits = reference_bits(problem, PRECISION_SPEC);
    for (size_t i = 0; i < DTYPES; i++)
        sizes[i] = bits < 0 ? last_bits[i] : fmax(last_bits[i], ldexp(1.0, -bits));
}

/* `rows`: of the output, if its numbers are no indices of what lies along them. */
static void ask_all(struct ties *ties, struct pointing *rows)
{
    enum { PAIRS = 8 };
    static const double slow_ns = 1e9;
    struct session *session = ties->session;
    bool slow = ties->set->shape == &session->shapes[0] && session->exact_ns > slow_ns;
    double sizes[DTYPES];
    struct pointing pointing;
    find_sizes(session->problem, sizes);
    ties->index = ties_find_index(ties, &pointing);
    if (ties->index && pointing.picks > 0) {
        *rows = pointing;
        ties_exchange(ties, &pointing);
    }
    if (ties->bad_count > 0)
        ask_shaken(ties, sizes, slow ? 1 : PAIRS, &pointing);
    if (ties->bad_count > 0 && !slow)
        ask_equal(ties, sizes, &pointing);
}

bool session_excuses_integers(struct session *session, const struct set *set, size_t output,
                              const void *got)
{
    const struct tensor_spec *tensor = &session->problem->outputs[output];
    const struct placed *placed = &set->shape->layout.outputs[output];
    size_t row = tensor_row(tensor, placed);
    struct ties ties = {.session = session,
                        .set = set,
                        .output = output,
                        .count = placed->elements,
                        .exact = set->exact[output],
                        .got = got};
    struct pointing pointing = {
        .outer = row > 0 ? placed->elements / row : 0, .inner = 1, .picks = row};
    MEM_LOCAL unsigned char *bad = (unsigned char *)mem_alloc(ties.count + 1);
    ties.bad = bad;
    all_bad(&ties);
    ask_all(&ties, &pointing);
    struct subject *subject = reference_subject(session->reference);
    if (subject != NULL)
        subject->ops->pause(subject);
    return ties.bad_count == 0 && !(ties.index && repeats(&ties, &pointing));
}
