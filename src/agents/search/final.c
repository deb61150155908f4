/* agents/search/final: who looked best among many looked so partly by luck, or by the moment. So a
 * run-off: the first few by time are measured again, two at a time in turns on the same inputs, and
 * whoever is the faster stays. That one is measured once more before it is called a champion: fresh
 * processes, fresh seeds, a real A/A run, every baseline, sanitizers. If it fails there, the next
 * has its turn. */
#include "agents/search/private.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- the run-off ---- */

static void run_off_begin(struct search *search)
{
    size_t count;
    struct contender *all = search_contenders(search, -1, &count);
    for (size_t i = 0; i < count && i < RUN_OFF; i++)
        search->final->run_off.ranked[search->final->run_off.count++] = all[i].item;
    mem_free(all);
    search->final->run_off.entered = search->final->run_off.count;
    search->final->run_off.next = 1;
    search->final->run_off.begun = true;
}

/* "r3-c17-over-r3-c5": the measurement of one in turns with the other. */
static const char *match_key(struct search *search)
{
    return arena_printf(search->arena, "%s-over-%s",
                        search->final->run_off.ranked[search->final->run_off.next]->record.id,
                        search->final->run_off.ranked[0]->record.id);
}

/* Of an earlier process of the run. */
static bool match_recall(struct search *search)
{
    struct lane_request *request = &search->final->request;
    struct err err;
    BUF_LOCAL(text, 64 << 20);
    bool found = store_get(search->store, STORE_EVALUATIONS, match_key(search), &text, &err) == 0;
    if (found) {
        arena_free(request->arena);
        *request = (struct lane_request){.op = LANE_EVALUATE, .arena = arena_new()};
        found = evaluation_decode(request->arena, buf_text(&text), text.length,
                                  &request->evaluation, &err) == 0;
        request->done = found;
    }
    return found;
}

static void match_submit(struct search *search)
{
    const struct attempt *one = search->final->run_off.ranked[search->final->run_off.next],
                         *first = search->final->run_off.ranked[0];
    arena_free(search->final->request.arena);
    search->final->request = (struct lane_request){.op = LANE_EVALUATE,
                                                   .id = one->record.id,
                                                   .name = one->arm->name,
                                                   .source = one->arm->text,
                                                   .source_length = one->arm->length,
                                                   .tune = one->record.tune,
                                                   .effort = EFFORT_FULL,
                                                   .rival_name = first->arm->name,
                                                   .rival_source = first->arm->text,
                                                   .rival_length = first->arm->length,
                                                   .rival_tune = first->record.tune};
    lane_submit(search_lane_first(search), &search->final->request, &search->task);
}

/* To disk before it counts: a run that goes on takes it from there. */
static void match_put(struct search *search)
{
    struct store_batch *batch = store_batch_new();
    JSON_LOCAL(json, text, 64 << 20);
    evaluation_to_json(&search->final->request.evaluation, &json);
    store_batch_put(batch, STORE_EVALUATIONS, match_key(search), buf_text(&text), text.length);
    store_write_take(search->writer, &search->write, &search->task, batch);
}

/* Whoever is the faster is first; one that is wrong now is none of them. A fault of ours, or of the
 * other one, or a machine too noisy to say, leaves the order as it was. */
static void match_take(struct search *search)
{
    size_t at = search->final->run_off.next;
    struct attempt *one = search->final->run_off.ranked[at],
                   **ranked = search->final->run_off.ranked;
    const struct evaluation *evaluation = &search->final->request.evaluation;
    search->final->request.done = false;
    search->final->run_off.next++;
    if (search->final->request.err.code || evaluation->ours)
        return;
    log_event(LOG_INFO, "run.off", one->record.id, "%s, %.3fx %s (95 %%: %.3f to %.3f) %s",
              verdict_name(evaluation->verdict), evaluation->speedup.median, ranked[0]->record.id,
              evaluation->speedup.low, evaluation->speedup.high, finding_name(evaluation->finding));
    if (evaluation->verdict != VERDICT_KERNEL) {
        search->final->run_off.count--; /* the next one has its number */
        search->final->run_off.next--;
        memmove(&ranked[at], &ranked[at + 1],
                (search->final->run_off.count - at) * sizeof ranked[0]);
    } else if (evaluation->finding != FINDING_NOISY && evaluation->speedup.samples > 0 &&
               evaluation->speedup.median > 1) {
        memmove(&ranked[1], &ranked[0], at * sizeof ranked[0]);
        ranked[0] = one;
    }
}

/* True when it is over. */
static bool run_off_step(struct search *search)
{
    if (search->final->run_off.over)
        return true;
    if (!search->final->run_off.begun)
        run_off_begin(search);
    if (search->final->request.done && !search->final->run_off.stored &&
        !search->final->request.err.code && !search->final->request.evaluation.ours) {
        search->final->run_off.stored = true;
        match_put(search);
        return false;
    }
    if (search->final->request.done)
        match_take(search);
    search->final->run_off.stored = false;
    while (search->final->run_off.next < search->final->run_off.count && match_recall(search))
        match_take(search);
    if (!search_stopping(search) && !search->final->out_of_time && search_affords_run_off(search) &&
        search->final->run_off.next < search->final->run_off.count) {
        match_submit(search);
        return false;
    }
    if (search->final->run_off.count > 0)
        search_name_best(search, search->final->run_off.ranked[0]);
    search->final->run_off.over = true;
    return true;
}

/* Those of the run-off in its order, then all others by time; NULL past the end. */
static struct attempt *contender(struct search *search, size_t place)
{
    size_t count;
    if (place < search->final->run_off.count)
        return search->final->run_off.ranked[place];
    struct contender *all = search_contenders(search, -1, &count);
    size_t at = search->final->run_off.entered + place - search->final->run_off.count;
    struct attempt *chosen = at < count ? all[at].item : NULL;
    mem_free(all);
    return chosen;
}

/* ---- the champion ---- */

static void final_submit(struct search *search, struct attempt *attempt)
{
    search->final->finalist = attempt;
    search->final->request = (struct lane_request){.op = LANE_EVALUATE,
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
    lane_submit(search_lane_first(search), &search->final->request, &search->task);
}

void search_crown(struct arena *arena, const char *id, const struct evaluation *evaluation,
                  struct run_record *run)
{
    run->best = id;
    run->verified = true;
    run->win = evaluation_wins(evaluation);
    run->finding = finding_name(evaluation->finding);
    run->noise = arena_strdup(arena, evaluation->noise);
    run->time_ns = evaluation->time_ns.median;
    run->baseline = arena_strdup(arena, evaluation->baseline);
    run->left_out = arena_strdup(arena, evaluation->left_out);
    run->speedup = evaluation->speedup.median;
    run->speedup_low = evaluation->speedup.low;
    run->speedup_high = evaluation->speedup.high;
}

/* The answer goes to disk before anything is said of it. */
static void final_record(struct search *search)
{
    struct store_batch *batch = store_batch_new();
    const struct evaluation *evaluation = &search->final->request.evaluation;
    JSON_LOCAL(json, text, 64 << 20);
    evaluation_to_json(evaluation, &json);
    char *key = arena_printf(search->arena, "%s-final", search->final->finalist->record.id);
    store_batch_put(batch, STORE_EVALUATIONS, key, buf_text(&text), text.length);
    bool kernel = evaluation->verdict == VERDICT_KERNEL;
    if (kernel) {
        search->final->champion = *evaluation;
        search->final->has_champion = true;
        search->best = search->final->finalist;
        search_crown(search->arena, search->final->finalist->record.id, evaluation,
                     &search->record);
    }
    search_event(search, batch, kernel ? LOG_INFO : LOG_WARN, "run.verified",
                 search->final->finalist->record.id, "%s%s%s", verdict_name(evaluation->verdict),
                 *evaluation->reason ? ": " : "", evaluation->reason);
    search_put_run(search, batch);
    store_write_take(search->writer, &search->write, &search->task, batch);
}

/* Another twagent times here. A run-off waits for it as long as the last measurement has its time
 * behind it; that one some seconds more than there are: it would be for nothing. */
static void watch_waiting(struct search *search)
{
    if (!search->final->finalist) {
        if (!search_affords_in_flight(search))
            search_final_cancel(search);
        return;
    }
    if (!search_time_is_long_up(search))
        return;
    search->final->out_of_time = true;
    search_short_of_time(search, "the champion's last measurement waited for another twagent");
    log_event(LOG_WARN, "run.final", search->id,
              "the time is up while another twagent times here: the champion stays unverified");
    search_final_cancel(search);
}

/* Nobody is in the way, and it takes longer than was kept back for it. */
static void watch_measuring(struct search *search)
{
    struct final *final = search->final;
    if (!final->finalist && search_final_is_due(search)) {
        search_final_cancel(search);
        return;
    }
    if (!final->finalist || final->waited || !search_time_is_overrun(search))
        return;
    final->out_of_time = true;
    search_short_of_time(search, "the champion's last measurement took longer than estimated");
    log_event(LOG_WARN, "run.final", final->finalist->record.id,
              "the time is up amid its last measurement: the champion stays unverified");
    search_final_cancel(search);
}

void search_final_watch(struct search *search)
{
    struct final *final = search->final;
    final->waited = final->waited || final->request.waits;
    if (final->request.active && final->request.waits)
        watch_waiting(search);
    else if (final->request.active)
        watch_measuring(search);
}

void search_final_cancel(struct search *search)
{
    if (search->final->request.active)
        lane_cancel(search_lane_first(search), &search->final->request);
}

void search_final_free(struct search *search)
{
    arena_free(search->final->request.arena);
}

static void leave_unverified(struct search *search, const struct attempt *attempt)
{
    double ms = search_final_ms(search);
    char takes[48] = "";
    if (ms > 0)
        snprintf(takes, sizeof takes, ", which takes about %.0f s", ms / 1e3);
    search->final->out_of_time = true;
    search_short_of_time(
        search,
        arena_printf(search->arena, "too little for the champion's last measurement%s", takes));
    log_event(LOG_WARN, "run.final", attempt->record.id,
              "no time is left to measure it again%s: it stays unverified", takes);
}

bool search_final_step(struct search *search)
{
    if (search->write.active || search->final->request.active)
        return false;
    if (!run_off_step(search))
        return false;
    if (search->final->request.done && search->final->finalist) {
        bool died =
            search->final->request.err.code == ERR_CHILD ||
            (search->final->request.err.code == ERR_NONE && search->final->request.evaluation.ours);
        if (search->final->request.err.code == ERR_NONE && !died) {
            final_record(search);
            search->final->finalist = NULL;
            search->final->request.done = false;
            return false;
        }
        log_event(LOG_WARN, "run.final", search->final->finalist->record.id, "%s",
                  search->final->request.err.code ? search->final->request.err.message
                                                  : search->final->request.evaluation.reason);
        search->final->request.done = false;
        if (died && !search_stopping(search) &&
            ++search->final->request.deaths <= WORKER_DEATHS_MAX) {
            arena_free(search->final->request.arena);
            lane_submit(search_lane_first(search), &search->final->request, &search->task);
            return false;
        }
        search->final->finalist = NULL;
    }
    if (search->final->has_champion || search_stopping(search) || search->final->out_of_time ||
        search->final->tries >= FINAL_TRIES)
        return true;
    struct attempt *next = contender(search, (size_t)search->final->tries++);
    if (!next)
        return true;
    if (!search_affords_final(search)) {
        leave_unverified(search, next);
        return true;
    }
    arena_free(search->final->request.arena);
    search->final->request.arena = NULL;
    final_submit(search, next);
    return false;
}

const struct evaluation *search_champion(const struct search *search)
{
    return search->final->has_champion ? &search->final->champion : NULL;
}
