/* agents/search/history: what a run remembers of what is over: for the prompts what was tried, so
 * that nothing is evaluated twice which identities were. The store has all of it, whole; here stays
 * what is looked at again, in some two hundred bytes a candidate, and no more than so many of them.
 */
#include "agents/ideas/ideas.h"
#include "agents/search/private.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum {
    HISTORY_MAX = 4096, /* candidates: the oldest that were no wins are forgotten beyond that */
    HISTORY_FORGOTTEN = 1024, /* at once */
    REASON_BYTES = 256        /* a prompt quotes less */
};

#define WIN 1.01 /* as agents/prompt/history says it */

/* ---- what was tried ---- */

const char *search_constant(const char *text)
{
    static const char *const words[] = {"kept", "kernel", "rejected", "failed"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0)
            return words[i];
    for (size_t i = 0; idea_categories[i]; i++)
        if (strcmp(text, idea_categories[i]) == 0)
            return idea_categories[i];
    return "";
}

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
        mem_free((char *)(uintptr_t)search->history[i].id);
}

/* A function of the history alone, so that a run that goes on forgets the same. */
void search_forget(struct search *search)
{
    size_t left = search->history_count >= HISTORY_MAX ? HISTORY_FORGOTTEN : 0;
    for (int wins = 0; wins < 2 && left > 0; wins++) {
        size_t kept = 0;
        for (size_t i = 0; i < search->history_count; i++) {
            if (left > 0 && (wins > 0 || !is_win(&search->history[i]))) {
                forget(search, i, i + 1);
                left--;
                continue;
            }
            search->history[kept] = search->history[i];
            search->history_island[kept++] = search->history_island[i];
        }
        search->history_count = kept;
    }
}

static void make_room(struct search *search)
{
    if (search->history_count < search->history_capacity)
        return;
    size_t capacity = search->history_capacity ? 2 * search->history_capacity : 64;
    search->history_capacity = capacity;
    search->history = mem_resize(search->history, capacity * sizeof *search->history);
    search->history_island =
        mem_resize(search->history_island, capacity * sizeof *search->history_island);
}

void search_remember(struct search *search, const struct attempt *attempt)
{
    const struct candidate_record *record = &attempt->record;
    double over_parent = 0;
    if (!search_has_model(search))
        return;                                /* nobody is told */
    bool same = *record->duplicate_of != '\0'; /* it credits its idea with nothing */
    if (attempt->before.time_ns > 0 && record->time_ns > 0)
        over_parent = attempt->before.time_ns / record->time_ns;
    list_each (link, &search->kept) { /* of what the proposer tunes */
        const struct attempt *parent = container_of(link, struct attempt, link);
        if (strcmp(parent->record.id, record->parent) == 0 && record->time_ns > 0)
            over_parent = parent->record.time_ns / record->time_ns;
    }
    make_room(search);
    struct prompt_attempt *entry = &search->history[search->history_count];
    *entry = (struct prompt_attempt){.category = search_constant(attempt->idea.category),
                                     .state = search_constant(record->state),
                                     .speedup = same ? 0 : record->speedup,
                                     .over_parent = same ? 0 : over_parent,
                                     .time_ns = same ? 0 : record->time_ns,
                                     .dropped = record->dropped,
                                     .repairs = record->repairs,
                                     .given = !attempt->wrote && !*record->parent};
    set_texts(entry, attempt);
    search->history_island[search->history_count++] = attempt->island;
}

/* ---- who has been evaluated ---- */

struct known *search_known(struct search *search, const char *identity)
{
    for (size_t i = 0; i < search->known_count; i++)
        if (strcmp(search->known[i]->identity, identity) == 0)
            return search->known[i];
    return NULL;
}

static struct settled *find_settled(const struct search *search, const char *identity)
{
    const struct hash mark = hash_bytes(identity, strlen(identity));
    for (size_t i = 0; i < search->settled_count; i++)
        if (hash_compare(search->settled[i].mark, mark) == 0)
            return &search->settled[i];
    return NULL;
}

int64_t search_known_before(const struct search *search, const char *identity)
{
    const struct settled *settled = find_settled(search, identity);
    return settled && settled->number <= search->numbers_shown ? settled->number : 0;
}

void search_know(struct search *search, struct attempt *attempt)
{
    if (search->known_count == search->known_capacity) {
        search->known_capacity = search->known_capacity ? 2 * search->known_capacity : 64;
        search->known = mem_resize(search->known, search->known_capacity * sizeof *search->known);
    }
    struct known *known = MEM_NEW(struct known);
    search->known[search->known_count++] = known;
    snprintf(known->identity, sizeof known->identity, "%s", attempt->record.identity);
    known->first = attempt;
    slots_init(&known->slots, "verdict", 1);
    slots_acquire(&known->slots, &attempt->twin_slot, &attempt->task, 1);
}

/* Whoever came first in time, the lowest number is who it was: so that a run whose candidates
 * arrive in another order names the same ones. */
void search_settle(struct search *search, const struct attempt *attempt)
{
    const struct candidate_record *record = &attempt->record;
    struct settled *settled = find_settled(search, record->identity);
    if (settled) {
        if (record->number < settled->number)
            settled->number = record->number;
        return;
    }
    if (search->settled_count == search->settled_capacity) {
        search->settled_capacity = search->settled_capacity ? 2 * search->settled_capacity : 64;
        search->settled =
            mem_resize(search->settled, search->settled_capacity * sizeof *search->settled);
    }
    search->settled[search->settled_count++] = (struct settled){
        .mark = hash_bytes(record->identity, strlen(record->identity)), .number = record->number};
}

static void forget_known(struct known *known)
{
    mem_free(known->verdict);
    mem_free(known);
}

void search_know_all(struct search *search)
{
    for (size_t i = 0; i < search->known_count; i++)
        forget_known(search->known[i]);
    search->known_count = 0;
}

/* Without a model there are no rounds that end: each goes as it is taken, but for one that another
 * waits for. */
void search_know_one(struct search *search, const struct attempt *attempt)
{
    for (size_t i = 0; i < search->known_count; i++) {
        struct known *known = search->known[i];
        if (known->first != attempt || known->slots.used > 0 || !list_empty(&known->slots.waiters))
            continue;
        search->known[i] = search->known[--search->known_count];
        forget_known(known);
        return;
    }
}

void search_history_free(struct search *search)
{
    forget(search, 0, search->history_count);
    search_know_all(search);
    mem_free(search->history);
    mem_free(search->history_island);
    mem_free(search->known);
    mem_free(search->settled);
    search->history = NULL;
    search->history_island = NULL;
    search->known = NULL;
    search->settled = NULL;
    search->history_count = search->settled_count = 0;
}
