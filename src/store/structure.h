/* store/structure: is this data file whole? LMDB trusts its pages: a flipped bit or a cut file
 * makes it crash, loop, or lose records without a word. So every page that a snapshot can reach is
 * looked at before LMDB is let near it: bounds, order of keys, counts, every page used once, the
 * header of every record. Reads by pread() only; any thread; blocks.
 *
 * Costs one read of all branch and leaf pages: about 1 GB/s, and large values are not read. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct structure {
    uint64_t transaction; /* of the snapshot that was looked at */
    uint64_t pages;       /* that it spans, free ones included */
    uint64_t records;
    unsigned schema;  /* of the newest record's header: what to say of a newer store */
    bool unfinished;  /* the last write of a meta page failed, or its number is damaged and the
                       * newest commit is missing: which of them cannot be known */
    char damaged[96]; /* what is wrong with the first record whose key or header is; "" where
                       * all are well. A damaged value under a sound header is not looked for:
                       * reading it says so */
};

enum structure_result {
    STRUCTURE_WHOLE,
    STRUCTURE_MOVED,  /* two commits came meanwhile and the snapshot's own page is gone: again */
    STRUCTURE_DAMAGED /* *err: ERR_CORRUPT with the page and what is wrong; or ERR_IO */
};

/* Both meta pages only: must hold before mdb_env_open(). */
enum structure_result structure_check_metas(int fd, struct err *err);

/* Everything. Where others may commit, hold a read transaction and give its number, which keeps
 * its pages from being used again; 0 takes the newest. */
enum structure_result structure_check(int fd, uint64_t transaction, struct structure *structure,
                                      struct err *err);
