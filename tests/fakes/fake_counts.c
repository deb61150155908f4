/* fake_provider: what was asked and what was answered in whole, for the tests to compare. */
#include "fake_provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096 };

struct tally {
    const struct format *format;
    char path[128];
    uint64_t hash;
    unsigned requests, answered;
    struct tally *next_in_bucket, *next; /* in the order of their first requests */
};

struct counts counts;
static struct tally *buckets[BUCKETS], *first, **last = &first;

static size_t index_of(const struct format *format)
{
    size_t index = 0;
    while (index < FORMATS && formats[index] != format)
        index++;
    return index; /* the last: embeddings */
}

struct tally *tally_of(const struct format *format, const char *path, uint64_t hash)
{
    struct tally **at = &buckets[hash % BUCKETS];
    for (; *at != NULL; at = &(*at)->next_in_bucket)
        if ((*at)->hash == hash && (*at)->format == format && strcmp((*at)->path, path) == 0)
            return *at;
    struct tally *tally = calloc(1, sizeof *tally);
    if (tally == NULL)
        abort();
    tally->format = format;
    tally->hash = hash;
    snprintf(tally->path, sizeof tally->path, "%s", path);
    *at = *last = tally;
    last = &tally->next;
    return tally;
}

unsigned tally_request(struct tally *tally)
{
    counts.by_format[index_of(tally->format)]++;
    return tally->requests++;
}

void tally_answered(struct tally *tally)
{
    counts.answered++;
    counts.answered_by_format[index_of(tally->format)]++;
    tally->answered++;
}

json_t *counts_page(unsigned connections_open, unsigned connections_accepted)
{
    const struct {
        const char *name;
        unsigned value;
    } numbers[] = {{"requests", counts.requests},     {"chat", counts.chats},
                   {"embeddings", counts.embeddings}, {"streams", counts.streams},
                   {"models", counts.models},         {"faults", counts.faults},
                   {"refused", counts.refused},       {"keys", counts.keys},
                   {"answered", counts.answered},     {"batches", counts.batches},
                   {"open", connections_open},        {"connections", connections_accepted}};
    json_t *document = json_object(), *paths = json_object();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(document, numbers[i].name, json_integer(numbers[i].value));
    for (size_t i = 0; i < FORMATS; i++)
        json_object_set_new(document, formats[i]->name,
                            json_pack("{s:i,s:i}", "chat", (int)counts.by_format[i], "answered",
                                      (int)counts.answered_by_format[i]));
    for (const struct tally *tally = first; tally != NULL; tally = tally->next) {
        const json_t *so_far = json_object_get(paths, tally->path);
        json_object_set_new(paths, tally->path,
                            json_integer(json_integer_value(so_far) + tally->requests));
    }
    json_object_set_new(document, "paths", paths);
    return document;
}

json_t *answered_page(void)
{
    json_t *list = json_array();
    for (const struct tally *tally = first; tally != NULL; tally = tally->next) {
        char hash[32];
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)tally->hash);
        json_array_append_new(list,
                              json_pack("{s:s,s:s,s:s,s:i,s:i}", "hash", hash, "format",
                                        tally->format->name, "path", tally->path, "requests",
                                        (int)tally->requests, "answered", (int)tally->answered));
    }
    return list;
}
