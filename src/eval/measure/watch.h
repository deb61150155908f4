/* eval/measure/watch: how a device was doing beside the timed calls. Inside src/eval. */
#pragma once

#include "eval/measure/measure.h"

void bench_watch(struct bench *bench, const struct device_state *state);
/* metrics.device_state, a member of an open object; nothing where there was no device. */
void bench_put_watched(const struct bench *bench, struct json *json);
