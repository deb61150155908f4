/* rag/documents: which documents are in the index: adding, updating, removing, listing.
 * Any thread; blocks. One process changes the documents at a time (ERR_BUSY names it); each call
 * is one transaction: it is there whole, or after a failure, a full disk or a kill not at all. */
#pragma once

#include "agents/retrieve/rag/embed.h"
#include "agents/retrieve/rag/rag.h"
#include "agents/retrieve/rag/read/walk.h"

/* What one call may take in beside read/walk.h's; else the whole call is refused by ERR_LIMIT. */
enum {
    RAG_PASSAGES_MOST = 4000000, /* "passages": in the index */
    RAG_TEXT_MIB_MOST = 1024     /* "text": of all new documents together */
};

struct rag_add {
    const char *const *paths; /* files and folders; links in folders are not followed */
    size_t path_count;
    const char *tags;     /* "cuda,header" or NULL */
    const char *excludes; /* "*.inl,detail": of names, and of paths below the folder; or NULL */
};

struct rag_change { /* what a call did, in documents but for the last two */
    size_t added, changed, removed, unchanged;
    size_t doubles;    /* the same bytes as another document: in once */
    size_t too_large;  /* RAG_FILE_BYTES_MOST */
    size_t not_text;   /* binary, or nothing to read in it */
    size_t unreadable; /* no right, gone meanwhile, or pdftotext failed */
    size_t other;      /* of no kind that is read, by their names */
    size_t links;      /* in folders: not followed */
    size_t passages_added, passages_removed;
    char kinds[100]; /* whose names end so: ".o, .png"; the first ones */
    char note[200];  /* the first file that was passed over, and why; "" */
};

/* Remembers the paths, for rag_update(); one that was added before gets the new tags. */
int rag_add(struct rag *rag, const struct rag_add *add, struct rag_change *change,
            struct err *err) MUST_USE;
/* The guides that ship with the program, even those that were removed before; see rag.h. */
int rag_add_guides(struct rag *rag, struct rag_change *change, struct err *err) MUST_USE;
/* Looks at every path again: new, changed (by content) and vanished files. */
int rag_update(struct rag *rag, struct rag_change *change, struct err *err) MUST_USE;
/* A path that was added, a file or a folder below one, or "tag:NAME". ERR_NOT_FOUND. */
int rag_remove(struct rag *rag, const char *what, struct rag_change *change,
               struct err *err) MUST_USE;

struct rag_document { /* texts in the arena */
    const char *source, *root, *tags, *kind;
    uint64_t bytes;
    uint32_t passages;
};
/* All, by path. */
int rag_documents(struct rag *rag, struct arena *arena, struct rag_document **items, size_t *count,
                  struct err *err) MUST_USE;
/* The passages of one document, in its order; ERR_NOT_FOUND. */
int rag_document_passages(struct rag *rag, const char *source, struct arena *arena,
                          struct rag_passage **items, size_t *count, struct err *err) MUST_USE;

struct rag_stats {
    size_t roots, documents, passages, terms, vectors; /* vectors: of passages, embed.h */
    uint64_t document_bytes, text_bytes, posting_bytes, file_bytes;
};
int rag_stats(struct rag *rag, struct rag_stats *stats, struct err *err) MUST_USE;
