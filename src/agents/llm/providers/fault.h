/* agents/llm/providers/fault: what a provider's error means, whichever provider's words it is in:
 * servers that speak one format often have another's errors behind them. Pure; any thread. */
#pragma once

#include "agents/llm/providers/codec.h"
#include "base/value.h"

/* `error` in any of the three forms: {message, type, code}, {type, message}, {code, message,
 * status, details}, or a bare text. `status` 0: it came as an event after status 200. */
enum fault fault_of_error(const struct value *error, int64_t status);
const char *fault_message(const struct value *error); /* "" where it has none */

/* At most 300 bytes of a provider's text, on one line. */
void fault_add_text(struct buf *reason, const char *text);

/* Of a status other than 200: its class and a line for people, without the key. */
enum fault fault_classify(int status, const char *body, size_t length, struct buf *reason);
/* The class of codec->describe()'s answer. FAULT_NONE: the model is there, or the server cannot say
 * (it does not describe models); a 404 is the model's only where the body speaks of it. */
enum fault fault_described(const char *model, int status, const char *body, size_t length,
                           struct buf *reason);
int64_t fault_patience_ms(const char *body, size_t length); /* -1: an error's body asks for none */
