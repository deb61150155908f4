/* twagent docs add|list|search|show|remove|stats|check|update: the index of manuals and headers
 * that prompts take passages from. */
#include "cli/docs/docs.h"

#include "agents/retrieve/rag/documents.h"
#include "base/mem.h"
#include "cli/options/command.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
    const struct settings *settings;
    const char *const *words; /* after the verb */
    size_t count;
    struct rag *rag;
    struct arena *arena;
};

static int add(struct request *request, struct err *err)
{
    struct rag_add what = {.paths = request->words,
                           .path_count = request->count,
                           .tags = request->settings->tag,
                           .excludes = request->settings->exclude};
    struct rag_change change;
    if (request->settings->builtin) {
        if (rag_add_guides(request->rag, &change, err) != 0)
            return -1;
        docs_print_change(request->settings, &change);
    }
    if (request->count > 0) {
        if (rag_add(request->rag, &what, &change, err) != 0)
            return -1;
        docs_print_change(request->settings, &change);
    }
    return docs_embed(request->settings, request->rag, request->arena, err);
}

static int update(struct request *request, struct err *err)
{
    struct rag_change change;
    if (rag_update(request->rag, &change, err) != 0)
        return -1;
    docs_print_change(request->settings, &change);
    return docs_embed(request->settings, request->rag, request->arena, err);
}

static int remove_documents(struct request *request, struct err *err)
{
    struct rag_change change;
    if (rag_remove(request->rag, request->words[0], &change, err) != 0)
        return -1;
    docs_print_change(request->settings, &change);
    return 0;
}

static int list(struct request *request, struct err *err)
{
    struct rag_document *items;
    size_t count;
    if (rag_documents(request->rag, request->arena, &items, &count, err) != 0)
        return -1;
    docs_print_documents(request->settings, items, count);
    return 0;
}

static int search(struct request *request, struct err *err)
{
    struct rag_passage *items;
    size_t count;
    BUF_LOCAL(text, 1 << 16);
    for (size_t i = 0; i < request->count; i++)
        buf_addf(&text, "%s%s", i ? " " : "", request->words[i]);
    struct rag_query query = {.text = buf_text(&text),
                              .most = (size_t)request->settings->limit,
                              .tokens = (size_t)request->settings->tokens,
                              .tags = request->settings->tag};
    struct embedder embedder;
    int result = 0;
    if (request->settings->embedding_model != NULL)
        result = docs_embedder(request->settings, request->arena, &embedder, err) ||
                 rag_embed_query(request->rag, &embedder, request->arena, &query, err);
    if (result == 0)
        result = rag_search(request->rag, &query, request->arena, &items, &count, err);
    if (result == 0)
        docs_print_passages(request->settings, items, count, false);
    return result;
}

/* A passage by its id, or every passage of a document. */
static int show(struct request *request, struct err *err)
{
    const char *word = request->words[0];
    struct rag_passage one, *items = &one;
    size_t count = 1;
    char *end = NULL;
    errno = 0;
    uint64_t id = word[0] == 'p' && strlen(word) == 17 ? strtoull(word + 1, &end, 16) : 0;
    if (end != NULL && *end == '\0' && errno == 0) {
        if (rag_passage(request->rag, id, request->arena, &one, err) != 0)
            return -1;
    } else {
        char *path = realpath(word, NULL);
        int result = rag_document_passages(request->rag, path ? path : word, request->arena, &items,
                                           &count, err);
        free(path);
        if (result != 0)
            return -1;
    }
    docs_print_passages(request->settings, items, count, true);
    return 0;
}

static int stats(struct request *request, struct err *err)
{
    struct rag_stats numbers;
    const char *name, *url;
    if (rag_stats(request->rag, &numbers, err) != 0 ||
        rag_embedded_by(request->rag, request->arena, &name, &url, err) != 0)
        return -1;
    docs_print_stats(request->settings, &numbers, name);
    return 0;
}

/* That its pages are whole was seen when it was opened. */
static int check(struct request *request, struct err *err)
{
    struct rag_stats numbers;
    if (rag_check(request->rag, err) != 0)
        return err_wrap(err, "the index is damaged, `twagent docs update` makes it again");
    if (rag_stats(request->rag, &numbers, err) != 0)
        return -1;
    printf("whole: %zu documents, %zu passages\n", numbers.documents, numbers.passages);
    return 0;
}

static const struct verb {
    const char *name, *arguments;
    size_t least, most;
    bool creates;
    int (*run)(struct request *request, struct err *err);
} verbs[] = {
    {"add", "PATH... | --builtin", 1, SIZE_MAX, true, add},
    {"check", "", 0, 0, false, check},
    {"list", "", 0, 0, false, list},
    {"search", "WORDS...", 1, SIZE_MAX, false, search},
    {"show", "PASSAGE|PATH", 1, 1, false, show},
    {"remove", "PATH|tag:NAME", 1, 1, false, remove_documents},
    {"stats", "", 0, 0, false, stats},
    {"update", "", 0, 0, false, update},
};

static const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static void say_wait(long process)
{
    fprintf(stderr, "twagent: process %ld changes the index; waiting for it\n", process);
}

/* An update is what mends, so it looks at all that it builds on. */
static int open_index(const struct verb *verb, const char *folder, struct rag **rag,
                      struct err *err)
{
    bool repaired = false;
    int failed = verb->run == update ? rag_open_repaired(folder, &repaired, rag, err)
                                     : rag_open(folder, verb->creates, rag, err);
    if (repaired)
        fprintf(stderr, "twagent: the index was damaged; it is made again from its paths\n");
    if (!failed)
        rag_wait_for_others(*rag, say_wait);
    return failed;
}

int command_docs(const struct settings *settings, const char *const *arguments, size_t count)
{
    const struct verb *verb = verb_find(arguments[0]);
    struct err err = {0};
    if (verb == NULL) {
        fprintf(
            stderr,
            "twagent: docs: expected add, list, search, show, remove, stats, check or update, not "
            "\"%s\"\n",
            arguments[0]);
        return EXIT_USAGE;
    }
    size_t least = settings->builtin && verb->run == add ? 0 : verb->least;
    if (count - 1 < least || count - 1 > verb->most) {
        fprintf(stderr, "twagent: usage: twagent docs %s %s\n", verb->name, verb->arguments);
        return EXIT_USAGE;
    }
    struct request request = {
        .settings = settings, .words = arguments + 1, .count = count - 1, .arena = arena_new()};
    char *folder = settings->store ? mem_strdup(settings->store) : store_default_folder();
    int failed = open_index(verb, folder, &request.rag, &err);
    if (failed && err.code == ERR_NOT_FOUND && strcmp(verb->name, "list") == 0) {
        docs_print_documents(settings, NULL, 0);
        failed = 0;
    } else if (!failed) {
        failed = verb->run(&request, &err);
    }
    rag_close(request.rag);
    mem_free(folder);
    arena_free(request.arena);
    return failed ? command_fail(&err) : 0;
}
