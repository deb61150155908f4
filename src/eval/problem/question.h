/* eval/problem/question: one question to one of libexec's Python scripts, in a sandbox and with a
 * folder of its own for what it writes. Inside src/eval/problem. Blocks. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "process/python_probe.h"

#include <stdint.h>

struct question {
    const struct interpreter *python;
    const char *script;      /* absolute */
    const char *readable[2]; /* more folders that it may read; NULL: none */
    uint64_t timeout_ms;
    struct arena *arena;
    const char *scratch; /* question_open() makes it; question_close() removes it */
};

int question_open(struct question *question, struct err *err) MUST_USE;
void question_close(struct question *question);
/* `request`: JSON, with a line's end or without. The answer is one line. */
int question_ask(const struct question *question, const char *request, struct buf *answer,
                 struct err *err) MUST_USE;
