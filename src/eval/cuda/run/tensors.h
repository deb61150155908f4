/* eval/cuda/run/tensors: a call's tensors in the device's memory. They do not lie there as in the
 * regions: PyTorch's allocator gives large tensors multiples of 2 MiB and small ones multiples of
 * 512, and what is right at one of these alone is wrong. Each call's seed says where; a page of the
 * region beside each tensor goes with it, as its red zone. Runner process only. What returns a
 * cu_result is queued, but for the hashes, which are waited for. */
#pragma once

#include "eval/candidate/layout.h"
#include "eval/cuda/driver/driver.h"

struct gpu_runner;

enum {
    TENSORS_SLACK = 32 << 20, /* more than the regions have, for what lies between tensors */
    TENSORS_ZONE = 64 << 10   /* around each: watched, and full of numbers that spoil a result */
};

struct tensors {
    struct gpu_runner *runner;
    const struct call *call;
    bool whole; /* inputs are so many that they lie as in the region, one behind the other */
    cu_pointer pointers[CALL_POINTERS_MAX];
    cu_pointer inputs_end; /* behind the last input's zone */
};

/* Where they lie, from these two addresses on: a pure function of the call. The room is that of the
 * regions and TENSORS_SLACK for each. */
void tensors_place(const struct call *call, cu_pointer inputs, cu_pointer outputs,
                   struct tensors *tensors);

/* Inputs with their zones, then outputs and workspaces as below. */
cu_result tensors_upload(const struct tensors *tensors) MUST_USE;
/* Outputs and workspaces: poison, or the region's bytes where the call has no seed for it. */
cu_result tensors_poison(const struct tensors *tensors) MUST_USE;
/* A quarter of each input whose numbers may change places for another quarter: other bytes; once
 * more: the call's own. */
cu_result tensors_swap(const struct tensors *tensors) MUST_USE;

cu_result tensors_hash_inputs(const struct tensors *tensors, uint64_t *hash) MUST_USE;
cu_result tensors_hash_outputs(const struct tensors *tensors, uint64_t *hash) MUST_USE;
/* Of what lies around outputs and workspaces, where nothing may be written. */
cu_result tensors_hash_around(const struct tensors *tensors, uint64_t *hash) MUST_USE;

/* Outputs, and the red zones of outputs and workspaces, into the region. */
cu_result tensors_download(const struct tensors *tensors) MUST_USE;
/* What the outputs are now, kept on the device, and the same into the region. The first returns
 * CU_OUT_OF_MEMORY where there is no room. */
cu_result tensors_keep(const struct tensors *tensors) MUST_USE;
cu_result tensors_bring_kept(const struct tensors *tensors) MUST_USE;
