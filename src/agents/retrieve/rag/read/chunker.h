/* rag/chunker: what the readers of formats tell: headings, prose, code; it makes the passages.
 * For the files of this folder alone. */
#pragma once

#include "agents/retrieve/rag/read/chunk.h"

#include <stdbool.h>

struct chunker {
    struct passage_list *list; /* borrowed */
    char headings[HEADING_LEVELS][HEADING_MOST + 4];
    struct buf text;
    struct code_span *spans;
    size_t span_count, span_capacity;
    uint32_t line; /* where the open passage starts */
    bool prose;    /* the open passage has more than code */
};

/* Level 1 is the document's own title, deeper ones lie under it. Ends the open passage. */
void chunker_heading(struct chunker *chunker, int level, const char *text, size_t length);
/* One paragraph, list or table; `line` is where it starts. */
void chunker_prose(struct chunker *chunker, const char *text, size_t length, uint32_t line);
/* A whole code block; `fence` writes ``` lines around it, so that a prompt shows what it is. */
void chunker_code(struct chunker *chunker, const char *text, size_t length, uint32_t line,
                  bool fence);
void chunker_flush(struct chunker *chunker); /* ends the open passage, if there is one */

/* A line without its newline; moves *at past it. False at the end of the text. */
struct text_line {
    const char *text;
    size_t length, indent; /* indent: bytes of blanks at its start; length where all is blank */
};
bool text_line_next(const char *text, size_t length, size_t *at, struct text_line *line);
bool text_line_blank(const struct text_line *line);

void chunk_markdown(struct chunker *chunker, const char *text, size_t length);
void chunk_html(struct chunker *chunker, const char *text, size_t length);
void chunk_rst(struct chunker *chunker, const char *text, size_t length);
void chunk_plain(struct chunker *chunker, const char *text, size_t length);
void chunk_script(struct chunker *chunker, const char *text, size_t length);
void chunk_notebook(struct chunker *chunker, const char *text, size_t length);
void chunk_source(struct chunker *chunker, const char *text, size_t length);
