#include "cli/mcp/documents.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/find/find.h"
#include "cli/options/backends.h"
#include "eval/problem/problem.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define SCHEME "twagent://"
enum { TEXT_MOST = 256 << 10, NAMES_MOST = 200 };

static bool is_name(const char *text)
{
    if (!isalnum((unsigned char)*text) || strlen(text) > 64)
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_-", *text))
            return false;
    return true;
}

/* A file that ships, in the arena; NULL where it is not there. */
static const char *shipped(struct arena *arena, const char *folder, const char *name)
{
    BUF_LOCAL(text, TEXT_MOST);
    MEM_LOCAL char *where = file_data_path(folder);
    struct err ignored;
    if (!where)
        return NULL;
    const char *path = arena_printf(arena, "%s/%s", where, name);
    return file_read(path, &text, &ignored) == 0 ? arena_strdup(arena, buf_text(&text)) : NULL;
}

const char *documents_guide(struct arena *arena)
{
    return shipped(arena, "templates", "agent.md");
}

/* ---- resources ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The guides' names, without ".md". */
static size_t guides(struct arena *arena, const char *names[NAMES_MOST])
{
    MEM_LOCAL char *where = file_data_path("rag");
    DIR *folder = where ? opendir(where) : NULL;
    size_t count = 0;
    for (const struct dirent *entry; folder && count < NAMES_MOST && (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        if (length > 3 && strcmp(entry->d_name + length - 3, ".md") == 0)
            names[count++] = arena_strndup(arena, entry->d_name, length - 3);
    }
    if (folder)
        closedir(folder);
    qsort(names, count, sizeof *names, by_name);
    return count;
}

static void put_document(struct json *json, const char *kind, const char *name, const char *title,
                         const char *type)
{
    ARENA_LOCAL(arena);
    json_object(json);
    json_put_text(json, "uri", arena_printf(arena, SCHEME "%s/%s", kind, name));
    json_put_text(json, "name", arena_printf(arena, "%s/%s", kind, name));
    json_put_text(json, "title", title);
    json_put_text(json, "mimeType", type);
    json_object_end(json);
}

void documents_list(struct json *json)
{
    ARENA_LOCAL(arena);
    const char *names[NAMES_MOST];
    size_t count;
    const char *const *problems = find_shipped(arena, &count);
    put_document(json, "guides", "agent", "How to work with twagent", "text/markdown");
    for (size_t i = 0; backends[i]; i++) {
        const char *name = backends[i]->target->name;
        put_document(json, "formats", name,
                     arena_printf(arena, "How a candidate for %s is written", name), "text/plain");
    }
    for (size_t i = 0; problems && i < count; i++)
        put_document(json, "problems", problems[i],
                     arena_printf(arena, "The definition of %s", problems[i]), "text/plain");
    count = guides(arena, names);
    for (size_t i = 0; i < count; i++)
        put_document(json, "guides", names[i], arena_printf(arena, "Guide: %s", names[i]),
                     "text/markdown");
}

void documents_templates(struct json *json)
{
    json_object(json);
    json_put_text(json, "uriTemplate", SCHEME "reports/{run}");
    json_put_text(json, "name", "reports");
    json_put_text(json, "title", "A run's report, as r3");
    json_put_text(json, "mimeType", "text/plain");
    json_object_end(json);
}

/* The spec, and the definition beside it. */
static const char *problem_text(struct arena *arena, const char *name)
{
    const char *folder = arena_printf(arena, "problems/%s", name);
    const char *spec = shipped(arena, folder, "spec.yaml");
    const char *definition = shipped(arena, folder, "ref_impl.py");
    return spec ? arena_printf(arena, "# spec.yaml\n%s\n# ref_impl.py\n%s", spec,
                               definition ? definition : "")
                : NULL;
}

int documents_read(struct arena *arena, const char *uri, const char **text, const char **run,
                   struct err *err)
{
    const char *path = strncmp(uri, SCHEME, sizeof SCHEME - 1) == 0 ? uri + sizeof SCHEME - 1 : "";
    const char *slash = strchr(path, '/');
    const char *name = slash ? slash + 1 : "";
    *text = *run = NULL;
    if (is_name(name)) {
        const char *kind = arena_strndup(arena, path, (size_t)(slash - path));
        if (strcmp(kind, "problems") == 0)
            *text = problem_text(arena, name);
        else if (strcmp(kind, "formats") == 0)
            *text = shipped(arena, "templates", arena_printf(arena, "format-%s.txt", name));
        else if (strcmp(kind, "guides") == 0)
            *text = strcmp(name, "agent") == 0
                        ? documents_guide(arena)
                        : shipped(arena, "rag", arena_printf(arena, "%s.md", name));
        else if (strcmp(kind, "reports") == 0)
            *run = name;
    }
    return *text || *run ? 0 : err_set(err, ERR_NOT_FOUND, "there is no resource \"%.100s\"", uri);
}

/* ---- prompts ---- */

void prompts_list(struct json *json)
{
    static const char *const arguments[][3] = {
        {"problem", "a shipped problem's name, or the path of your own", "y"},
        {"wish", "anything else to keep to, as in \"fp32 sums\" or \"30 minutes\"", NULL}};
    json_object(json);
    json_put_text(json, "name", "make_faster");
    json_put_text(json, "title", "Make this faster");
    json_put_text(json, "description",
                  "The definition, the candidate's format, and the loop: evaluate, profile, tune, "
                  "prove");
    json_put_array(json, "arguments");
    for (size_t i = 0; i < 2; i++) {
        json_object(json);
        json_put_text(json, "name", arguments[i][0]);
        json_put_text(json, "description", arguments[i][1]);
        json_put_bool(json, "required", arguments[i][2] != NULL);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

int prompts_text(struct arena *arena, const char *name, const char *problem, const char *wish,
                 const char **text, struct err *err)
{
    if (strcmp(name, "make_faster") != 0)
        return err_set(err, ERR_NOT_FOUND, "there is no prompt \"%.100s\"", name);
    if (!problem || !*problem || strlen(problem) > 1000 || (wish && strlen(wish) > 10000))
        return err_set(err, ERR_USAGE, "problem: expected a name or a path");
    const char *known = is_name(problem) ? problem_text(arena, problem) : NULL;
    const char *format = shipped(arena, "templates", "format-cpu.txt");
    const char *guide = documents_guide(arena);
    *text = arena_printf(
        arena,
        "Make the operation \"%s\" faster on this machine, with the tools of twagent.%s%s\n\n%s\n\n"
        "%s%s%s# A candidate for the CPU (for CUDA: resource twagent://formats/cuda)\n%s",
        problem, wish && *wish ? " " : "", wish ? wish : "", guide ? guide : "",
        known ? "# The problem\n" : "", known ? known : "", known ? "\n\n" : "",
        format ? format : "");
    return 0;
}
