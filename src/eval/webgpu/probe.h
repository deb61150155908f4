/* eval/webgpu/probe: what adapters there are, asked of a child, since their drivers run in whoever
 * asks. */
#pragma once

#include "eval/backend/backend.h"

int webgpu_probe(const int *cores, size_t core_count, bool roofline, struct arena *arena,
                 struct lane_facts *lane, struct err *err) MUST_USE;
int webgpu_count(struct arena *arena, int *count, struct err *err) MUST_USE;
/* What adapter `index` says of itself, and how many there are ("count"); "error" where it says
 * none. `cores`: "0,2", where its ceilings are measured, too; or NULL. */
int webgpu_ask(int index, const char *cores, struct arena *arena, struct value **answer,
               struct err *err) MUST_USE;

/* In the child: `probe N LIBRARY`, `compile N LIBRARY FILE`; an exit code. */
int webgpu_probe_main(int argc, char **argv);
