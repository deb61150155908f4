/* eval/cuda/run/wire: what host and CUDA runner say to each other: a control page that only the
 * host can write, a report page that the runner fills, and two eventfds. The runner's code is ours
 * alone and device code reaches neither page: of the report times and faults are taken, the times
 * only within what the worker's own clock saw.
 *
 *   host                               runner
 *   spawn, device and regions set -->  context, device buffers, regions registered
 *                                 <--  done (warm; may wait here as a spare)
 *   WIRE_LOAD, artifact, go       -->  loads the cubin once, to see that it can
 *                                 <--  done
 *   WIRE_CALL, call, plan, go     -->  calls
 *                                 <--  done ... and so on
 */
#pragma once

#include "eval/backend/subject.h"
#include "eval/cuda/run/plan.h"
#include "eval/cuda/run/profile_wire.h"
#include "eval/cuda/run/sanitizer_wire.h"
#include "eval/cuda/run/variants.h"
#include "eval/runner/wire.h"

enum { WIRE_REASON_MAX = 400 };
enum { IMAGES_MAX = LAUNCHES_MAX * VARIANTS_MAX };
enum { WIRE_LOAD, WIRE_CALL, WIRE_PROFILE, WIRE_RECORDS, WIRE_SAMPLES };
/* Supervised: a call is made ready; then all that are run. */
enum { WIRE_READY = WIRE_SAMPLES + 1, WIRE_RUN, WIRE_QUIT };

/* What a call's time goes to, for a time line (eval/data/timeline.h). */
enum run_part { PART_LOAD, PART_CLEAR, PART_UP, PART_EMPTY, PART_LAUNCH, PART_HASH, PART_DOWN };
enum { RUN_PARTS = PART_DOWN + 1 };

struct gpu_control {
    int32_t parent; /* the runner ends where this is not who started it */
    int32_t gpu_index;
    uint64_t inputs_bytes, outputs_bytes;
    uint32_t command;
    uint64_t hash_key;  /* of the inputs' hashes: drawn for each call, and told to nobody else */
    int32_t supervised; /* by compute-sanitizer, which is then the runner's parent */
    int32_t timeline;   /* every part is waited for, and its time told; not a timed call's sweep */
    int32_t profiles;   /* it opens CUPTI before it is warm */
    char artifact[WIRE_PATH_MAX];
    uint32_t image_count; /* 0: the artifact is one cubin */
    struct {
        uint64_t at, bytes;
    } images[IMAGES_MAX];
    struct call call;
    struct plan plan;
    struct wire_sanitize sanitize; /* with WIRE_READY */
    int32_t in_turn;               /* with WIRE_RUN: one call after the other */
};

struct gpu_report {
    uint32_t status;
    char reason[WIRE_REASON_MAX];
    uint32_t inputs_wrong;  /* an input was written to */
    uint32_t around_wrong;  /* what lies around outputs and workspaces was */
    uint32_t launches;      /* of the plan in a call that stays */
    uint32_t differs, kept; /* one of them gave something else; the first is there, too */
    uint32_t keeps;   /* what one launch left another may find; a launch of one call in the next */
    uint32_t running; /* of the plan, for whoever finds the runner dead or hanging */
    uint32_t pinned;  /* the regions are registered: copies run at the bus's rate */
    double event_ns;
    /* From before memory is restored to the plan's end, by two events and by the clock. */
    double span_ns, wall_ns;
    struct device_state state;           /* after the launch of a timed call */
    uint64_t part_ns[RUN_PARTS];         /* where control->timeline */
    uint64_t tensors[CALL_POINTERS_MAX]; /* the answer to WIRE_READY: where they lie */
    struct wire_profile profile;         /* the answer to WIRE_PROFILE; to WIRE_RECORDS: .records */
    struct wire_hot hot;                 /* to WIRE_SAMPLES */
};
