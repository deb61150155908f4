/* store_dump FOLDER: everything in a store as one JSON object, {"runs": {"r1": {...}, ...}, ...}:
 * for tests that compare what two runs have left. Opens it read-only, beside its owner if need be.
 */
#include "base/json.h"
#include "store/store.h"

#include <stdio.h>

static const char *const tables[STORE_TABLES] = {
    [STORE_RUNS] = "runs",
    [STORE_IDEAS] = "ideas",
    [STORE_CANDIDATES] = "candidates",
    [STORE_EVALUATIONS] = "evaluations",
    [STORE_COMPLETIONS] = "completions",
    [STORE_SOURCES] = "sources",
    [STORE_EVENTS] = "events",
    [STORE_FACTS] = "facts",
    [STORE_LESSONS] = "lessons",
    [STORE_SPENDING] = "spending",
    [STORE_PASSAGES] = "passages",
};

static bool put_one(void *context, const char *key, const char *value, size_t length)
{
    struct json *json = context;
    json_key(json, key);
    if (length > 0 && (value[0] == '{' || value[0] == '['))
        json_raw(json, value);
    else
        json_text_n(json, value, length); /* a source's text */
    return true;
}

static int dump(struct store *store, struct json *json, struct err *err)
{
    json_object(json);
    for (int table = 0; table < STORE_TABLES; table++) {
        json_key(json, tables[table]);
        json_object(json);
        if (store_scan(store, (enum store_table)table, "", put_one, json, err) != 0)
            return err_wrap(err, "%s", tables[table]);
        json_object_end(json);
    }
    json_object_end(json);
    return 0;
}

int main(int argc, char **argv)
{
    struct store *store = NULL;
    struct err err = {0};
    struct buf text;
    struct json json;
    if (argc != 2) {
        fprintf(stderr, "usage: store_dump FOLDER\n");
        return 2;
    }
    buf_init(&text, (size_t)1 << 30);
    json_init(&json, &text);
    int failed = store_open(argv[1], false, true, &store, &err);
    if (failed == 0)
        failed = dump(store, &json, &err);
    if (failed != 0)
        fprintf(stderr, "store_dump: %s\n", err.message);
    else
        puts(buf_text(&text));
    buf_free(&text);
    store_close(store);
    return failed != 0;
}
