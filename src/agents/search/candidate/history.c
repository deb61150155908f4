#include "agents/search/candidate/candidate.h"

#include "base/mem.h"

#include <string.h>

enum {
    HISTORY_MAX = 4096, /* candidates: the oldest that were no wins are forgotten beyond that */
    HISTORY_FORGOTTEN = 1024, /* at once */
    REASON_BYTES = 256        /* a prompt quotes less */
};

#define WIN 1.01 /* as agents/prompt/history says it */

/* The texts of one entry lie in one piece, which is its id's. */
static void set_texts(struct prompt_attempt *entry, const struct attempt *attempt)
{
    const char *from[] = {attempt->record.id, attempt->idea.title, attempt->record.reason,
                          attempt->record.duplicate_of, attempt->record.first_failure};
    const char **to[] = {&entry->id, &entry->title, &entry->reason, &entry->same_as,
                         &entry->first_failure};
    enum { TEXTS = sizeof from / sizeof from[0] };
    size_t length[TEXTS], bytes = 0;
    for (size_t i = 0; i < TEXTS; i++) {
        length[i] = from[i] ? strcspn(from[i], "\r\n") : 0;
        if (i != 1 && length[i] > REASON_BYTES)
            length[i] = REASON_BYTES;
        bytes += length[i] + 1;
    }
    char *at = mem_alloc(bytes);
    for (size_t i = 0; i < TEXTS; i++) {
        memcpy(at, from[i] ? from[i] : "", length[i]);
        at[length[i]] = '\0';
        *to[i] = at;
        at += length[i] + 1;
    }
}

static bool is_win(const struct prompt_attempt *entry)
{
    double gain = entry->over_parent > 0 ? entry->over_parent : entry->speedup;
    return strcmp(entry->state, "kept") == 0 && !entry->dropped && *entry->same_as == '\0' &&
           gain > WIN;
}

static void forget(struct search *search, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        mem_free((char *)(uintptr_t)search->history->items[i].id);
}

/* A function of the history alone, so that a run that goes on forgets the same. */
void history_round(struct search *search)
{
    size_t left = search->history->count >= HISTORY_MAX ? HISTORY_FORGOTTEN : 0;
    for (int wins = 0; wins < 2 && left > 0; wins++) {
        size_t kept = 0;
        for (size_t i = 0; i < search->history->count; i++) {
            if (left > 0 && (wins > 0 || !is_win(&search->history->items[i]))) {
                forget(search, i, i + 1);
                left--;
                continue;
            }
            search->history->items[kept] = search->history->items[i];
            search->history->island[kept++] = search->history->island[i];
        }
        search->history->count = kept;
    }
    search->history->shown = search->history->count;
}

/* Hundreds beside one round, and prompts are about what models tried. */
static bool is_filler(const struct attempt *attempt, double over_parent)
{
    double gain = over_parent > 0 ? over_parent : attempt->record.speedup;
    bool kept = attempt->task.state == KEPT && !attempt->record.dropped;
    return attempt->fills && !(kept && gain > WIN);
}

static void make_room(struct search *search)
{
    if (search->history->count < search->history->capacity)
        return;
    size_t capacity = search->history->capacity ? 2 * search->history->capacity : 64;
    search->history->capacity = capacity;
    search->history->items =
        mem_resize(search->history->items, capacity * sizeof *search->history->items);
    search->history->island =
        mem_resize(search->history->island, capacity * sizeof *search->history->island);
}

void history_add(struct search *search, const struct attempt *attempt)
{
    const struct candidate_record *record = &attempt->record;
    double over_parent = 0;
    if (!search_has_model(search) || record->outside)
        return;                                /* nobody is told */
    bool same = *record->duplicate_of != '\0'; /* it credits its idea with nothing */
    if (attempt->before.time_ns > 0 && record->time_ns > 0)
        over_parent = attempt->before.time_ns / record->time_ns;
    list_each (link, &search->kept) { /* of what the proposer tunes */
        const struct attempt *parent = container_of(link, struct attempt, link);
        if (strcmp(parent->record.id, record->parent) == 0 && record->time_ns > 0)
            over_parent = parent->record.time_ns / record->time_ns;
    }
    if (is_filler(attempt, over_parent))
        return;
    make_room(search);
    struct prompt_attempt *entry = &search->history->items[search->history->count];
    *entry = (struct prompt_attempt){.category = search_constant(attempt->idea.category),
                                     .state = search_constant(record->state),
                                     .speedup = same ? 0 : record->speedup,
                                     .over_parent = same ? 0 : over_parent,
                                     .time_ns = same ? 0 : record->time_ns,
                                     .dropped = record->dropped,
                                     .repairs = record->repairs,
                                     .given = !attempt->wrote && !*record->parent};
    set_texts(entry, attempt);
    search->history->island[search->history->count++] = attempt->island;
}

const struct prompt_attempt *history_shown(const struct search *search, size_t *count)
{
    *count = search->history->shown;
    return search->history->items;
}

struct prompt_attempt *history_of(const struct search *search, int island, size_t *count)
{
    const struct history *history = search->history;
    struct prompt_attempt *items = mem_array(history->shown + 1, sizeof *items);
    *count = 0;
    for (size_t i = 0; i < history->shown; i++)
        if (island < 0 || history->island[i] == island)
            items[(*count)++] = history->items[i];
    return items;
}

void history_free(struct search *search)
{
    forget(search, 0, search->history->count);
    mem_free(search->history->items);
    mem_free(search->history->island);
}
