/* The guides that ship with the program, as documents tagged "builtin". They are taken in when they
 * are not there yet or have changed; who removed them is not given them again unasked. */
#include "agents/retrieve/rag/database.h"
#include "agents/retrieve/rag/documents.h"
#include "agents/retrieve/rag/survey.h"
#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char FINGERPRINT[] = "guides"; /* in TABLE_META; 0: never taken in */

/* Changes with the place, the names, sizes and times of the guides, and with how text is read. The
 * order of readdir() does not matter. Never 0. */
static uint64_t fingerprint(const char *folder)
{
    uint64_t sum = hash_checksum(folder, strlen(folder), database_version());
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        struct stat status;
        if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &status, 0) != 0)
            continue;
        int64_t facts[] = {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
        sum += hash_checksum(facts, sizeof facts,
                             hash_checksum(entry->d_name, strlen(entry->d_name), 0));
    }
    if (dir != NULL)
        closedir(dir);
    return sum ? sum : 1;
}

static char *guides_folder(struct err *err)
{
    MEM_LOCAL char *found = file_data_path("rag");
    char *folder = found ? realpath(found, NULL) : NULL;
    if (folder == NULL)
        err_set(err, ERR_NOT_FOUND,
                "the guides (rag/) were not found; set TWAGENT_DATA to where they lie");
    return folder;
}

static int remember(struct rag *rag, uint64_t mark, struct err *err)
{
    MDB_txn *txn;
    if (database_write(rag, &txn, err) != 0)
        return -1;
    if (database_set_number(rag, txn, FINGERPRINT, mark, err) != 0) {
        mdb_txn_abort(txn);
        return -1;
    }
    return database_commit(rag, txn, err);
}

static int recall(struct rag *rag, uint64_t *mark, struct err *err)
{
    MDB_txn *txn;
    if (database_read(rag, &txn, err) != 0)
        return -1;
    int result = database_number(rag, txn, FINGERPRINT, mark, err);
    mdb_txn_abort(txn);
    return result;
}

struct known_guides {
    const char *elsewhere;       /* a builtin root in another place: the program was moved */
    const char *tags, *excludes; /* of the root in this place; or NULL */
};

static int look_at_roots(struct rag *rag, const char *folder, struct arena *arena,
                         struct known_guides *known, struct err *err)
{
    struct survey survey;
    struct rag_change ignored;
    survey_start(&survey, rag, &ignored);
    int result = survey_read_index(&survey, true, err);
    for (size_t i = 0; result == 0 && i < survey.root_count; i++) {
        const struct root_record *root = &survey.roots[i];
        if (strcmp(root->path, folder) == 0) {
            known->tags = arena_strdup(arena, root->tags);
            known->excludes = arena_strdup(arena, root->excludes);
        } else if (tags_meet(root->tags, "," RAG_BUILTIN ",")) {
            known->elsewhere = arena_strdup(arena, root->path);
        }
    }
    survey_end(&survey);
    return result;
}

/* `asked`: a person did, so what was removed before comes back. */
static int take_in(struct rag *rag, char *folder, bool asked, struct rag_change *change,
                   struct err *err)
{
    ARENA_LOCAL(arena);
    struct known_guides known = {0};
    uint64_t before = 0, mark = fingerprint(folder);
    int result = recall(rag, &before, err);
    if (result == 0)
        result = look_at_roots(rag, folder, arena, &known, err);
    bool wanted = asked || before == 0 || known.elsewhere != NULL || known.tags != NULL;
    if (result == 0 && wanted && known.elsewhere != NULL)
        result = rag_remove(rag, known.elsewhere, change, err);
    if (result == 0 && wanted) {
        bool tagged = known.tags != NULL && tags_meet(known.tags, "," RAG_BUILTIN ",");
        const char *tags =
            tagged ? known.tags
                   : arena_printf(arena, RAG_BUILTIN "%s", known.tags ? known.tags : "");
        struct rag_add what = {.paths = (const char *const *)&folder,
                               .path_count = 1,
                               .tags = tags,
                               .excludes = asked ? NULL : known.excludes};
        result = rag_add(rag, &what, change, err);
    }
    if (result == 0)
        result = remember(rag, mark, err);
    return result;
}

int rag_add_guides(struct rag *rag, struct rag_change *change, struct err *err)
{
    char *folder = guides_folder(err);
    *change = (struct rag_change){0};
    int result = folder ? take_in(rag, folder, true, change, err) : -1;
    free(folder);
    return result;
}

int rag_ensure_guides(struct rag *rag, struct err *err)
{
    uint64_t mark;
    struct rag_change change;
    char *folder = guides_folder(err);
    if (folder == NULL)
        return -1;
    int result = recall(rag, &mark, err);
    if (result == 0 && mark != fingerprint(folder)) {
        result = take_in(rag, folder, false, &change, err);
        if (result != 0 && err->code == ERR_BUSY && mark != 0)
            result = 0; /* the older ones will do for now */
    }
    free(folder);
    return result;
}
