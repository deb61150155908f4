/* eval/cuda/sanitize/tools: compute-sanitizer's tools as processes, each around a runner of its
 * own. Inside this room. One thread's at a time. */
#pragma once

#include "eval/cuda/run/host.h"
#include "eval/cuda/sanitize/sanitizer.h"

struct supervisor {
    struct gpu_host *host; /* NULL: it does not run, or not any more */
    struct buf said;
    char mark[40]; /* drawn anew each time: what a candidate prints is not taken for its own */
    bool woken;    /* it was told to get ready: before that it has nothing of the device */
    bool loaded;   /* it holds the candidate */
    bool busy;     /* with making the call `next` ready, or, `running`, with those that are */
    bool running;
    bool quitting;                  /* it was told to end */
    bool over;                      /* it ended behind the last call; all that it said is there */
    size_t next, ran;               /* calls that were made ready; of them, those that have run */
    uint64_t begun_ns, deadline_ns; /* of what it is busy with, or of its end */
    struct err failed;              /* of a call: code and reason */
    struct place *places;           /* the tensors of its calls, as the runner told; place.c */
    size_t place_count, place_room;
};

struct tools {
    struct supervisor each[TOOLS];
    const char *artifact; /* owned; NULL: they have met no candidate */
    const struct region *region;
};
extern struct tools tools;

void tools_discard(void); /* kills and forgets them */
int tool_wake(struct supervisor *tool, struct err *err) MUST_USE;
/* What it has said since, lines of its own alone. */
void tool_listen(struct supervisor *tool);
/* Of the call of this number, which was made ready now. */
void place_keep(struct supervisor *tool, size_t call);
/* " in parts at M=7, N=61": the tensor that an address lies in or is nearest to. */
void place_tell(const struct supervisor *tool, const struct program *program,
                const struct call *calls, uint64_t address, struct buf *text);
/* Every tool is there and has met no candidate, or is started; none is waited for. */
int tools_spare(const struct lane_facts *lane, const struct region *region,
                struct err *err) MUST_USE;
