/* cli/run/chosen: which models a run asks, from its settings, and again when it is resumed.
 * Main thread; reads files. Texts and models live in the arena. */
#pragma once

#include "agents/llm/model.h"
#include "cli/options/settings.h"

struct chosen {
    struct models ideas, code;  /* both of none: the built-in proposer alone */
    struct models embedding;    /* one or none: whom prompts' queries get vectors from */
    const char *embedding_note; /* why the one that the index names is not asked, or NULL */
    const char *text;           /* JSON object: the choice, for the run's record; never a key */
};

/* By --model, --idea-model, --code-model and what says more of them. ERR_USAGE where they do not go
 * together, ERR_ENVIRONMENT names a missing key's variable. */
int chosen_from_settings(struct arena *arena, const struct settings *settings,
                         struct chosen *chosen, struct err *err) MUST_USE;

/* A recorded choice, with what the command line says over it: a model or a provider named there
 * takes the place of all that was chosen. */
int chosen_again(struct arena *arena, const char *text, const struct settings *settings,
                 struct chosen *chosen, struct err *err) MUST_USE;
