/* eval/cuda/run/calling: what the files of one call in a runner share: call.c, rounds.c. Runner
 * process only; functions return -1 where calling->fault says why. */
#pragma once

#include "eval/cuda/run/runner.h"
#include "eval/cuda/run/tensors.h"

struct calling {
    struct gpu_runner *runner;
    const struct call *call;
    struct tensors tensors;
    struct graph graph;
    struct fault fault;
    uint64_t inputs_hash, around_hash, first_hash; /* first: of the first round's outputs */
    bool hashed, compared;
    bool taken;        /* the launch that counts is one of the rounds */
    uint64_t first_ns; /* when the event `first` was recorded, on an idle stream */
    uint64_t part_ns;  /* when the present part began */
};

/* 0 where the result is; else it becomes the fault. */
int calling_broken(struct calling *calling, const char *what, cu_result result) MUST_USE;
int calling_wait(struct calling *calling) MUST_USE;

/* Where the call is crowded: company for what is launched next, behind it, and none any more. */
int crowd_comes(struct calling *calling) MUST_USE;
int crowd_follows(struct calling *calling) MUST_USE;
int crowd_goes(struct calling *calling) MUST_USE;

/* The launches of a call that stays before the one that counts, on its bytes and on others, without
 * a pause but for what takes their results away. Those on its own bytes are to give the same: where
 * one does not, it is the one that counts, and the first is kept beside it, since sums whose order
 * is left to chance differ, too: whoever knows what is right looks at both. */
int rounds_run(struct calling *calling) MUST_USE;
int rounds_launch(struct calling *calling) MUST_USE; /* one of them, which is not waited for */
int rounds_end(struct calling *calling) MUST_USE;    /* compares the launch that counts */
