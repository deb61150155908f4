/* agents/llm/command: a program as a model: it gets the request on stdin, or as a file that one of
 * its words names, and what it prints is the answer. An agent is a program that works on a kernel
 * in a folder, and asks for evaluations as it goes. models.yaml says its words. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command_model {
    const char *const *words; /* NULL-terminated; "{file}" in one stands for the request's path */
    const char *program;      /* the first one's path; NULL until command_find() */
    const char *const *reads; /* sandboxed: what it may read beside the system's; NULL-terminated */
    bool by_file, sandboxed;
    bool acp; /* it speaks the Agent Client Protocol: `twagent acp` asks it */
    uint64_t limit_ms;
    size_t output_max;         /* bytes; more is no answer */
    unsigned slots;            /* at once */
    int retries;               /* -1: as for every model */
    int64_t evaluations;       /* that an agent may ask for, on one kernel; 0: no agent */
    const char *bill, *answer; /* members of the JSON object that it prints: what it cost in
                                * dollars, its answer; NULL: it prints the answer itself */
    double call_price;         /* US dollars; < 0: not known */
};

/* The entry's own keys. ERR_USAGE: "PATH:LINE: expected ...". */
int command_read(struct arena *arena, const char *path, const struct value *map, bool agent,
                 struct command_model *command, struct err *err) MUST_USE;
/* The words under `key`, a list. */
int command_words(struct arena *arena, const char *path, const struct value *map, const char *key,
                  const char *const **words, struct err *err) MUST_USE;
enum { AGENT_EVALUATIONS_MOST = 100, COMMAND_WORDS_MOST = 100 };

/* Looks for the program in $PATH. ERR_ENVIRONMENT. */
int command_find(struct arena *arena, const char *name, struct command_model *command,
                 struct err *err) MUST_USE;
