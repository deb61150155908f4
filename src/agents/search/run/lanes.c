/* Where the machine's ceilings are not known yet, the first lane is opened alone and measures them;
 * the others are told them. So GPUs must be alike. */
#include "agents/search/run/run.h"

#include "base/mem.h"

#include <string.h>

/* ---- ceilings ---- */

static char *ceilings_key(const struct search *search)
{
    return target_find(search->options.backend)
        ->ceilings_key(search->lanes.place[0].share.cores, search->lanes.place[0].share.device);
}

static char *ceilings_text(const struct search *search)
{
    const struct value *ceilings = value_get(search->lanes.place[0].open.answer, "ceilings");
    if (!ceilings || ceilings->count == 0)
        return NULL;
    JSON_LOCAL(json, text, 4096);
    json_value(&json, ceilings);
    return buf_take(&text);
}

/* Of a quiet machine alone: the next run measures again where this one could not, or where a kernel
 * was faster by 10 % than they allow. */
void search_put_ceilings(struct search *search, struct store_batch *batch)
{
    const struct value *answer = search->lanes.place[0].open.answer;
    bool loaded = value_bool(value_get(answer, "ceilings"), "under_load", false);
    char *text = loaded ? NULL : ceilings_text(search);
    MEM_LOCAL char *key = ceilings_key(search);
    if (text && !search->options.launcher) /* behind one it may be another node each time */
        store_batch_put(batch, STORE_FACTS, key, text, strlen(text));
    mem_free(text);
}

void search_ceilings_beaten(struct search *search)
{
    search->lanes.beaten = true;
}

void search_drop_ceilings(struct search *search, struct store_batch *batch)
{
    if (!search->lanes.beaten)
        return;
    MEM_LOCAL char *key = ceilings_key(search);
    store_batch_remove(batch, STORE_FACTS, key);
}

/* ---- opening ---- */

/* The first candidate, where no earlier process of the run has measured it. A kernel that has
 * numbers of its own begins with those. */
static void build_ahead(struct search *search, struct lane_spec *spec)
{
    const struct arm *arm = &search->arms[0];
    struct names tune;
    if (search->options.resume || search->arm_count == 0 || arm->before)
        return;
    proposer_choice(arm->candidate->tune, arm->candidate->tune_count, &tune);
    spec->ahead_name = arm->name;
    spec->ahead = arm->text;
    spec->ahead_tune = names_json(&tune, search->arena);
    spec->ahead_space = search->options.kernel && !search_has_model(search) &&
                        (search->options.tune_strategy == TUNE_AUTO ||
                         search->options.tune_strategy == TUNE_EXHAUSTIVE);
}

static int open_one(struct search *search, struct lane_place *place, const char *ceilings)
{
    const struct search_options *o = &search->options;
    struct lane_spec spec = {.launcher = o->launcher,
                             .backend = o->backend,
                             .cores = place->share.cores,
                             .device = place->share.device,
                             .problem = search->problem->file,
                             .python = o->python,
                             .baseline = o->baseline,
                             .call_timeout_ms = (uint64_t)o->call_timeout_ms,
                             .time_budget_ms = (uint64_t)o->time_budget_ms,
                             .roofline = !ceilings,
                             .fitness = o->unfit ? DEMAND_MAY : DEMAND_MUST,
                             .walls = o->unconfined ? DEMAND_MAY : DEMAND_MUST,
                             .ceilings = ceilings};
    if (place == &search->lanes.place[0]) {
        build_ahead(search, &spec);
        spec.final = o->final; /* search_lane_first() */
    }
    if (lane_open(search->task.loop, &spec, &place->lane, &search->err))
        return -1;
    search->lanes.open++;
    place->open = (struct lane_request){
        .op = LANE_OPEN, .id = search->id, .within_ms = search_within_ms(search)};
    lane_submit(place->lane, &place->open, &search->task);
    return 0;
}

static int share(struct search *search)
{
    const struct search_options *o = &search->options;
    const struct lane_spec all = {.launcher = o->launcher, .cores = o->cores, .device = o->devices};
    struct lane_share shares[LANES_MAX];
    struct lanes *lanes = &search->lanes;
    if (lane_shares(search->arena, &all, o->lanes > 0 ? (size_t)o->lanes : 1, shares, &lanes->count,
                    &search->err))
        return -1;
    for (size_t i = 0; i < lanes->count; i++)
        lanes->place[i].share = shares[i];
    return 0;
}

int search_lanes_open(struct search *search)
{
    struct err ignored;
    if (!target_find(search->options.backend)) /* a run that another program began */
        return err_set(&search->err, ERR_USAGE, "no backend \"%s\"", search->options.backend);
    if (share(search))
        return -1;
    search->lanes.depth = LANE_DEPTH;
    slots_init(&search->lanes.slots, "lanes", (unsigned)search_lanes_depth(search));
    MEM_LOCAL char *key = ceilings_key(search);
    BUF_LOCAL(known, 1 << 16);
    bool cached = !search->options.launcher &&
                  store_get(search->store, STORE_FACTS, key, &known, &ignored) == 0;
    int failed = open_one(search, &search->lanes.place[0], cached ? buf_text(&known) : NULL);
    while (cached && !failed && search->lanes.open < search->lanes.count)
        failed = open_one(search, &search->lanes.place[search->lanes.open], buf_text(&known));
    return failed;
}

/* Nothing is being measured yet, so that a stop, or the end of the time, need not wait for the
 * answer. */
static bool still_opens(struct search *search, struct lane_place *place)
{
    bool over = search_stopping(search) || search->lanes.late;
    if (over && place->open.active)
        lane_cancel(place->lane, &place->open);
    if (over)
        return place->open.active;
    return lane_open_again(place->lane, &place->open, &search->task) || place->open.active;
}

static const char *kind_of(const struct lane_place *place)
{
    const struct value *device = value_get(place->open.answer, "device");
    return value_text(device, "gpu", value_text(device, "cpu", ""));
}

/* The first lane's ceilings are every lane's, and a time on one is compared with a time on another:
 * both are nonsense where a GPU, or a node behind a launcher, is of another kind. */
static void refuse_unlike(struct search *search)
{
    const struct lane_place *first = &search->lanes.place[0];
    for (size_t i = 1; i < search->lanes.open && !search_stopping(search); i++) {
        const struct lane_place *place = &search->lanes.place[i];
        if (strcmp(kind_of(first), kind_of(place)) == 0)
            continue;
        if (search->options.launcher)
            (void)!err_set(&search->err, ERR_USAGE,
                           "one lane is on \"%s\", another on \"%s\": times on unlike machines "
                           "cannot be compared; let the launcher choose nodes of one kind",
                           kind_of(first), kind_of(place));
        else
            (void)!err_set(
                &search->err, ERR_USAGE,
                "GPU %s is \"%s\", GPU %s \"%s\": times on unlike GPUs cannot be compared; "
                "--devices names those of one kind",
                first->share.device ? first->share.device : "0", kind_of(first),
                place->share.device ? place->share.device : "0", kind_of(place));
    }
}

bool search_lanes_ready(struct search *search)
{
    for (size_t i = 0; i < search->lanes.open; i++)
        if (still_opens(search, &search->lanes.place[i]))
            return false;
    if (search->lanes.late)
        return true;
    for (size_t i = 0; i < search->lanes.open; i++)
        if (search->lanes.place[i].open.err.code && search->stops == 0 &&
            search->err.code == ERR_NONE)
            search->err = search->lanes.place[i].open.err;
    refuse_unlike(search);
    if (search_stopping(search) || search->lanes.open == search->lanes.count)
        return true;
    MEM_LOCAL char *ceilings = ceilings_text(search);
    while (search->lanes.open < search->lanes.count)
        if (open_one(search, &search->lanes.place[search->lanes.open], ceilings ? ceilings : "{}"))
            break;
    return search_stopping(search) && search->lanes.open == 0;
}

void search_lanes_late(struct search *search)
{
    search->lanes.late = true;
}

bool search_lanes_were_late(const struct search *search)
{
    return search->lanes.late;
}

const struct value *search_lanes_answer(const struct search *search)
{
    return search->lanes.place[0].open.answer;
}

/* ---- while it runs ---- */

int64_t search_lanes_depth(const struct search *search)
{
    return (int64_t)(search->lanes.depth * search->lanes.count);
}

void search_lanes_deepen(struct search *search, unsigned most)
{
    unsigned held = target_find(search->options.backend)->held;
    held = held < most ? held : most;
    if (held > search->lanes.depth)
        search->lanes.depth = held;
    if (search->lanes.slots.capacity > 0) /* else it is held */
        slots_resize(&search->lanes.slots, (unsigned)search_lanes_depth(search));
}

bool search_lanes_enter(struct search *search, struct slot *slot, struct task *task)
{
    return slots_acquire(&search->lanes.slots, slot, task, 1);
}

void search_lanes_hold(struct search *search, bool held)
{
    slots_resize(&search->lanes.slots, held ? 0 : (unsigned)search_lanes_depth(search));
}

struct lane *search_lane_first(const struct search *search)
{
    return search->lanes.place[0].lane;
}

struct lane_place *search_lane_pick(struct search *search)
{
    struct lane_place *least = &search->lanes.place[0];
    for (size_t i = 1; i < search->lanes.count; i++)
        if (search->lanes.place[i].load < least->load)
            least = &search->lanes.place[i];
    least->load++;
    return least;
}

void search_lane_leave(struct lane_place *place)
{
    if (place)
        place->load--;
}

/* Of all the run's time: a process that went on with it knows its own share only, and one that had
 * nothing left to measure would say that the lanes were idle. */
static double share_of(const struct search *search, double earlier, double sum)
{
    double now = search->lanes.open ? sum / (double)search->lanes.open : 0;
    double all_ms = search_elapsed_ms(search);
    if (search->earlier_ms <= 0 || all_ms <= 0)
        return now;
    return (earlier * search->earlier_ms + now * (all_ms - search->earlier_ms)) / all_ms;
}

static double sum_of(const struct search *search, double (*of)(const struct lane *lane))
{
    double sum = 0;
    for (size_t i = 0; i < search->lanes.open; i++)
        sum += of(search->lanes.place[i].lane);
    return sum;
}

double search_lanes_busy(const struct search *search)
{
    return share_of(search, search->earlier.lane_busy, sum_of(search, lane_busy_ratio));
}

double search_lanes_wait(const struct search *search)
{
    return share_of(search, search->earlier.lane_waits, sum_of(search, lane_waits_ratio));
}

double search_lanes_busy_ms(const struct search *search)
{
    return sum_of(search, lane_busy_ms);
}

double search_lanes_delay(const struct search *search)
{
    double busy = sum_of(search, lane_busy_ratio);
    return busy > 0 ? sum_of(search, lane_waits_ratio) / busy : 0;
}

void search_lanes_close(struct search *search)
{
    for (size_t i = 0; i < search->lanes.open; i++)
        lane_close(search->lanes.place[i].lane);
}

void search_lanes_free(struct search *search)
{
    for (size_t i = 0; i < search->lanes.open; i++) {
        lane_free(search->lanes.place[i].lane);
        arena_free(search->lanes.place[i].open.arena);
    }
}
