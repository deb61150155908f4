/* Precompiled headers, one a set of includes, architecture and flags. One is made when its set is
 * asked for the second time: making it takes longer than a compile, and 200 MB of a temporary
 * folder where cub is in it. */
#include "eval/cuda/compile/serve.h"

#include "base/hash.h"
#include "base/mem.h"
#include "eval/cuda/compile/source.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHELF_PLACES = 4, SETS_MAX = 32, PREFIX_MAX = 4096 };

struct pch_set {
    struct hash key;
    enum { PCH_SEEN, PCH_MAKING, PCH_READY, PCH_FAILED } state;
    char path[128];
};

struct pch_shelf {
    const char *folder;
    size_t count, places;
    struct pch_set sets[SETS_MAX];
};

struct pch_shelf *pch_shelf_new(const char *folder)
{
    struct pch_shelf *shelf = MEM_NEW(struct pch_shelf);
    shelf->folder = folder;
    return shelf;
}

char *pch_prefix(int unit)
{
    char text[PREFIX_MAX + 1];
    ssize_t got = pread(unit, text, PREFIX_MAX, 0);
    if (got <= 0)
        return NULL;
    text[got] = '\0';
    char *stop = strstr(text, CUDA_SOURCE_STOP); /* the first one is ours */
    if (stop == NULL)
        return NULL;
    *stop = '\0';
    const char *first = strchr(text, '\n'); /* the types alone gain nothing */
    return first != NULL && first[1] != '\0' ? mem_strdup(text) : NULL;
}

static struct hash key_of(const struct cuda_job *job, const char *prefix)
{
    struct hash key = hash_bytes(prefix, strlen(prefix));
    key = hash_combine(key, hash_bytes(job->arch, strlen(job->arch)));
    for (size_t i = 0; i < job->flag_count; i++)
        key = hash_combine(key, hash_bytes(job->flags[i], strlen(job->flags[i])));
    return key;
}

const char *pch_find(struct pch_shelf *shelf, const struct cuda_job *job, bool *create)
{
    struct pch_set *set = NULL;
    char *prefix = pch_prefix(job->unit);
    *create = false;
    if (prefix == NULL)
        return NULL;
    struct hash key = key_of(job, prefix);
    mem_free(prefix);
    for (size_t i = 0; i < shelf->count && set == NULL; i++)
        if (hash_compare(shelf->sets[i].key, key) == 0)
            set = &shelf->sets[i];
    if (set == NULL) {
        if (shelf->count < SETS_MAX)
            shelf->sets[shelf->count++] = (struct pch_set){.key = key, .state = PCH_SEEN};
        return NULL;
    }
    if (set->state == PCH_SEEN && shelf->places < SHELF_PLACES) {
        set->state = PCH_MAKING;
        snprintf(set->path, sizeof set->path, "%.100s/%zu.pch", shelf->folder, shelf->places++);
        *create = true;
        return set->path;
    }
    return set->state == PCH_READY ? set->path : NULL;
}

void pch_made(struct pch_shelf *shelf, const char *path, bool fine)
{
    for (size_t i = 0; i < shelf->count; i++) {
        if (shelf->sets[i].path != path)
            continue;
        shelf->sets[i].state = fine ? PCH_READY : PCH_FAILED;
        if (!fine)
            (void)unlink(path);
    }
}
