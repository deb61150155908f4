/* loop/slots: grants in the order of asking. */
#include "loop/slots.h"

#include "loop/private.h"
#include "loop/task.h"

#include <assert.h>

void slots_init(struct slots *slots, const char *name, unsigned capacity)
{
    *slots = (struct slots){.name = name, .capacity = capacity};
    list_init(&slots->waiters);
}

/* A wait that a shrunken capacity can no longer hold is granted alone, so that it ends. */
static bool fits(const struct slots *slots, unsigned amount)
{
    if (slots->capacity == 0)
        return false;
    return slots->used == 0 ||
           (slots->used <= slots->capacity && amount <= slots->capacity - slots->used);
}

static void grant(struct slots *slots, struct slot *slot)
{
    slots->used += slot->amount;
    slot->granted = true;
}

static void grant_waiters(struct slots *slots)
{
    while (!list_empty(&slots->waiters)) {
        struct slot *slot = container_of(slots->waiters.head.next, struct slot, link);
        if (!fits(slots, slot->amount))
            return; /* strictly in order: whoever is behind waits too */
        list_remove(&slot->link);
        grant(slots, slot);
        task_complete(slot->owner);
    }
}

void slots_resize(struct slots *slots, unsigned capacity)
{
    slots->capacity = capacity;
    grant_waiters(slots);
}

bool slots_acquire(struct slots *slots, struct slot *slot, struct task *owner, unsigned amount)
{
    assert(amount >= 1);
    if (slot->granted || list_linked(&slot->link))
        loop_die("%s %s: asks for %s twice with one slot", owner->type->name, owner->id,
                 slots->name);
    *slot = (struct slot){.slots = slots, .owner = owner, .amount = amount};
    if (list_empty(&slots->waiters) && fits(slots, amount)) {
        grant(slots, slot);
        return true;
    }
    task_expect(owner);
    list_append(&slots->waiters, &slot->link);
    return false;
}

void slots_release(struct slot *slot)
{
    struct slots *slots = slot->slots;
    if (slot->granted) {
        assert(slots->used >= slot->amount);
        slots->used -= slot->amount;
    } else if (list_linked(&slot->link)) {
        list_remove(&slot->link);
        task_forget(slot->owner);
    } else {
        return;
    }
    *slot = (struct slot){0};
    grant_waiters(slots);
}
