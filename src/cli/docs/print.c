#include "cli/docs/docs.h"

#include "base/buf.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

/* ",cuda,guide," as "cuda,guide". */
static void put_tags(struct json *json, const char *tags)
{
    size_t length = strlen(tags);
    json_put_array(json, "tags");
    for (const char *at = tags; at < tags + length;) {
        at += strspn(at, ",");
        size_t size = strcspn(at, ",");
        if (size > 0)
            json_text_n(json, at, size);
        at += size;
    }
    json_array_end(json);
}

static int shown_tags(const char *tags)
{
    size_t length = strlen(tags);
    return length > 2 ? (int)length - 2 : 0;
}

void docs_print_change(const struct settings *settings, const struct rag_change *change)
{
    const struct {
        const char *key, *words;
        size_t count;
    } rows[] = {{"added", "added", change->added},
                {"changed", "changed", change->changed},
                {"removed", "removed", change->removed},
                {"unchanged", "unchanged", change->unchanged},
                {"doubles", "the same as another document", change->doubles},
                {"too_large", "too large", change->too_large},
                {"not_text", "not text", change->not_text},
                {"unreadable", "could not be read", change->unreadable},
                {"other", "of no kind that is read", change->other},
                {"links", "links, not followed", change->links},
                {"passages_added", "passages added", change->passages_added},
                {"passages_removed", "passages removed", change->passages_removed}};
    size_t count = sizeof rows / sizeof rows[0];
    if (settings->json) {
        JSON_LOCAL(json, text, 1 << 16);
        json_object(&json);
        for (size_t i = 0; i < count; i++)
            json_put_int(&json, rows[i].key, (int64_t)rows[i].count);
        json_put_text(&json, "other_kinds", change->kinds);
        json_put_text(&json, "note", change->note);
        json_object_end(&json);
        printf("%s\n", buf_text(&text));
        return;
    }
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].count == 0)
            continue;
        printf("%s%zu %s", any ? ", " : "", rows[i].count, rows[i].words);
        any = true;
    }
    printf("%s\n", any ? "" : "nothing to do");
    if (change->kinds[0] != '\0')
        printf("of no kind that is read: %s\n", change->kinds);
    if (change->note[0] != '\0')
        printf("passed over: %s\n", change->note);
}

static void put_passage(const struct rag_passage *passage)
{
    char id[20];
    JSON_LOCAL(json, text, (size_t)256 << 20);
    snprintf(id, sizeof id, "p%016llx", (unsigned long long)passage->id);
    json_object(&json);
    json_put_text(&json, "id", id);
    json_put_text(&json, "source", passage->source);
    json_put_int(&json, "line", passage->line);
    json_put_text(&json, "path", passage->path);
    json_put_text(&json, "title", passage->title);
    put_tags(&json, passage->tags);
    json_put_int(&json, "tokens", (int64_t)passage->tokens);
    json_put_real(&json, "score", passage->score);
    json_put_text(&json, "text", passage->text);
    json_object_end(&json);
    printf("%s", buf_text(&text));
}

/* What is shown of somebody else's text moves no cursor. */
static void print_indented(const char *text, size_t lines)
{
    fputs("    ", stdout);
    for (size_t shown = 0; *text != '\0' && shown < lines; text++) {
        unsigned char c = (unsigned char)*text;
        putchar(c < ' ' && c != '\n' && c != '\t' ? ' ' : c);
        if (c == '\n' && ++shown < lines)
            fputs("    ", stdout);
    }
    fputs("\n", stdout);
}

void docs_print_passages(const struct settings *settings, const struct rag_passage *items,
                         size_t count, bool whole)
{
    if (settings->json)
        printf("[");
    for (size_t i = 0; i < count; i++) {
        const struct rag_passage *passage = &items[i];
        if (settings->json) {
            printf("%s", i ? ",\n " : "");
            put_passage(passage);
            continue;
        }
        printf("p%016llx  %s:%u  %zu tokens", (unsigned long long)passage->id, passage->source,
               passage->line, passage->tokens);
        if (passage->score > 0)
            printf("  score %.3f", passage->score);
        printf("\n  %s%s%s\n", passage->path, *passage->path && *passage->title ? " > " : "",
               passage->title);
        print_indented(passage->text, whole ? 1000000 : 6);
    }
    if (settings->json)
        printf("]\n");
    else if (count == 0)
        printf("nothing found\n");
}

void docs_print_documents(const struct settings *settings, const struct rag_document *items,
                          size_t count)
{
    if (settings->json)
        printf("[");
    for (size_t i = 0; i < count; i++) {
        const struct rag_document *document = &items[i];
        if (!settings->json) {
            printf("%-8s %6u passages %9llu bytes  %s", document->kind, document->passages,
                   (unsigned long long)document->bytes, document->source);
            if (shown_tags(document->tags) > 0)
                printf("  [%.*s]", shown_tags(document->tags), document->tags + 1);
            printf("\n");
            continue;
        }
        JSON_LOCAL(json, text, 1 << 20);
        json_object(&json);
        json_put_text(&json, "source", document->source);
        json_put_text(&json, "root", document->root);
        json_put_text(&json, "kind", document->kind);
        put_tags(&json, document->tags);
        json_put_int(&json, "bytes", (int64_t)document->bytes);
        json_put_int(&json, "passages", document->passages);
        json_object_end(&json);
        printf("%s%s", i ? ",\n " : "", buf_text(&text));
    }
    if (settings->json)
        printf("]\n");
    else if (count == 0)
        printf("no documents; add some with: twagent docs add PATH\n");
}

static void print_embedded_by(const struct settings *settings, const char *model)
{
    if (!settings->json) {
        if (*model)
            printf("%-21s %11s\n", "vectors by", model);
        return;
    }
    JSON_LOCAL(json, text, 4096);
    json_text(&json, model);
    printf(", \"embedding_model\": %s}\n", buf_text(&text));
}

void docs_print_stats(const struct settings *settings, const struct rag_stats *stats,
                      const char *embedded_by)
{
    const struct {
        const char *key, *words;
        uint64_t number;
    } rows[] = {{"roots", "paths added", stats->roots},
                {"documents", "documents", stats->documents},
                {"document_bytes", "bytes of documents", stats->document_bytes},
                {"passages", "passages", stats->passages},
                {"text_bytes", "bytes of passages", stats->text_bytes},
                {"terms", "terms", stats->terms},
                {"posting_bytes", "bytes of postings", stats->posting_bytes},
                {"file_bytes", "bytes on disk", stats->file_bytes},
                {"vectors", "passages with vectors", stats->vectors}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (settings->json)
            printf("%s\"%s\": %llu", i ? ", " : "{", rows[i].key,
                   (unsigned long long)rows[i].number);
        else
            printf("%-21s %11llu\n", rows[i].words, (unsigned long long)rows[i].number);
    }
    print_embedded_by(settings, embedded_by);
}
