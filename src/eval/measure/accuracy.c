/* eval/measure/accuracy: how much of the allowed error a candidate needs. */
#include "eval/measure/accuracy.h"

#include "eval/measure/session_private.h"
#include "eval/sets/view.h"

#include <math.h>
#include <string.h>

static const double doubt_high = 2.0;

bool accuracy_is_doubtful(const struct bound *bound, double ratio)
{
    return !bound->fixed && !bound->exact_equality && ratio <= doubt_high;
}

/* Of what differs in the two, the number that has grown least beyond the timed one. */
static double least_growth(const struct session *session, const struct names *dims,
                           const struct names *other)
{
    double least = INFINITY;
    for (size_t i = 0; i < dims->count; i++)
        if (!session->problem->dims[i].derived && (session->divisors >> i & 1) == 0 &&
            dims->number[i] != other->number[i])
            least = fmin(least,
                         (double)dims->number[i] / (double)session->problem->shapes[0].number[i]);
    return least;
}

/* One shape, since a kernel may be wrong where the product of two dims is large: of those with
 * every dim as large as the timed one the one that has grown most in all of them. Of a divisor what
 * is small is what is large, so that its own number is the timed one's at the least. */
static void reach(struct accuracy *accuracy, const struct session *session,
                  const struct names *dims)
{
    const struct names *timed = &session->problem->shapes[0];
    struct names reached = *dims;
    for (size_t i = 0; i < dims->count; i++) {
        bool free = session->problem->dims[i].derived || (session->divisors >> i & 1) != 0;
        if (!free && dims->number[i] < timed->number[i])
            return;
        if (dims->number[i] < timed->number[i])
            reached.number[i] = timed->number[i];
    }
    if (accuracy->reached.count == 0 || least_growth(session, &reached, &accuracy->reached) >
                                            least_growth(session, &accuracy->reached, &reached))
        accuracy->reached = reached;
}

void accuracy_see(struct bench *bench, const struct set *set, double ratio, double honest)
{
    struct accuracy *accuracy = &bench->accuracy;
    bool again = accuracy->seed == set->seed && accuracy->seen;
    accuracy->last = ratio;
    if (!accuracy->seen || ratio > accuracy->ratio) {
        accuracy->ratio = ratio;
        accuracy->honest = honest;
        accuracy->distribution = set_distribution(set);
        accuracy->dims = set->shape->dims;
    }
    reach(accuracy, bench->session, &set->shape->dims);
    accuracy->seen = true;
    accuracy->seed = set->seed;
    if (set->shape != &bench->session->shapes[0] || again)
        return;
    accuracy->judged[set->distribution]++;
    accuracy->over[set->distribution] += ratio > 1.0;
}

/* --- the record --- */

void accuracy_put(const struct bench *bench, struct json *json)
{
    const struct accuracy *accuracy = &bench->accuracy;
    if (!accuracy->seen)
        return;
    json_put_object(json, "error");
    json_put_real(json, "of_allowed", accuracy->ratio);
    json_put_real(json, "honest", accuracy->honest);
    json_put_text(json, "inputs", distribution_name(accuracy->distribution));
    json_put_names(json, "shape", &accuracy->dims);
    json_object_end(json);
    if (accuracy->reached.count > 0)
        json_put_names(json, "checked_up_to", &accuracy->reached);
}

void accuracy_note(struct bench *bench)
{
    const struct problem *problem = bench->session->problem;
    for (int d = 0; d < DISTRIBUTIONS; d++)
        if ((bench->session->beside >> d & 1) != 0)
            bench_note(bench,
                       "%s inputs do not count: there the definition itself, computed in its own "
                       "types, needs more than a quarter of rtol %g, atol %g",
                       distribution_name((enum distribution)d), problem->rtol, problem->atol);
}
