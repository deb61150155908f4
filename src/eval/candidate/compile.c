/* compile: which compiler, and flags from the language's list. */
#include "eval/candidate/read.h"

#include <string.h>

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

int candidate_read_compile(struct candidate_reading *reading, const struct value *map)
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
