/* eval/measure/accuracy: how much of the allowed error a candidate needs. */
#include "eval/measure/accuracy.h"

#include "eval/measure/session_private.h"
#include "eval/sets/view.h"

#include <string.h>

static const double doubt_high = 2.0;

bool accuracy_is_doubtful(const struct bound *bound, double ratio)
{
    return !bound->fixed && !bound->exact_equality && ratio <= doubt_high;
}

/* How far each dim was gone while every other one was at least as large as the timed one: a kernel
 * that is wrong where two dims are large shows at such shapes alone. */
static void reach(struct accuracy *accuracy, const struct problem *problem,
                  const struct names *dims)
{
    const struct names *timed = &problem->shapes[0];
    for (size_t i = 0; i < dims->count; i++)
        if (!problem->dims[i].derived && dims->number[i] < timed->number[i])
            return;
    for (size_t i = 0; i < dims->count; i++) {
        bool more = accuracy->reached.count == 0 || dims->number[i] > accuracy->reached.number[i];
        accuracy->reached.name[i] = dims->name[i];
        if (more)
            accuracy->reached.number[i] = dims->number[i];
    }
    accuracy->reached.count = dims->count;
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
    reach(accuracy, bench->session->problem, &set->shape->dims);
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
