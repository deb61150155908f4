/* agents/search_start: what a run begins with: the problem, its starts as arms of the proposer, the
 * machine's facts and floor; and the words that an idea of the built-in proposer gets. */
#include "agents/search_private.h"

#include "base/file.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the problem and its starts ---- */

static int load_arm(struct search *search, const char *path, struct err *err)
{
    struct arm *arm = &search->arms[search->arm_count];
    struct buf text;
    const char *slash = strrchr(path, '/');
    buf_init(&text, 1 << 20);
    *arm = (struct arm){.search = search,
                        .name = arena_strdup(search->arena, slash ? slash + 1 : path),
                        .origin = "",
                        .number = -1};
    if (file_read(path, &text, err)) {
        buf_free(&text);
        return -1;
    }
    arm->length = text.length;
    arm->text = arena_strndup(search->arena, buf_text(&text), text.length);
    buf_free(&text);
    if (candidate_parse(search->problem, arm->name, arm->text, arm->length, &arm->candidate, err))
        return err_wrap(err, "%s", path);
    hash_format(arm->candidate->hash, arm->source_hash);
    search->arm_count++;
    return 0;
}

int search_load(struct search *search, struct err *err)
{
    const char *paths[ARMS_MAX];
    if (problem_load(search->options.problem, &search->problem, err))
        return -1;
    size_t count = problem_starts(search->problem, search->options.backend, paths, ARMS_MAX);
    for (size_t i = 0; i < count; i++)
        if (load_arm(search, paths[i], err))
            return -1;
    if (count == 0)
        return err_set(err, ERR_USAGE,
                       "%s: no starts in %s/starts/%s: put at least one source there",
                       search->problem->file, search->problem->folder, search->options.backend);
    return 0;
}

/* ---- facts ---- */

/* One machine's ceilings are measured once: the key names the CPU and the lane's cores. */
char *search_ceilings_key(const char *cores)
{
    char line[256], model[128] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %127[^\n]", model) == 1)
            break;
    if (file)
        fclose(file);
    char *key = mem_alloc(400);
    snprintf(key, 400, "machine/ceilings/%s/%ld/%s", model, sysconf(_SC_NPROCESSORS_ONLN),
             cores ? cores : "all");
    return key;
}

void search_put_ceilings(struct search *search, struct store_batch *batch)
{
    struct buf text;
    struct json json;
    const struct value *ceilings = value_get(search->open.answer, "ceilings");
    if (!ceilings || ceilings->count == 0)
        return;
    char *key = search_ceilings_key(search->options.cores);
    buf_init(&text, 4096);
    json_init(&json, &text);
    json_value(&json, ceilings);
    store_batch_put(batch, STORE_FACTS, key, buf_text(&text), text.length);
    buf_free(&text);
    mem_free(key);
}

int search_open_lane(struct search *search)
{
    struct buf known;
    struct err ignored;
    const struct search_options *o = &search->options;
    char *key = search_ceilings_key(o->cores);
    buf_init(&known, 1 << 16);
    bool cached = store_get(search->store, STORE_FACTS, key, &known, &ignored) == 0;
    const struct lane_spec spec = {.backend = o->backend,
                                   .cores = o->cores,
                                   .problem = search->problem->file,
                                   .python = o->python,
                                   .baseline = o->baseline,
                                   .call_timeout_ms = (uint64_t)o->call_timeout_ms,
                                   .time_budget_ms = (uint64_t)o->time_budget_ms,
                                   .roofline = !cached,
                                   .ceilings = cached ? buf_text(&known) : NULL};
    int failed = lane_open(search->task.loop, &spec, &search->lane, &search->err);
    buf_free(&known);
    mem_free(key);
    if (failed)
        return -1;
    search->open = (struct lane_request){.op = LANE_OPEN, .id = search->id};
    lane_submit(search->lane, &search->open, &search->task);
    return 0;
}

static bool arm_valid(void *context, const struct names *tune)
{
    const struct arm *arm = context;
    return tune_valid(arm->candidate, &arm->search->problem->shapes[0], &arm->search->facts, tune);
}

int search_arm_add(struct search *search, struct arm *arm)
{
    arm->space = (struct proposer_space){.name = arm->name,
                                         .parameter_count = arm->candidate->tune_count,
                                         .parameters = arm->candidate->tune,
                                         .valid = arm_valid,
                                         .context = arm};
    arm->number = proposer_add(search->proposer, &arm->space);
    if (arm->number >= 0)
        search->by_number[arm->number] = arm;
    return arm->number;
}

static void set_floor(struct search *search, const struct value *answer)
{
    double flops = 0, bytes = 0, floor_ns = 0;
    struct err ignored;
    double rate = value_real(value_at(answer, "ceilings"), "flops_per_s", 0);
    double copy = value_real(value_at(answer, "ceilings"), "copy_bytes_per_s", 0);
    double read = value_real(value_at(answer, "ceilings"), "read_bytes_per_s", 0);
    if (problem_work(search->problem, &search->problem->shapes[0], &flops, &bytes, &ignored))
        return;
    if (rate > 0)
        floor_ns = flops / rate * 1e9;
    if (fmax(copy, read) > 0)
        floor_ns = fmax(floor_ns, bytes / fmax(copy, read) * 1e9);
    proposer_set_floor(search->proposer, floor_ns);
}

int search_opened(struct search *search, struct err *err)
{
    const struct value *facts = value_get(search->open.answer, "facts");
    for (size_t i = 0; facts && i < facts->count; i++)
        if (names_set(&search->facts, facts->keys[i], facts->items[i]->integer, err))
            return -1;
    size_t usable = 0;
    for (size_t i = 0; i < search->arm_count; i++) {
        int number = search_arm_add(search, &search->arms[i]);
        if (number < 0) {
            log_event(LOG_WARN, "run.start", search->id,
                      "%s: no point of its tune space is valid on this machine; left out",
                      search->arms[i].name);
            continue;
        }
        usable++;
    }
    set_floor(search, search->open.answer);
    return usable ? 0 : err_set(err, ERR_USAGE, "no start is usable on this machine");
}

/* ---- words ---- */

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
    struct arena *arena = arena_new();
    const char *text = origin->request.evaluation.metrics;
    if (text && value_parse_json(arena, "metrics", text, strlen(text), &metrics, NULL) == 0) {
        const struct value *roof = value_get(metrics, "roofline");
        const char *limit = value_text(roof, "limit", NULL);
        double share = value_real(roof, "share_of_limit", 0);
        if (limit)
            buf_addf(why, "; %s is %s bound", origin->record.id, limit);
        if (share > 0)
            buf_addf(why, ", at %.0f %% of that roof", 100 * share);
    }
    arena_free(arena);
}

void search_idea_words(struct search *search, const struct proposal *proposal,
                       struct attempt *attempt)
{
    static const char *const reasons[] = {
        [PROPOSAL_FIRST] = "a first look at a start of another structure",
        [PROPOSAL_SPREAD] = "little is known here yet: far from what was measured",
        [PROPOSAL_MODEL] = "largest expected improvement by what was measured",
        [PROPOSAL_NEIGHBOUR] = "one step from the best point of its start"};
    const struct attempt *origin = proposal->has_origin ? find_origin(search, proposal) : NULL;
    struct buf title, why;
    buf_init(&title, 1 << 12);
    buf_init(&why, 1 << 12);
    buf_addf(&title, "%s: ", attempt->arm->name);
    if (proposal->tune.count == 0)
        buf_addf(&title, "as it is");
    words_of_change(proposal, &title);
    buf_addf(&why, "%s", reasons[proposal->kind]);
    if (origin)
        words_of_roof(origin, &why);
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
                             .round = search->record.round};
    buf_free(&title);
    buf_free(&why);
}
