/* agents/llm/key_command: a key that a command prints, as cloud tokens are: it is run again when
 * its key is old, or was refused. The key stands in no log, store, or child's environment. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct model;

struct key_command {           /* of an entry, shared by all that chose it */
    const char *const *words;  /* NULL-terminated */
    const char *name;          /* the same as one text: whose key it is */
    const char *program;       /* the first one's path; NULL until it was first run */
    struct arena *arena;       /* keys lie in it: the entry's */
    uint64_t lifetime_ms;      /* of what it prints */
    const char *prefix;        /* model.h's key_prefix */
    const char *key, *before;  /* now, and the one that it took the place of; or NULL */
    uint64_t got_ns, tried_ns; /* 0: never */
    bool refused, running;
};

/* Runs it once: blocks, 20 s at most (start of a run). ERR_ENVIRONMENT with what it said. */
int key_command_first(struct key_command *command, struct err *err) MUST_USE;

/* The same, without keeping it: any thread; mem_free() it, or key_command_take(), which is the loop
 * thread's. NULL with the error. */
char *key_command_run(const struct key_command *command, struct err *err);
void key_command_take(struct key_command *command, char *key);
/* "PREFIXid:secret:token", of `prefix` that signs; `token` may be NULL. mem_free() it. */
char *key_signing(const char *prefix, const char *id, const char *secret, const char *token);

/* As requests have it: the command's, with "Bearer " where it says so, or the model's own; NULL. */
const char *model_key(const struct model *model);
void model_hide_key(const struct model *model, char *text);

/* A request with it came back with 401 or 403; false: it has no command, so that it stays so. */
bool key_was_refused(const struct model *model);
