/* Forgetting documents, and the paths that they came by. */
#include "agents/retrieve/rag/documents.h"

#include "agents/retrieve/rag/survey.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static bool is_meant(const struct document_record *record, const char *path, const char *tag)
{
    return tag ? tags_meet(record->tags, tag) : survey_is_below(record->path, path);
}

/* Paths that go with their documents are forgotten; in those that stay, what was removed is left
 * out from now on, or the next update would bring it back. */
static void forget_roots(struct survey *survey, const char *path, const char *tag)
{
    struct plan *plan = &survey->plan;
    struct root_record *kept = arena_array(plan->arena, survey->root_count + 1, sizeof *kept);
    plan->roots_removed = mem_array(survey->root_count + 1, sizeof *plan->roots_removed);
    for (size_t i = 0; i < survey->root_count; i++) {
        const struct root_record *root = &survey->roots[i];
        if (tag ? tags_meet(root->tags, tag) : survey_is_below(root->path, path)) {
            plan->roots_removed[plan->roots_removed_count++] = record_key(root->path);
        } else if (!tag && survey_is_below(path, root->path)) {
            kept[plan->root_count] = *root;
            kept[plan->root_count++].excludes =
                arena_printf(plan->arena, "%s,%s", root->excludes, path + strlen(root->path) + 1);
        }
    }
    plan->roots = kept;
}

int rag_remove(struct rag *rag, const char *what, struct rag_change *change, struct err *err)
{
    struct survey survey;
    int lock;
    if (database_lock(rag, &lock, err) != 0)
        return -1;
    survey_start(&survey, rag, change);
    char *path = realpath(what, NULL); /* NULL: gone from the disk, but perhaps known */
    bool by_tag = strncmp(what, "tag:", 4) == 0;
    const char *tag = by_tag ? tags_normal(survey.plan.arena, what + 4) : NULL;
    int result = survey_read_index(&survey, true, err);
    survey.plan.anew = false;
    for (size_t i = 0; result == 0 && i < survey.known_count; i++)
        if (is_meant(&survey.known[i], path ? path : what, tag)) {
            plan_remove(&survey.plan, record_key(survey.known[i].path));
            change->removed++;
        }
    if (result == 0)
        forget_roots(&survey, path ? path : what, tag);
    if (result == 0 && change->removed == 0 && survey.plan.roots_removed_count == 0)
        result = err_set(err, ERR_NOT_FOUND, "no document of the index is %s or below it", what);
    if (result == 0)
        result = plan_write(rag, &survey.plan, change, err);
    free(path);
    survey_end(&survey);
    database_unlock(lock);
    return result;
}
