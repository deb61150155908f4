/* rag/plan: what a call is going to change in the index, made ready in memory, then written in one
 * transaction. For the files of this folder alone. */
#pragma once

#include "agents/retrieve/rag/builder.h"
#include "agents/retrieve/rag/database.h"
#include "agents/retrieve/rag/documents.h"
#include "agents/retrieve/rag/records.h"

struct planned {
    struct document_record record;
    struct passage *passages; /* NULL: the record alone is written, since only its tags changed */
    size_t count;
};

struct plan {
    struct arena *arena; /* everything in it */
    struct words *words;
    struct index_builder *builder; /* of what is added: numbers from 0 */
    struct planned *items;
    size_t count, capacity;
    uint32_t passages; /* of all new documents */
    struct hash *removed;
    size_t removed_count, removed_capacity;
    const struct root_record *roots; /* to be remembered */
    size_t root_count;
    struct hash *roots_removed;
    size_t roots_removed_count;
    bool anew; /* the tables are emptied first: another version made them */
};

void plan_start(struct plan *plan);
void plan_end(struct plan *plan);

/* Cuts the text into passages and indexes their words. ERR_LIMIT: passages. */
int plan_add(struct plan *plan, const struct document_record *record, const char *text,
             size_t length, struct err *err) MUST_USE;
void plan_retag(struct plan *plan, const struct document_record *record);
void plan_remove(struct plan *plan, struct hash document);

/* All or nothing. Counts passages in *change. */
int plan_write(struct rag *rag, struct plan *plan, struct rag_change *change,
               struct err *err) MUST_USE;

/* merge.c: takes the passages of `removed` out of every term's postings, and puts those of `added`
 * in, whose numbers begin at `base`. Either may be NULL. */
int merge_terms(struct rag *rag, MDB_txn *txn, struct index_builder *removed,
                struct index_builder *added, uint32_t base, struct err *err) MUST_USE;
