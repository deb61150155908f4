#include "base/mem.h"
#include "store/internal.h"
#include "store/key.h"
#include "store/record.h"
#include "store/structure_private.h"

#include <stdio.h>
#include <string.h>

struct bytes {
    const unsigned char *data; /* NULL: no bound */
    size_t length;
};

struct tree {
    struct walk *walk;
    enum walk_kind kind;
    const char *name;
    unsigned table; /* of WALK_TABLE */
    unsigned depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries; /* found so far */
    unsigned char *buffers;                                     /* one page a level */
};

struct node {
    struct page_node head;
    struct bytes key;
    const unsigned char *data;
    size_t room; /* bytes of the page from `data` on */
};

static int damaged(const struct tree *tree, uint64_t page, const char *what)
{
    return err_set(tree->walk->err, ERR_CORRUPT, "page %llu %s", (unsigned long long)page, what);
}

static uint64_t read_u64(const void *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

static int compare(const struct tree *tree, struct bytes a, struct bytes b)
{
    if (tree->kind == WALK_FREE) {
        uint64_t x = read_u64(a.data), y = read_u64(b.data);
        return x < y ? -1 : x > y;
    }
    int order = memcmp(a.data, b.data, a.length < b.length ? a.length : b.length);
    if (order != 0)
        return order;
    return a.length < b.length ? -1 : a.length > b.length;
}

/* Where a node lies must be right before anything in it is looked at. */
static bool read_node(const struct tree *tree, const unsigned char *page, size_t index,
                      struct node *node)
{
    struct page_head head;
    uint16_t offset;
    size_t page_size = tree->walk->page_size;
    memcpy(&head, page, sizeof head);
    memcpy(&offset, page + sizeof head + index * sizeof offset, sizeof offset);
    if (offset % 2 != 0 || offset < head.upper || offset + sizeof node->head > page_size)
        return false;
    memcpy(&node->head, page + offset, sizeof node->head);
    size_t after = page_size - offset - sizeof node->head;
    if (node->head.key_length > after)
        return false;
    node->key = (struct bytes){page + offset + sizeof node->head, node->head.key_length};
    node->data = node->key.data + node->key.length;
    node->room = after - node->key.length;
    return true;
}

static bool key_fits(const struct tree *tree, struct bytes key)
{
    if (tree->kind == WALK_FREE)
        return key.length == sizeof(uint64_t);
    return key.length > 0 && key.length <= STORE_KEY_MAX;
}

static int check_free_list(const struct tree *tree, uint64_t page, const struct node *node,
                           const unsigned char *list, size_t size)
{
    uint64_t freed_by = read_u64(node->key.data);
    if (freed_by == 0 || freed_by > tree->walk->transaction || size < 8 || size % 8 != 0 ||
        read_u64(list) > size / 8 - 1)
        return damaged(tree, page, "holds a damaged list of free pages");
    tree->walk->newest_freed = freed_by; /* the keys ascend */
    for (uint64_t i = 1, count = read_u64(list); i <= count; i++) {
        uint64_t freed = read_u64(list + 8 * i);
        if (i > 1 && freed >= read_u64(list + 8 * (i - 1)))
            return damaged(tree, page, "holds a list of free pages that is out of order");
        if (structure_claim(tree->walk, freed, 1, false) != 0)
            return -1;
    }
    return 0;
}

/* A record that is damaged where that can hide what is missing. It does not end the walk, since a
 * store that a newer program wrote may have other records: who it was is found out first. */
static void check_record(const struct tree *tree, uint64_t page, const struct node *node,
                         const unsigned char *head, size_t size)
{
    struct structure *structure = tree->walk->structure;
    char text[STORE_KEY_MAX + 1];
    unsigned schema = 0;
    structure->records++;
    if (size > STORE_RECORD_HEADER && store_key_decode(node->key.data, node->key.length, text) &&
        store_record_head(head, size, tree->table, node->key.data, node->key.length, &schema)) {
        if (schema > structure->schema)
            structure->schema = schema;
        return;
    }
    if (structure->damaged[0] == '\0')
        snprintf(structure->damaged, sizeof structure->damaged,
                 "page %llu holds a damaged record of table %s", (unsigned long long)page,
                 tree->name);
}

static int check_big(struct tree *tree, uint64_t page, const struct node *node, size_t size)
{
    struct walk *walk = tree->walk;
    if (node->room < sizeof(uint64_t))
        return damaged(tree, page, "has a node that leaves the page");
    uint64_t first = read_u64(node->data);
    struct {
        struct page_head head;
        unsigned char data[STORE_RECORD_HEADER];
    } big;
    size_t needed = (sizeof big.head - 1 + size) / walk->page_size + 1;
    if (structure_claim(walk, first, needed, true) != 0 ||
        structure_read(walk, first * walk->page_size, &big, sizeof big) != 0)
        return -1;
    if (big.head.number != first || big.head.flags != PAGE_OVERFLOW || big.head.pages < needed)
        return damaged(tree, first, "is not the large value that it should be");
    size_t spare =
        big.head.pages - needed; /* a shorter value may have been put over a longer one */
    if (spare > 0 && structure_claim(walk, first + needed, spare, true) != 0)
        return -1;
    tree->overflow_pages += big.head.pages;
    if (tree->kind == WALK_TABLE) {
        check_record(tree, page, node, big.data, size);
        return 0;
    }
    unsigned char *list = mem_alloc(size); /* the claim has shown that the file is that long */
    int result = structure_read(walk, first * walk->page_size + sizeof big.head, list, size);
    if (result == 0)
        result = check_free_list(tree, page, node, list, size);
    mem_free(list);
    return result;
}

/* For a message: a damaged name may be any bytes. */
static void name_of(struct bytes key, char *name, size_t room)
{
    size_t length = key.length < room ? key.length : room - 1;
    for (size_t i = 0; i < length; i++)
        name[i] = key.data[i] >= ' ' && key.data[i] < 0x7f ? (char)key.data[i] : '?';
    name[length] = '\0';
}

static int check_leaf_node(struct tree *tree, uint64_t page, const struct node *node)
{
    size_t size = (size_t)node->head.high << 16 | node->head.low;
    tree->entries++;
    if (node->head.flags == NODE_BIG && tree->kind != WALK_MAIN)
        return check_big(tree, page, node, size);
    if (size > node->room)
        return damaged(tree, page, "has a node that leaves the page");
    if (tree->kind == WALK_MAIN) {
        struct page_tree table;
        if (node->head.flags != NODE_TREE || size != sizeof table)
            return damaged(tree, page, "holds no table where one should be");
        char name[32];
        name_of(node->key, name, sizeof name);
        memcpy(&table, node->data, sizeof table);
        if (table.pad != 0 || table.flags != 0)
            return damaged(tree, page, "holds a table with impossible flags");
        if (structure_walk_tree(tree->walk, &table, WALK_TABLE, name) != 0)
            return err_wrap(tree->walk->err, "table %s", name);
        return 0;
    }
    if (node->head.flags != 0)
        return damaged(tree, page, "has a node with impossible flags");
    if (tree->kind == WALK_FREE)
        return check_free_list(tree, page, node, node->data, size);
    check_record(tree, page, node, node->data, size);
    return 0;
}

static int walk_page(struct tree *tree, uint64_t page, unsigned level, struct bytes low,
                     struct bytes high);

static int walk_child(struct tree *tree, const unsigned char *page, size_t index, size_t count,
                      unsigned level, struct bytes low, struct bytes high)
{
    struct node node, next;
    if (!read_node(tree, page, index, &node))
        return -1; /* not reached: walk_nodes() has read it */
    if (index > 0)
        low = node.key;
    if (index + 1 < count) {
        if (!read_node(tree, page, index + 1, &next) || !key_fits(tree, next.key))
            return damaged(tree, read_u64(page), "has a node that leaves the page");
        high = next.key;
    }
    uint64_t child =
        (uint64_t)node.head.flags << 32 | (uint64_t)node.head.high << 16 | node.head.low;
    return walk_page(tree, child, level + 1, low, high);
}

static int walk_nodes(struct tree *tree, const unsigned char *page, size_t count, unsigned level,
                      struct bytes low, struct bytes high)
{
    bool leaf = level + 1 == tree->depth;
    uint64_t number = read_u64(page);
    struct bytes previous = {NULL, 0};
    for (size_t i = 0; i < count; i++) {
        struct node node;
        if (!read_node(tree, page, i, &node))
            return damaged(tree, number, "has a node that leaves the page");
        if (leaf || i > 0) { /* the first key of a branch means "whatever is less", and is unused */
            if (!key_fits(tree, node.key))
                return damaged(tree, number, "has a key of impossible length");
            if ((previous.data != NULL && compare(tree, previous, node.key) >= 0) ||
                (low.data != NULL && compare(tree, node.key, low) < 0) ||
                (high.data != NULL && compare(tree, node.key, high) >= 0))
                return damaged(tree, number, "has keys that are out of order");
            previous = node.key;
        }
        int result = leaf ? check_leaf_node(tree, number, &node)
                          : walk_child(tree, page, i, count, level, low, high);
        if (result != 0)
            return -1;
    }
    return 0;
}

static int walk_page(struct tree *tree, uint64_t number, unsigned level, struct bytes low,
                     struct bytes high)
{
    struct walk *walk = tree->walk;
    unsigned char *page = tree->buffers + level * walk->page_size;
    bool leaf = level + 1 == tree->depth;
    if (structure_claim(walk, number, 1, true) != 0 ||
        structure_read(walk, number * walk->page_size, page, walk->page_size) != 0)
        return -1;
    struct page_head head;
    memcpy(&head, page, sizeof head);
    if (head.number != number || head.flags != (leaf ? PAGE_LEAF : PAGE_BRANCH))
        return damaged(tree, number, "is not what it should be");
    if (head.lower < sizeof head || head.lower % 2 != 0 || head.lower > head.upper ||
        head.upper > walk->page_size)
        return damaged(tree, number, "has impossible bounds");
    size_t count = (head.lower - sizeof head) / sizeof(uint16_t);
    if (count < (leaf || tree->kind == WALK_FREE ? 1 : 2))
        return damaged(tree, number, "has too few nodes");
    *(leaf ? &tree->leaf_pages : &tree->branch_pages) += 1;
    return walk_nodes(tree, page, count, level, low, high);
}

int structure_walk_tree(struct walk *walk, const struct page_tree *stored, enum walk_kind kind,
                        const char *name)
{
    struct tree tree = {.walk = walk,
                        .kind = kind,
                        .name = name,
                        .table = kind == WALK_TABLE ? store_table_number(name) : 0,
                        .depth = stored->depth};
    if (stored->depth > TREE_DEPTH_MAX || (stored->depth == 0) != (stored->root == PAGE_NONE))
        return err_set(walk->err, ERR_CORRUPT, "a tree of impossible depth");
    int result = 0;
    if (stored->depth > 0) {
        tree.buffers = mem_array(stored->depth, walk->page_size);
        result =
            walk_page(&tree, stored->root, 0, (struct bytes){NULL, 0}, (struct bytes){NULL, 0});
        mem_free(tree.buffers);
    }
    if (result != 0)
        return -1;
    if (tree.branch_pages != stored->branch_pages || tree.leaf_pages != stored->leaf_pages ||
        tree.overflow_pages != stored->overflow_pages || tree.entries != stored->entries)
        return err_set(walk->err, ERR_CORRUPT, "a tree that does not have what it counts");
    return 0;
}
