#include "agents/llm/budget_shown.h"

#include "base/mem.h"

#include <string.h>

enum { BYTES_A_TOKEN = 4 }; /* where nothing is known of the model yet */

struct shown *budget_shown_of(struct list *all, const char *model)
{
    list_each (link, all) {
        struct shown *shown = container_of(link, struct shown, link);
        if (strcmp(shown->model, model) == 0)
            return shown;
    }
    struct shown *shown = MEM_NEW(struct shown);
    shown->model = mem_strdup(model);
    list_append(all, &shown->link);
    return shown;
}

static int64_t larger(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

void budget_shown_learn(struct shown *shown, const struct usage *usage)
{
    if (usage->prompt_bytes <= 0) /* an earlier version's */
        return;
    shown->answers++;
    shown->over_prompt = larger(shown->over_prompt, usage->prompt_tokens - usage->prompt_bytes);
    shown->over_completion =
        larger(shown->over_completion, usage->completion_tokens - usage->max_tokens);
    shown->prompt_tokens += (double)usage->prompt_tokens;
    shown->prompt_bytes += (double)usage->prompt_bytes;
    shown->completion_tokens += (double)usage->completion_tokens;
    shown->completion_bytes += (double)usage->text_bytes;
}

void budget_shown_free(struct list *all)
{
    for (struct link *link; (link = list_pop(all)) != NULL;) {
        struct shown *shown = container_of(link, struct shown, link);
        mem_free(shown->model);
        mem_free(shown);
    }
}

static int64_t tokens_in(int64_t bytes, double tokens_shown, double bytes_shown)
{
    double share = bytes_shown > 0 ? tokens_shown / bytes_shown : 1.0 / BYTES_A_TOKEN;
    return (int64_t)((double)bytes * share + 0.5);
}

int64_t budget_shown_prompt(const struct shown *shown, int64_t bytes)
{
    return tokens_in(bytes, shown->prompt_tokens, shown->prompt_bytes);
}

int64_t budget_shown_completion(const struct shown *shown, int64_t bytes)
{
    return tokens_in(bytes, shown->completion_tokens, shown->completion_bytes);
}
