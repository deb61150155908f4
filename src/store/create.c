/* store/create: the data file of a new store is made in a folder of its own, synced, and renamed
 * into place, so that a data file that is there was once whole: one that is empty or short later
 * is damaged, and is never taken for a new one. The mark beside it says that there was one. */
#include "base/file.h"
#include "base/mem.h"
#include "store/internal.h"
#include "store/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool store_mark_there(const char *folder)
{
    MEM_LOCAL char *path = file_join(folder, STORE_MARK);
    return file_exists(path);
}

int store_mark(const char *folder, struct err *err)
{
    char text[160];
    int length = snprintf(text, sizeof text,
                          "A store of twagent, schema %d. Back it up with `twagent backup`, not by "
                          "copying it while a run goes on.\n",
                          STORE_SCHEMA);
    MEM_LOCAL char *path = file_join(folder, STORE_MARK);
    int result = file_write(path, text, (size_t)length, err);
    return result == 0 ? 0 : err_wrap(err, "cannot make the store");
}

static int put_self(MDB_txn *txn, MDB_dbi self, const char *name, const char *text)
{
    struct store_key key;
    struct err unused;
    if (store_key_encode(name, &key, &unused) != 0)
        return MDB_BAD_VALSIZE;
    unsigned char record[STORE_RECORD_HEADER + 32];
    size_t length = strlen(text);
    store_record_write(record, STORE_TABLE_SELF, &key, text, length);
    MDB_val name_value = {key.length, key.bytes}, value = {store_record_size(length), record};
    return mdb_put(txn, self, &name_value, &value, 0);
}

static int fill(MDB_txn *txn)
{
    MDB_dbi table;
    char schema[16];
    snprintf(schema, sizeof schema, "%d", STORE_SCHEMA);
    int code = mdb_dbi_open(txn, STORE_SELF_NAME, MDB_CREATE, &table);
    if (code == 0)
        code = put_self(txn, table, "schema", schema);
    if (code == 0)
        code = put_self(txn, table, "next_run", "0");
    for (int i = 0; i < STORE_TABLES && code == 0; i++)
        code = mdb_dbi_open(txn, store_table_name((enum store_table)i), MDB_CREATE, &table);
    return code;
}

static int make_file(const char *folder, size_t map_bytes)
{
    MDB_env *lmdb = NULL;
    MDB_txn *txn = NULL;
    int code = mdb_env_create(&lmdb);
    if (code == 0)
        code = mdb_env_set_mapsize(lmdb, map_bytes);
    if (code == 0)
        code = mdb_env_set_maxdbs(lmdb, STORE_TABLES + 1);
    if (code == 0) /* no lock file: the folder is the owner's own */
        code = mdb_env_open(lmdb, folder, MDB_NOLOCK, 0600);
    if (code == 0)
        code = mdb_txn_begin(lmdb, NULL, 0, &txn);
    if (code == 0)
        code = fill(txn);
    if (code == 0) {
        code = mdb_txn_commit(txn); /* synced: after this the file holds on the disk */
        txn = NULL;
    }
    if (txn != NULL)
        mdb_txn_abort(txn);
    mdb_env_close(lmdb); /* NULL is fine */
    return code;
}

static void sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return; /* a parent that may be passed but not read: nothing can be done */
    (void)fsync(fd);
    close(fd);
}

/* The store is on the disk only when every folder above it is; some may be new. */
static void sync_folders(const char *folder)
{
    MEM_LOCAL char *path = mem_strdup(folder);
    for (;;) {
        sync_folder(path);
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash == path)
            break;
        *slash = '\0';
    }
}

int store_create_files(const char *folder, size_t map_bytes, struct err *err)
{
    MEM_LOCAL char *making = file_join(folder, "creating");
    MEM_LOCAL char *made = file_join(making, STORE_FILE);
    MEM_LOCAL char *place = file_join(folder, STORE_FILE);
    int code = 0;
    if (file_exists(making) && file_remove_tree(making, err) != 0)
        code = EIO;
    if (code == 0 && mkdir(making, 0700) != 0)
        code = errno;
    if (code == 0)
        code = make_file(making, map_bytes);
    if (code == 0 && rename(made, place) != 0)
        code = errno;
    struct err unused;
    if (file_exists(making) && file_remove_tree(making, &unused) != 0)
        (void)0; /* what is left is removed by the next who makes a store here */
    if (code == 0)
        sync_folders(folder);
    return code == 0 ? 0 : environment_error_at(folder, code, err);
}
