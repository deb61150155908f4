/* agents/search/run/twins: who has been evaluated. A function of numbers and identities alone. */
#include "agents/search/run/run.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static struct known *find_known(const struct search *search, const char *identity)
{
    for (size_t i = 0; i < search->twins.known_count; i++)
        if (strcmp(search->twins.known[i]->identity, identity) == 0)
            return search->twins.known[i];
    return NULL;
}

static struct settled *find_settled(const struct search *search, const char *identity)
{
    const struct hash mark = hash_bytes(identity, strlen(identity));
    for (size_t i = 0; i < search->twins.settled_count; i++)
        if (hash_compare(search->twins.settled[i].mark, mark) == 0)
            return &search->twins.settled[i];
    return NULL;
}

/* The candidate of an earlier round that was it; 0: nobody. */
static int64_t known_before(const struct search *search, const char *identity)
{
    const struct settled *settled = find_settled(search, identity);
    return settled && settled->number <= search->twins.shown ? settled->number : 0;
}

static void know(struct search *search, struct attempt *attempt)
{
    MEM_MORE(search->twins.known, search->twins.known_count, search->twins.known_capacity);
    struct known *known = MEM_NEW(struct known);
    search->twins.known[search->twins.known_count++] = known;
    snprintf(known->identity, sizeof known->identity, "%s", attempt->record.identity);
    known->first = attempt;
    slots_init(&known->slots, "verdict", 1);
    slots_acquire(&known->slots, &attempt->twin_slot, &attempt->task, 1);
}

bool twins_repeats(struct attempt *attempt, const struct attempt *parent)
{
    struct candidate_record *record = &attempt->record;
    int64_t twin = known_before(attempt->search, record->identity);
    bool copy = parent && strcmp(parent->record.source, record->source) == 0;
    if (twin <= 0 && !copy)
        return false;
    record->duplicate_of =
        copy ? arena_strdup(attempt->arena, parent->record.id)
             : arena_printf(attempt->arena, "%s-c%lld", attempt->search->id, (long long)twin);
    record->reason = arena_printf(attempt->arena, "%s as %s",
                                  copy ? "the same source" : "the same source and numbers",
                                  record->duplicate_of);
    return true;
}

/* Another of this round with the same source and numbers: its verdict is ours. False: wait. */
static bool ask(struct attempt *attempt, struct known *known)
{
    if (!attempt->twin_slot.granted && attempt->twin_slot.owner == NULL &&
        !slots_acquire(&known->slots, &attempt->twin_slot, &attempt->task, 1))
        return false;
    if (!attempt->twin_slot.granted)
        return false;
    if (!known->verdict) {
        known->first = attempt; /* the other one was stopped: this one is measured */
        return true;
    }
    struct lane_request *request = &attempt->request;
    *request = (struct lane_request){.op = LANE_EVALUATE, .arena = arena_new(), .done = true};
    attempt->submitted = true;
    slots_release(&attempt->twin_slot);
    if (evaluation_decode(request->arena, known->verdict, strlen(known->verdict),
                          &request->evaluation, &request->err) == 0)
        request->err.code = ERR_NONE;
    return true;
}

enum twins_turn twins_turn(struct attempt *attempt)
{
    struct search *search = attempt->search;
    struct known *known = find_known(search, attempt->record.identity);
    if (!known && known_before(search, attempt->record.identity) == 0)
        know(search, attempt);
    else if (known && known->first && known->first != attempt && !ask(attempt, known))
        return TURN_WAIT;
    return attempt->submitted ? TURN_TOLD : TURN_MEASURE;
}

void twins_tell(const struct attempt *attempt, const char *verdict)
{
    struct known *known = find_known(attempt->search, attempt->record.identity);
    if (known && known->first == attempt && search_writes(attempt->search) && !known->verdict)
        known->verdict = mem_strdup(verdict);
}

void twins_recall(struct attempt *attempt)
{
    const char *identity = attempt->recalled->identity;
    if (*identity && !*attempt->recalled->duplicate_of && !find_known(attempt->search, identity) &&
        known_before(attempt->search, identity) == 0)
        know(attempt->search, attempt);
}

static void settle(struct search *search, const struct attempt *attempt)
{
    const struct candidate_record *record = &attempt->record;
    struct settled *settled = find_settled(search, record->identity);
    if (settled) {
        if (record->number < settled->number)
            settled->number = record->number;
        return;
    }
    MEM_MORE(search->twins.settled, search->twins.settled_count, search->twins.settled_capacity);
    search->twins.settled[search->twins.settled_count++] = (struct settled){
        .mark = hash_bytes(record->identity, strlen(record->identity)), .number = record->number};
}

static void forget_known(struct known *known)
{
    mem_free(known->verdict);
    mem_free(known);
}

/* But for one that another waits for. */
static void forget_one(struct search *search, const struct attempt *attempt)
{
    for (size_t i = 0; i < search->twins.known_count; i++) {
        struct known *known = search->twins.known[i];
        if (known->first != attempt || known->slots.used > 0 || !list_empty(&known->slots.waiters))
            continue;
        search->twins.known[i] = search->twins.known[--search->twins.known_count];
        forget_known(known);
        return;
    }
}

void twins_take(struct search *search, const struct attempt *attempt)
{
    if (!search_writes(search))
        forget_one(search, attempt);
    else if (attempt->answered && *attempt->record.identity)
        settle(search, attempt);
}

static void drop_those_of(struct attempt *first, struct list *list, twins_drop_one *drop,
                          struct store_batch **batch)
{
    list_each (link, list) {
        struct attempt *other = container_of(link, struct attempt, link);
        if (first->answered && other->answered && *first->record.identity &&
            other->record.number > first->record.number && !*other->record.duplicate_of &&
            strcmp(other->record.identity, first->record.identity) == 0)
            drop(first, other, batch);
    }
}

/* Points that the proposer tuned in this round have higher numbers and are in the pool already. */
struct store_batch *twins_drop(struct search *search, twins_drop_one *drop)
{
    struct store_batch *batch = NULL;
    struct attempt *first;
    for (int64_t after = 0; (first = search_next_ended(search, after));
         after = first->record.number) {
        if (*first->record.duplicate_of)
            continue;
        drop_those_of(first, &search->ended, drop, &batch);
        drop_those_of(first, &search->kept, drop, &batch);
    }
    return batch;
}

void twins_round(struct search *search)
{
    search->twins.shown = search->numbers;
}

void twins_round_end(struct search *search)
{
    for (size_t i = 0; i < search->twins.known_count; i++)
        forget_known(search->twins.known[i]);
    search->twins.known_count = 0;
}

void twins_free(struct search *search)
{
    twins_round_end(search);
    mem_free(search->twins.known);
    mem_free(search->twins.settled);
}
