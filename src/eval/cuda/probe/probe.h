/* eval/cuda/probe: what the worker knows of a GPU: asked of a short-lived `twagent runner
 * cuda probe`, since the worker opens no driver. Any thread; blocks. */
#pragma once

#include "eval/backend/backend.h"

/* eval/backend/backend.h's probe. Ceilings of `roofline` are measured on the device (about a
 * second). */
int cuda_probe(const int *cores, size_t core_count, bool roofline, struct arena *arena,
               struct lane_facts *lane, struct err *err) MUST_USE;

/* Tries whether hardware counters can be read here, and says which (about a second); the error says
 * why not. */
int cuda_probe_counters(int gpu_index, struct arena *arena, const char **words,
                        struct err *err) MUST_USE;

/* How many GPUs the driver shows, as CUDA_VISIBLE_DEVICES has it. ERR_ENVIRONMENT: none. */
int cuda_count(struct arena *arena, int *count, struct err *err) MUST_USE;

/* The asked process: one JSON object on stdout. Arguments: INDEX [roofline|counters|count]. */
int device_probe_main(int argc, char **argv);
