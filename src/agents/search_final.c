/* agents/search_final: who looked best among many looked so partly by luck. So a run-off: the first
 * few by the lower end of the interval, and the first by time, are measured again in full; and the
 * champion of that once more before it is called one: fresh processes, fresh seeds, a real A/A run,
 * every baseline, sanitizers. If it fails there, the next best has its turn. */
#include "agents/search_private.h"

#include "base/mem.h"

#include <string.h>

enum { RUN_OFF_BY_LOW = 3, RUN_OFF_BY_TIME = 2 };

/* The kept kernels, best first by the lower end of the interval, or by time; NULL past the end.
 * Those of the run-off stand before all others. */
static struct attempt *contender(struct search *search, int place, bool by_time)
{
    const double before_all = 1e9;
    size_t count;
    struct contender *all = search_contenders(search, -1, &count);
    for (size_t i = 0; i < count; i++) {
        const struct attempt *kept = all[i].item;
        if (by_time)
            all[i].speedup_low = 1 / kept->record.time_ns;
        if (kept->ran_off)
            all[i].speedup_low += before_all;
    }
    select_sort(all, count);
    struct attempt *chosen = (size_t)place < count ? all[place].item : NULL;
    mem_free(all);
    return chosen;
}

/* Marks who is to be measured again. */
static void run_off_begin(struct search *search)
{
    for (int i = 0; i < RUN_OFF_BY_LOW + RUN_OFF_BY_TIME; i++) {
        bool by_time = i >= RUN_OFF_BY_LOW;
        struct attempt *one = contender(search, by_time ? i - RUN_OFF_BY_LOW : i, by_time);
        if (one)
            one->runs_off = true;
    }
    search->run_off_begun = true;
}

static bool run_off_submit(struct search *search)
{
    list_each (link, &search->kept) {
        struct attempt *one = container_of(link, struct attempt, link);
        if (!one->runs_off)
            continue;
        one->runs_off = false;
        arena_free(search->final.arena);
        search->finalist = one;
        search->final = (struct lane_request){.op = LANE_EVALUATE,
                                              .id = one->record.id,
                                              .name = one->arm->name,
                                              .source = one->arm->text,
                                              .source_length = one->arm->length,
                                              .tune = one->record.tune,
                                              .effort = EFFORT_FULL};
        lane_submit(search->lanes[0].lane, &search->final, &search->task);
        return true;
    }
    return false;
}

/* A second measurement replaces the first, unless the worker failed us. */
static void run_off_take(struct search *search)
{
    struct attempt *one = search->finalist;
    const struct evaluation *evaluation = &search->final.evaluation;
    search->finalist = NULL;
    search->final.done = false;
    if (search->final.err.code || evaluation->ours)
        return;
    bool kernel = evaluation->verdict == VERDICT_KERNEL && evaluation->speedup.samples > 0;
    one->ran_off = kernel;
    one->record.speedup_low = kernel ? evaluation->speedup.low : 0;
    if (kernel) {
        one->record.speedup = evaluation->speedup.median;
        one->record.speedup_high = evaluation->speedup.high;
        one->record.time_ns = evaluation->time_ns.median;
    }
    log_event(LOG_INFO, "run.off", one->record.id, "%s, %.3fx (at least %.3fx)",
              verdict_name(evaluation->verdict), one->record.speedup, one->record.speedup_low);
}

/* True when it is over. */
static bool run_off_step(struct search *search)
{
    if (search->run_off_over)
        return true;
    if (!search->run_off_begun)
        run_off_begin(search);
    else if (search->finalist && search->final.done)
        run_off_take(search);
    if (!search_stopping(search) && !search->out_of_time && search_affords_run_off(search) &&
        run_off_submit(search))
        return false;
    search->run_off_over = true;
    return true;
}

static void final_submit(struct search *search, struct attempt *attempt)
{
    search->finalist = attempt;
    search->final = (struct lane_request){.op = LANE_EVALUATE,
                                          .id = attempt->record.id,
                                          .name = attempt->arm->name,
                                          .source = attempt->arm->text,
                                          .source_length = attempt->arm->length,
                                          .tune = attempt->record.tune,
                                          .effort = EFFORT_FINAL,
                                          .within_ms = search_within_ms(search),
                                          .profile = true,
                                          .sanitize = true};
    log_event(LOG_INFO, "run.final", attempt->record.id, "measuring the champion again");
    lane_submit(search->lanes[0].lane, &search->final, &search->task);
}

/* The answer goes to disk before anything is said of it. */
static void final_record(struct search *search)
{
    struct store_batch *batch = store_batch_new();
    const struct evaluation *evaluation = &search->final.evaluation;
    struct run_record *run = &search->record;
    struct buf text;
    struct json json;
    buf_init(&text, 64 << 20);
    json_init(&json, &text);
    evaluation_to_json(evaluation, &json);
    char *key = arena_printf(search->arena, "%s-final", search->finalist->record.id);
    store_batch_put(batch, STORE_EVALUATIONS, key, buf_text(&text), text.length);
    buf_free(&text);
    bool kernel = evaluation->verdict == VERDICT_KERNEL;
    if (kernel) {
        search->champion = *evaluation;
        search->has_champion = true;
        search->best = search->finalist;
        run->best = search->finalist->record.id;
        run->verified = true;
        run->win = evaluation_wins(evaluation);
        run->finding = finding_name(evaluation->finding);
        run->noise = arena_strdup(search->arena, evaluation->noise);
        run->time_ns = evaluation->time_ns.median;
        run->baseline = arena_strdup(search->arena, evaluation->baseline);
        run->left_out = arena_strdup(search->arena, evaluation->left_out);
        run->speedup = evaluation->speedup.median;
        run->speedup_low = evaluation->speedup.low;
        run->speedup_high = evaluation->speedup.high;
    }
    search_event(search, batch, kernel ? LOG_INFO : LOG_WARN, "run.verified",
                 search->finalist->record.id, "%s%s%s", verdict_name(evaluation->verdict),
                 *evaluation->reason ? ": " : "", evaluation->reason);
    search_put_run(search, batch);
    store_write_take(search->writer, &search->write, &search->task, batch);
}

/* A part of the time is kept back for measuring, not for waiting until another twagent has timed.
 */
void search_final_watch(struct search *search)
{
    if (!search->final.active || !search->final.waits || !search_time_is_up(search))
        return;
    search->out_of_time = true;
    log_event(LOG_WARN, "run.final", search->id,
              "the time is up while another twagent times here: the champion stays unverified");
    lane_cancel(search->lanes[0].lane, &search->final);
}

bool search_final_step(struct search *search)
{
    if (search->write.active || search->final.active)
        return false;
    if (!run_off_step(search))
        return false;
    if (search->final.done && search->finalist) {
        bool died = search->final.err.code == ERR_CHILD ||
                    (search->final.err.code == ERR_NONE && search->final.evaluation.ours);
        if (search->final.err.code == ERR_NONE && !died) {
            final_record(search);
            search->finalist = NULL;
            search->final.done = false;
            return false;
        }
        log_event(LOG_WARN, "run.final", search->finalist->record.id, "%s",
                  search->final.err.code ? search->final.err.message
                                         : search->final.evaluation.reason);
        search->final.done = false;
        if (died && !search_stopping(search) && ++search->final.deaths <= WORKER_DEATHS_MAX) {
            arena_free(search->final.arena);
            lane_submit(search->lanes[0].lane, &search->final, &search->task);
            return false;
        }
        search->finalist = NULL;
    }
    if (search->has_champion || search_stopping(search) || search->out_of_time ||
        search->final_try >= FINAL_TRIES)
        return true;
    struct attempt *next = contender(search, search->final_try++, false);
    if (!next)
        return true;
    if (!search_affords_final(search)) {
        search->out_of_time = true;
        log_event(LOG_WARN, "run.final", next->record.id,
                  "measuring it again takes about %.0f s, more than is left of the time: it stays "
                  "unverified",
                  search->final_ms / 1e3);
        return true;
    }
    arena_free(search->final.arena);
    search->final.arena = NULL;
    final_submit(search, next);
    return false;
}
