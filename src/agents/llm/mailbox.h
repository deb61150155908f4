/* agents/llm/mailbox: a model that is asked by a file and answers by one beside it. A person, a
 * batch job or any other program can be that model.
 *
 *   FOLDER/KEY.request.json   model, system, prompt, schema, max_tokens, purpose, asker
 *   FOLDER/KEY.md             the same, to be read by a person
 *   FOLDER/KEY.answer.txt     the answer, as it is; or
 *   FOLDER/KEY.answer.json    {"text": ..., "usage": {"prompt_tokens", "completion_tokens"}}
 *
 * An answer is taken when two looks, half a second apart, find the same file: the same inode, size
 * and time of change, and not empty. So a file that is being written is left alone, and one that is
 * renamed into place is taken at the second look. Both calls block: for loop/work. */
#pragma once

#include "agents/llm/providers/codec.h"

enum { MAILBOX_LOOK_MS = 500 };

struct mail { /* one request; zero-initialize; texts borrowed */
    const char *folder, *key, *purpose, *asker;
    const struct completion_request *request;
    struct arena *arena; /* for the answer */
    /* What the last look found. */
    bool posted;
    bool seen;       /* there is an answer's file, whole or not */
    bool taken;      /* and here it is: */
    bool complained; /* about a file that cannot be read as an answer */
    struct completion completion;
    struct err err; /* ERR_NONE, or why the folder cannot be used, or why the file is no answer */
    uint64_t inode, bytes, changed_ns;
};

/* Writes the request's files, where they are not there yet, each in one step. */
void mailbox_post(struct mail *mail);
void mailbox_look(struct mail *mail);
