/* agents/search/candidate/recall: a run that goes on. It is run again from its beginning; what the
 * store has is taken from there: candidates that had ended, with their evaluations; the code of
 * those that had been written; completions, by the hash of their request (agents/llm/completion).
 * So nothing is paid for twice, and at most one step of each candidate is done again.
 */
#include "agents/search/candidate/candidate.h"
#include "base/mem.h"
#include "eval/problem/identity.h"

#include <string.h>

struct reading {
    struct search *search;
    struct err *err;
    bool failed;
};

static bool read_candidate(void *context, const char *key, const char *text, size_t length)
{
    struct reading *reading = context;
    struct search *search = reading->search;
    struct candidate_record record;
    if (candidate_record_decode(search->arena, text, length, &record, reading->err)) {
        reading->failed = true;
        (void)err_wrap(reading->err, "%s", key);
        return false;
    }
    struct recall *recall = search->recall;
    MEM_MORE(recall->items, recall->count, recall->capacity);
    recall->items[recall->count++] = record;
    return true;
}

/* Its kernels were checked against what the files said then. An earlier twagent did not note it. */
static bool is_another(const struct problem *problem, const struct run_record *run)
{
    char hash[IDENTITY_BYTES];
    problem_identity(problem, hash);
    return *run->problem_hash && strcmp(run->problem_hash, hash) != 0;
}

int search_recall(struct search *search, struct err *err)
{
    struct reading reading = {.search = search, .err = err};
    struct run_record *run = &search->record;
    BUF_LOCAL(text, 1 << 20);
    int failed = store_get(search->store, STORE_RUNS, search->options.resume, &text, err);
    if (!failed)
        failed = run_record_decode(search->arena, buf_text(&text), text.length, run, err);
    if (failed)
        return err_wrap(err, "run %s", search->options.resume);
    if (is_another(search->problem, run))
        return err_set(err, ERR_USAGE,
                       "%s was begun for another definition of %s: %s has changed since; begin "
                       "anew with: twagent run %s",
                       run->id, run->problem, run->problem_file, run->problem_file);
    char *prefix = arena_printf(search->arena, "%s-", run->id);
    size_t events;
    if (store_scan(search->store, STORE_CANDIDATES, prefix, read_candidate, &reading, err) ||
        reading.failed || store_count(search->store, STORE_EVENTS, prefix, &events, err))
        return -1;
    search->event_number = (int64_t)events;
    search_recall_pauses(search);
    search_recall_asked(search);
    search->earlier_ms = run->elapsed_ms;
    for (size_t i = 0; i < search->recall->count; i++)
        search->evaluations += search->recall->items[i].evaluations;
    run->evaluated = run->kept = run->rejected = run->failed = run->round = 0;
    run->outside = run->dropped = 0;
    search->went_on = run->context && strlen(run->context) > 2;
    run->strange_parents = 0;
    run->resumes++;
    search->earlier = *run;
    if (!run->verified)
        search->earlier.best = "";
    run->best = run->paused = run->stopped = run->finding = run->noise = "";
    run->win = run->verified = false;
    run->time_ns = run->speedup = run->speedup_low = run->speedup_high = 0;
    run->ended_ms = 0;
    run->state = "running";
    return 0;
}

void search_recall_candidate(struct attempt *attempt)
{
    const struct search *search = attempt->search;
    for (size_t i = 0; i < search->recall->count; i++)
        if (search->recall->items[i].number == attempt->record.number)
            attempt->recalled = &search->recall->items[i];
}

int64_t search_recall_tuned(const struct search *search, int64_t first)
{
    int64_t count = 0;
    for (size_t i = 0; i < search->recall->count; i++) {
        const struct candidate_record *was = &search->recall->items[i];
        if (was->tuning && was->round == search->record.round && was->number - first >= count)
            count = was->number - first + 1;
    }
    return count;
}

const struct candidate_record *search_recall_steps(const struct search *search, const char *attempt,
                                                   size_t *at)
{
    while (*at < search->recall->count) {
        const struct candidate_record *was = &search->recall->items[(*at)++];
        if (strcmp(was->attempt, attempt) == 0)
            return was;
    }
    return NULL;
}

/* The evaluation as the store has it, into the request, as if the lane had just answered. */
static bool recall_evaluation(struct attempt *attempt)
{
    struct search *search = attempt->search;
    struct lane_request *request = &attempt->request;
    struct err err;
    bool found = false;
    *request = (struct lane_request){.op = LANE_EVALUATE, .arena = arena_new(), .done = true};
    BUF_LOCAL(text, 64 << 20);
    if (store_get(search->store, STORE_EVALUATIONS, attempt->record.id, &text, &err) == 0) {
        const char *copy = arena_strndup(request->arena, buf_text(&text), text.length);
        found =
            evaluation_decode(request->arena, copy, text.length, &request->evaluation, &err) == 0;
        /* Else it is of what a later answer, which had no code, did not mend. */
        found = found && strcmp(request->evaluation.reason, attempt->record.reason) == 0;
        if (found)
            twins_tell(attempt, copy);
    }
    request->err.code = ERR_NONE;
    if (!found) { /* it ended without one: as the process that saw it end had it */
        arena_free(request->arena);
        *request = (struct lane_request){0};
    }
    return found;
}

/* What a model wrote, from the store; false where it is not there. */
static bool recall_code(struct attempt *attempt, const char *failure)
{
    const char *hash = attempt->recalled->source;
    struct err err;
    bool found = false;
    if (!*hash)
        return false;
    BUF_LOCAL(text, 64 << 20);
    if (store_get(attempt->search->store, STORE_SOURCES, hash, &text, &err) == 0)
        found =
            writing_recall(attempt, arena_strndup(attempt->arena, buf_text(&text), text.length),
                           text.length, failure, failure ? attempt->recalled->diagnostics : NULL);
    return found;
}

static bool same_proposal(const struct attempt *attempt)
{
    bool same = strcmp(attempt->record.identity, attempt->recalled->identity) == 0;
    if (!same)
        log_event(LOG_WARN, "candidate.differs", attempt->record.id,
                  "the store has another one of that number; it is measured anew");
    return same;
}

/* Of attempt_state, from KEPT on. */
static const char *const ends[] = {"kept", "rejected", "failed", "dropped", NULL};

static enum recall_result recall_ended(struct attempt *attempt, int *state)
{
    const struct candidate_record *was = attempt->recalled;
    bool kernel = strcmp(was->state, "kept") == 0;
    if (attempt->writing && *was->source && !recall_code(attempt, NULL))
        return RECALL_NOTHING;
    if (!attempt->writing && !same_proposal(attempt))
        return RECALL_NOTHING;
    const char *idea = attempt->record.idea, *parent = attempt->record.parent;
    attempt->record = *was;
    attempt->record.idea = idea;
    attempt->record.parent = parent;
    if (!attempt->writing) /* said when its round was over, as it will be again */
        attempt->record.duplicate_of = "";
    twins_recall(attempt);
    bool evaluated = recall_evaluation(attempt);
    slots_release(&attempt->twin_slot);
    if (kernel && !evaluated)
        return RECALL_NOTHING;
    for (int i = 0; ends[i]; i++)
        if (strcmp(was->state, ends[i]) == 0)
            *state = KEPT + i;
    return RECALL_ENDED;
}

enum recall_result search_recall_state(struct attempt *attempt, int *state)
{
    static const char *const measured[] = {"compiling", "checking", "timing", "profiling", NULL};
    const struct candidate_record *was = attempt->recalled;
    if (value_word_among(was->state, ends))
        return recall_ended(attempt, state);
    attempt->record.evaluations = was->evaluations;
    if (!attempt->writing)
        return RECALL_NOTHING;
    attempt->record.repairs = was->repairs;
    attempt->record.first_failure = was->first_failure;
    attempt->record.mended = was->mended;
    if (value_word_among(was->state, measured) && recall_code(attempt, NULL)) {
        attempt_identify(attempt);
        return RECALL_WRITTEN;
    }
    if (strcmp(was->state, "writing") == 0 && *was->failure && recall_code(attempt, was->failure)) {
        attempt_identify(attempt);
        return RECALL_WRITING;
    }
    attempt->record.repairs = 0;
    attempt->record.first_failure = attempt->record.mended = "";
    return RECALL_NOTHING;
}

void search_recall_free(struct search *search)
{
    mem_free(search->recall->items);
}
