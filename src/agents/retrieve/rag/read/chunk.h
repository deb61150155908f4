/* rag/chunk: documents to passages. Passages follow headings and blocks, keep their heading path,
 * and never cut a code block: one that is longer than a passage should be is a passage of its own.
 * One owner, any thread; no I/O. Texts are valid UTF-8 (rag/read sees to it), else may be anything.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

/* Changed whenever the same document gives other passages: then `docs update` reads all again. */
enum { CHUNK_VERSION = 2 };

enum document_kind {
    DOCUMENT_MARKDOWN,
    DOCUMENT_HTML,
    DOCUMENT_RST,
    DOCUMENT_PLAIN,
    DOCUMENT_SOURCE,   /* C, C++, CUDA */
    DOCUMENT_PDF,      /* as pdftotext gives it: form feeds between pages */
    DOCUMENT_SCRIPT,   /* Python */
    DOCUMENT_NOTEBOOK, /* Jupyter's JSON */
    DOCUMENT_KINDS
};

const char *document_kind_name(enum document_kind kind); /* "markdown", ... */

enum {
    PASSAGE_GOOD = 1400, /* bytes: no paragraph is added to a passage past this */
    PASSAGE_MOST = 2400, /* bytes: prose is cut before this, at the end of a line or sentence */
    HEADING_MOST = 160,  /* bytes: the rest is dropped */
    HEADING_LEVELS = 8
};

struct code_span {
    uint32_t start, end; /* bytes in the passage's text */
};

struct passage {       /* texts in the arena of the list */
    const char *title; /* the innermost heading, or a declaration's name */
    const char *path;  /* the headings above it, outermost first, joined by " > "; may be "" */
    const char *text;
    size_t length;
    uint32_t line; /* where it starts, from 1 */
    const struct code_span *spans;
    size_t span_count;
};

struct passage_list {
    struct arena *arena; /* the caller's */
    struct passage *items;
    size_t count, capacity;
};

/* `name` stands in for a title where the document has none. */
void chunk_document(enum document_kind kind, const char *name, const char *text, size_t length,
                    struct passage_list *list);
void passage_list_free(struct passage_list *list); /* the array; not the arena */
