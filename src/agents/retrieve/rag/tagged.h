/* rag/tagged: which passages belong to documents that bear one of some tags: their numbers, as
 * ranges, since a document's passages follow each other. For the files of this folder alone. */
#pragma once

#include "agents/retrieve/rag/database.h"

struct number_range {
    uint32_t first, count;
};

struct tagged {
    bool all; /* no tags were asked for */
    struct number_range *ranges;
    size_t count;
};

/* Reads every document's record: about a millisecond for each three thousand of them. */
int tagged_find(struct rag *rag, MDB_txn *txn, const char *tags, struct tagged *tagged,
                struct err *err) MUST_USE;
bool tagged_has(const struct tagged *tagged, uint32_t number);
void tagged_free(struct tagged *tagged);
