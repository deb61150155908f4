/* eval/problem/shipped: a definition that computes what a shipped problem computes begins with its
 * starts, in its own names. libexec/shipped_match.py recognises it: a PyTorch file when it is read,
 * any other when its starts are first asked for. One thread; blocks. */
#pragma once

#include "base/json.h"
#include "eval/problem/problem.h"

/* The shipped problems as that script takes them: one array. */
void shipped_put(struct json *json);
/* "inputs" and "outputs" of one problem, into an object. */
void shipped_put_tensors(struct json *json, const struct problem *problem);

struct value;
struct shipped { /* of a problem: what has been found */
    bool asked;
    const struct value *found;
};

/* {"name", "tensors": {theirs: ours}, "dims": {theirs: text over ours}, "flipped": [theirs]}; NULL:
 * like none. */
const struct value *shipped_of(const struct problem *problem);
/* Whether this input of the shipped problem lies transposed in the definition; NULL: any of them.
 * A function's text can put it right, a launch plan cannot. */
bool shipped_is_flipped(const struct problem *problem, const char *name);
/* The folder of the shipped problem which this one computes;
 * mem_free() it. NULL: none. */
char *shipped_folder(const struct problem *problem);

/* The folder that holds the problem's starts where it has none of its own; NULL: there is none. */
const char *shipped_starts_folder(const struct problem *problem, const char *backend);
