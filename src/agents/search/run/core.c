/* agents/search/run/core: what all files of a run stand on: its events, its first error, its clock.
 */
#include "agents/search/run/run.h"

#include "agents/ideas/ideas.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

void search_fail(struct search *search, const struct err *err)
{
    if (search->err.code == ERR_NONE)
        search->err = *err;
    task_wake(&search->task);
}

bool search_has_model(const struct search *search)
{
    return search->options.idea_models && search->options.idea_models->count > 0;
}

bool search_stopping(const struct search *search)
{
    return search->stops > 0 || search->err.code != ERR_NONE;
}

bool search_writes(const struct search *search)
{
    return search_has_model(search) && !search->options.kernel;
}

void search_event(struct search *search, struct store_batch *batch, enum log_level level,
                  const char *kind, const char *subject, const char *format, ...)
{
    va_list arguments;
    BUF_LOCAL(message, 1024);
    BUF_LOCAL(text, 8192);
    va_start(arguments, format);
    buf_addv(&message, format, arguments);
    va_end(arguments);
    struct json json = {.out = &text};
    json_object(&json);
    json_put_int(&json, "wall_ms", (int64_t)clock_wall_ms());
    json_put_text(&json, "kind", kind);
    json_put_text(&json, "subject", subject);
    json_put_text(&json, "message", buf_text(&message));
    json_object_end(&json);
    char key[64];
    snprintf(key, sizeof key, "%s-%lld", search->id, (long long)++search->event_number);
    store_batch_put(batch, STORE_EVENTS, key, buf_text(&text), text.length);
    log_event(level, kind, subject, "%s", buf_text(&message));
}

double search_elapsed_ms(const struct search *search)
{
    return search->earlier_ms + (double)(clock_now_ns() - search->started_ns) / 1e6;
}

const char *search_constant(const char *text)
{
    static const char *const words[] = {"kept", "kernel", "rejected", "failed", "dropped"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0)
            return words[i];
    for (size_t i = 0; idea_categories[i]; i++)
        if (strcmp(text, idea_categories[i]) == 0)
            return idea_categories[i];
    return "";
}
