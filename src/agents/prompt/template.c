#include "agents/prompt/template.h"

#include "base/file.h"
#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

enum { TEMPLATE_BYTES_MAX = 1 << 20 };

struct part {
    const char *text; /* literal text, or NULL: a slot */
    size_t length;
    const char *slot;
    bool alone; /* the slot stands alone on its line; `length` counts the newline */
    struct part *next;
};

struct template
{
    struct part *first;
};

static struct part *part_add(struct arena *arena, struct part ***tail)
{
    struct part *part = ARENA_NEW(arena, struct part);
    **tail = part;
    *tail = &part->next;
    return part;
}

static void literal_add(struct arena *arena, struct part ***tail, const char *start,
                        const char *end)
{
    if (end == start)
        return;
    struct part *part = part_add(arena, tail);
    part->length = (size_t)(end - start);
    part->text = arena_strndup(arena, start, part->length);
}

static const char *known_slot(const char *const *slots, const char *start, size_t length)
{
    for (; *slots != NULL; slots++)
        if (strlen(*slots) == length && memcmp(*slots, start, length) == 0)
            return *slots;
    return NULL;
}

int template_parse(struct arena *arena, const char *name, const char *text,
                   const char *const *slots, struct template **parsed, struct err *err)
{
    struct template *template = ARENA_NEW(arena, struct template);
    struct part **tail = &template->first;
    int line = 1;
    const char *literal = text;
    const char *at = text;
    while (*at != '\0') {
        if (*at == '\n')
            line++;
        if (at[0] != '{' || at[1] != '{') {
            at++;
            continue;
        }
        const char *open = at + 2;
        const char *close = strstr(open, "}}");
        const char *newline = strchr(open, '\n');
        if (close == NULL || (newline != NULL && newline < close))
            return err_set(err, ERR_USAGE, "%s:%d: expected }} after {{", name, line);
        const char *start = open + strspn(open, " \t");
        const char *end = close;
        while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        const char *slot = known_slot(slots, start, (size_t)(end - start));
        if (slot == NULL)
            return err_set(err, ERR_USAGE, "%s:%d: unknown slot {{%.*s}}", name, line,
                           (int)(end - start), start);
        literal_add(arena, &tail, literal, at);
        struct part *part = part_add(arena, &tail);
        part->slot = slot;
        at = close + 2;
        part->alone = (open - 2 == text || open[-3] == '\n') && *at == '\n';
        if (part->alone) {
            at++;
            line++;
        }
        literal = at;
    }
    literal_add(arena, &tail, literal, at);
    *parsed = template;
    return 0;
}

int template_load(struct arena *arena, const char *file, const char *const *slots,
                  struct template **parsed, struct err *err)
{
    char *folder = file_data_path("templates");
    if (folder == NULL)
        return err_set(err, ERR_ENVIRONMENT,
                       "the templates folder was not found; set TWAGENT_DATA to where it lies");
    MEM_LOCAL char *path = file_join(folder, file);
    BUF_LOCAL(text, TEMPLATE_BYTES_MAX);
    int status = file_read(path, &text, err);
    if (status == 0)
        status = template_parse(arena, file, buf_text(&text), slots, parsed, err);
    mem_free(folder);
    return status;
}

void template_render(const struct template *template, const struct slot_text *texts, size_t count,
                     struct buf *out)
{
    for (const struct part *part = template->first; part != NULL; part = part->next) {
        if (part->slot == NULL) {
            buf_add(out, part->text, part->length);
            continue;
        }
        const char *text = "";
        for (size_t i = 0; i < count; i++)
            if (strcmp(texts[i].slot, part->slot) == 0 && texts[i].text != NULL)
                text = texts[i].text;
        buf_add_text(out, text);
        size_t length = strlen(text);
        if (part->alone && length > 0 && text[length - 1] != '\n')
            buf_add_char(out, '\n');
    }
}
