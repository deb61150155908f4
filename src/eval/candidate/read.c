/* The keys of front matter: tune first, since launch and workspace may use its parameters. */
#include "eval/candidate/read.h"

#include <string.h>

/* A tune space is searched, never listed; but its index must stay an index. */
static const uint64_t points_most = UINT64_C(1) << 53;

static bool is_parameter(const struct candidate *candidate, const char *name)
{
    for (size_t i = 0; i < candidate->tune_count; i++)
        if (strcmp(candidate->tune[i].name, name) == 0)
            return true;
    return false;
}

bool candidate_is_workspace(const struct candidate *candidate, const char *name)
{
    for (size_t i = 0; i < candidate->workspace_count; i++)
        if (strcmp(candidate->workspaces[i].name, name) == 0)
            return true;
    return false;
}

/* Whether a lane knows a fact is the lane's to say; that none ever does can be said with its line.
 */
static const char *facts_of(const struct candidate *candidate)
{
    return candidate->language != NULL ? candidate->language->facts : "";
}

/* In a list with a blank between. */
static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at++)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

void candidate_facts(struct candidate_reading *reading, bool facts)
{
    reading->facts = facts;
    reading->document.known_as =
        facts ? arena_printf(reading->document.arena, "a dim, a tune parameter or a fact (%s)",
                             facts_of(reading->candidate))
              : "a dim or a tune parameter";
}

static bool is_known(void *context, const char *name)
{
    const struct candidate_reading *reading = (const struct candidate_reading *)context;
    if (problem_has_dim(reading->problem, name) || is_parameter(reading->candidate, name))
        return true;
    return reading->facts && is_listed(facts_of(reading->candidate), name);
}

int candidate_check_free(const struct candidate_reading *reading, int line, const char *what,
                         const char *name)
{
    if (document_check_name(&reading->document, line, what, name) != 0)
        return -1;
    if (problem_has_dim(reading->problem, name) || problem_has_tensor(reading->problem, name) ||
        is_parameter(reading->candidate, name) ||
        candidate_is_workspace(reading->candidate, name) ||
        candidate_find_map(reading->candidate, name) >= 0)
        return document_refuse(&reading->document, line,
                               "expected a name that is not taken, not \"%s\"", name);
    return 0;
}

static int read_values(struct candidate_reading *reading, const struct value *value,
                       struct tune_parameter *parameter)
{
    const struct document *document = &reading->document;
    size_t count = value->kind == VALUE_LIST ? value->count : 1;
    bool fine = count >= 1 && count <= TUNE_VALUES_MAX;
    for (size_t i = 0; fine && i < count; i++) {
        const struct value *item = value->kind == VALUE_LIST ? value->items[i] : value;
        fine = item->kind == VALUE_INT;
        parameter->values[i] = item->integer;
    }
    if (!fine)
        return document_refuse(document, value->line, "expected %s: [NUMBER, ...], 1 to %d of them",
                               parameter->name, TUNE_VALUES_MAX);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (parameter->values[i] == parameter->values[j])
                return document_refuse(document, value->line,
                                       "expected each value of %s once, not "
                                       "%lld again",
                                       parameter->name, (long long)parameter->values[i]);
    parameter->count = count;
    return 0;
}

static int read_tune(struct candidate_reading *reading, const struct value *map)
{
    const struct document *document = &reading->document;
    struct candidate *candidate = reading->candidate;
    uint64_t points = 1;
    if (map->kind != VALUE_MAP)
        return document_refuse(document, map->line, "expected tune: {NAME: [NUMBER, ...], ...}");
    for (size_t i = 0; i < map->count; i++) {
        struct tune_parameter *parameter = &candidate->tune[candidate->tune_count];
        if (strcmp(map->keys[i], "where") == 0)
            continue;
        if (candidate->tune_count == TUNE_MAX)
            return document_refuse(document, map->key_lines[i],
                                   "expected at most %d tune parameters", TUNE_MAX);
        if (candidate_check_free(reading, map->key_lines[i], "a tune parameter's name",
                                 map->keys[i]) != 0)
            return -1;
        parameter->name = map->keys[i];
        if (read_values(reading, map->items[i], parameter) != 0)
            return -1;
        if (points > points_most / parameter->count)
            return document_refuse(document, map->key_lines[i],
                                   "expected a tune space of at most 2^53 points");
        points *= parameter->count;
        candidate->tune_count++;
    }
    const struct value *where = value_get(map, "where");
    candidate_facts(reading, true);
    int result = where != NULL ? document_expr(document, where, &candidate->where, NULL) : 0;
    candidate_facts(reading, false);
    return result;
}

static int read_workspaces(struct candidate_reading *reading, const struct value *map)
{
    const struct document *document = &reading->document;
    struct candidate *candidate = reading->candidate;
    if (map->kind != VALUE_MAP || map->count > WORKSPACES_MAX)
        return document_refuse(document, map->line,
                               "expected workspace: {NAME: {shape: [...], dtype: ...}}, at most %d",
                               WORKSPACES_MAX);
    for (size_t i = 0; i < map->count; i++) {
        const char *name = map->keys[i];
        if (candidate_check_free(reading, map->key_lines[i], "a workspace's name", name) != 0 ||
            document_tensor(document, name, map->key_lines[i], map->items[i], false,
                            &candidate->workspaces[i]) != 0)
            return -1;
        candidate->workspace_count++;
    }
    return 0;
}

static int read_language(struct candidate_reading *reading, const struct value *value)
{
    const struct language *language = value->kind == VALUE_TEXT ? language_find(value->text) : NULL;
    if (language != NULL) {
        reading->candidate->language = language;
        return 0;
    }
    BUF_LOCAL(known, 400);
    languages_list(false, &known);
    return document_refuse(&reading->document, value->line, "expected language: %s",
                           buf_text(&known));
}

/* ---- which compiler, and flags from the language's list ---- */

static int add_flag(struct candidate_reading *reading, int line, const char *flag)
{
    const struct document *document = &reading->document;
    struct candidate *candidate = reading->candidate;
    if (candidate->flag_count == FLAGS_MAX)
        return document_refuse(document, line, "expected at most %d flags", FLAGS_MAX);
    if (strncmp(flag, "-march", 6) == 0 || strcmp(flag, "-fopenmp") == 0)
        return document_refuse(document, line,
                               "expected no \"%.40s\": the lane itself builds with -march=native "
                               "and -fopenmp",
                               flag);
    if (candidate->language != NULL &&
        (candidate->language->allows == NULL || !candidate->language->allows(flag)))
        return document_refuse(document, line,
                               "expected a flag of the list in docs/candidate-format.md, not "
                               "\"%.80s\"",
                               flag);
    candidate->flags[candidate->flag_count++] = flag;
    return 0;
}

static int read_flags(struct candidate_reading *reading, const struct value *value)
{
    if (value->kind == VALUE_LIST) {
        for (size_t i = 0; i < value->count; i++) {
            const struct value *item = value->items[i];
            if (item->kind != VALUE_TEXT)
                return document_refuse(&reading->document, item->line, "expected a flag");
            if (add_flag(reading, item->line, item->text) != 0)
                return -1;
        }
        return 0;
    }
    if (value->kind != VALUE_TEXT)
        return document_refuse(&reading->document, value->line, "expected flags: [FLAG, ...]");
    for (const char *at = value->text; *(at += strspn(at, " \t\r\n")) != '\0';) {
        size_t length = strcspn(at, " \t\r\n");
        if (add_flag(reading, value->line, arena_strndup(reading->document.arena, at, length)) != 0)
            return -1;
        at += length;
    }
    return 0;
}

static int read_compile(struct candidate_reading *reading, const struct value *map)
{
    static const char *const keys[] = {"compiler", "flags", NULL};
    const struct document *document = &reading->document;
    if (value_check_keys(map, document->name, keys, document->err) != 0)
        return -1;
    const struct value *compiler = value_get(map, "compiler");
    if (compiler != NULL) {
        if (compiler->kind != VALUE_TEXT ||
            (strcmp(compiler->text, "gcc") != 0 && strcmp(compiler->text, "clang") != 0))
            return document_refuse(document, compiler->line, "expected compiler: gcc or clang");
        reading->candidate->compiler = compiler->text;
    }
    const struct value *flags = value_get(map, "flags");
    return flags != NULL ? read_flags(reading, flags) : 0;
}

static int read_requires(struct candidate_reading *reading, const struct value *list)
{
    const struct document *document = &reading->document;
    struct candidate *candidate = reading->candidate;
    const char *all = candidate->language != NULL ? candidate->language->requires : NULL;
    if (all == NULL)
        return document_refuse(document, list->line, "requires is for kernels in WGSL");
    if (list->kind != VALUE_LIST || list->count > REQUIRES_MAX)
        return document_refuse(document, list->line, "expected requires: [FEATURE, ...]");
    for (size_t i = 0; i < list->count; i++) {
        const struct value *item = list->items[i];
        if (item->kind != VALUE_TEXT || item->text[0] == '\0' || !is_listed(all, item->text))
            return document_refuse(document, item->line, "expected a feature of: %s", all);
        candidate->requires[i] = item->text;
    }
    return 0;
}

int candidate_read(struct candidate_reading *reading, const struct value *root)
{
    static const char *const keys[] = {"launch", "workspace", "tune",     "compile", "language",
                                       "tma",    "memset",    "requires", NULL};
    static const struct {
        const char *key;
        int (*read)(struct candidate_reading *reading, const struct value *value);
    } parts[] = {{"language", read_language},        {"tune", read_tune},
                 {"workspace", read_workspaces},     {"tma", candidate_read_maps},
                 {"memset", candidate_read_memsets}, {"launch", candidate_read_launches},
                 {"compile", read_compile},          {"requires", read_requires}};
    struct document *document = &reading->document;
    document->known = is_known;
    document->context = reading;
    candidate_facts(reading, false);
    if (value_check_keys(root, document->name, keys, document->err) != 0)
        return -1;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const struct value *value = value_get(root, parts[i].key);
        if (value != NULL && parts[i].read(reading, value) != 0)
            return -1;
    }
    return 0;
}
