/* rag/uses: counts of passages in prompts, within a search's snapshot. For the files of this folder
 * alone. */
#pragma once

#include "agents/retrieve/rag/database.h"

int use_read(struct rag *rag, MDB_txn *txn, const char *purpose, uint64_t id, struct rag_use *use,
             struct err *err) MUST_USE;
