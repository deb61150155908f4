/* agents/search/candidate/proposed: how a candidate comes to be; its way is candidate.c. */
#include "agents/search/candidate/candidate.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

static struct attempt *attempt_new(struct search *search, int64_t number)
{
    struct attempt *attempt = MEM_NEW(struct attempt);
    attempt->search = search;
    attempt->arena = arena_new();
    attempt->record = (struct candidate_record){
        .id = arena_printf(attempt->arena, "%s-c%lld", search->id, (long long)number),
        .run = search->id,
        .idea = "",
        .parent = "",
        .name = "",
        .source = "",
        .tune = "{}",
        .identity = "",
        .duplicate_of = "",
        .verdict = "",
        .reason = "",
        .failure = "",
        .diagnostics = "",
        .first_failure = "",
        .mended = "",
        .agent = "",
        .attempt = "",
        .number = number,
        .round = search->record.round};
    if (number > search->numbers)
        search->numbers = number;
    search->in_flight++;
    list_append(&search->running, &attempt->link);
    search_recall_candidate(attempt);
    return attempt;
}

/* ---- of the built-in proposer ---- */

/* The kept candidate that measured `origin`, or NULL. */
static const struct attempt *find_origin(struct search *search, const struct proposal *proposal)
{
    const struct candidate *candidate = search->by_number[proposal->start]->candidate;
    uint64_t index = tune_index(candidate, &proposal->origin);
    list_each (link, &search->kept) {
        const struct attempt *kept = container_of(link, struct attempt, link);
        if (kept->arm == search->by_number[proposal->start] &&
            tune_index(candidate, &kept->tune) == index)
            return kept;
    }
    return NULL;
}

static void words_of_change(const struct proposal *proposal, struct buf *words)
{
    bool any = false;
    for (size_t i = 0; i < proposal->tune.count; i++) {
        int64_t from = proposal->origin.number[i], to = proposal->tune.number[i];
        if (proposal->has_origin && from == to)
            continue;
        buf_addf(words, "%s%s ", any ? ", " : "", proposal->tune.name[i]);
        if (proposal->has_origin)
            buf_addf(words, "%lld -> ", (long long)from);
        buf_addf(words, "%lld", (long long)to);
        any = true;
    }
}

/* "memory bound, 61 % of the roof": from the profile of the candidate that is started from. */
static void words_of_roof(const struct attempt *origin, struct buf *why)
{
    struct value *metrics;
    ARENA_LOCAL(arena);
    const char *text = origin->metrics;
    if (text && value_parse_json(arena, "metrics", text, strlen(text), &metrics, NULL) == 0) {
        const struct value *roof = value_get(metrics, "roofline");
        const char *limit = value_text(roof, "limit", NULL);
        double share = value_real(roof, "share_of_limit", 0);
        if (limit)
            buf_addf(why, "; %s is %s bound", origin->record.id, limit);
        if (share > 0)
            buf_addf(why, ", at %.0f %% of that roof", 100 * share);
    }
}

static void idea_words(struct search *search, const struct proposal *proposal,
                       struct attempt *attempt)
{
    static const char *const reasons[] = {
        [PROPOSAL_FIRST] = "a first look at a start of another structure",
        [PROPOSAL_SPREAD] = "little is known here yet: far from what was measured",
        [PROPOSAL_MODEL] = "largest expected improvement by what was measured",
        [PROPOSAL_NEIGHBOUR] = "one step from the best point of its start",
        [PROPOSAL_RECALLED] = "among the best points of earlier runs",
        [PROPOSAL_CHANCE] = "drawn by chance"};
    const struct attempt *origin = proposal->has_origin ? find_origin(search, proposal) : NULL;
    BUF_LOCAL(title, 1 << 12);
    BUF_LOCAL(why, 1 << 12);
    buf_addf(&title, "%s: ", attempt->arm->name);
    if (proposal->tune.count == 0)
        buf_addf(&title, "as it is");
    words_of_change(proposal, &title);
    buf_addf(&why, "%s", reasons[proposal->kind]);
    if (origin)
        words_of_roof(origin, &why);
    search_lesson_parent(attempt, origin);
    if (origin)
        attempt->record.parent = arena_strdup(attempt->arena, origin->record.id);
    attempt->idea =
        (struct idea_record){.id = attempt->record.idea,
                             .run = search->id,
                             .parent = attempt->record.parent,
                             .title = arena_strdup(attempt->arena, buf_text(&title)),
                             .category = proposal->kind == PROPOSAL_FIRST ? "algorithm" : "tuning",
                             .why = arena_strdup(attempt->arena, buf_text(&why)),
                             .expected = proposal->expected_ns > 0 && origin
                                             ? origin->record.time_ns / proposal->expected_ns
                                             : 0,
                             .round = attempt->record.round};
}

struct attempt *attempt_start(struct search *search, const struct chain *chain)
{
    const struct proposal *proposal = &chain->proposal;
    struct attempt *attempt = attempt_new(search, chain->first + chain->proposed);
    if (!search_writes(search))
        attempt->record.round = chain->proposed / search_round_size(search) + 1;
    attempt->arm = search->by_number[proposal->start];
    attempt->record.island = attempt->island = attempt->arm->island;
    attempt->tune = proposal->tune;
    attempt->record.tuning = chain->tuning;
    attempt->fills = chain->tuning && chain->proposed >= chain->limit;
    attempt->record.idea = arena_printf(attempt->arena, "%s-i%" PRId64, search->id,
                                        chain->ideas_first + chain->proposed);
    attempt->record.parent = attempt->arm->origin;
    attempt->record.name = attempt->arm->name;
    attempt->record.source = attempt->arm->source_hash;
    attempt_identify(attempt);
    idea_words(search, proposal, attempt);
    task_start(search->task.loop, &attempt->task, &attempt_type, &search->task, attempt->record.id);
    return attempt;
}

/* ---- of a model ---- */

struct attempt *attempt_start_writing(struct search *search, struct task *round, int64_t number,
                                      const struct idea *idea, const char *idea_id,
                                      const struct attempt *parent, int island, int64_t sample)
{
    struct attempt *attempt = attempt_new(search, number);
    writing_new(attempt, idea, parent, sample);
    attempt->wrote = true;
    attempt->record.island = attempt->island = island;
    attempt->record.idea = arena_strdup(attempt->arena, idea_id);
    attempt->record.parent = parent ? arena_strdup(attempt->arena, parent->record.id) : "";
    attempt->idea = (struct idea_record){.id = attempt->record.idea,
                                         .run = search->id,
                                         .parent = attempt->record.parent,
                                         .title = arena_strdup(attempt->arena, idea->title),
                                         .category = search_constant(idea->category),
                                         .why = arena_strdup(attempt->arena, idea->why),
                                         .expected = idea->expected,
                                         .round = search->record.round};
    search_lesson_parent(attempt, parent);
    task_start(search->task.loop, &attempt->task, &attempt_type, round, attempt->record.id);
    return attempt;
}

/* ---- of a coding agent ---- */

/* What the agent that works on `of` wants evaluated: a candidate of the same idea and parent. NULL
 * where its front matter cannot be read. */
static struct attempt *attempt_start_given(const struct attempt *of, struct task *round,
                                           int64_t number, const char *text, size_t length,
                                           struct err *err)
{
    struct search *search = of->search;
    struct attempt *attempt = attempt_new(search, number);
    const struct attempt *parent = writing_parent(of->writing);
    writing_new(attempt, &of->writing->idea, parent, 0);
    attempt->wrote = true;
    attempt->record.island = attempt->island = of->island;
    attempt->record.idea = arena_strdup(attempt->arena, of->record.idea);
    attempt->record.parent = arena_strdup(attempt->arena, of->record.parent);
    attempt->record.attempt = arena_strdup(attempt->arena, of->record.id);
    attempt->record.round = of->record.round;
    attempt->idea = of->idea;
    attempt->idea.id = attempt->record.idea;
    attempt->idea.parent = attempt->record.parent;
    attempt->idea.title = arena_strdup(attempt->arena, of->idea.title);
    attempt->idea.why = arena_strdup(attempt->arena, of->idea.why);
    if (!writing_give(attempt, text, length, err)) {
        search->in_flight--;
        attempt_free(attempt);
        return NULL;
    }
    task_start(search->task.loop, &attempt->task, &attempt_type, round, attempt->record.id);
    return attempt;
}

void attempt_operate(struct attempt *attempt, const struct attempt *parent, struct task *round,
                     int64_t first)
{
    const struct candidate_record *was;
    struct agent *agent = agent_new(attempt, parent, round, first, attempt_start_given);
    attempt->writing->agent = agent;
    for (size_t at = 0; (was = search_recall_steps(attempt->search, attempt->record.id, &at));)
        agent_recall(agent, was);
}
