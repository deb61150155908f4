#include "agents/search/run/run.h"

#include "agents/llm/completion.h"

#include "agents/search/run/space.h"
#include "base/clock.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

enum {
    TICK_MS = 1000,
    PUT_EVERY_MS = 5000,
    SPACE_EVERY_MS = 10000,
    TIDY_EVERY_MS = 60000,
    ENDPOINTS_MAX = 16
};

/* ---- room on the disk ---- */

static void look_for_space(void *argument)
{
    struct search *search = argument;
    const struct search_options *o = &search->options;
    buf_reset(&search->watch.space_why);
    (void)space_left(store_folder(search->store), o->disk_quota, o->disk_floor,
                     &search->watch.space_why);
}

static void watch_space(struct search *search)
{
    const struct search_options *o = &search->options;
    uint64_t now = clock_now_ns();
    if (search->watch.space_work.active || (o->disk_quota <= 0 && o->disk_floor <= 0))
        return;
    if (search->watch.space_work.done)
        search->watch.space_short = search->watch.space_why.length > 0;
    search->watch.space_work.done = false;
    if (search->watch.space_looked_ns &&
        now - search->watch.space_looked_ns < SPACE_EVERY_MS * 1000000ULL)
        return;
    search->watch.space_looked_ns = now;
    work_start(search->task.loop, &search->watch.space_work, &search->task, look_for_space, search);
}

/* ---- why it waits ---- */

static const char *endpoint_reason(const struct search *search, char *text, size_t size)
{
    struct endpoint_view endpoints[ENDPOINTS_MAX];
    struct completions_totals totals;
    if (!search->completions)
        return NULL;
    totals = completions_totals(search->completions);
    size_t count = completions_endpoints(search->completions, endpoints, ENDPOINTS_MAX);
    for (size_t i = 0; i < count && i < ENDPOINTS_MAX; i++) /* who can be asked is asked */
        if (!endpoints[i].embeds &&
            (endpoints[i].state == ENDPOINT_READY || endpoints[i].state == ENDPOINT_LIMITED))
            return NULL;
    for (size_t i = 0; i < count && i < ENDPOINTS_MAX; i++) {
        bool waits =
            endpoints[i].state == ENDPOINT_PARKED || endpoints[i].state == ENDPOINT_BREAKER_OPEN;
        if (!waits || endpoints[i].embeds || totals.waiting == 0)
            continue;
        snprintf(text, size, "%s: %s", endpoints[i].name, endpoints[i].reason);
        return text;
    }
    return NULL;
}

static void awaited_words(const struct search *search, char *text, size_t size)
{
    long long count = (long long)completions_totals(search->completions).awaited;
    snprintf(text, size, "%lld answer%s awaited", count, count == 1 ? "" : "s");
}

static const char *reason_now(const struct search *search, char *text, size_t size)
{
    const char *full = search->writer ? store_writer_waits(search->writer) : NULL;
    if (full)
        return full;
    if (search->watch.space_short)
        return buf_text(&search->watch.space_why);
    if (search->watch.paused_by_person)
        return "paused by a person";
    if (search->watch.mailbox_waits) {
        awaited_words(search, text, size);
        return text;
    }
    return *search->watch.provider ? search->watch.provider : endpoint_reason(search, text, size);
}

const char *search_paused(const struct search *search)
{
    const struct pause *last =
        search->watch.pause_count > 0 ? &search->watch.pauses[search->watch.pause_count - 1] : NULL;
    return last && last->until_ms == 0 ? last->reason : NULL;
}

static void end_pause(struct search *search)
{
    struct pause *last = &search->watch.pauses[search->watch.pause_count - 1];
    last->until_ms = clock_wall_ms();
    log_event(LOG_INFO, "run.goes_on", search->id, "after %.0f s: %s",
              (double)(last->until_ms - last->since_ms) / 1000, last->reason);
}

static void begin_pause(struct search *search, const char *reason)
{
    if (search->watch.pause_count == PAUSES_MAX) {
        memmove(search->watch.pauses, search->watch.pauses + 1,
                (PAUSES_MAX - 1) * sizeof *search->watch.pauses);
        search->watch.pause_count--;
    }
    struct pause *pause = &search->watch.pauses[search->watch.pause_count++];
    *pause = (struct pause){.since_ms = clock_wall_ms()};
    snprintf(pause->reason, sizeof pause->reason, "%s", reason);
    log_event(LOG_WARN, "run.pause", search->id, "%s", reason);
}

/* Numbers in a reason change while it lasts: it is the same pause up to its first digit. */
static bool same_reason(const char *one, const char *other)
{
    size_t length = strcspn(one, "0123456789");
    return length == strcspn(other, "0123456789") && strncmp(one, other, length) == 0;
}

static bool watch_pauses(struct search *search)
{
    char text[256];
    const char *reason = reason_now(search, text, sizeof text), *last = search_paused(search);
    bool held = search->watch.paused_by_person || search->watch.space_short;
    if (held != search->watch.held) {
        search->watch.held = held;
        search_lanes_hold(search, held);
        if (search->completions)
            completions_hold(search->completions, held);
    }
    if ((!reason && !last) || (reason && last && same_reason(reason, last)))
        return false;
    if (last)
        end_pause(search);
    if (reason)
        begin_pause(search, reason);
    return true;
}

/* What it waited for when an earlier process ended is over with that process. */
void search_recall_pauses(struct search *search)
{
    struct value *root;
    struct err ignored;
    const char *text = search->record.pauses;
    if (!text || value_parse_json(search->arena, "pauses", text, strlen(text), &root, &ignored))
        return;
    const struct value *list = value_get(root, "list");
    for (size_t i = 0; list && i < list->count && search->watch.pause_count < PAUSES_MAX; i++) {
        struct pause *pause = &search->watch.pauses[search->watch.pause_count++];
        pause->since_ms = (uint64_t)value_int(list->items[i], "since_ms", 0);
        pause->until_ms = (uint64_t)value_int(list->items[i], "until_ms", 0);
        if (pause->until_ms == 0)
            pause->until_ms = pause->since_ms;
        snprintf(pause->reason, sizeof pause->reason, "%s",
                 value_text(list->items[i], "reason", ""));
    }
}

char *search_pauses_text(const struct search *search)
{
    JSON_LOCAL(json, text, 1 << 18);
    json_object(&json);
    json_put_array(&json, "list");
    for (size_t i = 0; i < search->watch.pause_count; i++) {
        json_object(&json);
        json_put_int(&json, "since_ms", (int64_t)search->watch.pauses[i].since_ms);
        json_put_int(&json, "until_ms", (int64_t)search->watch.pauses[i].until_ms);
        json_put_text(&json, "reason", search->watch.pauses[i].reason);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    return buf_take(&text);
}

/* ---- mailboxes ---- */

/* Everything that could go on waits for answers that somebody else writes. */
static void watch_mailbox(struct search *search)
{
    struct completions_totals totals;
    if (!search->completions)
        return;
    totals = completions_totals(search->completions);
    search->watch.mailbox_waits = totals.awaited > 0 && totals.awaited == totals.waiting &&
                                  search->in_flight <= (size_t)totals.awaited &&
                                  !search_awaits(search);
    bool arrived = totals.answers + totals.from_store != search->watch.mailbox_answers;
    search->watch.mailbox_answers = totals.answers + totals.from_store;
    if (!search->watch.mailbox_waits || arrived)
        timer_stop(&search->watch.mailbox);
    if (search->watch.mailbox_waits && !search->watch.mailbox.armed && !search->watch.mailbox.fired)
        timer_start(search->task.loop, &search->watch.mailbox, &search->task,
                    search->options.mailbox_ms > TICK_MS ? (uint64_t)search->options.mailbox_ms
                                                         : TICK_MS);
    if (search->watch.mailbox.fired && search->watch.mailbox_waits) {
        char text[48];
        awaited_words(search, text, sizeof text);
        search_stop_awaiting(search, text);
    }
    if (!search->watch.mailbox_waits)
        search->watch.mailbox.fired = false;
}

/* ---- memory ---- */

/* What a round took and gave back lies in holes between what stays: the system gets it back once a
 * minute, so that the program is as large as what it holds. Some hundred microseconds. */
static void tidy_memory(struct search *search, uint64_t now)
{
    if (now - search->watch.tidied_ns < TIDY_EVERY_MS * 1000000ULL)
        return;
    search->watch.tidied_ns = now;
    malloc_trim(0);
    const struct mallinfo2 heap = mallinfo2();
    log_event(LOG_DEBUG, "run.memory", search->id, "%.2f MB in use, %.2f MB in holes",
              (double)(heap.uordblks + heap.hblkhd) / 1e6, (double)heap.fordblks / 1e6);
}

/* ---- the tick ---- */

bool search_watch(struct search *search)
{
    uint64_t now = clock_now_ns();
    if (search->watch.tick.armed)
        return false;
    search->watch.tick.fired = false;
    timer_start(search->task.loop, &search->watch.tick, &search->task, TICK_MS);
    tidy_memory(search, now);
    watch_space(search);
    watch_mailbox(search);
    bool changed = watch_pauses(search);
    if (search->put.active || (!changed && now - search->watch.put_ns < PUT_EVERY_MS * 1000000ULL))
        return false;
    search->watch.put_ns = now;
    return true;
}

void search_watch_room(struct search *search)
{
    const char *full = store_writer_waits(search->writer), *last = search_paused(search);
    if (search->watch.tick.armed)
        return;
    search->watch.tick.fired = false;
    timer_start(search->task.loop, &search->watch.tick, &search->task, TICK_MS);
    if (last && !full)
        end_pause(search);
    else if (full && !last)
        begin_pause(search, full);
}

void search_watch_end(struct search *search)
{
    timer_stop(&search->watch.tick);
    timer_stop(&search->watch.mailbox);
    if (search_paused(search))
        end_pause(search);
}

bool search_watch_busy(const struct search *search)
{
    return search->watch.space_work.active;
}

void search_watch_provider(struct search *search, const char *why)
{
    snprintf(search->watch.provider, sizeof search->watch.provider, "%s", why);
}

void search_watch_person(struct search *search, bool paused)
{
    search->watch.paused_by_person = paused;
    timer_stop(&search->watch.tick); /* looked at now, not in a second */
}

void search_watch_open(struct search *search)
{
    buf_init(&search->watch.space_why, sizeof search->watch.pauses[0].reason - 1);
}

void search_watch_free(struct search *search)
{
    buf_free(&search->watch.space_why);
}
