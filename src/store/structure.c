#include "store/structure.h"

#include "base/file.h"
#include "base/mem.h"
#include "store/page.h"
#include "store/structure_private.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SETTLE_MAX = 20,    /* tries to read two meta pages that fit together */
    TAIL_MAX = 1 << 20, /* pages at the end that were taken and given back unwritten */
};

int structure_read(const struct walk *walk, uint64_t offset, void *bytes, size_t length)
{
    ssize_t got = file_read_at(walk->fd, bytes, length, offset);
    if (got < 0)
        return err_set_errno(walk->err, ERR_IO, errno, "cannot read the data file");
    if ((size_t)got < length)
        return err_set(walk->err, ERR_CORRUPT, "the data file is cut short at byte %llu",
                       (unsigned long long)offset + (size_t)got);
    return 0;
}

int structure_claim(const struct walk *walk, uint64_t page, uint64_t count, bool in_file)
{
    uint64_t end = in_file && walk->file_pages < walk->pages ? walk->file_pages : walk->pages;
    if (page < META_PAGES || page >= end || count > end - page)
        return err_set(walk->err, ERR_CORRUPT, "page %llu lies outside of the data file",
                       (unsigned long long)page);
    for (uint64_t i = page; i < page + count; i++) {
        unsigned char bit = (unsigned char)(1 << i % 8);
        if (walk->claimed[i / 8] & bit)
            return err_set(walk->err, ERR_CORRUPT, "page %llu is in use twice",
                           (unsigned long long)i);
        walk->claimed[i / 8] |= bit;
    }
    return 0;
}

/* A page past the end of the file was never written, so it can only be a free one: LMDB leaves
 * those behind when a transaction takes and gives back pages at the end. */
static int check_tail(const struct walk *walk)
{
    for (uint64_t i = walk->file_pages; i < walk->pages; i++)
        if ((walk->claimed[i / 8] >> i % 8 & 1) == 0)
            return err_set(walk->err, ERR_CORRUPT, "the data file is cut short: page %llu of %llu",
                           (unsigned long long)i, (unsigned long long)walk->pages);
    return 0;
}

static int check_meta(const struct walk *walk, const struct page_head *head,
                      const struct page_meta *meta, uint64_t number)
{
    const char *wrong = NULL;
    uint64_t size = meta->free.pad;
    if (head->number != number || head->flags != PAGE_META || meta->magic != (uint32_t)META_MAGIC)
        wrong = "is not LMDB's";
    else if (meta->version != META_VERSION)
        return err_set(walk->err, ERR_UNSUPPORTED,
                       "the data file has LMDB's format %u; this program reads format %d",
                       meta->version, META_VERSION);
    else if (size < 512 || size > 65536 || (size & (size - 1)) != 0)
        wrong = "has an impossible page size";
    else if (meta->address != 0 || meta->free.flags != TREE_INTEGER_KEYS || meta->main.flags != 0 ||
             meta->main.pad != 0)
        wrong = "has impossible flags";
    else if (meta->last_page < META_PAGES - 1 || meta->last_page > UINT64_C(1) << 40)
        wrong = "has an impossible size";
    if (wrong == NULL)
        return 0;
    return err_set(walk->err, ERR_CORRUPT, "page %llu %s", (unsigned long long)number, wrong);
}

static int read_meta(struct walk *walk, uint64_t number, struct page_meta *meta)
{
    struct {
        struct page_head head;
        struct page_meta meta;
    } page;
    uint64_t offset = number == 0 ? 0 : walk->page_size;
    if (structure_read(walk, offset, &page, sizeof page) != 0 ||
        check_meta(walk, &page.head, &page.meta, number) != 0)
        return -1;
    *meta = page.meta;
    if (number == 0)
        walk->page_size = meta->free.pad;
    return 0;
}

/* Each commit writes the older of the two meta pages, so that their numbers are neighbours, the
 * even one in page 0; a new file has 0 in both, a compacted copy 0 and 1. */
static bool neighbours(const struct page_meta metas[META_PAGES])
{
    uint64_t a = metas[0].transaction, b = metas[1].transaction;
    if (a == 0 && b == 0)
        return true;
    return a % 2 == 0 && b % 2 == 1 && (a + 1 == b || b + 1 == a);
}

static int read_both(struct walk *walk, struct page_meta metas[META_PAGES])
{
    struct stat status;
    memset(metas, 0, META_PAGES * sizeof *metas);
    if (fstat(walk->fd, &status) != 0)
        return err_set_errno(walk->err, ERR_IO, errno, "cannot look at the data file");
    for (uint64_t i = 0; i < META_PAGES; i++)
        if (read_meta(walk, i, &metas[i]) != 0)
            return -1;
    walk->file_pages = (uint64_t)status.st_size / walk->page_size;
    return 0;
}

/* Both meta pages as they were at one moment. Another process may write one while they are read:
 * they are taken when they have twice been the same and fit together, and what does not come to
 * that is damaged. */
static int read_metas(struct walk *walk, struct page_meta metas[META_PAGES])
{
    for (int tries = 0; tries < SETTLE_MAX; tries++) {
        struct page_meta again[META_PAGES];
        if (read_both(walk, again) != 0 || read_both(walk, metas) != 0)
            return -1;
        if (memcmp(again, metas, sizeof again) == 0 && metas[0].free.pad == metas[1].free.pad &&
            neighbours(metas))
            break;
        if (tries + 1 == SETTLE_MAX)
            return err_set(walk->err, ERR_CORRUPT, "the two meta pages do not fit together");
        usleep(200);
    }
    /* A flipped size would ask LMDB for terabytes; pages past the end of the file are few. */
    for (int i = 0; i < META_PAGES; i++)
        if (metas[i].last_page >= walk->file_pages + TAIL_MAX)
            return err_set(walk->err, ERR_CORRUPT, "the data file is cut short: %llu pages of %llu",
                           (unsigned long long)walk->file_pages,
                           (unsigned long long)metas[i].last_page + 1);
    return 0;
}

enum structure_result structure_check_metas(int fd, struct err *err)
{
    struct walk walk = {.fd = fd, .err = err};
    struct page_meta metas[META_PAGES];
    return read_metas(&walk, metas) == 0 ? STRUCTURE_WHOLE : STRUCTURE_DAMAGED;
}

/* Every commit frees pages, the old root at the least, and lists them under its own number; only
 * the first one of a file has none. So the list says whether the meta page's number is right. */
static int check_free(struct walk *walk, const struct page_meta *meta)
{
    walk->newest_freed = 0;
    if (structure_walk_tree(walk, &meta->free, WALK_FREE, "") != 0)
        return err_wrap(walk->err, "free list");
    if (meta->transaction > 1 && walk->newest_freed != meta->transaction)
        return err_set(walk->err, ERR_CORRUPT, "the free list ends with commit %llu, not %llu",
                       (unsigned long long)walk->newest_freed,
                       (unsigned long long)meta->transaction);
    return 0;
}

/* The other meta page is not needed, but one whose trees are of another commit than it says is
 * what a failed write of it leaves, or the newest with a damaged number. */
static bool check_other(const struct walk *walk, const struct page_meta *meta)
{
    struct err unused;
    struct walk other = *walk;
    other.err = &unused;
    other.pages = meta->last_page + 1;
    other.transaction = meta->transaction;
    other.claimed = mem_alloc((size_t)other.pages / 8 + 1);
    int result = check_free(&other, meta);
    mem_free(other.claimed);
    return result == 0;
}

static int check_trees(struct walk *walk, const struct page_meta *meta)
{
    if (check_free(walk, meta) != 0)
        return -1;
    if (structure_walk_tree(walk, &meta->main, WALK_MAIN, "") != 0)
        return -1;
    return check_tail(walk);
}

enum structure_result structure_check(int fd, uint64_t transaction, struct structure *structure,
                                      struct err *err)
{
    memset(structure, 0, sizeof *structure);
    struct walk walk = {.fd = fd, .err = err, .structure = structure};
    struct page_meta metas[META_PAGES];
    if (read_metas(&walk, metas) != 0)
        return STRUCTURE_DAMAGED;
    const struct page_meta *meta = &metas[metas[1].transaction > metas[0].transaction];
    if (transaction != 0)
        meta = &metas[transaction % 2]; /* a commit may have come after it */
    if (transaction != 0 && meta->transaction != transaction)
        return STRUCTURE_MOVED;
    walk.pages = meta->last_page + 1;
    walk.transaction = structure->transaction = meta->transaction;
    structure->pages = walk.pages;
    walk.claimed = mem_alloc((size_t)walk.pages / 8 + 1);
    int result = check_trees(&walk, meta);
    structure->unfinished = !check_other(&walk, &metas[meta == &metas[0]]);
    mem_free(walk.claimed);
    return result == 0 ? STRUCTURE_WHOLE : STRUCTURE_DAMAGED;
}
