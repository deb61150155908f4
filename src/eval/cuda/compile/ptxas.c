#include "eval/cuda/compile/ptxas.h"

#include "base/file.h"
#include "eval/backend/lines.h"

#include <ctype.h>
#include <string.h>

enum { NAME_BYTES_MAX = 200, REPORT_BYTES_MAX = 256 << 10 };

/* ---- reading a log ---- */

static const char *after(const char *line, size_t length, const char *word)
{
    size_t more = strlen(word);
    const char *found = (const char *)memmem(line, length, word, more);
    return found != NULL ? found + more : NULL;
}

/* The number before " WORD": "used 4096 bytes smem". -1: it is not said. */
static int64_t number_before(const char *line, size_t length, const char *word)
{
    const char *found = (const char *)memmem(line, length, word, strlen(word));
    int64_t number = 0, place = 1;
    if (found == NULL || found == line || !isdigit((unsigned char)found[-1]))
        return -1;
    for (const char *at = found - 1;
         at >= line && isdigit((unsigned char)*at) && place < 1000000000; at--, place *= 10)
        number += (*at - '0') * place;
    return number;
}

static int64_t or_zero(int64_t number)
{
    return number >= 0 ? number : 0;
}

static struct cuda_resources *entry_named(struct arena *arena, struct cuda_report *report,
                                          const char *name, size_t length)
{
    struct cuda_resources *entry = NULL;
    for (size_t i = 0; i < report->entry_count && entry == NULL; i++)
        if (strlen(report->entries[i].entry) == length &&
            memcmp(report->entries[i].entry, name, length) == 0)
            entry = &report->entries[i];
    if (entry == NULL && report->entry_count < CUDA_ENTRIES_MAX && length < NAME_BYTES_MAX) {
        entry = &report->entries[report->entry_count++];
        entry->entry = arena_strndup(arena, name, length);
    }
    if (entry != NULL)
        *entry = (struct cuda_resources){.entry = entry->entry,
                                         .registers = -1,
                                         .spill_store_bytes = -1,
                                         .spill_load_bytes = -1,
                                         .stack_bytes = -1};
    return entry;
}

/* "380 bytes cmem[0], 8 bytes cmem[2]": all banks together. */
static int64_t constants(const char *line, size_t length)
{
    int64_t sum = 0;
    const char *end = line + length;
    for (const char *at = line, *next;
         (next = after(at, (size_t)(end - at), " bytes cmem")) != NULL; at = next)
        sum += or_zero(number_before(at, (size_t)(end - at), " bytes cmem"));
    return sum;
}

struct place { /* which entry the next lines are about */
    struct cuda_resources *entry;
    bool own; /* "Function properties" of the entry itself, and not of what it calls */
};

static void read_line(struct arena *arena, struct cuda_report *report, struct place *place,
                      const char *line, size_t length)
{
    if (length < 5 || memcmp(line, "ptxas", 5) != 0)
        return;
    const char *name = after(line, length, "Compiling entry function '");
    const char *tick = name != NULL ? memchr(name, '\'', (size_t)(line + length - name)) : NULL;
    if (tick != NULL) {
        place->entry = entry_named(arena, report, name, (size_t)(tick - name));
        place->own = true;
        return;
    }
    struct cuda_resources *entry = place->entry;
    if (entry == NULL)
        return;
    name = after(line, length, "Function properties for ");
    if (name != NULL)
        place->own = strlen(entry->entry) == (size_t)(line + length - name) &&
                     memcmp(entry->entry, name, strlen(entry->entry)) == 0;
    int64_t stack = number_before(line, length, " bytes stack frame");
    if (stack >= 0 && place->own) {
        entry->stack_bytes = stack;
        entry->spill_store_bytes = number_before(line, length, " bytes spill stores");
        entry->spill_load_bytes = number_before(line, length, " bytes spill loads");
    }
    int64_t registers = number_before(line, length, " registers");
    if (registers >= 0 && after(line, length, ": Used ") != NULL) {
        entry->registers = registers;
        entry->barriers = or_zero(number_before(line, length, " barriers"));
        entry->shared_bytes = or_zero(number_before(line, length, " bytes smem"));
        entry->constant_bytes = constants(line, length);
    }
}

void ptxas_parse(struct arena *arena, const char *log, size_t length, struct cuda_report *report)
{
    struct place place = {0};
    const char *at = log;
    struct line line;
    while (line_next(&at, log + length, &line))
        read_line(arena, report, &place, line.text, line.length);
}

const struct cuda_resources *ptxas_entry(const struct cuda_report *report, const char *entry)
{
    for (size_t i = 0; i < report->entry_count; i++)
        if (strcmp(report->entries[i].entry, entry) == 0)
            return &report->entries[i];
    return NULL;
}

/* ---- kernel.json ---- */

static const struct field {
    const char *key;
    size_t offset;
} fields[] = {
    {"registers", offsetof(struct cuda_resources, registers)},
    {"spill_store_bytes", offsetof(struct cuda_resources, spill_store_bytes)},
    {"spill_load_bytes", offsetof(struct cuda_resources, spill_load_bytes)},
    {"stack_bytes", offsetof(struct cuda_resources, stack_bytes)},
    {"shared_bytes", offsetof(struct cuda_resources, shared_bytes)},
    {"constant_bytes", offsetof(struct cuda_resources, constant_bytes)},
    {"barriers", offsetof(struct cuda_resources, barriers)},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

void ptxas_put(const struct cuda_report *report, struct json *json)
{
    json_object(json);
    json_put_text(json, "arch", report->arch);
    json_put_text(json, "version", report->version);
    json_put_real(json, "compile_ms", report->compile_ms);
    json_put_bool(json, "precompiled", report->precompiled);
    if (report->cached)
        json_put_bool(json, "cached", true);
    json_put_array(json, "entries");
    for (size_t i = 0; i < report->entry_count; i++) {
        json_object(json);
        json_put_text(json, "entry", report->entries[i].entry);
        for (size_t k = 0; k < FIELDS; k++) {
            int64_t number;
            memcpy(&number, (const char *)&report->entries[i] + fields[k].offset, sizeof number);
            if (number >= 0)
                json_put_int(json, fields[k].key, number);
        }
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void read_entry(const struct value *value, struct cuda_resources *entry)
{
    entry->entry = value_text(value, "entry", "");
    for (size_t k = 0; k < FIELDS; k++) {
        int64_t number = value_int(value, fields[k].key, -1);
        memcpy((char *)entry + fields[k].offset, &number, sizeof number);
    }
}

int cuda_report_read(struct arena *arena, const char *log, struct cuda_report *report,
                     struct err *err)
{
    struct value *root;
    BUF_LOCAL(text, REPORT_BYTES_MAX);
    *report = (struct cuda_report){0};
    int result = file_read(log, &text, err);
    if (result == 0)
        result = value_parse_json(arena, "kernel.json", buf_text(&text), text.length, &root, err);
    if (result != 0)
        return -1;
    const struct value *entries = value_get(root, "entries");
    report->arch = value_text(root, "arch", "");
    report->version = value_text(root, "version", "");
    report->compile_ms = value_real(root, "compile_ms", 0.0);
    report->precompiled = value_bool(root, "precompiled", false);
    report->cached = value_bool(root, "cached", false);
    if (entries == NULL || entries->kind != VALUE_LIST)
        return err_set(err, ERR_PARSE, "kernel.json: expected a list of entries");
    for (size_t i = 0; i < entries->count && i < CUDA_ENTRIES_MAX; i++)
        read_entry(entries->items[i], &report->entries[report->entry_count++]);
    return 0;
}
