/* eval/worker/memory: an identical request within a session is answered from memory. A number that
 * is fresh on purpose (final), cut short, or no fault of the candidate's is not kept. */
#include "base/mem.h"
#include "eval/worker/private.h"

struct remembered {
    struct link link;
    struct hash identity;
    enum effort effort;
    char *record; /* the evaluation as JSON */
};

const char *memory_find(const struct worker *worker, struct hash identity, enum effort effort)
{
    if (effort == EFFORT_FINAL)
        return NULL;
    list_each (link, &worker->memory) {
        const struct remembered *item = container_of(link, struct remembered, link);
        if (hash_compare(item->identity, identity) == 0 && item->effort >= effort)
            return item->record;
    }
    return NULL;
}

void memory_keep(struct worker *worker, struct hash identity, enum effort effort,
                 const struct evaluation *evaluation)
{
    if (effort == EFFORT_FINAL || evaluation->ours || evaluation->dropped)
        return;
    JSON_LOCAL(json, text, ANSWER_MOST);
    evaluation_to_json(evaluation, &json);
    struct remembered *item = MEM_NEW(struct remembered);
    item->identity = identity;
    item->effort = effort;
    item->record = buf_take(&text);
    list_append(&worker->memory, &item->link);
}

void memory_forget(struct worker *worker)
{
    for (struct link *link = list_pop(&worker->memory); link != NULL;
         link = list_pop(&worker->memory)) {
        struct remembered *item = container_of(link, struct remembered, link);
        mem_free(item->record);
        mem_free(item);
    }
}
