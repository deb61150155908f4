/* agents/search/candidate/agent: while its agent works, the candidate looks into its folder ten
 * times a second: a request becomes a candidate of its own, which goes the way of every candidate,
 * and is answered when that has ended. All of the disk's work is done on a pool thread.
 *
 *   begun (by the engine, once the answer is not in the store) -> at work -> closing -> over
 *
 * A candidate that an earlier process left: what its agent had evaluated comes from the store and
 * counts against its budget; an agent that was under way is started anew, and told of that.
 */
#include "agents/diagnosis/diagnosis.h"
#include "agents/llm/command.h"
#include "agents/search/candidate/candidate.h"
#include "agents/workplace/workplace.h"
#include "base/file.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 100, ANSWER_MOST = 4 << 20 };

struct step { /* something that was asked */
    struct attempt *attempt;
    char name[WORKPLACE_NAME]; /* of the request; "": it was answered, or an earlier process had it
                                */
};

struct agent {
    struct attempt *attempt;
    const struct attempt *parent;
    struct task *round;
    agent_start *start;
    int64_t first;
    struct step steps[AGENT_EVALUATIONS_MOST];
    size_t count;
    double began_ms;
    int64_t chosen; /* number of the one that was submitted; 0: none */
    char note[96];
    const struct command_model *command;
    struct ask_site site;
    /* while it works; the pool thread's while `work` is active */
    struct workplace *place;
    struct arena *arena;
    const char *folder;
    struct work work;
    struct timer tick;
    struct workplace_request requests[WORKPLACE_REQUESTS_MOST];
    size_t request_count;
    struct answer {
        char name[WORKPLACE_NAME];
        char *text;
    } answers[AGENT_EVALUATIONS_MOST + WORKPLACE_REQUESTS_MOST];
    size_t answer_count;
    bool last_look, removes;
};

bool agent_is(const struct model *model)
{
    return model->command && model->command->evaluations > 0;
}

bool agents_wanted(const struct search *search)
{
    const struct models *models = search_models(search, false);
    for (size_t i = 0; models && i < models->count; i++)
        if (agent_is(&models->items[i]))
            return true;
    return false;
}

void agents_say(const struct search *search, struct buf *out)
{
    list_each (link, &search->running) {
        const struct attempt *attempt = container_of(link, struct attempt, link);
        const struct agent *agent = attempt->writing ? attempt->writing->agent : NULL;
        if (!agent || !agent->place)
            continue;
        int64_t s = (int64_t)((search_elapsed_ms(search) - agent->began_ms) / 1000);
        buf_addf(out, "%s%s %zu of %" PRId64 " evaluated in %" PRId64 ":%02" PRId64,
                 out->length > 0 ? "; " : "", attempt->record.id, agent->count,
                 agent->command->evaluations, s / 60, s % 60);
    }
}

/* ---- its candidates ---- */

static struct attempt *start_step(struct agent *agent, size_t place, const char *name,
                                  const char *text, size_t length, struct err *err)
{
    struct attempt *attempt = agent->start(agent->attempt, agent->round,
                                           agent->first + (int64_t)place, text, length, err);
    if (!attempt)
        return NULL;
    agent->steps[place].attempt = attempt;
    snprintf(agent->steps[place].name, WORKPLACE_NAME, "%s", name);
    if (place >= agent->count)
        agent->count = place + 1;
    return attempt;
}

void agent_recall(struct agent *agent, const struct candidate_record *was)
{
    int64_t place = was->number - agent->first;
    struct err err;
    BUF_LOCAL(text, 64 << 20);
    if (place >= 0 && place < AGENT_EVALUATIONS_MOST && *was->source &&
        store_get(agent->attempt->search->store, STORE_SOURCES, was->source, &text, &err) == 0)
        (void)start_step(agent, (size_t)place, "", buf_text(&text), text.length, &err);
}

struct agent *agent_new(struct attempt *attempt, const struct attempt *parent, struct task *round,
                        int64_t first, agent_start *start)
{
    struct agent *agent = MEM_NEW(struct agent);
    *agent = (struct agent){
        .attempt = attempt, .parent = parent, .round = round, .first = first, .start = start};
    return agent;
}

static bool is_right(const struct attempt *attempt)
{
    return attempt && attempt->task.finished && attempt_is_kernel(attempt);
}

const struct arm *agent_result(const struct agent *agent, const char *how)
{
    const char *said = strstr(how, "submitted ");
    const char *number = said ? strstr(said, "-c") : NULL;
    int64_t chosen = agent->chosen;
    const struct attempt *last = NULL;
    if (chosen == 0 && number)
        chosen = strtoll(number + 2, NULL, 10);
    for (size_t i = 0; i < agent->count; i++) {
        const struct attempt *attempt = agent->steps[i].attempt;
        if (!is_right(attempt))
            continue;
        last = attempt;
        if (attempt->record.number == chosen)
            break;
    }
    return last ? last->arm : NULL;
}

/* ---- the folder ---- */

static size_t left(const struct agent *agent)
{
    size_t most = (size_t)agent->command->evaluations;
    bool over = search_is_over(agent->attempt->search);
    return agent->count < most && !over ? most - agent->count : 0;
}

static void add_budget(const struct agent *agent, struct buf *text)
{
    buf_addf(text,
             "\n# Budget\n%zu evaluations, and %.0f minutes; then you are ended. Files beside this "
             "one: the parent's source, the problem's definition, `guides/`.\n",
             left(agent), (double)agent->command->limit_ms / 60000);
    if (agent->count == 0)
        return;
    buf_add_text(text, "\n# What was evaluated before\nYou were interrupted. These are there "
                       "already, in `evaluated/`:\n\n");
    for (size_t i = 0; i < agent->count; i++) {
        const struct attempt *attempt = agent->steps[i].attempt;
        const struct candidate_record *was = attempt ? attempt->recalled : NULL;
        if (was)
            buf_addf(text, "- %s: %s%s%s\n", was->id, *was->verdict ? was->verdict : was->state,
                     *was->reason ? ": " : "", was->reason);
    }
}

static int write_evaluated(const struct agent *agent, struct err *err)
{
    ARENA_LOCAL(arena);
    for (size_t i = 0; i < agent->count; i++) {
        const struct attempt *step = agent->steps[i].attempt;
        if (step &&
            workplace_write(agent->folder, arena_printf(arena, "evaluated/%s", step->arm->name),
                            step->arm->text, err) != 0)
            return -1;
    }
    return 0;
}

static const char *begin(void *context, struct buf *text, struct err *err)
{
    struct agent *agent = context;
    const struct search *search = agent->attempt->search;
    if (!agent->arena)
        agent->arena = arena_new();
    agent->folder = arena_printf(agent->arena, "%s/agents/%s", store_folder(search->store),
                                 agent->attempt->record.id);
    agent->began_ms = search_elapsed_ms(search);
    add_budget(agent, text);
    if (agent->place) /* it is asked once more: what lies there may be anything by now */
        return agent->folder;
    agent->place = workplace_make(agent->folder, err);
    agent->last_look = agent->removes = false;
    bool made =
        agent->place && workplace_write(agent->folder, "TASK.md", buf_text(text), err) == 0 &&
        write_evaluated(agent, err) == 0 &&
        task_files_write(search, agent->parent, agent->folder, agent->command->limit_ms, err) == 0;
    if (made) {
        task_wake(&agent->attempt->task);
        return agent->folder;
    }
    return NULL;
}

/* Something was evaluated: then however the agent ends, that is an answer. */
static const char *came(void *context)
{
    struct agent *agent = context;
    if (agent->count == 0)
        return NULL;
    int length = snprintf(agent->note, sizeof agent->note, "%zu evaluated", agent->count);
    if (agent->chosen > 0)
        snprintf(agent->note + length, sizeof agent->note - (size_t)length,
                 ", submitted %.30s-c%" PRId64, agent->attempt->search->id, agent->chosen);
    return agent->note;
}

const struct ask_site *agent_begin(struct attempt *attempt, const struct model *model)
{
    struct agent *agent = attempt->writing->agent;
    agent->command = model->command;
    agent->site = (struct ask_site){agent, begin, came};
    return &agent->site;
}

/* ---- requests ---- */

static void answer(struct agent *agent, const char *name, const struct buf *text)
{
    struct answer *one = &agent->answers[agent->answer_count++];
    snprintf(one->name, sizeof one->name, "%s", name);
    one->text = mem_strdup(buf_text(text));
}

static void refuse(struct agent *agent, const char *name, const char *reason)
{
    JSON_LOCAL(json, text, 1 << 16);
    json_object(&json);
    json_put_text(&json, "error", reason);
    json_put_int(&json, "evaluations_left", (int64_t)left(agent));
    json_object_end(&json);
    answer(agent, name, &text);
}

/* The one that has this source already; NULL: none has. */
static struct attempt *same_source(const struct agent *agent, const char *text, size_t length)
{
    for (size_t i = 0; i < agent->count; i++) {
        struct attempt *attempt = agent->steps[i].attempt;
        if (attempt && attempt->arm && attempt->arm->length == length &&
            memcmp(attempt->arm->text, text, length) == 0)
            return attempt;
    }
    return NULL;
}

/* What it is to be faster than, and what holds it back, in the words that prompts have of parents.
 */
static void put_comparison(const struct agent *agent, const struct evaluation *evaluation,
                           struct json *json)
{
    ARENA_LOCAL(arena);
    struct diagnosis found =
        diagnosis_of(arena, evaluation->metrics, agent->attempt->search->context.facts);
    if (agent->parent && agent->parent->record.time_ns > 0) {
        json_put_object(json, "parent");
        json_put_text(json, "candidate", agent->parent->record.id);
        json_put_real(json, "time_ns", agent->parent->record.time_ns);
        json_object_end(json);
    }
    if (*found.place || *found.evidence)
        json_put_text(json, "profile",
                      arena_printf(arena, "- place: %s\n- first limiter: %s\n%s", found.place,
                                   found.limiter, found.evidence));
}

static void tell(struct agent *agent, const char *name, const struct attempt *attempt)
{
    const struct candidate_record *record = &attempt->record;
    JSON_LOCAL(json, text, ANSWER_MOST);
    json_object(&json);
    json_put_text(&json, "candidate", record->id);
    json_put_text(&json, "verdict", attempt->answered ? record->verdict : "failed");
    json_put_text(&json, "reason", attempt->answered ? record->reason : "the run is ending");
    json_put_int(&json, "evaluations_left", (int64_t)left(agent));
    if (attempt->answered && attempt->request.arena) {
        put_comparison(agent, &attempt->request.evaluation, &json);
        json_key(&json, "evaluation");
        evaluation_to_json(&attempt->request.evaluation, &json);
    }
    json_object_end(&json);
    answer(agent, name, &text);
}

static void take_request(struct agent *agent, const struct workplace_request *request)
{
    struct err err;
    struct attempt *attempt =
        request->source ? same_source(agent, request->source, request->length) : NULL;
    if (!request->source) {
        refuse(agent, request->name, "a source is a text of at most 1 MiB");
    } else if (attempt && attempt->task.finished) {
        tell(agent, request->name, attempt);
    } else if (attempt) {
        refuse(agent, request->name, "this source is being evaluated");
    } else if (left(agent) == 0) {
        refuse(agent, request->name,
               "no evaluations are left: submit one that was evaluated, and end your work");
    } else {
        attempt =
            start_step(agent, agent->count, request->name, request->source, request->length, &err);
        if (attempt)
            attempt->recalled = NULL; /* whatever the store has of that number is another source */
        else
            refuse(agent, request->name, err.message);
    }
    if (attempt && request->submits)
        agent->chosen = attempt->record.number;
}

static void take_requests(struct agent *agent)
{
    for (size_t i = 0; i < agent->request_count; i++) {
        take_request(agent, &agent->requests[i]);
        mem_free(agent->requests[i].source);
    }
    agent->request_count = 0;
}

static void take_verdicts(struct agent *agent)
{
    for (size_t i = 0; i < agent->count; i++) {
        struct step *step = &agent->steps[i];
        if (!*step->name || !step->attempt->task.finished)
            continue;
        tell(agent, step->name, step->attempt);
        *step->name = '\0';
    }
}

static bool steps_end(const struct agent *agent)
{
    for (size_t i = 0; i < agent->count; i++)
        if (agent->steps[i].attempt && !agent->steps[i].attempt->task.finished)
            return false;
    return true;
}

/* On a pool thread. */
static void look(void *argument)
{
    struct agent *agent = argument;
    struct err ignored;
    for (size_t i = 0; i < agent->answer_count; i++) {
        const char *text = agent->answers[i].text;
        workplace_answer(agent->place, agent->answers[i].name, text, strlen(text));
        mem_free(agent->answers[i].text);
    }
    agent->answer_count = 0;
    if (agent->removes) {
        (void)!file_remove_tree(agent->folder, &ignored);
        return;
    }
    agent->request_count = workplace_take(agent->place, agent->requests);
}

static bool start_look(struct agent *agent)
{
    struct task *task = &agent->attempt->task;
    timer_stop(&agent->tick);
    work_start(task->loop, &agent->work, task, look, agent);
    return true;
}

static void wake_later(struct agent *agent)
{
    if (!agent->tick.armed)
        timer_start(agent->attempt->task.loop, &agent->tick, &agent->attempt->task, LOOK_MS);
}

static bool await_steps(struct agent *agent)
{
    bool waits = !agent->attempt->abandoned && !steps_end(agent);
    if (waits)
        wake_later(agent);
    else
        timer_stop(&agent->tick);
    return waits;
}

/* What it asked for in its last moment counts; where the run is ending, nobody waits for verdicts.
 */
static bool close_place(struct agent *agent)
{
    bool over = agent->attempt->abandoned;
    if (!agent->last_look && !over) {
        agent->last_look = true;
        return start_look(agent);
    }
    if (await_steps(agent))
        return true;
    if (!agent->removes) {
        agent->removes = true;
        return start_look(agent);
    }
    workplace_free(agent->place);
    arena_free(agent->arena);
    agent->place = NULL;
    agent->arena = NULL;
    return false;
}

bool agent_step(struct agent *agent, struct ask *ask)
{
    if (agent->work.active)
        return true;
    if (agent->work.done) {
        agent->work.done = false;
        take_requests(agent);
    }
    if (!agent->place && !ask->task.finished)
        return true;
    if (!agent->place) /* its answer was in the store, or the folder could not be made */
        return await_steps(agent);
    ask_bound(ask);
    take_verdicts(agent);
    if (ask->task.finished)
        return close_place(agent);
    if (agent->tick.fired || agent->answer_count > 0) {
        agent->tick.fired = false;
        return start_look(agent);
    }
    wake_later(agent);
    return true;
}

bool agent_began(const struct agent *agent)
{
    return agent && agent->folder;
}

bool agent_busy(const struct agent *agent)
{
    return agent && (agent->place || agent->work.active);
}

void agent_free(struct agent *agent)
{
    if (!agent)
        return;
    for (size_t i = 0; i < agent->answer_count; i++)
        mem_free(agent->answers[i].text);
    workplace_free(agent->place);
    arena_free(agent->arena);
    mem_free(agent);
}
