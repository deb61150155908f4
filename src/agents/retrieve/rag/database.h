/* rag/database: the index's LMDB environment and tables. For the files of this folder alone: the
 * only ones of it that know LMDB.
 *
 * Why not tables of src/store: its owner holds it for a whole night, while documents are added
 * from another terminal; its records are JSON behind checksums, copied out when read, while
 * postings are read where they lie.
 *
 * As there, every page is looked at when it is opened, since LMDB trusts its pages: one flipped bit
 * would end a run. What a page holds is checked where it is read: passages against their ids,
 * lengths and numbers against what there is. */
#pragma once

#include "agents/retrieve/rag/rag.h"
#include "base/hash.h"

#include <lmdb.h>
#include <pthread.h>
#include <stdatomic.h>

enum table {
    TABLE_META,      /* "version", "next", "passages" -> number */
    TABLE_ROOTS,     /* hash of path -> root_record */
    TABLE_DOCUMENTS, /* hash of path -> document_record */
    TABLE_CONTENTS,  /* hash of content -> hash of path: doubles */
    TABLE_PASSAGES,  /* number, big-endian -> passage_record */
    TABLE_IDS,       /* id, 8 bytes -> number */
    TABLE_TERMS,     /* term -> postings */
    TABLE_USES,      /* purpose, id -> prompts, wins */
    TABLE_VECTORS,   /* number, big-endian -> scale, components: vectors.c */
    TABLES
};

struct scratch; /* of search.c */

struct rag {
    MDB_env *env;
    MDB_dbi tables[TABLES];
    char *folder; /* STORE/rag */
    int data;     /* the file, to see that nobody cuts it; -1 */
    atomic_llong size;
    atomic_bool damage_said;
    void (*waits)(long process); /* for whoever changes documents; NULL: ERR_BUSY */
    pthread_mutex_t lock;
    struct scratch *scratches; /* free ones, guarded by `lock` */
};

int database_error(const struct rag *rag, int code, struct err *err);
int database_read(struct rag *rag, MDB_txn **txn, struct err *err) MUST_USE;
int database_write(struct rag *rag, MDB_txn **txn, struct err *err) MUST_USE;
int database_commit(struct rag *rag, MDB_txn *txn, struct err *err) MUST_USE; /* ends txn always */

/* ERR_NOT_FOUND where there is none; the value lies in the map until the transaction ends. */
int database_get(struct rag *rag, MDB_txn *txn, enum table table, const void *key, size_t length,
                 MDB_val *value, struct err *err) MUST_USE;
int database_put(struct rag *rag, MDB_txn *txn, enum table table, const void *key, size_t length,
                 const void *value, size_t value_length, struct err *err) MUST_USE;
/* None there is no error. */
int database_remove(struct rag *rag, MDB_txn *txn, enum table table, const void *key, size_t length,
                    struct err *err) MUST_USE;

int database_number(struct rag *rag, MDB_txn *txn, const char *name, uint64_t *number,
                    struct err *err) MUST_USE; /* 0 where there is none */
int database_set_number(struct rag *rag, MDB_txn *txn, const char *name, uint64_t number,
                        struct err *err) MUST_USE;

struct key_hash { /* as stored: big-endian */
    unsigned char bytes[16];
};
struct key_hash database_hash_key(struct hash hash);
struct key_number {
    unsigned char bytes[4];
};
struct key_number database_number_key(uint32_t number);
uint32_t database_key_number(const void *bytes);

/* The paths that were added, beside the data file, from which a damaged index is made again. */
int database_keep_roots(struct rag *rag, struct err *err) MUST_USE;
int database_entries(struct rag *rag, MDB_txn *txn, enum table table, uint64_t *count,
                     struct err *err) MUST_USE;

/* The one who changes documents: ERR_BUSY with its process. */
int database_lock(struct rag *rag, int *fd, struct err *err) MUST_USE;
void database_unlock(int fd);

/* What the files say that made this index; another version's is made anew by documents.c. */
uint64_t database_version(void);

void scratch_free_all(struct rag *rag); /* search.c */
