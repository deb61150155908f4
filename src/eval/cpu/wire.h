/* eval/cpu/wire: what host and runner say to each other: a control page that only the host can
 * write, and two eventfds. The runner has no other way to answer than "done".
 *
 *   host                              runner
 *   spawn, region and cores set  -->  maps, loads the OpenMP runtime
 *                                <--  done (warm; may wait here as a spare)
 *   artifact set, go             -->  confines itself, for good
 *                                <--  done (up to here every failure is ours)
 *   looks at its filters, go     -->  loads the artifact
 *                                <--  done (loaded)
 *   call set, go                 -->  calls
 *                                <--  done ... and so on
 */
#pragma once

#include "eval/candidate/layout.h"
#include "eval/runner/wire.h"

#include <stdint.h>

enum { WIRE_CORES_MAX = 64, WIRE_PAGE = 4096 };

/* All that a candidate may know of a call. Nothing here tells a timed call from another. */
struct wire_call {
    uint32_t input_count, output_count, workspace_count;
    uint64_t offsets[CALL_POINTERS_MAX];
    int64_t dims[DIMS_MAX];
};

/* sizeof is rounded up to whole pages when mapped. */
struct control {
    int32_t parent; /* the runner ends where this is not who started it */
    uint32_t core_count;
    int32_t cores[WIRE_CORES_MAX];
    uint64_t inputs_bytes, outputs_bytes;
    uint64_t memory_bytes; /* what it may map besides the regions */
    char artifact[WIRE_PATH_MAX];
    uint32_t alone; /* it is in a folder of its own */
    /* Of the region: the inputs once more for each slot, among pages without rights. */
    uint32_t alias_count;
    struct alias aliases[ALIAS_SETS][INPUTS_MAX];
    uint64_t alias_end; /* where these end */
    struct wire_call call;
};
