/* compute-sanitizer's text. Every line of its own begins with a mark; a finding is a first line,
 * then lines that go on with it, until an empty one:
 *
 *   ========= Invalid __global__ read of size 4 bytes
 *   =========     at mm+0x140 in candidate.cu:17
 *   =========     by thread (3,0,0) in block (1,0,0)
 *   =========     Access to 0x7f2 is out of bounds
 *   =========
 *   ========= ERROR SUMMARY: 1 error
 */
#include "eval/cuda/sanitize/sanitizer.h"
#include "process/clean.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINDING_MOST = 300, PARTIAL_MOST = 8192 };

const char *const sanitizer_tools[TOOLS] = {
    [TOOL_MEMCHECK] = "memcheck",
    [TOOL_RACECHECK] = "racecheck",
    [TOOL_INITCHECK] = "initcheck",
    [TOOL_SYNCCHECK] = "synccheck",
};

static bool begins(const char *text, size_t length, const char *word)
{
    return length >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

/* "1 error", "(2 errors, 3 warnings)": the number before the word; 0 where it is not there. */
static int number_before(const char *text, size_t length, const char *word)
{
    const char *at = memmem(text, length, word, strlen(word));
    if (at == NULL)
        return 0;
    while (at > text && at[-1] == ' ')
        at--;
    while (at > text && isdigit((unsigned char)at[-1]))
        at--;
    long number = strtol(at, NULL, 10);
    return number > 0 && number < 1000000 ? (int)number : 0;
}

static bool read_summary(const char *text, size_t length, struct sanitizer_words *words)
{
    if (begins(text, length, "ERROR SUMMARY:") || begins(text, length, "RACECHECK SUMMARY:")) {
        words->errors = number_before(text, length, "error");
        words->warnings = number_before(text, length, "warning");
        words->ended = true;
        return true;
    }
    return begins(text, length, "LEAK SUMMARY:");
}

/* Lines that tell of the tool and not of the program. */
static bool is_about_itself(const char *text, size_t length, struct sanitizer_words *words)
{
    static const char *const failures[] = {"Error: Target application terminated before",
                                           "Error: process didn't terminate",
                                           "Error: Failed",
                                           "Error: No attachable",
                                           "Error: Device not supported",
                                           "Internal Sanitizer Error",
                                           "Error: Could not",
                                           "Error: Unable",
                                           "Error: Unsupported"};
    static const char *const chatter[] = {"COMPUTE-SANITIZER",
                                          "Target application returned",
                                          "Error: Target application returned",
                                          "Error: application returned",
                                          "No CUDA-MEMCHECK",
                                          "Program hit",
                                          "Warning: "};
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        if (begins(text, length, failures[i])) {
            words->broken = true;
            return true;
        }
    for (size_t i = 0; i < sizeof chatter / sizeof chatter[0]; i++)
        if (begins(text, length, chatter[i]))
            return true;
    return false;
}

struct reading {
    struct sanitizer_words *words;
    struct buf line;   /* the finding that is being read */
    bool open, placed; /* placed: it says where in the program it is */
    int records;       /* of a place, so far */
    size_t shown, most;
    enum sanitizer_tool tool;
    struct buf *report;
};

/* Whatever the tool complains of besides, as of its host or of itself, is no kernel's defect. */
static void close_finding(struct reading *reading)
{
    reading->records += reading->open && reading->placed;
    if (reading->open && !reading->placed && reading->words->complaint[0] == '\0')
        snprintf(reading->words->complaint, sizeof reading->words->complaint, "%s",
                 buf_text(&reading->line));
    if (reading->open && reading->placed && reading->shown < reading->most) {
        buf_addf(reading->report, "%s: ", sanitizer_tools[reading->tool]);
        clean_line(reading->report, buf_text(&reading->line), reading->line.length);
        reading->shown++;
    }
    reading->open = reading->placed = false;
    buf_reset(&reading->line);
}

/* "at mm+0x140 in candidate.cu:17", "Access to 0x7f2 is out of bounds", "Address 0x7f2" */
static void read_more(struct reading *reading, const char *text, size_t length)
{
    static const char *const addresses[] = {"Access to 0x", "Address 0x"};
    bool backtrace = begins(text, length, "Saved host backtrace") ||
                     begins(text, length, "Host Frame") || begins(text, length, "Device Frame");
    if (!reading->open || backtrace)
        return;
    buf_addf(&reading->line, ", %.*s", (int)length, text);
    reading->placed =
        reading->placed || begins(text, length, "at ") || begins(text, length, "by thread ");
    for (size_t i = 0; i < 2 && reading->words->address == 0; i++)
        if (begins(text, length, addresses[i]))
            reading->words->address = strtoull(text + strlen(addresses[i]), NULL, 16);
}

static void read_line(struct reading *reading, const char *text, size_t length)
{
    size_t indent = 0;
    while (indent < length && text[indent] == ' ')
        indent++;
    bool goes_on = indent > 1;
    text += indent;
    length -= indent;
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    if (length == 0) {
        close_finding(reading);
        return;
    }
    if (goes_on) {
        read_more(reading, text, length);
        return;
    }
    close_finding(reading);
    int errors = reading->words->errors;
    if (read_summary(text, length, reading->words) || is_about_itself(text, length, reading->words))
        return;
    reading->words->errors = errors + 1;
    reading->open = true;
    reading->placed = memmem(text, length, " access at ", 11) != NULL; /* a race's */
    buf_add(&reading->line, text, length);
}

void sanitizer_read(enum sanitizer_tool tool, const char *mark, const char *text, size_t length,
                    size_t most, struct sanitizer_words *words, struct buf *report)
{
    struct reading reading = {.words = words, .most = most, .tool = tool, .report = report};
    const char *end = text + length;
    *words = (struct sanitizer_words){0};
    buf_init(&reading.line, FINDING_MOST);
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((stop != NULL ? stop : end) - text);
        const char *at = memmem(text, line, mark, strlen(mark));
        if (at != NULL) {
            at += strlen(mark);
            read_line(&reading, at, (size_t)(text + line - at));
        }
        text += line + 1;
    }
    close_finding(&reading);
    buf_free(&reading.line);
    if (words->errors > 0 && reading.records == 0) {
        words->broken = true;
        words->errors = 0;
    }
}

void sanitizer_keep_marked(const char *mark, struct buf *said)
{
    struct buf kept;
    const char *text = buf_text(said), *end = text + said->length;
    buf_init(&kept, said->max);
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((stop != NULL ? stop + 1 : end) - text);
        size_t tail = line < PARTIAL_MOST ? line : PARTIAL_MOST;
        if (memmem(text, line, mark, strlen(mark)) != NULL)
            buf_add(&kept, text, line);
        else if (stop == NULL) /* not at its end yet */
            buf_add(&kept, text + line - tail, tail);
        text += line;
    }
    buf_free(said);
    *said = kept;
}
