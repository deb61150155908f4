/* bench/store: commits per second of the store, each synced: what a candidate's move costs.
 * `bench_store FOLDER [COMMITS]`; the folder is made and left behind. */
#include "base/clock.h"
#include "base/mem.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int measure(struct store *store, size_t commits, size_t puts, size_t bytes, struct err *err)
{
    uint64_t *ns = mem_array(commits, sizeof *ns);
    char *value = mem_alloc(bytes);
    memset(value, 'v', bytes);
    uint64_t start = clock_now_ns();
    int result = 0;
    for (size_t i = 0; i < commits && result == 0; i++) {
        struct store_batch *batch = store_batch_new();
        for (size_t j = 0; j < puts; j++) {
            char key[64];
            snprintf(key, sizeof key, "r1-%zu-%zu-%09zu", puts, bytes, i * puts + j);
            store_batch_put(batch, STORE_EVENTS, key, value, bytes);
        }
        uint64_t before = clock_now_ns();
        result = store_commit(store, batch, err);
        ns[i] = clock_now_ns() - before;
        store_batch_free(batch);
    }
    double seconds = (double)(clock_now_ns() - start) / 1e9;
    qsort(ns, commits, sizeof *ns, compare);
    if (result == 0)
        printf("%4zu values of %6zu bytes: %8.0f commits/s, median %7.3f ms, 99 %% %7.3f ms\n",
               puts, bytes, (double)commits / seconds, (double)ns[commits / 2] / 1e6,
               (double)ns[commits * 99 / 100] / 1e6);
    mem_free(ns);
    mem_free(value);
    return result;
}

int main(int count, char **arguments)
{
    static const struct {
        size_t puts, bytes;
    } cases[] = {{1, 200}, {1, 4000}, {1, 50000}, {16, 200}, {256, 200}};
    if (count < 2) {
        fprintf(stderr, "usage: bench_store FOLDER [COMMITS]\n");
        return 2;
    }
    long commits = count > 2 ? strtol(arguments[2], NULL, 10) : 500;
    struct store *store;
    struct err err = {ERR_NONE, ""};
    if (commits < 1 || store_open(arguments[1], true, false, &store, &err) != 0) {
        fprintf(stderr, "bench_store: %s\n", err.message);
        return 3;
    }
    int result = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && result == 0; i++)
        result = measure(store, (size_t)commits, cases[i].puts, cases[i].bytes, &err);
    store_close(store);
    uint64_t start = clock_now_ns();
    if (result == 0)
        result = store_open(arguments[1], false, false, &store, &err);
    if (result == 0) {
        printf("opened again, looked over whole: %.1f ms\n",
               (double)(clock_now_ns() - start) / 1e6);
        store_close(store);
        return 0;
    }
    fprintf(stderr, "bench_store: %s\n", err.message);
    return 3;
}
