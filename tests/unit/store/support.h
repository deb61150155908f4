/* What the tests of the store share: a folder of their own, and one-line puts and gets. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "store/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline char *new_folder(void)
{
    char path[] = "/tmp/twagent-store-XXXXXX";
    assert_non_null(mkdtemp(path));
    return mem_strdup(path);
}

/* In memory where that can be had: for tests of what is written, not of that it is synced. */
static inline char *new_quick_folder(void)
{
    char path[] = "/dev/shm/twagent-store-XXXXXX";
    return mkdtemp(path) != NULL ? mem_strdup(path) : new_folder();
}

static inline void remove_folder(char *folder)
{
    struct err err;
    assert_int_equal(file_remove_tree(folder, &err), 0);
    mem_free(folder);
}

static inline void must(int result, const struct err *err)
{
    if (result != 0)
        fail_msg("%s: %s", err_code_name(err->code), err->message);
}

static inline struct store *open_store(const char *folder)
{
    struct store *store = NULL;
    struct err err = {ERR_NONE, ""};
    must(store_open(folder, true, false, &store, &err), &err);
    return store;
}

static inline struct store *open_reader(const char *folder)
{
    struct store *store = NULL;
    struct err err = {ERR_NONE, ""};
    must(store_open(folder, false, true, &store, &err), &err);
    return store;
}

static inline int try_put(struct store *store, enum store_table table, const char *key,
                          const char *value, struct err *err)
{
    struct store_batch *batch = store_batch_new();
    store_batch_put(batch, table, key, value, strlen(value));
    int result = store_commit(store, batch, err);
    store_batch_free(batch);
    return result;
}

static inline void put(struct store *store, enum store_table table, const char *key,
                       const char *value)
{
    struct err err = {ERR_NONE, ""};
    must(try_put(store, table, key, value, &err), &err);
}

static inline void expect(struct store *store, enum store_table table, const char *key,
                          const char *value)
{
    struct err err = {ERR_NONE, ""};
    struct buf buf;
    buf_init(&buf, (size_t)128 << 20);
    must(store_get(store, table, key, &buf, &err), &err);
    assert_string_equal(buf_text(&buf), value);
    buf_free(&buf);
}

static inline enum err_code get_code(struct store *store, enum store_table table, const char *key)
{
    struct err err = {ERR_NONE, ""};
    struct buf buf;
    buf_init(&buf, (size_t)128 << 20);
    int result = store_get(store, table, key, &buf, &err);
    buf_free(&buf);
    return result == 0 ? ERR_NONE : err.code;
}
