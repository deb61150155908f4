/* "time" of a record: the lines of the source that the warps were at, as a CPU's profile has loops.
 * Line and file are what the candidate's #line says they are: a number without a line of the source
 * has no text, and no file is opened. */
#include "eval/cuda/profile/profile.h"

#include <string.h>

enum { SHOWN = 5, TEXT_MOST = 100 };

static const double least_share = 0.03;

/* Without what stands before and behind it; cut where a character ends. */
static void put_text(const struct candidate *candidate, uint32_t line, struct json *json)
{
    char text[TEXT_MOST + 1];
    const char *from = candidate->source, *end = candidate->source + candidate->length;
    for (uint32_t at = 1; at < line && from != NULL; at++) {
        from = memchr(from, '\n', (size_t)(end - from));
        from = from != NULL ? from + 1 : NULL;
    }
    if (from == NULL || from >= end)
        return;
    const char *stop = memchr(from, '\n', (size_t)(end - from));
    size_t length = (size_t)((stop != NULL ? stop : end) - from), kept = 0;
    while (length > 0 && (unsigned char)*from <= ' ') {
        from++;
        length--;
    }
    if (length > TEXT_MOST)
        for (length = TEXT_MOST; length > 0 && ((unsigned char)from[length] & 0xc0) == 0x80;)
            length--;
    for (; kept < length; kept++)
        text[kept] = (unsigned char)from[kept] < ' ' || from[kept] == 0x7f ? ' ' : from[kept];
    while (kept > 0 && text[kept - 1] == ' ')
        kept--;
    text[kept] = '\0';
    if (kept > 0)
        json_put_text(json, "text", text);
}

/* A word of CUPTI's, or a file's name from a line table. */
static void put_word(const char *key, const char *word, struct json *json)
{
    char kept[HOT_FILE_MOST];
    size_t length = 0;
    for (; word[length] != '\0' && length < sizeof kept - 1; length++)
        kept[length] = word[length] > ' ' && word[length] < 0x7f ? word[length] : '?';
    kept[length] = '\0';
    json_put_text(json, key, kept);
}

/* As builds name the source: candidate.cu, candidate.py. */
static bool is_own(const char *file, const struct candidate *candidate)
{
    static const char stem[] = "candidate";
    return strncmp(file, stem, sizeof stem - 1) == 0 &&
           strcmp(file + sizeof stem - 1, candidate->language->suffixes[0]) == 0;
}

static void put_line(const struct wire_hot_line *line, double all, const struct plan *plan,
                     const struct candidate *candidate, struct json *json)
{
    json_object(json);
    json_put_real(json, "share", line->samples / all);
    json_put_text(json, "in", plan->launches[line->launch].entry);
    json_put_int(json, "first_line", line->line);
    json_put_int(json, "last_line", line->line);
    if (is_own(line->file, candidate))
        put_text(candidate, line->line, json);
    else
        put_word("file", line->file, json);
    if (line->stall[0] != '\0') {
        put_word("stall", line->stall, json);
        json_put_real(json, "stall_share", (double)line->stall_samples / line->samples);
    } else {
        json_put_text(json, "stall", NULL);
    }
    json_object_end(json);
}

void profile_put_lines(const struct wire_hot *hot, const struct plan *plan,
                       const struct candidate *candidate, struct json *json)
{
    double all = (double)hot->samples;
    json_put_object(json, "time");
    if (hot->count == 0) {
        json_put_text(json, "why", hot->why);
        json_object_end(json);
        return;
    }
    json_put_int(json, "samples", (int64_t)hot->samples);
    json_put_real(json, "ms", hot->ms);
    json_put_array(json, "phases");
    for (uint32_t i = 0; i < hot->count && i < SHOWN; i++)
        if (hot->lines[i].line > 0 && hot->lines[i].launch < plan->launch_count &&
            hot->lines[i].samples >= least_share * all)
            put_line(&hot->lines[i], all, plan, candidate, json);
    json_array_end(json);
    json_object_end(json);
}
