/* eval/measure/floor: times that no honest kernel reaches.
 *
 * The bytes floor is what can be proved: inputs were flushed from every cache, so all of what the
 * operation must read came over the memory bus; of the outputs only what the caches cannot hold had
 * to go back. The operations floor is a hint: algebra may need fewer operations than the formula.
 */
#include "base/mem.h"
#include "eval/backend/ceilings.h"
#include "eval/measure/timing.h"

#include <math.h>

enum { MORE_SETS = 6 };
static const double slack = 1.1;

static int64_t fact(const struct session *session, const char *name)
{
    struct names facts = session->lane->facts;
    int64_t number = 0;
    return expr_lookup_names(&facts, name, &number) && number > 0 ? number : 0;
}

void session_ceilings(struct session *session)
{
    const struct lane_facts *lane = session->lane;
    const struct shape *shape = &session->shapes[0];
    double flops = 0.0, bytes = 0.0, outputs = 0.0;
    session->bandwidth =
        fmax(session->bandwidth, fmax(lane->copy_bytes_per_s, lane->read_bytes_per_s));
    session->flops_per_s = fmax(session->flops_per_s, lane_operations_rate(lane, session->problem));
    session->bytes_floor_ns = session->flops_floor_ns = 0.0;
    if (problem_work(session->problem, &shape->dims, &flops, &bytes, NULL) != 0)
        return;
    for (size_t i = 0; i < shape->layout.output_count; i++)
        outputs += (double)shape->layout.outputs[i].bytes;
    double caches =
        (double)fact(session, "l3_bytes") +
        (double)fact(session, "l2_bytes") * (lane->gpu ? 1.0 : (double)lane->core_count);
    double must = fmax(bytes - outputs, 0.0) + fmax(outputs - caches, 0.0);
    bool flushed = !lane->gpu || fact(session, "l2_bytes") > 0; /* else nothing is proved */
    if (session->bandwidth > 0.0 && flushed)
        session->bytes_floor_ns = must / (session->bandwidth * slack) * 1e9;
    if (session->flops_per_s > 0.0)
        session->flops_floor_ns = flops / (session->flops_per_s * slack) * 1e9;
}

/* The ceilings were measured once, perhaps while the machine was busy: before anybody is accused
 * they are measured again, and the higher rate counts. */
static int measure_again(struct session *session, struct err *err)
{
    ARENA_LOCAL(arena);
    const struct lane_facts *lane = session->lane;
    struct lane_facts fresh = {.gpu_index = lane->gpu_index};
    int status = session->backend->probe(lane->cores, lane->core_count, true, arena, &fresh, err);
    if (status == 0) {
        fresh.under_load = true; /* it was not looked at */
        ceilings_remember(&fresh);
        session->bandwidth =
            fmax(session->bandwidth, fmax(fresh.copy_bytes_per_s, fresh.read_bytes_per_s));
        session->flops_per_s =
            fmax(session->flops_per_s, lane_operations_rate(&fresh, session->problem));
        session_ceilings(session);
    }
    return status;
}

/* More seeds, drawn now, in a fresh runner. */
static int look_again(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    struct outcome outcome;
    for (size_t i = 0; i < session->pool_count && i < MORE_SETS; i++)
        set_redraw(&session->pool[i]);
    bool kept = bench->fresh;
    bench->fresh = true;
    int status = bench_open(bench, err);
    for (size_t i = 0; status == 0 && i < session->pool_count && i < MORE_SETS && !bench->ended;
         i++)
        status = bench_check(bench, &session->pool[i], &outcome, err);
    bench->fresh = kept;
    return status;
}

int measure_floor(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    const struct evaluation *evaluation = bench->evaluation;
    /* With what the call itself takes: nobody is accused by a difference of two times. */
    double time_ns =
        evaluation->time_ns.median + (evaluation->call_taken ? evaluation->call_ns.median : 0.0);
    if (!(time_ns > 0.0))
        return 0;
    bool below = time_ns < session->bytes_floor_ns;
    bool few = time_ns < session->flops_floor_ns;
    if ((below || few) && measure_again(session, err) != 0)
        return -1;
    below = time_ns < session->bytes_floor_ns;
    few = time_ns < session->flops_floor_ns;
    if (below) {
        bench_reject(bench, VERDICT_REJECTED,
                     arena_printf(bench->arena,
                                  "below the bytes floor: %.1f us, while reading the inputs alone "
                                  "takes %.1f us at %.1f GB/s",
                                  time_ns / 1e3, session->bytes_floor_ns / 1e3,
                                  session->bandwidth * slack / 1e9),
                     "");
        bench->evaluation->quarantined = true;
        return 0;
    }
    if (!few)
        return 0;
    bench_note(bench, "below the operations floor (%.1f us < %.1f us): checked on %d more sets",
               time_ns / 1e3, session->flops_floor_ns / 1e3, (int)MORE_SETS);
    return look_again(bench, err);
}
