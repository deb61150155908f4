/* What the n-th commit of a writing child holds, so that whoever looks later can say what must be
 * there: "r1" in runs is n; the event n is there; every 7th commit has a large source, every 5th
 * removes an event of 40 commits ago. */
#pragma once

#include "store/store.h"

#include <stdio.h>
#include <string.h>

enum { LEDGER_VALUE = 20000 };

static inline void ledger_event_key(long n, char key[64])
{
    snprintf(key, 64, "r1-%09ld", n);
}

static inline size_t ledger_event(long n, char value[LEDGER_VALUE])
{
    int head = snprintf(value, LEDGER_VALUE, "{\"event\": %ld, \"text\": \"", n);
    size_t length = (size_t)head + (size_t)(n * 37 % 400);
    memset(value + head, 'a' + (int)(n % 26), length - (size_t)head);
    return length;
}

static inline size_t ledger_source(long n, char value[LEDGER_VALUE])
{
    size_t length = 3000 + (size_t)(n * 101 % (LEDGER_VALUE - 3000));
    memset(value, 'A' + (int)(n % 26), length);
    return length;
}

static inline bool ledger_removes(long n)
{
    return n > 40 && n % 5 == 0;
}

static inline struct store_batch *ledger_batch(long n)
{
    static char value[LEDGER_VALUE];
    char key[64];
    struct store_batch *batch = store_batch_new();
    ledger_event_key(n, key);
    store_batch_put(batch, STORE_EVENTS, key, value, ledger_event(n, value));
    if (n % 7 == 0) {
        snprintf(key, sizeof key, "source-%ld", n);
        store_batch_put(batch, STORE_SOURCES, key, value, ledger_source(n, value));
    }
    if (ledger_removes(n)) {
        ledger_event_key(n - 40, key);
        store_batch_remove(batch, STORE_EVENTS, key);
    }
    int length = snprintf(key, sizeof key, "%ld", n);
    store_batch_put(batch, STORE_RUNS, "r1", key, (size_t)length);
    return batch;
}
