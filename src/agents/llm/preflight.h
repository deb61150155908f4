/* agents/llm/preflight: before a run starts work: is every model there, with this key, at this
 * address? Loop thread only. One task; asks each (address, key, model) once, all at once. */
#pragma once

#include "agents/llm/model.h"
#include "loop/task.h"

struct preflight; /* opaque */

/* `models`: [count], borrowed until it has ended. Starts a task under `parent`. */
struct preflight *preflight_start(struct loop *loop, struct task *parent,
                                  const struct models *const *models, size_t count,
                                  const char *ca_file, struct err *err);
bool preflight_done(const struct preflight *preflight);
void preflight_cancel(struct preflight *preflight);

/* Once done. ERR_NONE: all are there, or could not be asked in a way that says they are not (a
 * server that lists no models; one that is down for now: the run's own retries are for that; each
 * is a warning in the log). Else what is wrong with which model, without the key: 401 and 403, 404
 * of the model, a redirect, HTML, TLS, a name that does not resolve. */
const struct err *preflight_error(const struct preflight *preflight);
void preflight_free(struct preflight *preflight);
