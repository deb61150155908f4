/* agents/prompt/private: the parts of prompts; for src/agents/prompt alone. Each writes at most
 * `most` bytes, or the least that it can, and never more for a smaller `most`. Pure. */
#pragma once

#include "agents/prompt/prompt.h"
#include "agents/prompt/template.h"

enum {
    PROMPT_SYSTEM,
    PROMPT_SYSTEM_IDEAS,
    PROMPT_SYSTEM_IMPLEMENT,
    PROMPT_SYSTEM_REPAIR,
    PROMPT_SYSTEM_OPERATE,
    PROMPT_TEXT_IDEAS,
    PROMPT_TEXT_VALUES,
    PROMPT_TEXT_IMPLEMENT,
    PROMPT_TEXT_REPAIR,
    PROMPT_TEXT_OPERATE,
    PROMPT_TEXT_PROFILE,
    PROMPT_TEMPLATES
};

struct prompts {
    const struct target *target;
    struct template *templates[PROMPT_TEMPLATES];
    struct template *formats[TARGET_FOLDERS_MAX]; /* in the order of the target's languages */
};

struct material { /* what a prompt is made of; what a kind of prompt has not is NULL or 0 */
    const struct prompts *prompts;
    const struct prompt_context *context;
    const struct prompt_kernel *parents;
    size_t parent_count;
    const struct prompt_attempt *history;
    size_t history_count;
    const struct idea *idea;
    const char *source, *failure, *diagnostics, *mended;
    int64_t count;
};

typedef void prompt_part(const struct material *material, size_t most, struct buf *out);

/* problem.c */
prompt_part put_problem; /* at least all but the reference */
prompt_part put_device;
/* The share of a time below which two are equal, as docs/timing-and-statistics.md has it. */
double prompt_noise(const struct prompt_context *context);
/* A ratio, or a time, with no more digits than that supports. */
const char *prompt_digits(const struct prompt_context *context, double number, char text[32]);

/* kernel.c */
prompt_part put_parents; /* with a diagnosis each; from the last to the second they are left out */
prompt_part put_parent;  /* the first alone, without */
prompt_part put_profile; /* of the first parent */
prompt_part put_source;

/* history.c */
prompt_part put_history;
prompt_part put_categories;

/* failure.c */
prompt_part put_failure; /* the diagnostics, then what their pattern usually comes from */

/* The text, or its head and tail with `open`, "N bytes left out" and `close` in between, cut at
 * lines where there are any; nothing where `most` leaves no room for that. */
void prompt_cut(const char *text, size_t most, const char *open, const char *close,
                struct buf *out);

/* The same between fences that are longer than any run of marks inside. */
void prompt_fenced(const char *text, size_t most, const char *open, const char *close,
                   struct buf *out);
