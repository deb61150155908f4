/* agents/search/candidate/asked: what became of the requests to each model, and why some failed or
 * had to wait, as the run's record keeps it for the summary; over all processes of a run that goes
 * on. */
#include "agents/search/candidate/candidate.h"
#include "base/mem.h"

#include <string.h>

static const char *const state_words[] = {[ENDPOINT_LIMITED] = "limited",
                                          [ENDPOINT_PARKED] = "parked",
                                          [ENDPOINT_BREAKER_OPEN] = "breaker open",
                                          [ENDPOINT_BLOCKED] = "blocked"};

static void put_cause(struct json *json, const struct cause *cause, const char *state)
{
    json_object(json);
    json_put_text(json, "state", state);
    json_put_int(json, "times", cause->times);
    json_put_int(json, "since_ms", (int64_t)cause->since_wall_ms);
    json_put_int(json, "until_ms", (int64_t)cause->until_wall_ms);
    json_put_int(json, "total_ms", (int64_t)cause->total_ms);
    json_put_int(json, "micro_dollars", cause->micro_dollars);
    json_put_text(json, "reason", cause->reason);
    json_object_end(json);
}

/* What an earlier process ended with lasts no more. */
static void put_earlier_cause(struct json *json, const struct value *cause)
{
    int64_t since = value_int(cause, "since_ms", 0), until = value_int(cause, "until_ms", 0);
    json_object(json);
    json_put_text(json, "state", value_text(cause, "state", ""));
    json_put_int(json, "times", value_int(cause, "times", 0));
    json_put_int(json, "since_ms", since);
    json_put_int(json, "until_ms", until > 0 ? until : since);
    json_put_int(json, "total_ms", value_int(cause, "total_ms", 0));
    json_put_int(json, "micro_dollars", value_int(cause, "micro_dollars", 0));
    json_put_text(json, "reason", value_text(cause, "reason", ""));
    json_object_end(json);
}

/* `view` NULL: one that this process has not asked. */
static void put_model(struct json *json, const struct search *search, const struct model_view *view,
                      const struct value *earlier)
{
    static const struct model_view none;
    const struct model_view *now = view ? view : &none;
    struct cause causes[CAUSES_MOST];
    size_t count = view ? completions_causes(search->completions, view->name, causes) : 0;
    const struct value *list = value_get(earlier, "causes");
    json_object(json);
    json_put_text(json, "name", view ? view->name : value_text(earlier, "name", ""));
    json_put_int(json, "asked", now->asked + value_int(earlier, "asked", 0));
    json_put_int(json, "answered", now->answered + value_int(earlier, "answered", 0));
    json_put_int(json, "failed", now->failed + value_int(earlier, "failed", 0));
    json_put_int(json, "moved", now->moved + value_int(earlier, "moved", 0));
    json_put_int(json, "cached", now->cached + value_int(earlier, "cached", 0));
    json_put_int(json, "micro_dollars",
                 now->micro_dollars + value_int(earlier, "micro_dollars", 0));
    json_put_array(json, "causes");
    for (size_t i = 0; list && i < list->count && i < 3 * CAUSES_MOST; i++)
        put_earlier_cause(json, list->items[i]);
    for (size_t i = 0; i < count; i++)
        put_cause(json, &causes[i], state_words[causes[i].state]);
    for (size_t i = 0; i < now->failure_count; i++)
        put_cause(json, &now->failures[i], "failed");
    for (size_t i = 0; i < now->nothing_count; i++)
        put_cause(json, &now->nothing[i], "nothing");
    json_array_end(json);
    json_object_end(json);
}

static const struct value *find(const struct value *list, const char *name)
{
    for (size_t i = 0; list && i < list->count; i++)
        if (strcmp(value_text(list->items[i], "name", ""), name) == 0)
            return list->items[i];
    return NULL;
}

char *search_asked_text(const struct search *search)
{
    enum { MODELS_MOST = 128 };
    struct model_view *views = mem_array(MODELS_MOST, sizeof *views);
    size_t count =
        search->completions ? completions_models(search->completions, views, MODELS_MOST) : 0;
    const struct value *earlier = value_get(search->asked_before, "list");
    count = count < MODELS_MOST ? count : MODELS_MOST;
    JSON_LOCAL(json, text, 1 << 20);
    json_object(&json);
    json_put_array(&json, "list");
    for (size_t i = 0; i < count; i++)
        put_model(&json, search, &views[i], find(earlier, views[i].name));
    for (size_t i = 0; earlier && i < earlier->count; i++) {
        bool again = false;
        for (size_t k = 0; k < count; k++)
            again = again || strcmp(views[k].name, value_text(earlier->items[i], "name", "")) == 0;
        if (!again)
            put_model(&json, search, NULL, earlier->items[i]);
    }
    json_array_end(&json);
    json_object_end(&json);
    mem_free(views);
    return buf_take(&text);
}

void search_recall_asked(struct search *search)
{
    struct value *root;
    struct err ignored;
    const char *text = search->record.asked;
    if (text && value_parse_json(search->arena, "asked", text, strlen(text), &root, &ignored) == 0)
        search->asked_before = root;
}
