/* cache/question: what a verdict is an answer to: which definition at which shape, on which device,
 * by which compilers and versions, told what; and for eval which source. Two verdicts are of one
 * question where its text is the same, byte by byte: the hash in a name only finds it. Any thread.
 */
#pragma once

#include "base/arena.h"
#include "base/hash.h"
#include "base/value.h"
#include "eval/problem/problem.h"

struct asked {      /* borrowed */
    const char *by; /* "eval", "run" */
    const struct problem *problem;
    struct hash definition; /* of every file that it and its baselines are made of */
    const char *machine;    /* which one; see question_machine() */
    const char *twagent;    /* version */
    const char *settings;   /* JSON object: what of the command line a verdict depends on */
    const char *file;       /* eval: the source's file name, its text, its numbers (or NULL) */
    const char *source, *tune;
    const char *compilers; /* JSON of what else compiles its language; NULL: nothing */
    const struct value *device, *versions; /* as a record has them; NULL: not known yet */
};

struct question {
    const char *text;  /* a JSON object */
    const char *key;   /* its hash, 32 hex digits */
    const char *about; /* the hash of what was known before a lane was asked for its facts */
    const char
        *stem; /* "matmul_i512x512_512x512_o512x512_h0123456789ab": without "c_" and ".json" */
};

/* Texts in `arena`. ERR_USAGE where the problem's shapes cannot be computed. */
int question_make(struct arena *arena, const struct asked *asked, struct question *question,
                  struct err *err) MUST_USE;

/* A hash of what tells this machine from others. */
const char *question_machine(struct arena *arena);
