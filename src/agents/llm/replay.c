#include "agents/llm/replay.h"

#include "agents/llm/completion_record.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

struct item {
    struct completion_use use; /* asker without its run */
    const char *key;
};

struct replay_index {
    struct arena *arena;
    struct item *items;
    size_t count, capacity;
};

/* Look-ups come from several threads of the pool at once; the first of them reads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct replay *replay_new(const char *run)
{
    struct replay *replay = MEM_NEW(struct replay);
    replay->run = mem_strdup(run);
    return replay;
}

static void index_free(struct replay_index *index)
{
    if (index == NULL)
        return;
    arena_free(index->arena);
    mem_free(index->items);
    mem_free(index);
}

void replay_free(struct replay *replay)
{
    if (replay == NULL)
        return;
    index_free(replay->index);
    mem_free(replay->run);
    mem_free(replay);
}

const char *replay_name(const char *asker, const char *run)
{
    size_t length = strlen(run);
    bool of_run = strncmp(asker, run, length) == 0 && asker[length] == '-';
    return of_run ? asker + length + 1 : asker;
}

struct reading {
    struct replay_index *index;
    const char *run, *key;
};

static void add_use(void *context, const struct completion_use *use)
{
    struct reading *reading = context;
    struct replay_index *index = reading->index;
    if (strcmp(use->run, reading->run) != 0)
        return;
    if (index->count == index->capacity) {
        index->capacity = index->capacity == 0 ? 256 : 2 * index->capacity;
        index->items = mem_resize(index->items, index->capacity * sizeof *index->items);
    }
    index->items[index->count++] = (struct item){
        .use = {.run = "",
                .asker = arena_strdup(index->arena, replay_name(use->asker, use->run)),
                .purpose = arena_strdup(index->arena, use->purpose),
                .step = use->step},
        .key = arena_strdup(index->arena, reading->key)};
}

static bool read_record(void *context, const char *key, const char *text, size_t length)
{
    struct reading *reading = context;
    ARENA_LOCAL(arena);
    struct value *root;
    reading->key = key;
    if (value_parse_json(arena, key, text, length, &root, NULL) == 0)
        completion_uses(root, add_use, reading);
    return true;
}

static int read_index(struct replay *replay, struct store *store, struct err *err)
{
    struct replay_index *index = MEM_NEW(struct replay_index);
    struct reading reading = {.index = index, .run = replay->run};
    index->arena = arena_new();
    if (store_scan(store, STORE_COMPLETIONS, "", read_record, &reading, err) != 0) {
        index_free(index);
        return -1;
    }
    replay->index = index;
    return 0;
}

static const char *find_key(const struct replay_index *index, const char *name, const char *purpose,
                            int64_t step)
{
    for (size_t i = 0; i < index->count; i++) {
        const struct completion_use *use = &index->items[i].use;
        if (use->step == step && strcmp(use->asker, name) == 0 &&
            strcmp(use->purpose, purpose) == 0)
            return index->items[i].key;
    }
    return NULL;
}

int replay_find(struct replay *replay, struct store *store, const char *name, const char *purpose,
                int64_t step, struct buf *value, struct err *err)
{
    pthread_mutex_lock(&lock);
    int status = replay->index == NULL ? read_index(replay, store, err) : 0;
    pthread_mutex_unlock(&lock);
    if (status != 0)
        return -1;
    const char *key = find_key(replay->index, name, purpose, step);
    if (key == NULL)
        return err_set(err, ERR_NOT_FOUND, "the recorded run %s has no answer for %s, %s %lld",
                       replay->run, name, purpose, (long long)step);
    return store_get(store, STORE_COMPLETIONS, key, value, err);
}
