/* eval/problem/target: what code is written for: the facts of a backend that those need who do not
 * run it, as readers of candidates, prompts and reports do. Constants of the backend's own folder.
 * The program names all of them at its start, before there is another thread. Any thread. */
#pragma once

#include "base/buf.h"

struct language {
    const char *name;            /* "c++": as front matter and records have it */
    const char *const *suffixes; /* NULL-terminated; the first is that of files of ours */
    const char *open, *close, *comment_end; /* the lines around front matter; `close` ends so */
    const char *sign;    /* a text that nobody has named is in it where it has this; NULL: any */
    const char *entry;   /* what extract_code() looks for in an answer */
    const char *compile; /* for people: how a kernel compiles alone; NULL: not to be said */
    const char *facts;   /* that expressions may use: a probe's names, a blank between */
    bool (*allows)(
        const char *flag); /* it changes how a source is optimized and no more; NULL: none */
    const char *requires;  /* features that front matter may ask for, a blank between; NULL: none */
    const char *own;  /* names its starts' folder and format page; NULL: its target's name does */
    bool plan;        /* its candidates say how they are launched; else a call is all */
    bool own_blocks;  /* a source says itself how large a block is */
    bool ambiguous;   /* other files' names end so, too: none is looked for by its name */
    bool interpreted; /* whether it is right can be seen without the device, at small shapes */
    bool fixes_block; /* its compiler says a launch's block and shared bytes, not they */
};

struct target {
    const char *name;                        /* the backend's: "cpu" */
    const char *title;                       /* in prompts: "NVIDIA GPU" */
    const struct language *const *languages; /* NULL-terminated */
    /* Under which a machine's measured ceilings are kept, which this machine and these cores or
     * devices (or NULL) decide. mem_free() it. */
    char *(*ceilings_key)(const char *cores, const char *devices);
    /* Candidates that a lane can make use of at once: others are compiled while one is timed. 0: as
     * many as ever. */
    unsigned held;
    bool finite_only; /* its languages may take NaN and infinity for what never is */
};

/* `targets` ends with NULL and is kept. */
void targets_use(const struct target *const *targets);
const struct target *target_find(const char *name); /* NULL: there is none */

/* By the suffix of a file's name, or by its own name; NULL: none of any target. */
const struct language *language_of_file(const char *name);
const struct language *language_find(const char *name);
const struct target *language_target(const struct language *language); /* the first that has it */
bool target_has(const struct target *target, const struct language *language);
/* Of a text without a name: the first of the target's whose sign it has. */
const struct language *language_of_text(const struct target *target, const char *text);

/* What an option --language says of a target: "both", or a folder of starts by its name; NULL: the
 * first. How many languages of `chosen` it means, one for each folder; 0: the target has it not. */
enum { TARGET_FOLDERS_MAX = 4 };
size_t target_choose(const struct target *target, const char *word,
                     const struct language *chosen[TARGET_FOLDERS_MAX]);
/* Of its starts, below `starts/`; format-NAME.txt is the page on its form. */
const char *language_folder(const struct target *target, const struct language *language);

/* "c, c++ or cuda"; ".c, .cc or .cu": for messages. */
void languages_list(bool suffixes, struct buf *out);
