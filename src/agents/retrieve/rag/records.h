/* rag/records: roots, documents and passages as bytes in the index. Any thread. Reading trusts
 * nothing: what does not follow the layout is ERR_CORRUPT. */
#pragma once

#include "agents/retrieve/rag/rag.h"
#include "agents/retrieve/rag/read/chunk.h"
#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>

struct root_record { /* texts in the arena */
    const char *path, *tags, *excludes;
};

struct document_record { /* texts in the arena */
    const char *path, *root, *tags;
    struct hash content;
    uint64_t bytes;
    uint32_t kind;         /* enum document_kind */
    uint32_t first, count; /* of its passages' numbers */
};

struct passage_record {
    uint64_t id;
    struct hash document; /* key */
    struct passage passage;
};

/* Keys of roots and documents: paths are longer than LMDB's keys may be. */
struct hash record_key(const char *path);

void root_encode(const struct root_record *root, struct buf *out);
int root_decode(const void *bytes, size_t length, struct arena *arena, struct root_record *root,
                struct err *err) MUST_USE;
void document_encode(const struct document_record *document, struct buf *out);
int document_decode(const void *bytes, size_t length, struct arena *arena,
                    struct document_record *document, struct err *err) MUST_USE;
void passage_encode(const struct passage_record *record, struct buf *out);
int passage_decode(const void *bytes, size_t length, struct arena *arena,
                   struct passage_record *record, struct err *err) MUST_USE;

/* Of what a reader sees, so that it outlives changes elsewhere; a second passage of the same look
 * in the same place takes the next number. */
uint64_t passage_identity(const char *source, const struct passage *passage);
/* Is it what its id was made of? ERR_CORRUPT. */
int passage_verify(const struct passage_record *record, const char *source,
                   struct err *err) MUST_USE;

/* Texts are those of the two; no share, no score. */
struct rag_passage passage_shown(const struct passage_record *record,
                                 const struct document_record *document);

/* "a, b,,c" -> ",a,b,c," (""  where there is none); and whether two such lists share a tag. */
const char *tags_normal(struct arena *arena, const char *tags);
bool tags_meet(const char *tags, const char *others);
