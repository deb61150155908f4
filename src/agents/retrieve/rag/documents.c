/* What should be in the index is found first, by looking at every file's bytes; then what is there
 * is compared with it, and the difference is read, planned and written in one transaction. */
#include "agents/retrieve/rag/documents.h"

#include "agents/retrieve/rag/read/walk.h"
#include "agents/retrieve/rag/survey.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note(struct rag_change *change, const char *path, const char *why)
{
    if (change->note[0] == '\0')
        snprintf(change->note, sizeof change->note, "%.140s: %s", path, why);
}

static void note_kind(struct rag_change *change, const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const char *kind = dot ? dot : "no ending";
    size_t used = strlen(change->kinds), length = strlen(kind);
    change->other++;
    for (const char *at = change->kinds; (at = strstr(at, kind)); at++)
        if (at[length] == '\0' || at[length] == ',')
            return;
    if (length < 12 && used + length + 3 < sizeof change->kinds)
        snprintf(change->kinds + used, sizeof change->kinds - used, "%s%s", used ? ", " : "", kind);
}

static void remember(struct survey *survey, const char *path, const struct read_file *file)
{
    MEM_MORE(survey->found, survey->count, survey->capacity);
    struct found *found = &survey->found[survey->count++];
    *found = (struct found){
        .path = arena_strdup(survey->plan.arena, path), .root = survey->root, .keep = file == NULL};
    if (file != NULL)
        found->file = *file;
}

static bool look(void *context, const char *path, bool named, struct err *err)
{
    struct survey *survey = context;
    struct read_file file;
    const char *why = "";
    (void)err;
    switch (read_raw(path, named, &survey->bytes, &file, &why)) {
    case READ_WELL:
        remember(survey, path, &file);
        return true;
    case READ_OTHER:
        note_kind(survey->change, path);
        return true;
    case READ_TOO_LARGE:
        survey->change->too_large++;
        break;
    case READ_NOT_TEXT:
        survey->change->not_text++;
        break;
    case READ_UNREADABLE:
        survey->change->unreadable++;
        remember(survey, path, NULL);
        break;
    }
    note(survey->change, path, why);
    return true;
}

static int walk_roots(struct survey *survey, struct err *err)
{
    struct walk walk = {.visit = look, .context = survey};
    for (size_t i = 0; i < survey->root_count; i++) {
        survey->root = &survey->roots[i];
        walk.excludes = survey->roots[i].excludes;
        if (walk_path(&walk, survey->roots[i].path, err) == 0)
            continue;
        if (err->code != ERR_NOT_FOUND)
            return -1;
        /* A disk that is not mounted today is no reason to forget what was on it. */
        survey->change->unreadable++;
        note(survey->change, survey->roots[i].path, "is not there now; what is known of it stays");
        for (size_t k = 0; k < survey->known_count; k++)
            if (survey_is_below(survey->known[k].path, survey->roots[i].path))
                remember(survey, survey->known[k].path, NULL);
    }
    survey->change->links += walk.links;
    survey->change->unreadable += walk.unreadable;
    return 0;
}

static struct document_record record_of(const struct found *found)
{
    return (struct document_record){.path = found->path,
                                    .root = found->root->path,
                                    .tags = found->root->tags,
                                    .content = found->file.content,
                                    .bytes = found->file.bytes,
                                    .kind = found->file.kind};
}

static int take_in(struct survey *survey, const struct found *found, bool replaces, struct err *err)
{
    struct document_record record;
    struct read_file file;
    const char *why;
    enum read_result result = read_raw(found->path, true, &survey->bytes, &file, &why);
    if (result == READ_WELL) {
        file.kind = found->file.kind;
        result = read_text(found->path, &file, &survey->bytes, &why);
    }
    if (result != READ_WELL) { /* what was known of it stays */
        survey->change->unreadable++;
        note(survey->change, found->path, why);
        return 0;
    }
    record = record_of(found);
    record.content = file.content;
    record.bytes = file.bytes;
    if (replaces) {
        survey->change->changed++;
        plan_remove(&survey->plan, record_key(found->path));
    } else {
        survey->change->added++;
    }
    return plan_add(&survey->plan, &record, buf_text(&survey->bytes), survey->bytes.length, err);
}

static int plan_found(struct survey *survey, struct err *err)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < survey->count; i++) {
        const struct found *found = &survey->found[i];
        const struct document_record *old = survey_known(survey, found->path);
        if (found->keep && !survey->plan.anew)
            continue;
        bool same = old && !found->keep && !survey->plan.anew &&
                    hash_compare(old->content, found->file.content) == 0;
        if (same) {
            struct document_record record = record_of(found);
            survey->change->unchanged++;
            record.first = old->first;
            record.count = old->count;
            if (strcmp(old->tags, record.tags) != 0 || strcmp(old->root, record.root) != 0)
                plan_retag(&survey->plan, &record);
            continue;
        }
        if (found->keep)
            continue;
        bytes += found->file.bytes;
        if (bytes > (uint64_t)RAG_TEXT_MIB_MOST << 20)
            return err_set(err, ERR_LIMIT,
                           "more than %d MiB of new documents in one call (the limit \"text\"): "
                           "name smaller folders, or leave some out with --exclude",
                           RAG_TEXT_MIB_MOST);
        if (take_in(survey, found, old != NULL && !survey->plan.anew, err) != 0)
            return -1;
    }
    return 0;
}

static int compare_found(const void *key, const void *item)
{
    return strcmp(key, ((const struct found *)item)->path);
}

/* What the index has below the roots and no file stands for any more. */
static void plan_vanished(struct survey *survey)
{
    for (size_t i = 0; i < survey->known_count; i++) {
        const char *path = survey->known[i].path;
        if (!survey_within_roots(survey, path) ||
            (survey->count > 0 && bsearch(path, survey->found, survey->count, sizeof *survey->found,
                                          compare_found) != NULL))
            continue;
        survey->change->removed++;
        if (!survey->plan.anew)
            plan_remove(&survey->plan, record_key(path));
    }
}

static int survey_run(struct survey *survey, struct err *err)
{
    if (walk_roots(survey, err) != 0)
        return -1;
    survey_drop_same(survey);
    if (plan_found(survey, err) != 0)
        return -1;
    plan_vanished(survey);
    return plan_write(survey->rag, &survey->plan, survey->change, err);
}

static int put_roots(struct survey *survey, const struct rag_add *add, struct err *err)
{
    struct arena *arena = survey->plan.arena;
    struct root_record *roots = arena_array(arena, add->path_count + 1, sizeof *roots);
    for (size_t i = 0; i < add->path_count; i++) {
        char *path = realpath(add->paths[i], NULL);
        if (path == NULL)
            return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_USAGE, errno,
                                 "cannot find %s", add->paths[i]);
        roots[i] = (struct root_record){
            .path = arena_strdup(arena, path),
            .tags = tags_normal(arena, add->tags),
            .excludes = arena_strdup(arena, add->excludes ? add->excludes : "")};
        free(path);
        size_t at = 0; /* in place of an older one */
        while (at < survey->root_count && strcmp(survey->roots[at].path, roots[i].path) != 0)
            at++;
        if (at == survey->root_count)
            survey->roots = mem_resize(survey->roots, ++survey->root_count * sizeof *survey->roots);
        survey->roots[at] = roots[i];
    }
    survey->plan.roots = roots;
    survey->plan.root_count = add->path_count;
    return 0;
}

static int add_locked(struct survey *survey, const struct rag_add *add, struct err *err)
{
    if (survey_read_index(survey, false, err) != 0)
        return -1;
    if (survey->plan.anew) { /* then all paths are looked at again */
        survey->known_count = 0;
        if (survey_read_index(survey, true, err) != 0)
            return -1;
    }
    if (put_roots(survey, add, err) != 0)
        return -1;
    return survey_run(survey, err);
}

int rag_add(struct rag *rag, const struct rag_add *add, struct rag_change *change, struct err *err)
{
    struct survey survey;
    int lock;
    if (database_lock(rag, &lock, err) != 0)
        return -1;
    survey_start(&survey, rag, change);
    int result = add_locked(&survey, add, err);
    survey_end(&survey);
    database_unlock(lock);
    return result;
}

int rag_update(struct rag *rag, struct rag_change *change, struct err *err)
{
    struct survey survey;
    int lock;
    if (database_lock(rag, &lock, err) != 0)
        return -1;
    survey_start(&survey, rag, change);
    int result = survey_read_index(&survey, true, err);
    if (result == 0)
        result = survey_run(&survey, err);
    survey_end(&survey);
    database_unlock(lock);
    return result;
}
