/* Vectors for the index: who is asked for them, by the same names, addresses and keys as a run's
 * models. */
#include "agents/model.h"
#include "cli/docs.h"

#include <stdio.h>
#include <string.h>

int docs_embedder(const struct settings *settings, struct arena *arena, struct embedder *embedder,
                  struct err *err)
{
    const struct model_defaults defaults = {.provider = "openai",
                                            .base_url = settings->base_url,
                                            .temperature = -1,
                                            .env_file = settings->env_file};
    struct catalogue *catalogue;
    struct models models;
    if (catalogue_load(arena, settings->models, &catalogue, err) != 0 ||
        models_choose(arena, catalogue, settings->embedding_model, &defaults, &models, err) != 0)
        return -1;
    const struct model *model = models.items;
    if (models.count != 1 || strcmp(model->provider, "openai") != 0)
        return err_set(err, ERR_USAGE,
                       "--embedding-model: expected one model of a server that speaks OpenAI's "
                       "format, not \"%s\"",
                       settings->embedding_model);
    *embedder = (struct embedder){.url = model->base_url,
                                  .key = model->key,
                                  .model = model->wire_name,
                                  .ca_file = settings->ca_file};
    return 0;
}

int docs_embed(const struct settings *settings, struct rag *rag, struct arena *arena,
               struct err *err)
{
    struct embedder embedder = {.model = ""};
    size_t embedded = 0;
    if (settings->embedding_model == NULL)
        return 0;
    if (docs_embedder(settings, arena, &embedder, err) != 0 ||
        rag_embed(rag, &embedder, &embedded, err) != 0)
        return -1;
    if (!settings->json)
        printf("%zu passages embedded by %s\n", embedded, embedder.model);
    return 0;
}
