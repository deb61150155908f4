/* A damaged store is refused, or says what is damaged: never empty, short or the program's end. */
#include "support.h"

#include "base/log.h"
#include "store/page.h"
#include "store/record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
enum { RECORDS = 260 };

struct image {
    char *folder, *path;
    unsigned char *bytes;
    size_t size;
};

static void value_of(int i, char value[12000])
{
    size_t length = i % 13 == 0 ? 9000 + (size_t)i : 20 + (size_t)(i * 7 % 90);
    memset(value, 'a' + i % 26, length);
    value[length] = '\0';
}

static void key_of(int i, char key[64])
{
    snprintf(key, 64, "r%d-c%d-some-longer-name-so-that-there-are-branches", i % 3, i);
}

static void fill(const char *folder)
{
    struct store *store = open_store(folder);
    static char value[12000];
    char key[64];
    for (int i = 0; i < RECORDS;) {
        struct store_batch *batch = store_batch_new();
        struct err err;
        for (int end = i + 20; i < end && i < RECORDS; i++) {
            key_of(i, key);
            value_of(i, value);
            store_batch_put(batch, STORE_CANDIDATES, key, value, strlen(value));
        }
        must(store_commit(store, batch, &err), &err);
        store_batch_free(batch);
    }
    put(store, STORE_RUNS, "r1", "{}");
    store_close(store);
}

static struct image make_image(void)
{
    struct image image = {.folder = new_quick_folder()};
    fill(image.folder);
    image.path = file_join(image.folder, "data.mdb");
    struct buf buf;
    struct err err;
    buf_init(&buf, (size_t)64 << 20);
    must(file_read(image.path, &buf, &err), &err);
    image.size = buf.length;
    image.bytes = mem_alloc(image.size);
    memcpy(image.bytes, buf_text(&buf), image.size);
    buf_free(&buf);
    return image;
}

static void free_image(struct image *image)
{
    mem_free(image->bytes);
    mem_free(image->path);
    remove_folder(image->folder);
}

/* Puts the first `size` bytes of the image there, with one bit flipped where `bit` < size * 8. */
static void write_image(const struct image *image, size_t size, size_t bit)
{
    int fd = open(image->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, image->bytes, size), (ssize_t)size);
    if (bit / 8 < size) {
        unsigned char byte = (unsigned char)(image->bytes[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
    }
    close(fd);
}

/* For a single bit in a file that is already there: undone by the same call. */
static void flip(const struct image *image, size_t bit)
{
    unsigned char byte;
    int fd = open(image->path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)(bit / 8)), 1);
    byte = (unsigned char)(byte ^ 1 << bit % 8);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
    close(fd);
}

struct tally {
    int refused, said, unharmed;
};

static int warnings;

static void count_warning(void *context, const struct event *event)
{
    (void)context;
    warnings += strcmp(event->kind, "store.unfinished") == 0;
}

/* Every record is as it was, or said to be damaged. True: one was. */
static bool look(struct store *store, size_t at)
{
    static char value[12000];
    char key[64];
    bool said = false;
    struct buf buf;
    buf_init(&buf, sizeof value);
    if (!store_has(store, STORE_RUNS, "r1")) { /* the very last commit */
        assert_true(warnings > 0);
        said = true;
    }
    for (int i = 0; i < RECORDS; i++) {
        struct err err;
        key_of(i, key);
        value_of(i, value);
        if (store_get(store, STORE_CANDIDATES, key, &buf, &err) == 0) {
            if (strcmp(buf_text(&buf), value) != 0)
                fail_msg("at %zu: %s reads as something else", at, key);
        } else if (err.code != ERR_CORRUPT) {
            fail_msg("at %zu: %s: %s", at, key, err.message);
        } else {
            said = true;
        }
    }
    buf_free(&buf);
    size_t count;
    struct err err;
    must(store_count(store, STORE_CANDIDATES, "", &count, &err), &err);
    assert_int_equal(count, RECORDS);
    return said;
}

static void try_open(const struct image *image, size_t at, struct tally *tally)
{
    struct store *store = NULL;
    struct err err = {ERR_NONE, ""};
    warnings = 0;
    if (store_open(image->folder, false, true, &store, &err) != 0) {
        if (err.code != ERR_CORRUPT && err.code != ERR_UNSUPPORTED)
            fail_msg("at %zu: %s: %s", at, err_code_name(err.code), err.message);
        tally->refused++;
        return;
    }
    *(look(store, at) ? &tally->said : &tally->unharmed) += 1;
    store_close(store);
}

static void test_cut_short(void **state)
{
    (void)state;
    struct image image = make_image();
    struct tally tally = {0};
    for (size_t size = 0; size < image.size; size += size < 12288 ? 512 : 4096 + 512) {
        write_image(&image, size, SIZE_MAX);
        try_open(&image, size, &tally);
        struct store *store = NULL;
        struct err err;
        if (store_open(image.folder, true, false, &store, &err) == 0) {
            store_close(store); /* only what was a free page may be missing at the end */
            assert_true(image.size - size <= 3 * 4096);
        } else {
            assert_int_equal(err.code, ERR_CORRUPT);
            assert_non_null(strstr(err.message, "backup"));
            assert_non_null(strstr(err.message, "move the folder away"));
            struct stat status;
            assert_int_equal(stat(image.path, &status), 0);
            assert_int_equal(status.st_size, size); /* refused means untouched */
        }
    }
    assert_true(tally.refused > 20);
    free_image(&image);
}

static void test_gone(void **state)
{
    (void)state;
    struct image image = make_image();
    struct store *store = NULL;
    struct err err;
    assert_int_equal(unlink(image.path), 0);
    for (int read_only = 0; read_only < 2; read_only++) {
        assert_int_equal(store_open(image.folder, true, read_only != 0, &store, &err), -1);
        assert_int_equal(err.code, ERR_CORRUPT);
    }
    assert_false(file_exists(image.path));
    write_image(&image, image.size, SIZE_MAX);
    store_close(open_store(image.folder)); /* and put back, it is as it was */
    free_image(&image);
}

/* Every bit of both meta pages that LMDB gives a meaning to. */
static void test_meta_bits(void **state)
{
    (void)state;
    struct image image = make_image();
    struct tally tally = {0};
    write_image(&image, image.size, SIZE_MAX);
    size_t meaning = sizeof(struct page_head) + sizeof(struct page_meta);
    for (size_t page = 0; page < 2; page++)
        for (size_t bit = 0; bit < meaning * 8; bit++) {
            size_t at = page * 4096 * 8 + bit;
            flip(&image, at);
            try_open(&image, at, &tally);
            flip(&image, at);
        }
    assert_true(tally.refused > 1000);
    assert_int_equal(tally.said, 1); /* one bit makes the newest commit two older */
    free_image(&image);
}

static void test_random_bits(void **state)
{
    (void)state;
    struct image image = make_image();
    struct tally tally = {0};
    struct random random;
    random_init(&random, 11);
    write_image(&image, image.size, SIZE_MAX);
    for (int i = 0; i < 1500; i++) {
        size_t at = random_below(&random, image.size * 8);
        flip(&image, at);
        try_open(&image, at, &tally);
        flip(&image, at);
    }
    assert_true(tally.refused > 100 && tally.said > 100 && tally.unharmed > 100);
    free_image(&image);
}

/* Damage that leaves every record and every page sound by itself: only the whole shows it. */
static struct page_meta *newest(const struct image *image)
{
    struct page_meta *metas[2];
    for (size_t i = 0; i < 2; i++)
        metas[i] = (struct page_meta *)(void *)(image->bytes + i * 4096 + sizeof(struct page_head));
    return metas[metas[1]->transaction > metas[0]->transaction];
}

static uint16_t *offsets(unsigned char *page)
{
    return (uint16_t *)(void *)(page + sizeof(struct page_head));
}

/* The leaf that holds a table's records, found as the first with plain nodes. */
static unsigned char *leaf(const struct image *image)
{
    for (size_t at = 2 * 4096; at < image->size; at += 4096) {
        struct page_head *head = (struct page_head *)(void *)(image->bytes + at);
        struct page_node node;
        if (head->flags != PAGE_LEAF || head->number != at / 4096 ||
            head->lower < sizeof *head + 3 * sizeof(uint16_t))
            continue;
        memcpy(&node, image->bytes + at + offsets(image->bytes + at)[0], sizeof node);
        if (node.flags == 0 && node.key_length > 40)
            return image->bytes + at;
    }
    fail_msg("the image has no such leaf");
    return NULL;
}

static void longer_tail(const struct image *image)
{
    newest(image)->last_page += 8;
}

static void miscounted(const struct image *image)
{
    newest(image)->main.entries++;
}

static void out_of_order(const struct image *image)
{
    for (size_t at = 0; at < image->size; at += 4096) { /* every leaf: some are not in use */
        struct page_head *head = (struct page_head *)(void *)(image->bytes + at);
        if (head->flags != PAGE_LEAF || head->lower < sizeof *head + 2 * sizeof(uint16_t))
            continue;
        uint16_t *order = offsets(image->bytes + at), first = order[0];
        order[0] = order[1];
        order[1] = first;
    }
    (void)leaf(image); /* there was one */
}

static void used_and_free(const struct image *image)
{
    struct page_meta *meta = newest(image);
    unsigned char *page = image->bytes + meta->free.root * 4096;
    struct page_node node;
    memcpy(&node, page + offsets(page)[0], sizeof node);
    uint64_t list[2] = {1, meta->main.root};
    assert_int_equal(meta->free.depth, 1);
    assert_true(node.low >= sizeof list && node.flags == 0);
    memcpy(page + offsets(page)[0] + sizeof node + node.key_length, list, sizeof list);
}

static void older_is_newest(const struct image *image)
{
    struct page_meta *meta = newest(image); /* the older one claims to be two commits later */
    size_t other = (size_t)((unsigned char *)meta - image->bytes) ^ 4096;
    ((struct page_meta *)(void *)(image->bytes + other))->transaction += 2;
}

static void no_neighbours(const struct image *image)
{
    newest(image)->transaction += 2;
}

static void test_crafted(void **state)
{
    (void)state;
    static const struct {
        void (*damage)(const struct image *image);
        const char *message;
    } cases[] = {
        {longer_tail, "cut short"},
        {miscounted, "does not have what it counts"},
        {out_of_order, "out of order"},
        {used_and_free, "in use twice"},
        {older_is_newest, "the free list ends"},
        {no_neighbours, "do not fit together"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct image image = make_image();
        struct store *store = NULL;
        struct err err = {ERR_NONE, ""};
        cases[i].damage(&image);
        write_image(&image, image.size, SIZE_MAX);
        if (store_open(image.folder, false, i % 2 == 0, &store, &err) == 0)
            fail_msg("\"%s\" is not seen", cases[i].message);
        assert_int_equal(err.code, ERR_CORRUPT);
        if (strstr(err.message, cases[i].message) == NULL)
            fail_msg("\"%s\" is called: %s", cases[i].message, err.message);
        free_image(&image);
    }
}

/* Rubbish over whole stretches, as a broken disk or a stray write leaves it. */
static void test_stretches(void **state)
{
    (void)state;
    struct image image = make_image();
    struct tally tally = {0};
    struct random random;
    random_init(&random, 12);
    unsigned char *whole = mem_alloc(image.size);
    memcpy(whole, image.bytes, image.size);
    for (int i = 0; i < 200; i++) {
        size_t from = random_below(&random, image.size);
        size_t length = 1 + random_below(&random, i % 2 == 0 ? 64 : 4096);
        length = length < image.size - from ? length : image.size - from;
        for (size_t j = from; j < from + length; j++)
            image.bytes[j] = i % 3 == 0 ? 0 : (unsigned char)random_next(&random);
        write_image(&image, image.size, SIZE_MAX);
        try_open(&image, from, &tally);
        memcpy(image.bytes + from, whole + from, length);
    }
    assert_true(tally.refused > 30);
    mem_free(whole);
    free_image(&image);
}

static void test_not_a_store(void **state)
{
    (void)state;
    struct image image = make_image();
    struct store *store = NULL;
    struct err err;
    memset(image.bytes, 'x', image.size);
    write_image(&image, image.size, SIZE_MAX);
    assert_int_equal(store_open(image.folder, true, false, &store, &err), -1);
    assert_int_equal(err.code, ERR_CORRUPT);
    free_image(&image);
}

/* Another program's LMDB file is whole, but not a store. */
static void test_foreign(void **state)
{
    (void)state;
    char *folder = new_quick_folder();
    MDB_env *lmdb;
    MDB_txn *txn;
    MDB_dbi table;
    char hello[] = "hello", world[] = "world";
    MDB_val key = {5, hello}, value = {5, world};
    assert_int_equal(mdb_env_create(&lmdb), 0);
    assert_int_equal(mdb_env_open(lmdb, folder, 0, 0600), 0);
    assert_int_equal(mdb_txn_begin(lmdb, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &table), 0);
    assert_int_equal(mdb_put(txn, table, &key, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(lmdb);
    struct store *store = NULL;
    struct err err;
    assert_int_equal(store_open(folder, true, false, &store, &err), -1);
    assert_int_equal(err.code, ERR_CORRUPT);
    remove_folder(folder);
}

/* Writes schema number `schema` over the store's own record, as that version would have. */
static void set_schema(const char *folder, unsigned schema)
{
    struct store *store = open_store(folder);
    struct store_key key;
    struct err err;
    must(store_key_encode("schema", &key, &err), &err);
    unsigned char record[64];
    char text[16];
    int length = snprintf(text, sizeof text, "%u", schema);
    store_record_write(record, STORE_TABLE_SELF, &key, text, (size_t)length);
    store_record_stamp(record, STORE_TABLE_SELF, &key, schema);
    MDB_txn *txn;
    MDB_val name = {key.length, key.bytes}, value = {store_record_size((size_t)length), record};
    assert_int_equal(mdb_txn_begin(store->environment->lmdb, NULL, 0, &txn), 0);
    assert_int_equal(mdb_put(txn, store->environment->self, &name, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    store_close(store);
}

static void test_other_schemas(void **state)
{
    (void)state;
    static const struct {
        unsigned schema;
        const char *advice;
    } cases[] = {{STORE_SCHEMA + 1, "newer"}, {0, "move the folder away"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int read_only = 0; read_only < 2; read_only++) {
            char *folder = new_quick_folder();
            struct store *store = NULL;
            struct err err;
            set_schema(folder, cases[i].schema);
            assert_int_equal(store_open(folder, true, read_only != 0, &store, &err), -1);
            assert_int_equal(err.code, ERR_UNSUPPORTED);
            assert_non_null(strstr(err.message, cases[i].advice));
            remove_folder(folder);
        }
}

/* A store from before a table came to the schema. */
static void drop_newest_table(const char *folder)
{
    MDB_txn *txn;
    struct store *store = open_store(folder);
    put(store, STORE_RUNS, "r1", "{}");
    assert_int_equal(mdb_txn_begin(store->environment->lmdb, NULL, 0, &txn), 0);
    assert_int_equal(mdb_drop(txn, store->environment->tables[STORE_TABLES - 1], 1), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    store_close(store);
}

static void test_older_tables(void **state)
{
    (void)state;
    char *folder = new_quick_folder();
    size_t count = 1;
    struct err err = {ERR_NONE, ""};
    drop_newest_table(folder);
    struct store *store = open_reader(folder); /* absent reads as empty */
    expect(store, STORE_RUNS, "r1", "{}");
    assert_int_equal(get_code(store, STORE_SPENDING, "r1-1"), ERR_NOT_FOUND);
    assert_false(store_has(store, STORE_SPENDING, "r1-1"));
    must(store_count(store, STORE_SPENDING, "", &count, &err), &err);
    assert_int_equal(count, 0);
    store_close(store);
    for (int i = 0; i < 2; i++) { /* its owner makes it, and finds it there the next time */
        store = open_store(folder);
        expect(store, STORE_RUNS, "r1", "{}");
        if (i == 0)
            put(store, STORE_SPENDING, "r1-1", "{\"usd\": 1}");
        expect(store, STORE_SPENDING, "r1-1", "{\"usd\": 1}");
        store_close(store);
    }
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_short),     cmocka_unit_test(test_gone),
        cmocka_unit_test(test_meta_bits),     cmocka_unit_test(test_random_bits),
        cmocka_unit_test(test_crafted),       cmocka_unit_test(test_stretches),
        cmocka_unit_test(test_not_a_store),   cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_other_schemas), cmocka_unit_test(test_older_tables),
    };
    log_add_sink(count_warning, NULL, LOG_WARN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
