/* store/page: how LMDB 0.9 lays its data file out (data version 1, 64-bit, little endian), as far
 * as structure.c must know it to tell a whole file from a damaged one. Source: mdb.c of LMDB
 * 0.9.24, "Page header", MDB_node, MDB_db, MDB_meta. Header only. */
#pragma once

#include <stdint.h>

enum {
    PAGE_BRANCH = 0x01,
    PAGE_LEAF = 0x02,
    PAGE_OVERFLOW = 0x04,
    PAGE_META = 0x08,

    NODE_BIG = 0x01,  /* the value lies on overflow pages; the node holds the first one's number */
    NODE_TREE = 0x02, /* the value is a struct page_tree: a named table */

    TREE_INTEGER_KEYS = 0x08,

    META_MAGIC = (int)0xBEEFC0DE,
    META_VERSION = 1,
    META_PAGES = 2,
    TREE_DEPTH_MAX = 32
};
#define PAGE_NONE UINT64_MAX

struct page_head { /* then the node offsets, uint16_t each, from the start of the page */
    uint64_t number;
    uint16_t pad, flags;
    union {
        struct {
            uint16_t lower, upper; /* free space: [lower, upper) */
        };
        uint32_t pages; /* overflow: how many, this one included */
    };
};

struct page_node { /* then the key, then the value or the overflow page's number */
    uint16_t low, high, flags, key_length;
};

struct page_tree {
    uint32_t pad; /* of the free tree: the page size */
    uint16_t flags, depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};

struct page_meta { /* follows the page_head */
    uint32_t magic, version;
    uint64_t address, map_bytes;
    struct page_tree free, main;
    uint64_t last_page, transaction;
};

_Static_assert(sizeof(struct page_head) == 16 && sizeof(struct page_node) == 8 &&
                   sizeof(struct page_tree) == 48 && sizeof(struct page_meta) == 136,
               "LMDB's layout");
