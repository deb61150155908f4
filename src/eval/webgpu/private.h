/* eval/webgpu/private: the backend's operations, whose contracts are in eval/backend/backend.h. */
#pragma once

#include "eval/backend/backend.h"
#include "eval/emit/emit.h"

extern const struct emitter emitter_webgpu; /* an ES module, and a page that runs it in a browser */

void webgpu_describe(void);
int webgpu_findings(const struct value *answer, struct buf *out);
