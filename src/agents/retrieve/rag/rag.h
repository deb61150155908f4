/* rag: passages of manuals and headers for prompts: an index of documents and what it finds.
 * rag_search() on any thread, many at once: each reads one snapshot of the index, and whoever
 * indexes meanwhile, in this process or another, neither waits nor is waited for. It does not
 * block but for page faults. Writers (documents.h, rag_note_use) block on fsync: a pool thread.
 *
 * The index lies in its own LMDB environment, STORE/rag, since it is made and searched beside a
 * run that owns the store, and since it can be made again while a run's records cannot.
 *
 * A passage's text is somebody else's: a prompt fences and attributes it, and obeys none of it. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rag; /* opaque */

/* Under `folder`, the store's. ERR_NOT_FOUND where there is no index and not `create`;
 * ERR_UNSUPPORTED where a newer program made it. Open it once in a process. */
int rag_open(const char *folder, bool create, struct rag **rag, struct err *err) MUST_USE;
void rag_close(struct rag *rag); /* NULL is fine */

/* As rag_open() without `create`, after rag_check(): what is damaged is emptied, and the paths that
 * it was made of are put in, for rag_update() to read. ERR_CORRUPT where they are not known. */
int rag_open_repaired(const char *folder, bool *repaired, struct rag **rag,
                      struct err *err) MUST_USE;
/* Reads all passages and postings; ERR_CORRUPT. That pages are whole is seen whenever it is opened.
 */
int rag_check(struct rag *rag, struct err *err) MUST_USE;
/* True once: a run says that its index is damaged, and then quotes nothing in silence. */
bool rag_say_damage(struct rag *rag);
/* From now on who changes documents waits for another process that does, in place of ERR_BUSY;
 * `told` is called before, with its number. */
void rag_wait_for_others(struct rag *rag, void (*told)(long process));

/* Sees to it that the guides which ship with the program are in the index, tagged RAG_BUILTIN: some
 * tenths of a millisecond where they are and nothing changed, else as long as indexing takes
 * (blocks on fsync: a pool thread). Guides that a person removed stay out. ERR_NOT_FOUND where the
 * program has none; ERR_BUSY where another process changes the index that has none yet: a search
 * does without. */
#define RAG_BUILTIN "builtin"
int rag_ensure_guides(struct rag *rag, struct err *err) MUST_USE;

struct rag_query {
    const char *text;    /* words of any kind: a question, a metric's name, a compiler's message */
    size_t most;         /* passages; 0: 5 */
    size_t tokens;       /* what all texts together may take, at 4 bytes a token; 0: no budget.
                          * One that does not fit is passed over, never cut */
    const char *tags;    /* "cuda,guide": only documents that bear one of them; NULL: all */
    const float *vector; /* the text's embedding (embed.h), to rank by meaning too and fuse both;
                          * NULL: by words alone */
    size_t dimensions;
    const char *purpose; /* a kind of query, as given to rag_note_use(): what helped it before
                          * ranks a little higher; NULL: by words alone */
};

struct rag_passage { /* texts in the caller's arena */
    uint64_t id;     /* of source, heading path, title and text: the same after an update that
                      * changed other parts of the document */
    const char *source, *tags; /* the document's path */
    const char *path;          /* headings above it, "GEMM step by step > Tiling"; may be "" */
    const char *title;         /* its own heading, or the declaration's name */
    const char *text;
    uint32_t line; /* in the source; 0 in a PDF */
    size_t tokens; /* of the text, at 4 bytes a token */
    double share;  /* of the query's words that it has, by weight; 1 where found by meaning */
    double score;  /* falls from one to the next; comparable within one query only */
};

/* The best first; equal ones by source and line. *items is in `arena`. No word known: 0. */
int rag_search(struct rag *rag, const struct rag_query *query, struct arena *arena,
               struct rag_passage **items, size_t *count, struct err *err) MUST_USE;

/* One passage by its id; ERR_NOT_FOUND. */
int rag_passage(struct rag *rag, uint64_t id, struct arena *arena, struct rag_passage *passage,
                struct err *err) MUST_USE;

/* Counts that these passages stood in a prompt of this purpose, and whether it led to a win. */
int rag_note_use(struct rag *rag, const char *purpose, const uint64_t *ids, size_t count, bool won,
                 struct err *err) MUST_USE;

struct rag_use {
    uint32_t prompts, wins;
};
int rag_use(struct rag *rag, const char *purpose, uint64_t id, struct rag_use *use,
            struct err *err) MUST_USE;
