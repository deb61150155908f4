#include "agents/diagnosis/diagnosis.h"
#include "agents/prompt/private.h"
#include "base/digits.h"
#include "base/mem.h"

#include <string.h>

#define COMMENT_OPEN  "/* ... "
#define COMMENT_CLOSE " ... */"

enum { MARK_BYTES = 80, FENCES_BYTES = 140, FRAME_BYTES = 400 };

/* Back to where a line begins, or at least a character. */
static size_t edge_before(const char *text, size_t at)
{
    size_t line = at;
    while (line > 0 && text[line - 1] != '\n')
        line--;
    if (line > at / 2)
        return line;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80)
        at--;
    return at;
}

static size_t edge_after(const char *text, size_t at, size_t length)
{
    const char *newline = memchr(text + at, '\n', length - at);
    if (newline != NULL && (size_t)(newline + 1 - text) < at + (length - at) / 2)
        return (size_t)(newline + 1 - text);
    while (at < length && ((unsigned char)text[at] & 0xC0) == 0x80)
        at++;
    return at;
}

void prompt_cut(const char *text, size_t most, const char *open, const char *close, struct buf *out)
{
    size_t length = strlen(text);
    if (length <= most) {
        buf_add(out, text, length);
        return;
    }
    if (most <= 2 * (size_t)MARK_BYTES)
        return;
    size_t kept = most - MARK_BYTES; /* the head gets more: declarations, the first error */
    size_t head = edge_before(text, kept * 5 / 8);
    size_t tail = edge_after(text, length - kept * 3 / 8, length);
    buf_add(out, text, head);
    buf_addf(out, "%s%s%zu bytes left out%s\n", head > 0 && text[head - 1] != '\n' ? "\n" : "",
             open, tail - head, close);
    buf_add(out, text + tail, length - tail);
}

/* Runs of marks for which no fence is long enough lie in comments, or in text that is no code. */
static char *without_marks(const char *source)
{
    char *text = mem_strdup(source);
    for (char *at = text; (at = strchr(at, '`')) != NULL;)
        *at = '\'';
    return text;
}

void prompt_fenced(const char *source, size_t most, const char *open, const char *close,
                   struct buf *out)
{
    char fence[64];
    size_t longest = 2, run = 0;
    for (const char *at = source; *at != '\0'; at++) {
        run = *at == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    size_t width = longest + 1 < sizeof fence ? longest + 1 : 3;
    MEM_LOCAL char *plain = width <= longest ? without_marks(source) : NULL;
    source = plain != NULL ? plain : source;
    memset(fence, '`', width);
    fence[width] = '\0';
    buf_addf(out, "%s\n", fence);
    size_t start = out->length;
    prompt_cut(source, most > FENCES_BYTES ? most - FENCES_BYTES : 0, open, close, out);
    bool ended = out->length == start || out->data[out->length - 1] == '\n';
    buf_addf(out, "%s%s\n", ended ? "" : "\n", fence);
}

void put_source(const struct material *material, size_t most, struct buf *out)
{
    prompt_fenced(material->source != NULL ? material->source : "", most, COMMENT_OPEN,
                  COMMENT_CLOSE, out);
}

/* ---- a kernel ---- */

static void put_head(const struct prompt_kernel *kernel, struct buf *out)
{
    char time[32], middle[32], least[32], most[32];
    double low = kernel->speedup_low, high = kernel->speedup_high;
    double us = kernel->time_ns / 1e3;
    bool interval = low > 0 && high > low; /* of one sample there is none */
    buf_addf(out, "%s (%s): ", kernel->id, kernel->name != NULL ? kernel->name : "");
    if (kernel->time_ns > 0)
        buf_addf(out, "%s us, %sx the baseline",
                 digits_of(us, interval ? us * kernel->speedup / high : 0,
                           interval ? us * kernel->speedup / low : 0, time),
                 digits_of(kernel->speedup, low, high, middle));
    if (kernel->time_ns > 0 && interval)
        buf_addf(out, " (95 %%: %s to %s)", digits_of(low, low, high, least),
                 digits_of(high, low, high, most));
    if (kernel->time_ns > 0)
        buf_addf(out, "%s%s\n", kernel->finding != NULL && *kernel->finding != '\0' ? ": " : "",
                 kernel->finding != NULL ? kernel->finding : "");
    else
        buf_add_text(out, "not measured yet\n");
    if (kernel->tune != NULL && *kernel->tune != '\0' && strcmp(kernel->tune, "{}") != 0)
        buf_addf(out, "with %s\n", kernel->tune);
}

static void put_code(const struct prompt_kernel *kernel, size_t most, struct buf *out)
{
    prompt_fenced(kernel->source != NULL ? kernel->source : "", most, COMMENT_OPEN, COMMENT_CLOSE,
                  out);
}

/* ---- its diagnosis ---- */

static void put_evidence(const char *evidence, size_t most, struct buf *out)
{
    while (*evidence != '\0') { /* the most telling line comes first */
        size_t length = strcspn(evidence, "\n") + 1;
        if (length > most)
            return;
        buf_add(out, evidence, length);
        most -= length;
        evidence += length;
    }
}

/* Whole, and only beside all of the evidence, or not at all: it is bounded where it was read. */
static void put_hot_code(const struct diagnosis *found, size_t most, struct buf *out)
{
    static const char heading[] = "- the hot loop as compiled (AT&T order: destination last), with "
                                  "the share of its samples where there are any:\n";
    size_t used = FRAME_BYTES + strlen(found->evidence) + sizeof heading + FENCES_BYTES;
    if (*found->code == '\0' || used + strlen(found->code) > most)
        return;
    buf_add_text(out, heading);
    prompt_fenced(found->code, SIZE_MAX, "", "", out);
}

static void put_diagnosis(const struct material *material, const struct prompt_kernel *kernel,
                          size_t most, struct buf *out)
{
    ARENA_LOCAL(arena);
    struct diagnosis found = diagnosis_of(arena, kernel->metrics, material->context->facts);
    if (*found.place == '\0' && *found.evidence == '\0') {
        buf_add_text(out, "Not known: no profile.\n");
        return;
    }
    BUF_LOCAL(evidence, 1 << 16);
    put_evidence(found.evidence, most > FRAME_BYTES ? most - FRAME_BYTES : 0, &evidence);
    const struct slot_text texts[] = {
        {"place", *found.place != '\0' ? found.place : "not known"},
        {"limiter", found.limiter},
        {"evidence", buf_text(&evidence)},
        {"categories", *found.categories != '\0' ? found.categories : "any"}};
    template_render(material->prompts->templates[PROMPT_TEXT_PROFILE], texts,
                    sizeof texts / sizeof texts[0], out);
    put_hot_code(&found, most, out);
}

void put_profile(const struct material *material, size_t most, struct buf *out)
{
    put_diagnosis(material, material->parents, most, out);
}

void put_parent(const struct material *material, size_t most, struct buf *out)
{
    size_t start = out->length;
    if (*material->parents->id == '\0') {
        buf_add_text(out, "None yet: write it from the problem itself.\n");
        return;
    }
    put_head(material->parents, out);
    size_t used = out->length - start;
    put_code(material->parents, most > used ? most - used : 0, out);
}

static void put_first(const struct material *material, size_t count, size_t most, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        size_t start = out->length;
        if (i > 0)
            buf_add_char(out, '\n');
        buf_add_text(out, "## ");
        put_head(&material->parents[i], out);
        put_diagnosis(material, &material->parents[i], most / 4, out);
        size_t used = out->length - start;
        put_code(&material->parents[i], most > used ? most - used : 0, out);
    }
}

void put_parents(const struct material *material, size_t most, struct buf *out)
{
    if (material->parent_count == 0)
        buf_add_text(out, "None yet: start from the problem itself, and leave \"parent\" empty.\n");
    BUF_LOCAL(whole, PROMPT_BYTES_MAX);
    for (size_t count = material->parent_count; count > 0; count--) {
        buf_reset(&whole);
        put_first(material, count, SIZE_MAX, &whole);
        if (whole.length <= most || count == 1)
            break;
    }
    if (material->parent_count > 0 && whole.length > most) {
        buf_reset(&whole);
        put_first(material, 1, most, &whole);
    }
    buf_add_text(out, buf_text(&whole));
}
