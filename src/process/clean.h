/* process/clean: one line of a tool's words, as others may see it. Any thread. */
#pragma once

#include "base/buf.h"

/* Adds at most 400 bytes and a newline: absolute paths become their last part, addresses "0x..",
 * what is not printable a space. UTF-8 passes. */
void clean_line(struct buf *out, const char *text, size_t length);
