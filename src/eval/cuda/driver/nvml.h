/* eval/cuda/driver/nvml: what libnvidia-ml.so.1, opened at run time, knows of a device: driver
 * version, clocks, temperature, power, why clocks are held down, who else computes on it. */
#pragma once

#include "base/json.h"
#include "eval/backend/subject.h"

/* Members of an open JSON object; none where there is no library or no such device. */
void nvml_put(const char *pci, struct json *json);

/* For a process that looks often: the library stays open. False where there is none. */
bool nvml_watch(const char *pci);
void nvml_look(struct device_state *state); /* state->looks is 1, or 0 where nothing is known */
