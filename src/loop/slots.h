/* loop/slots: a limit is an object with a FIFO of waiters (requests per key, compile jobs, lanes).
 * Loop thread only. A grant is a resource: release it on every path, cancellation included. */
#pragma once

#include "base/list.h"

#include <stdbool.h>

struct task;

struct slots {
    const char *name;
    unsigned capacity, used;
    struct list waiters; /* strictly first come, first served: a large wait is not overtaken */
};

/* One wait or grant; zero-initialize. Memory stays put until released. */
struct slot {
    struct slots *slots;
    struct task *owner;
    unsigned amount;
    bool granted; /* read by the owner after it was woken */
    struct link link;
};

void slots_init(struct slots *slots, const char *name, unsigned capacity);
/* Grows at once, shrinks as released; 0 pauses. A wait for more than what is left of the capacity
 * is granted alone, so that it ends. */
void slots_resize(struct slots *slots, unsigned capacity);

/* Asks for `amount` of the capacity (1 <= amount <= capacity). True: granted here and now, no wake
 * comes. False: the owner is woken when it is granted. */
bool slots_acquire(struct slots *slots, struct slot *slot, struct task *owner, unsigned amount);

/* Gives a grant back, or takes a wait out of the queue; harmless on a slot that is neither. */
void slots_release(struct slot *slot);
