/* agents/search_final: the champion is measured again before it is called one: fresh processes,
 * fresh seeds, a real A/A run, every baseline, sanitizers. If it fails there, the next best has its
 * turn. */
#include "agents/search_private.h"

#include "base/mem.h"

#include <string.h>

/* The kept kernels, best first by the lower end of the interval; NULL past the end. */
static struct attempt *contender(struct search *search, int place)
{
    size_t count = 0, at = 0;
    list_each (link, &search->kept)
        count++;
    if ((size_t)place >= count)
        return NULL;
    struct contender *all = mem_array(count, sizeof *all);
    list_each (link, &search->kept) {
        struct attempt *kept = container_of(link, struct attempt, link);
        all[at++] = (struct contender){.speedup_low = kept->record.speedup_low,
                                       .time_ns = kept->record.time_ns,
                                       .number = kept->record.number,
                                       .item = kept};
    }
    select_sort(all, count);
    struct attempt *chosen = all[place].item;
    mem_free(all);
    return chosen;
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
                                          .profile = true,
                                          .sanitize = true};
    log_event(LOG_INFO, "run.final", attempt->record.id, "measuring the champion again");
    lane_submit(search->lane, &search->final, &search->task);
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
        run->win = evaluation->win;
        run->time_ns = evaluation->time_ns.median;
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

bool search_final_step(struct search *search)
{
    if (search->write.active || search->final.active)
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
            lane_submit(search->lane, &search->final, &search->task);
            return false;
        }
        search->finalist = NULL;
    }
    if (search->has_champion || search_stopping(search) || search->final_try >= FINAL_TRIES)
        return true;
    struct attempt *next = contender(search, search->final_try++);
    if (!next)
        return true;
    arena_free(search->final.arena);
    search->final.arena = NULL;
    final_submit(search, next);
    return false;
}
