/* agents/completion_record: a completion as it lies in STORE_COMPLETIONS. Pure; any thread. */
#ifndef AGENTS_COMPLETION_RECORD_H
#define AGENTS_COMPLETION_RECORD_H

#include "agents/providers/codec.h"

/* Identity of a request: everything that the provider is told, where it is asked, and `sample`,
 * which tells apart requests that ask for another answer to the same words. */
void completion_key(const char *codec, const char *base_url,
                    const struct completion_request *request, int64_t sample, char key[33]);

/* One JSON object: purpose, sample, tries, elapsed_ms, request{...}, answer{...}. */
void completion_encode(const struct completion_request *request,
                       const struct completion *completion, const char *purpose, int64_t sample,
                       int tries, uint64_t elapsed_ns, struct buf *out);

/* Texts go to the arena. ERR_CORRUPT where the record is not one. */
int completion_decode(struct arena *arena, const char *text, size_t length,
                      struct completion *completion, struct err *err) MUST_USE;

#endif
