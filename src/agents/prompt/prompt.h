/* agents/prompt: what a model is told: the templates filled from plain structs.
 * prompts_load() blocks; the rest is pure. Any thread. */
#pragma once

#include "agents/ideas/attempt.h"
#include "agents/ideas/ideas.h"
#include "base/arena.h"
#include "base/buf.h"
#include "eval/problem/problem.h"
#include "eval/problem/target.h"

enum { PROMPT_BYTES_MAX = 2 << 20 };

struct prompts; /* opaque; lives in the arena it was loaded into */

/* Reads every template; an unknown slot in one is ERR_USAGE with "idea.txt:7: ...". */
int prompts_load(struct arena *arena, const char *backend, struct prompts **prompts,
                 struct err *err) MUST_USE;

struct prompt_passage { /* a quotation; somebody else's text */
    const char *where;  /* "gpu-memory.md:33: Coalescing" */
    const char *text;
};

struct prompt_work {        /* what the definition does at the timed shape; 0: not known */
    double flops, flops_ns; /* its operations, and what they take at the measured rate */
    double bytes, bytes_ns; /* its tensors, each once, at the faster of copying and reading */
    bool cached;            /* the caches hold them, so that they may take less */
    bool under_load;        /* when the rates were measured */
};

struct prompt_context { /* the same for every prompt of a run; borrowed */
    const struct problem *problem;
    const char *reference; /* text of the reference's source, or "" */
    const char *device;    /* JSON object of the lane's record, or "" */
    const char *facts;     /* JSON object: cores, l1_bytes, ...; or "" */
    const char *baseline;  /* name of what speed-ups are against, or "" */
    double baseline_ns;    /* 0: not known */
    struct prompt_work work;
    bool untuned;  /* the search tries no other tune numbers than are written */
    double spread; /* of a kernel with itself (A/A); 0: not known */
    /* what one prompt has of its own */
    const struct prompt_passage *passages; /* of manuals, about the idea at hand; the best first */
    size_t passage_count;
    const char *lessons;             /* lines, the most telling first; "" or NULL: none */
    const struct language *language; /* to be written; NULL: the backend's first */
    const char *wanted; /* how many ideas of each kind, a line; "" or NULL: as it likes */
};

struct prompt_kernel { /* a parent; texts borrowed, "" or NULL where there is none */
    const char *id, *name, *source, *tune; /* tune: JSON object of numbers */
    const char *metrics;                   /* JSON object: the profile */
    const char *finding; /* what its comparison with the baseline shows: "faster"; or NULL */
    double time_ns, speedup, speedup_low, speedup_high; /* 0: not measured */
};

enum prompt_agent { PROMPT_IDEAS, PROMPT_IMPLEMENT, PROMPT_REPAIR, PROMPT_OPERATE };
void prompt_system_for(const struct prompts *prompts, enum prompt_agent agent, struct buf *out);

/* Every prompt is a function of its inputs alone. `history`: the whole of it; what is shown is
 * chosen here, the most telling first. `shrink`: 0 is whole; each step more leaves out about half
 * of what can be spared, the most dispensable first (passages, history, other parents, profile, the
 * middle of the reference and of long sources), for a provider that said that it was too long. */
void prompt_ideas(const struct prompts *prompts, const struct prompt_context *context,
                  const struct prompt_kernel *parents, size_t parent_count,
                  const struct prompt_attempt *history, size_t history_count, int64_t count,
                  unsigned shrink, struct buf *out);
/* For points of a kernel's tune space. */
void prompt_values(const struct prompts *prompts, const struct prompt_context *context,
                   const struct prompt_kernel *kernel, const struct prompt_attempt *history,
                   size_t history_count, int64_t count, unsigned shrink, struct buf *out);
/* How many bytes at a prompt's beginning the run's other prompts of its kind have, too: up to the
 * end of what is said of the machine. A provider can keep them. */
size_t prompt_shared(const char *prompt);

void prompt_implement(const struct prompts *prompts, const struct prompt_context *context,
                      const struct prompt_kernel *parent, const struct idea *idea,
                      const struct prompt_attempt *history, size_t history_count, unsigned shrink,
                      struct buf *out);
/* The same for a coding agent, which works on it by itself. */
void prompt_operate(const struct prompts *prompts, const struct prompt_context *context,
                    const struct prompt_kernel *parent, const struct idea *idea,
                    const struct prompt_attempt *history, size_t history_count, unsigned shrink,
                    struct buf *out);
/* `failure`: PROMPT_NOT_COMPILED, "gave a wrong result"; `diagnostics`: evaluation.details;
 * `mended`: lines of what was mended before in vain, or "". */
#define PROMPT_NOT_COMPILED "did not compile"
void prompt_repair(const struct prompts *prompts, const struct prompt_context *context,
                   const struct idea *idea, const char *source, const char *failure,
                   const char *diagnostics, const char *mended, unsigned shrink, struct buf *out);

/* How a candidate for the problem is written in the language (NULL: the backend's first). */
void prompt_format(const struct prompts *prompts, const struct problem *problem,
                   const struct language *language, struct buf *out);
/* "void kernel(const float *A, float *C, int64_t M)": inputs, outputs, workspaces, dims. */
void prompt_signature(const struct problem *problem, struct buf *out);
/* "const float *A, float *C, long long M": what a launch's `args` may name, as CUDA spells it. */
void prompt_arguments(const struct problem *problem, struct buf *out);
/* "X: float32 pointer, M: number": the same, as Triton's are. */
void prompt_parameters(const struct problem *problem, struct buf *out);
/* Its bindings as WGSL declares them, a line each, and struct Dims. */
void prompt_bindings(const struct problem *problem, struct buf *out);
