/* agents/search/candidate/writing: a model writes a candidate, and mends it. Inside
 * src/agents/search. */
#pragma once

#include "agents/ideas/ideas.h"
#include "agents/llm/ask.h"
#include "agents/retrieve/retrieve.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attempt;
struct arm;
struct agent;

/* What a model was asked for, for a candidate that it writes. */
struct writing {
    struct arena *scratch; /* what its prompts are made of */
    struct idea idea;
    const struct attempt *parent; /* the kernel that it starts from; in search->kept */
    struct ask ask;
    bool asked;
    uint64_t tried;             /* models that failed at this question; see struct draw */
    struct retrieval retrieval; /* what its prompt quotes */
    bool retrieving, retrieved;
    int64_t sample;      /* which implementation of the idea */
    int64_t max_tokens;  /* more room after an answer that was cut off; 0: the model's */
    unsigned shrink;     /* after a prompt that was too long */
    const char *source;  /* the last answer's code, to be mended; NULL: nothing yet */
    const char *failure; /* "did not compile"; NULL: a first writing */
    const char *diagnostics;
    const char *earlier;      /* its turns so far, for this model, to be carried along; or NULL */
    const struct model *told; /* who had them */
    struct buf system, prompt;
    bool given;          /* its source is there: an agent has it evaluated */
    struct agent *agent; /* where a coding agent may work on it, or NULL */
    bool operates;       /* one was asked last */
};

/* Implementation `sample` of an idea; its texts are copied into the attempt's arena. */
void writing_new(struct attempt *attempt, const struct idea *idea, const struct attempt *parent,
                 int64_t sample);
/* Nobody waits for it at a budget's end: a model may write for minutes. An agent that has begun is
 * waited for: it is paid, and has what it found to submit. */
bool writing_is_left(const struct attempt *attempt);
/* The source of one that an agent has evaluated; false with the error. */
bool writing_give(struct attempt *attempt, const char *text, size_t length, struct err *err);
enum writing_result {
    WRITING_WAIT,
    WRITING_DONE,
    WRITING_FAILED, /* reason in the record */
    WRITING_LEFT    /* nobody can be asked now: it stays as the store has it */
};
enum writing_result writing_step(struct attempt *attempt); /* one step of WRITING */
/* Sends it back with what went wrong; false where no repair is left. */
bool writing_repair(struct attempt *attempt, const char *failure, const char *reason,
                    const char *details);
/* What an earlier process had written, and what was wrong with it (NULL: not known). False: it
 * cannot be read. */
bool writing_recall(struct attempt *attempt, const char *code, size_t length, const char *failure,
                    const char *diagnostics);
const struct attempt *writing_parent(const struct writing *writing);
const char *writing_failure(const struct writing *writing, const char **diagnostics);
bool writing_busy(const struct writing *writing); /* something of it is under way; NULL: no */
void writing_cancel(struct writing *writing);     /* that; NULL is fine */
void writing_free(struct writing *writing);       /* NULL is fine */
