/* Vectors for the index: who is asked for them, by the same names, addresses and keys as a run's
 * models. */
#include "agents/llm/key_command.h"
#include "base/mem.h"
#include "cli/docs/docs.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

static int choose(const struct settings *settings, const char *name, struct arena *arena,
                  struct models *models, struct err *err)
{
    const struct model_defaults defaults = {.provider = "openai",
                                            .base_url = settings->base_url,
                                            .temperature = -1,
                                            .env_file = settings->env_file};
    struct catalogue *catalogue;
    if (catalogue_load(arena, settings->models, &catalogue, err) != 0)
        return -1;
    if (models_choose(arena, catalogue, name, &defaults, models, err) != 0)
        return err_wrap(err, "--embedding-model");
    if (models->count == 1 && strcmp(models->items[0].provider, "openai") == 0)
        return 0;
    return err_set(err, ERR_USAGE,
                   "--embedding-model: expected one model of a server that speaks OpenAI's "
                   "format, not \"%s\"",
                   name);
}

int docs_embedder(const struct settings *settings, struct arena *arena, struct embedder *embedder,
                  struct err *err)
{
    struct models models;
    if (choose(settings, settings->embedding_model, arena, &models, err) != 0)
        return -1;
    const struct model *model = models.items;
    *embedder = (struct embedder){.url = model->base_url,
                                  .key = model_key(model),
                                  .model = model->wire_name,
                                  .name = model->name,
                                  .ca_file = settings->search.ca_file};
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

/* Whose vectors the index of these settings' store has; "" where there are none. */
static void look_into_index(const struct settings *settings, struct arena *arena, const char **name,
                            const char **url)
{
    struct rag *rag;
    struct err ignored;
    char *folder = settings->store ? mem_strdup(settings->store) : store_default_folder();
    *name = *url = "";
    if (rag_open(folder, false, &rag, &ignored) == 0) {
        if (rag_embedded_by(rag, arena, name, url, &ignored) != 0)
            *name = "";
        rag_close(rag);
    }
    mem_free(folder);
}

static bool has_prices(const struct model *model)
{
    return model->prompt_price >= 0 && model->completion_price >= 0;
}

int docs_run_embedder(const struct settings *settings, struct arena *arena, struct models *models,
                      const char **note, struct err *err)
{
    const char *named = settings->embedding_model, *url;
    struct models chosen;
    struct err why;
    *models = (struct models){.count = 0};
    *note = NULL;
    if (named && strcmp(named, "none") == 0)
        return 0;
    if (named && *named)
        return choose(settings, named, arena, models, err);
    look_into_index(settings, arena, &named, &url);
    if (!*named)
        return 0;
    /* What nobody named here is asked only where that is beyond doubt, and never against a cap. */
    if (choose(settings, named, arena, &chosen, &why) != 0)
        *note = arena_strdup(arena, why.message);
    else if (strcmp(chosen.items[0].base_url, url) != 0)
        *note =
            arena_printf(arena, "the index has vectors of %s at %s, and %s would be asked at %s",
                         named, url, named, chosen.items[0].base_url);
    else if (settings->search.budget_micro_dollars > 0 && !has_prices(chosen.items))
        *note = arena_printf(arena, "there is a budget in dollars, and %s has no prices (%s)",
                             named, chosen.items[0].where);
    else
        *models = chosen;
    return 0;
}
