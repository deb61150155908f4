/* rag/read: one file of a document as text that chunkers can trust to be UTF-8. Any thread; blocks.
 * Opens nothing but regular files, follows no link in the last part of the path, and reads at most
 * RAG_FILE_BYTES_MOST. */
#pragma once

#include "agents/retrieve/rag/read/chunk.h"
#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>

enum read_result {
    READ_WELL,
    READ_OTHER, /* no kind of document by its name */
    READ_TOO_LARGE,
    READ_NOT_TEXT,
    READ_UNREADABLE
};

struct read_file {
    enum document_kind kind;
    struct hash content;
    uint64_t bytes;
};

/* Raw bytes into the emptied `bytes`, their kind and hash. `named`: the user named this very file,
 * so that a name that says nothing means plain text. *why: static text, for people. */
enum read_result read_raw(const char *path, bool named, struct buf *bytes, struct read_file *file,
                          const char **why);

/* From raw bytes to text: `bytes` in, `bytes` out. PDF goes through pdftotext, a child with limits.
 */
enum read_result read_text(const char *path, const struct read_file *file, struct buf *bytes,
                           const char **why);

/* Valid UTF-8: what is none becomes U+FFFD, controls become blanks, CR LF becomes LF. */
void read_clean(const char *bytes, size_t length, struct buf *out);

/* The text of a PDF as pdftotext gives it. */
enum read_result read_pdf(const char *path, struct buf *out, const char **why);
