/* eval/cuda/draw/generator: large inputs are drawn on the device, by a process of ours with a
 * context of its own in which nothing of a candidate's ever runs: a seed is in no place that a
 * candidate sees.
 *
 *   worker                             generator
 *   spawn, socket and windows     -->  context, the kernel compiled
 *                                 <--  a reply: ready
 *   a request                     -->  a window drawn, and brought to the host
 *                                 <--  a reply ... two windows take turns
 *
 * What comes is draw.c's numbers, byte for byte: two blocks of each window are drawn again by the
 * worker and compared. Whatever fails ends the generator; then the worker draws by itself. */
#pragma once

#include "base/buf.h"
#include "eval/backend/lane_facts.h"
#include "eval/data/draw.h"

enum { GENERATOR_SOCKET = 3, GENERATOR_MEMORY = 4, GENERATOR_FIRST_OTHER = 5 };
enum { GENERATOR_WINDOWS = 2, GENERATOR_WINDOW_BYTES = 16 << 20, GENERATOR_LEAST_BYTES = 4 << 20 };

struct generator_request {
    struct drawing drawing;
    uint64_t first, count; /* a block of NUMBERS_BLOCK, and how many numbers from it on */
    uint32_t window;
};
struct generator_reply {
    int32_t failed;
};

/* ---- the worker's side: measuring thread alone; one generator, which dies with that thread ----
 */

/* Starts one for the lane's GPU where an input of floats has `bytes` enough, but not with
 * $TWAGENT_DRAW_ON_DEVICE=0, and waits for nothing; ends one that is not wanted. */
void cuda_draw_warm(const struct lane_facts *lane, const char *arch, size_t bytes);
/* draw_run() on the device. False: not ready yet, gone, or nothing for it (small, integers, an edge
 * case); `out` has anything then. */
bool cuda_draw(const struct drawing *drawing, size_t count, void *out);
/* Waits until it is ready or gone; false: there is none. */
bool cuda_draw_await(void);
void cuda_draw_end(void);

/* ---- the generator's ---- */

/* `twagent runner cuda draw PARENT GPU ARCH`. Returns an exit code. */
int generator_main(int argc, char **argv);
/* The unit that it compiles. */
void generator_source(struct buf *text);
/* The cubin for "sm_90a"; mem_free() it. ERR_ENVIRONMENT: no NVRTC, or one that refuses it. */
char *generator_compile(const char *arch, struct err *err);
