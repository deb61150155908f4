/* agents/llm/model: which models a run may ask. The catalogue is models.yaml: the shipped one and
 * over it the person's own, with address, prices, limits; a choice such as
 * "gpt-5-mini@2,claude-sonnet-4-5" names entries with weights. Loading blocks (start of a run); the
 * rest is pure. Any thread. */
#pragma once

#include "agents/llm/providers/codec.h"
#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command_model;
struct key_command;

struct batch_terms { /* requests go together, for half the price and an answer within a day */
    uint64_t gather_ms, poll_ms; /* how long one waits for others; the longest between two looks */
    uint64_t wait_ms;            /* then the batch is cancelled */
};

struct model {                 /* texts live as long as the arena they were chosen into */
    const char *name;          /* as the person named it */
    const char *provider;      /* a codec's name, "mailbox" or "replay" */
    const char *wire_name;     /* what the provider is told */
    const struct codec *codec; /* NULL: mailbox and replay, which ask nobody over a network */
    const char *base_url, *key_variable;
    const char *key;                 /* NULL: none is needed or found; never logged or stored */
    struct key_command *key_command; /* prints the key, in place of `key`: key_command.h; or NULL */
    const char
        *key_prefix; /* goes as authorization behind it: "Bearer ", HTTP_SIGNS...; NULL: as usual */
    const struct command_model *command; /* a program; NULL: none (agents/llm/command.h) */
    const char *source;     /* mailbox: its folder; replay: the recorded run's id, "r3" */
    double temperature;     /* < 0: the provider's default */
    int64_t max_tokens;     /* of one answer; 0: the provider's default */
    int64_t context_tokens; /* prompt and answer; 0: not known */
    double prompt_price, completion_price; /* US dollars a million tokens; < 0: not known */
    double cached_price, written_price; /* of a prompt's that the provider's cache gives or takes;
                                           < 0: the prompt's price */
    const struct value *body;           /* more fields of each request, a map; NULL: none */
    const struct batch_terms *batch;    /* NULL: each goes by itself */
    const char *cache; /* "5m", "1h": it is asked to keep what prompts share; NULL: not asked */
    double reasoning;  /* tokens thought unseen for each of an answer that says no usage; 0: none */
    double weight;     /* > 0 */
    const char *where; /* for messages: "models.yaml:12", "--model" */
};

struct models {
    const struct model *items;
    size_t count;
};

struct catalogue; /* opaque; lives in the arena */

struct model_defaults { /* what options say about every model that does not say it itself */
    const char *provider, *base_url; /* or NULL */
    double temperature;              /* < 0: not said */
    int64_t max_tokens;              /* 0: not said */
    const char *env_file;            /* NULL: ./.env where there is one */
};

/* Reads the shipped models.yaml, then `file` (or ~/.config/twagent/models.yaml where there is one)
 * over it, entry by entry. ERR_USAGE with file, line and what was expected. */
int catalogue_load(struct arena *arena, const char *file, struct catalogue **catalogue,
                   struct err *err) MUST_USE;

/* `choice`: NAME[@WEIGHT], separated by commas; NAME is an entry, or [PROVIDER/]NAME of a model
 * that has none (its prices are not known), or mailbox/FOLDER, replay/RUN. Keys come from the
 * environment, else from the .env file. ERR_USAGE names the nearest entry; ERR_ENVIRONMENT a
 * missing key's variable. An empty choice with defaults.provider "mailbox" or "replay" is ERR_USAGE
 * too. */
int models_choose(struct arena *arena, const struct catalogue *catalogue, const char *choice,
                  const struct model_defaults *defaults, struct models *models,
                  struct err *err) MUST_USE;

/* By weight; the same number always gives the same model. */
const struct model *models_pick(const struct models *models, uint64_t number);

/* In micro-dollars, rounded up; < 0 where a price is not known. Tokens < 0 count as 0. */
int64_t model_cost(const struct model *model, int64_t prompt_tokens, int64_t completion_tokens);
/* The most that these can cost: where the provider puts all of the prompt into its cache. */
int64_t model_cost_most(const struct model *model, int64_t prompt_tokens,
                        int64_t completion_tokens);
/* What the provider's cache spared of that, in micro-dollars; < 0 where putting the prompt into it
 * cost more. 0 where the counts cannot be, or no price is known. */
int64_t model_cache_saved(const struct model *model, const struct completion *completion);
