/* eval/measure/fitness_known: may this problem be searched? Tried when it is opened, on sets that
 * are drawn and computed anyway, and kept where it is fit: an empty file named by a hash of
 * everything that decides, in $XDG_CACHE_HOME/twagent/fit or ~/.cache/twagent/fit. What is not fit
 * is tried again each time: the draw may have been the reason. */
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/measure/fitness_null.h"
#include "eval/problem/torch.h"
#include "eval/reference/private.h"
#include "eval/sets/helpers.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MOST = 4096, DEPTH_MOST = 8, SOURCE_MOST = 16 << 20, WHY_MOST = 400 };

/* --- what decides --- */

struct key {
    struct hash hash;
    size_t files;
    bool whole; /* false: something could not be looked at, so that nothing is kept */
};

static void add_text(struct key *key, const char *text)
{
    key->hash = hash_combine(key->hash, hash_bytes(text, text != NULL ? strlen(text) : 0));
}

static void add_number(struct key *key, int64_t number)
{
    key->hash = hash_combine(key->hash, hash_bytes(&number, sizeof number));
}

static void add_file(struct key *key, const char *path)
{
    BUF_LOCAL(text, SOURCE_MOST);
    if (file_read(path, &text, NULL) == 0)
        key->hash = hash_combine(key->hash, hash_bytes(buf_text(&text), text.length));
    else
        key->whole = false;
}

/* A change shows in these, whatever clock a person has set: ctime is the kernel's. */
static bool add_status(struct key *key, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        key->whole = false;
        return false;
    }
    add_number(key, (int64_t)status.st_ino);
    add_number(key, S_ISDIR(status.st_mode) ? 0 : (int64_t)status.st_size);
    if (!S_ISDIR(status.st_mode)) { /* a folder's entries are looked at themselves */
        add_number(key, status.st_mtim.tv_sec);
        add_number(key, status.st_mtim.tv_nsec);
        add_number(key, status.st_ctim.tv_sec);
        add_number(key, status.st_ctim.tv_nsec);
    }
    return S_ISDIR(status.st_mode);
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name), tail = strlen(suffix);
    return length >= tail && strcmp(name + length - tail, suffix) == 0;
}

/* Candidates, which a person changes beside the problem, and what Python leaves there, are no part
 * of a definition in Python. */
static bool is_beside(const struct problem *problem, const char *name)
{
    static const char *const folders[] = {"starts", "baselines", "__pycache__"};
    static const char *const suffixes[] = {".h", ".md", ".html"};
    bool beside = name[0] == '.' || ends_with(name, ".starts");
    bool python = problem->reference_kind != REFERENCE_C;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        beside = beside || strcmp(name, folders[i]) == 0;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        beside = beside || (python && ends_with(name, suffixes[i]));
    return beside || (python && language_of_file(name) != NULL && !ends_with(name, ".py"));
}

static int compare_entries(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

/* What a reference could read besides its own file: modules, tables, weights, headers. */
static void add_folder(struct key *key, const struct problem *problem, const char *folder,
                       int depth)
{
    struct dirent **entries = NULL;
    int count = depth < DEPTH_MOST ? scandir(folder, &entries, NULL, compare_entries) : -1;
    key->whole = key->whole && count >= 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        key->whole = key->whole && key->files < FILES_MOST;
        if (key->whole && !is_beside(problem, name)) {
            char *path = file_join(folder, name);
            key->files++;
            add_text(key, name);
            if (add_status(key, path))
                add_folder(key, problem, path, depth + 1);
            mem_free(path);
        }
        free(entries[i]);
    }
    free(entries);
}

/* False: it cannot be told whether it is the same problem next time. */
static bool make_key(const struct session *session, char text[33])
{
    const struct problem *problem = session->problem;
    const struct names *dims = &session->shapes[0].dims;
    struct key key = {.whole = true};
    MEM_LOCAL char *self = file_self_path();
    size_t length = strlen(problem->file);
    const char *size = file_exists(problem->file) ? NULL : problem_size_of(problem->file);
    MEM_LOCAL char *spec = mem_strdup(problem->file);
    spec[size != NULL ? (size_t)(size - problem->file) : length] = '\0';
    add_status(&key, self); /* our own rules */
    add_text(&key, session->backend->target->name);
    add_text(&key, session->versions);
    add_text(&key, session->python);
    add_file(&key, spec);
    if (problem->torch != NULL) {
        add_text(&key, problem->torch->python.path);
        add_text(&key, problem->torch->binding);
    } else {
        add_file(&key, problem->reference_file);
        add_text(&key, problem->reference_function);
    }
    for (size_t i = 0; i < dims->count; i++) {
        add_text(&key, dims->name[i]);
        add_number(&key, dims->number[i]);
    }
    add_folder(&key, problem, problem->folder, 0);
    hash_format(key.hash, text);
    return key.whole;
}

/* --- what is kept --- */

static void keep(const char *path)
{
    struct err ignored;
    MEM_LOCAL char *folder = mem_strdup(path);
    *strrchr(folder, '/') = '\0';
    if (file_make_dirs(folder, &ignored) == 0)
        (void)(file_write(path, "", 0, &ignored) == 0);
}

/* --- trying --- */

static int expect_all(struct session *session, struct buf *why, struct err *err)
{
    for (size_t i = 0; i < FITNESS_SETS; i++) {
        struct set *set = &session->pool[i];
        if (set_expect(session, set, err) != 0)
            return -1;
        /* What a tolerance of the spec's own does not allow the definition itself is left out. */
        if (set->unfit && why->length == 0 && !session->problem->tolerance_fixed)
            buf_addf(why,
                     "its results on %s inputs are NaN, or beyond the range of the output's type",
                     distribution_name(set->distribution));
        if (i == 0) /* now it is known how long a set takes */
            session_expect_pool(session);
    }
    return 0;
}

static void try_nulls(struct session *session, struct buf *why)
{
    static const char words[] = "what computes nothing would pass (";
    const struct problem *problem = session->problem;
    struct null_result result;
    for (size_t i = 0; i < null_count(); i++)
        for (size_t output = 0; output < problem->output_count; output++) {
            null_try(session, i, output, &result);
            if (!null_refused(&result))
                buf_addf(why, "%s%s: %s: refused on %zu of %zu sets",
                         why->length > 0 ? "; " : words, result.name, problem->outputs[output].name,
                         result.refused, result.tried);
        }
    if (why->length > 0)
        buf_add_text(why, ")");
}

static void try_lower(struct session *session, struct buf *why)
{
    struct null_result result;
    const char *not_tried;
    if (null_lower(session, &result, &not_tried) && result.refused == 0)
        buf_addf(why,
                 "%sits tolerance is too wide to see a lower precision than its own: results from "
                 "inputs rounded to %d bits pass on all of %zu sets",
                 why->length > 0 ? "; " : "", reference_bits(session->problem, PRECISION_LOWER),
                 result.tried);
}

int session_fit(struct session *session, const char **why, struct err *err)
{
    char key[33];
    uint64_t begun = timeline_begin();
    MEM_LOCAL char *path = make_key(session, key) ? file_cache_path("fit", key) : NULL;
    bool known = path != NULL && file_exists(path);
    int status = 0;
    BUF_LOCAL(text, WHY_MOST);
    if (!known)
        status = expect_all(session, &text, err);
    if (!known && status == 0 && text.length == 0) {
        try_nulls(session, &text);
        try_lower(session, &text);
    }
    if (!known && status == 0 && text.length == 0 && path != NULL)
        keep(path);
    session->stays_fit = status == 0 && text.length == 0;
    *why = text.length > 0 ? arena_strdup(session->arena, buf_text(&text)) : NULL;
    timeline_end("open.fit", begun);
    return status;
}

/* A definition that knows how often it was asked, or what day it is, is another one now. */
int session_still_fit(struct session *session, struct err *err)
{
    int status = 0;
    if (!session->stays_fit)
        return 0;
    BUF_LOCAL(why, WHY_MOST);
    try_nulls(session, &why);
    if (why.length > 0)
        status = err_set(err, ERR_USAGE,
                         "%s is not fit any more: on the sets that this candidate met, %s",
                         session->problem->name, buf_text(&why));
    return status;
}
