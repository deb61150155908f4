/* eval/cuda/triton: a candidate in Triton becomes cubins, one for each of its launches and what is
 * known of their numbers, by `twagent cuda-compile --triton`: a sandboxed Python (libexec/
 * triton_compile.py), in which the candidate's module code runs, and its parent, which believes
 * nothing that it wrote. Neither a GPU nor a CUDA context is needed. Any thread. */
#pragma once

#include "base/json.h"
#include "eval/backend/backend.h"
#include "process/python_probe.h"

/* $TWAGENT_TRITON_PYTHON, or else the first Python that imports triton. ERR_ENVIRONMENT: none. */
int triton_find(struct interpreter *interpreter, struct err *err) MUST_USE;
/* {"triton": "3.9.0", "ptxas": "V12.9.86"}: what a verdict on a candidate holds for. Blocks. */
const char *triton_versions(struct arena *arena);
/* Names all files that decide on what it compiles to, for cubin_cache.h; "": cannot be told. */
const char *triton_toolkit(void);

/* Writes request.json into `folder` and prepares the command. Its artifact is one
 * cubin after the other, which the log describes for variants_read(). `arch`: "sm_90a".
 * `main_only`: it runs at the main shape alone.
 * ERR_ENVIRONMENT where no Triton is found; ERR_LIMIT, ERR_USAGE: the candidate's own fault. */
int triton_build(struct arena *arena, const char *arch, const struct program *program,
                 const struct names *facts, bool main_only, const char *folder, struct build *build,
                 struct err *err) MUST_USE;

/* `twagent cuda-compile --triton ...`: what triton_build() prepares. Returns an exit code. */
int triton_compile_main(int argc, char **argv);

/* `twagent cuda-compile --triton-serve PYTHON PREFIX BASE SCRIPT`: a Python that has imported
 * Triton and forks for each compile, as eval/cuda/compile/serve.h has it; ends when nobody can ask.
 * (serve.c)
 */
int triton_serve_main(int argc, char **argv);
/* The worker's end of it; -1: none to be had. Inside the room. */
int triton_serve_start(const struct interpreter *interpreter, const char *script);

/* Finds Triton, and starts its server: what a first compile would wait for. Blocks. (request.c) */
void triton_warm(void);

/* Errors as the author may see them. */
void triton_diagnostics(const char *name, const char *text, size_t length, struct buf *out);

/* ---- without a GPU (interpret.c) ---- */

struct interpreted {
    size_t passed, tried;
    const char *left_out; /* shapes too large for the interpreter, or why none was tried; "" */
    const char *wrong;    /* NULL: all are right */
    const char *details;
};

/* Runs it in Triton's interpreter at the check shapes that are small, on numbers drawn anew, and
 * checks what comes out as evaluations do. No evidence for the compiled kernel: the interpreter
 * computes float32 products in float32 whatever `input_precision` says, one program after the
 * other. Blocks. -1: ours, or the machine's. */
int triton_interpret(struct arena *arena, const struct program *program, const struct names *facts,
                     struct interpreted *interpreted, struct err *err) MUST_USE;

/* A launch's constants by name: tune numbers, then what it says itself. Inside the room. */
int triton_constants(const struct program *program, const struct launch *launch,
                     const struct names *facts, struct names *constants, struct err *err) MUST_USE;
/* A tensor map's tile, which the compile has to know. ERR_LIMIT: it cannot be told, or is none. */
int triton_box(const struct program *program, const struct tensor_map *map,
               const struct names *facts, int64_t box[TENSOR_MAP_RANK], struct err *err) MUST_USE;
/* As Triton calls it: "fp32". */
const char *triton_type(enum dtype dtype);
/* `twagent sandbox ... -- PYTHON -I -B SCRIPT`, ended by NULL; more arguments go behind it. It may
 * read `folder` and write to `scratch`, where these are given. */
size_t triton_command(struct arena *arena, const struct interpreter *interpreter,
                      const char *profile, const char *folder, const char *scratch,
                      const char *script, const char **argv);
/* Where one of ours lies; what children are told, who have no $TWAGENT_DATA. NULL: nowhere. */
const char *triton_script(struct arena *arena, const char *name, struct err *err);
enum { TRITON_ENV_MAX = 8 };
void triton_env(struct arena *arena, const char *scratch, const char *env[TRITON_ENV_MAX]);
enum { TRITON_ARGS_MAX = 48 };
