/* rag/vectors: passages' embeddings, a byte a component, and what lies nearest to a query's. For
 * the files of this folder alone. */
#pragma once

#include "agents/retrieve/rag/candidates.h"
#include "agents/retrieve/rag/database.h"
#include "agents/retrieve/rag/tagged.h"

/* By the cosine with `vector` (of length 1), over all vectors: some 20 ms for 100,000 of 1,536
 * components. Vectors of another size are passed over. */
int vectors_rank(struct rag *rag, MDB_txn *txn, const float *vector, size_t dimensions,
                 const struct tagged *tagged, struct candidates *best, struct err *err) MUST_USE;
