/* store/structure_private: what structure.c and structure_tree.c share; nobody else includes it. */
#pragma once

#include "base/err.h"
#include "store/page.h"
#include "store/structure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum walk_kind {
    WALK_FREE, /* transaction number -> list of page numbers */
    WALK_MAIN, /* name -> struct page_tree */
    WALK_TABLE /* key -> record */
};

struct walk {
    int fd;
    size_t page_size;
    uint64_t pages;         /* of the snapshot */
    uint64_t file_pages;    /* whole pages in the file */
    uint64_t transaction;   /* of the snapshot */
    uint64_t newest_freed;  /* the highest transaction in the free list, once it was walked */
    unsigned char *claimed; /* one bit a page: in a tree, or free */
    struct structure *structure;
    struct err *err;
};

int structure_read(const struct walk *walk, uint64_t offset, void *bytes, size_t length) MUST_USE;

/* Marks pages as used; an error where they are so already, or lie outside of the snapshot, or
 * (`in_file`) of the file. */
int structure_claim(const struct walk *walk, uint64_t page, uint64_t count, bool in_file) MUST_USE;

int structure_walk_tree(struct walk *walk, const struct page_tree *tree, enum walk_kind kind,
                        const char *name) MUST_USE;
