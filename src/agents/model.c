#include "agents/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct catalogue {
    int entries;
};

int catalogue_load(struct arena *arena, const char *file, struct catalogue **catalogue,
                   struct err *err)
{
    (void)file;
    (void)err;
    *catalogue = ARENA_NEW(arena, struct catalogue);
    return 0;
}

int models_choose(struct arena *arena, const struct catalogue *catalogue, const char *choice,
                  const struct model_defaults *defaults, struct models *models, struct err *err)
{
    (void)catalogue;
    struct model *model = ARENA_NEW(arena, struct model);
    const struct codec *codec = codec_find(defaults->provider ? defaults->provider : "openai");
    if (codec == NULL || choice == NULL || *choice == '\0')
        return err_set(err, ERR_USAGE, "no such provider, or no model");
    *model = (struct model){.name = arena_strdup(arena, choice),
                            .provider = codec->name,
                            .wire_name = arena_strdup(arena, choice),
                            .codec = codec,
                            .base_url = defaults->base_url ? arena_strdup(arena, defaults->base_url)
                                                           : codec->default_url,
                            .key_variable = codec->key_variable,
                            .temperature = defaults->temperature,
                            .max_tokens = defaults->max_tokens,
                            .prompt_price = -1,
                            .completion_price = -1,
                            .weight = 1,
                            .where = "--model"};
    const char *key = getenv(codec->key_variable);
    model->key = key ? arena_strdup(arena, key) : NULL;
    *models = (struct models){.items = model, .count = 1};
    return 0;
}

const struct model *models_pick(const struct models *models, uint64_t number)
{
    double total = 0;
    for (size_t i = 0; i < models->count; i++)
        total += models->items[i].weight;
    double at = (double)(number >> 11) / (double)(UINT64_C(1) << 53) * total;
    for (size_t i = 0; i + 1 < models->count; i++) {
        at -= models->items[i].weight;
        if (at < 0)
            return &models->items[i];
    }
    return &models->items[models->count - 1];
}

int64_t model_cost(const struct model *model, int64_t prompt_tokens, int64_t completion_tokens)
{
    if (model->prompt_price < 0 || model->completion_price < 0)
        return -1;
    double prompt = prompt_tokens > 0 ? (double)prompt_tokens : 0;
    double completion = completion_tokens > 0 ? (double)completion_tokens : 0;
    return (int64_t)ceil(prompt * model->prompt_price + completion * model->completion_price);
}
