#include "cli/mcp/documents.h"

#include "agents/prompt/prompt.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/find/find.h"
#include "cli/mcp/children.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "eval/problem/problem.h"
#include "eval/problem/target.h"
#include "eval/problem/torch.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
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

static const char *const *words_of(struct arena *arena, const char *const *words, size_t count)
{
    const char **kept = (const char **)arena_array(arena, count + 2, sizeof *kept);
    kept[0] = file_program_path();
    for (size_t i = 0; i < count; i++)
        kept[i + 1] = words[i];
    return kept;
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

static void list_formats(struct arena *arena, const struct target *target, struct json *json)
{
    const char *last = "";
    for (size_t i = 0; target->languages[i]; i++) {
        const char *name = language_folder(target, target->languages[i]);
        if (strcmp(name, last) != 0) /* those that share a page follow each other */
            put_document(json, "formats", name,
                         arena_printf(arena, "How a candidate is written: %s", name), "text/plain");
        last = name;
    }
}

void documents_list(struct json *json)
{
    ARENA_LOCAL(arena);
    const char *names[NAMES_MOST];
    size_t count;
    const char *const *problems = find_shipped(arena, &count);
    put_document(json, "guides", "agent", "How to work with twagent", "text/markdown");
    put_document(json, "formats", "spec", "How a problem is written", "text/markdown");
    for (size_t i = 0; backends[i]; i++)
        list_formats(arena, backends[i]->target, json);
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
    static const char *const known[][3] = {
        {SCHEME "reports/{run}", "reports", "A run's report, as r3"},
        {SCHEME "formats/{language}/{+problem}", "formats",
         "How a candidate for a problem is written, with its signature; the problem by its name or "
         "its path"}};
    for (size_t i = 0; i < 2; i++) {
        json_object(json);
        json_put_text(json, "uriTemplate", known[i][0]);
        json_put_text(json, "name", known[i][1]);
        json_put_text(json, "title", known[i][2]);
        json_put_text(json, "mimeType", "text/plain");
        json_object_end(json);
    }
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

/* "%2F" -> "/"; NULL where what stands behind a "%" is no byte that a path may have. */
static const char *decoded(struct arena *arena, const char *text)
{
    char *out = arena_strdup(arena, text), *to = out;
    for (const char *at = text; *at; at++) {
        char digits[3] = {0}, *end = digits;
        if (*at == '%')
            memcpy(digits, at + 1, strnlen(at + 1, 2));
        unsigned long byte = *at == '%' ? strtoul(digits, &end, 16) : (unsigned char)*at;
        if (byte == 0 || (*at == '%' && (end != digits + 2 || !isxdigit((unsigned char)*digits))))
            return NULL;
        *to++ = (char)byte;
        at += *at == '%' ? 2 : 0;
    }
    *to = '\0';
    return out;
}

/* "cpu" or "cpu/PROBLEM", behind the kind. */
static int format_words(const struct agent_tool_place *place, struct arena *arena, const char *name,
                        const char *const **words, struct err *err)
{
    const char *slash = strchr(name, '/');
    const char *language = slash ? arena_strndup(arena, name, (size_t)(slash - name)) : name;
    const char *problem = slash ? decoded(arena, slash + 1) : NULL;
    if (!is_name(language) || (slash && (!problem || !*problem)) ||
        (slash && agent_tool_problem(place, problem, arena, &problem, err)))
        return -1;
    const char *const all[] = {"document", "format", language, problem};
    *words = words_of(arena, all, problem ? 4 : 3);
    return 0;
}

int documents_read(const struct agent_tool_place *place, struct arena *arena, const char *uri,
                   const char **text, const char *const **words, struct err *err)
{
    const char *path = strncmp(uri, SCHEME, sizeof SCHEME - 1) == 0 ? uri + sizeof SCHEME - 1 : "";
    const char *slash = strchr(path, '/');
    const char *name = slash ? slash + 1 : "";
    const char *kind = slash ? arena_strndup(arena, path, (size_t)(slash - path)) : "";
    struct err ignored = {0};
    *text = NULL;
    *words = NULL;
    if (strcmp(kind, "formats") == 0 && strcmp(name, "spec") == 0)
        *text = shipped(arena, "docs", "problem-format.md");
    else if (strcmp(kind, "formats") == 0 && strlen(name) < NAMES_MOST)
        (void)!format_words(place, arena, name, words, &ignored);
    else if (is_name(name) && strcmp(kind, "problems") == 0)
        *text = problem_text(arena, name);
    else if (is_name(name) && strcmp(kind, "guides") == 0)
        *text = strcmp(name, "agent") == 0
                    ? documents_guide(arena)
                    : shipped(arena, "rag", arena_printf(arena, "%s.md", name));
    else if (is_name(name) && strcmp(kind, "reports") == 0)
        *words =
            words_of(arena, (const char *const[]){"report", "--", arena_strdup(arena, name)}, 3);
    return *text || *words ? 0
                           : err_set(err, ERR_NOT_FOUND, "there is no resource \"%.100s\"%s%s", uri,
                                     ignored.code ? ": " : "", ignored.message);
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

int prompts_words(const struct agent_tool_place *place, struct arena *arena, const char *name,
                  const char *problem, const char *wish, const char *const **words, struct err *err)
{
    if (strcmp(name, "make_faster") != 0)
        return err_set(err, ERR_NOT_FOUND, "there is no prompt \"%.100s\"", name);
    if (!problem || !*problem || strlen(problem) > 1000 || (wish && strlen(wish) > 10000))
        return err_set(err, ERR_USAGE, "problem: expected a name or a path");
    if (agent_tool_problem(place, problem, arena, &problem, err))
        return -1;
    *words =
        words_of(arena, (const char *const[]){"document", "prompt", problem, wish ? wish : ""}, 4);
    return 0;
}

/* ---- the child ----
 *
 * Reading a problem may take a Python, which the server does not wait for. */

/* The target whose page has this name, and its first language with it. */
static const struct target *target_of_page(const char *name, const struct language **language)
{
    for (size_t i = 0; backends[i]; i++) {
        const struct target *target = backends[i]->target;
        for (size_t j = 0; target->languages[j]; j++)
            if (strcmp(language_folder(target, target->languages[j]), name) == 0) {
                *language = target->languages[j];
                return target;
            }
    }
    return NULL;
}

static int put_page(struct arena *arena, const char *page, const char *problem, struct buf *out,
                    struct err *err)
{
    const struct language *language = NULL;
    const struct target *target = target_of_page(page, &language);
    const char *path;
    struct prompts *prompts;
    struct problem *loaded = NULL;
    if (!target)
        return err_set(err, ERR_NOT_FOUND, "there is no format \"%.60s\"", page);
    if (prompts_load(arena, target->name, &prompts, err) ||
        find_problem(arena, problem ? problem : "matmul", target->name, &path, err) ||
        problem_load_with(path, getenv("TWAGENT_PYTHON"), &loaded, err))
        return -1;
    if (!problem)
        buf_addf(out,
                 "(The signature here is matmul's; " SCHEME "formats/%s/PROBLEM has another "
                 "problem's.)\n\n",
                 page);
    prompt_format(prompts, loaded, language, out);
    problem_free(loaded);
    return 0;
}

static int put_prompt(struct arena *arena, const char *problem, const char *wish, struct buf *out,
                      struct err *err)
{
    const char *known = is_name(problem) ? problem_text(arena, problem) : NULL;
    const char *guide = documents_guide(arena);
    buf_addf(out,
             "Make the operation \"%s\" faster on this machine, with the tools of twagent.%s%s\n\n"
             "%s\n\n%s%s%s# A candidate for the CPU (for CUDA: resource " SCHEME
             "formats/cuda/%s)\n",
             problem, *wish ? " " : "", wish, guide ? guide : "", known ? "# The problem\n" : "",
             known ? known : "", known ? "\n\n" : "", problem);
    return put_page(arena, "cpu", problem, out, err);
}

int document_main(int argc, char **argv)
{
    ARENA_LOCAL(arena);
    BUF_LOCAL(text, 4 * TEXT_MOST);
    struct err err = {0};
    bool format = argc >= 2 && strcmp(argv[0], "format") == 0;
    int failed = format      ? put_page(arena, argv[1], argc > 2 ? argv[2] : NULL, &text, &err)
                 : argc == 3 ? put_prompt(arena, argv[1], argv[2], &text, &err)
                             : err_set(&err, ERR_USAGE, "document: which?");
    if (failed)
        return command_fail(&err);
    fputs(buf_text(&text), stdout);
    return 0;
}
