#include "agents/retrieve/rag/documents.h"
#include "base/file.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
    char folder[64], docs[80], store[80];
    struct rag *rag;
    struct arena *arena;
    struct rag_passage *items;
    size_t count;
    struct rag_change change;
    struct err err;
};

static void put(const struct place *place, const char *name, const char *text)
{
    char *path = file_join(place->docs, name);
    struct err err;
    assert_int_equal(file_write(path, text, strlen(text), &err), 0);
    mem_free(path);
}

static int start(void **state)
{
    struct place *place = MEM_NEW(struct place);
    strcpy(place->folder, "/tmp/test_index.XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(place->docs, sizeof place->docs, "%s/docs", place->folder);
    snprintf(place->store, sizeof place->store, "%s/store", place->folder);
    assert_int_equal(mkdir(place->docs, 0700), 0);
    assert_int_equal(rag_open(place->store, true, &place->rag, &place->err), 0);
    place->arena = arena_new();
    put(place, "banks.md",
        "# Shared memory\n## Bank conflicts\nThirty-two banks of four bytes.\n"
        "## Padding\nOne more column.\n");
    put(place, "copy.h",
        "/** Copies in the background: cp.async.bulk.tensor. */\nvoid "
        "copy_async(int *to);\n");
    *state = place;
    return 0;
}

static int stop(void **state)
{
    struct place *place = *state;
    rag_close(place->rag);
    arena_free(place->arena);
    assert_int_equal(file_remove_tree(place->folder, &place->err), 0);
    mem_free(place);
    return 0;
}

static int add(struct place *place, const char *tags, const char *excludes)
{
    const char *paths[] = {place->docs};
    struct rag_add what = {.paths = paths, .path_count = 1, .tags = tags, .excludes = excludes};
    return rag_add(place->rag, &what, &place->change, &place->err);
}

static size_t search(struct place *place, const char *text, const char *tags)
{
    struct rag_query query = {.text = text, .tags = tags};
    assert_int_equal(
        rag_search(place->rag, &query, place->arena, &place->items, &place->count, &place->err), 0);
    return place->count;
}

static void finds_what_was_added(void **state)
{
    struct place *place = *state;
    assert_int_equal(search(place, "banks", NULL), 0);
    assert_int_equal(add(place, "guide, own", NULL), 0);
    assert_int_equal(place->change.added, 2);
    assert_int_equal(place->change.passages_added, 3);
    assert_int_equal(search(place, "how do I avoid a bank conflict", NULL), 1);
    assert_string_equal(place->items[0].title, "Bank conflicts");
    assert_string_equal(place->items[0].path, "Shared memory");
    assert_string_equal(place->items[0].tags, ",guide,own,");
    assert_int_equal(search(place, "cp.async.bulk", NULL), 1);
    assert_string_equal(place->items[0].title, "copy_async");
    assert_int_equal(search(place, "shared", "guide"), 2);
    assert_int_equal(search(place, "shared", "gui,other"), 0);
    assert_int_equal(search(place, "nowhereatall ... the", NULL), 0);
    struct rag_passage again;
    search(place, "bank", NULL);
    assert_int_equal(rag_passage(place->rag, place->items[0].id, place->arena, &again, &place->err),
                     0);
    assert_string_equal(again.text, place->items[0].text);
    assert_int_equal(rag_passage(place->rag, 1, place->arena, &again, &place->err), -1);
    assert_int_equal(place->err.code, ERR_NOT_FOUND);
}

static void updates_what_changed_alone(void **state)
{
    struct place *place = *state;
    assert_int_equal(add(place, NULL, NULL), 0);
    search(place, "padding column", NULL);
    uint64_t padding = place->items[0].id;
    assert_int_equal(rag_update(place->rag, &place->change, &place->err), 0);
    assert_int_equal(place->change.unchanged, 2);
    assert_int_equal(place->change.passages_added + place->change.passages_removed, 0);
    put(place, "banks.md",
        "# Shared memory\n## Bank conflicts\nSomething about wavefronts.\n"
        "## Padding\nOne more column.\n");
    put(place, "new.txt", "A text about occupancy.\n");
    char *gone = file_join(place->docs, "copy.h");
    unlink(gone);
    mem_free(gone);
    assert_int_equal(rag_update(place->rag, &place->change, &place->err), 0);
    assert_int_equal(place->change.changed, 1);
    assert_int_equal(place->change.added, 1);
    assert_int_equal(place->change.removed, 1);
    assert_int_equal(search(place, "cp.async", NULL), 0);
    assert_int_equal(search(place, "thirty", NULL), 0);
    assert_int_equal(search(place, "wavefront", NULL), 1);
    assert_int_equal(search(place, "occupancy", NULL), 1);
    search(place, "padding column", NULL);
    assert_true(place->items[0].id == padding); /* what did not change keeps its id */
    struct rag_stats stats;
    assert_int_equal(rag_stats(place->rag, &stats, &place->err), 0);
    assert_int_equal(stats.documents, 2);
    assert_int_equal(stats.passages, 3);
}

/* An index that came about by changes is the one that comes about at once. */
static void changes_leave_nothing_behind(void **state)
{
    struct place *place = *state;
    struct rag_stats first, later;
    assert_int_equal(add(place, NULL, NULL), 0);
    assert_int_equal(rag_stats(place->rag, &first, &place->err), 0);
    for (int i = 0; i < 20; i++) {
        char text[4096] = "# Other\n";
        for (int k = 0; k < 200; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "word%d ", i * 37 + k);
        put(place, "other.md", text);
        assert_int_equal(rag_update(place->rag, &place->change, &place->err), 0);
    }
    char *other = file_join(place->docs, "other.md");
    assert_int_equal(rag_remove(place->rag, other, &place->change, &place->err), 0);
    assert_int_equal(rag_stats(place->rag, &later, &place->err), 0);
    assert_int_equal(later.terms, first.terms);
    assert_int_equal(later.posting_bytes, first.posting_bytes);
    assert_int_equal(later.passages, first.passages);
    assert_int_equal(rag_update(place->rag, &place->change, &place->err), 0);
    assert_int_equal(place->change.added, 0); /* what was taken out does not come back */
    mem_free(other);
    assert_int_equal(rag_remove(place->rag, place->docs, &place->change, &place->err), 0);
    assert_int_equal(rag_stats(place->rag, &later, &place->err), 0);
    assert_int_equal(later.terms + later.passages + later.documents + later.roots, 0);
    assert_int_equal(rag_remove(place->rag, "/nowhere", &place->change, &place->err), -1);
    assert_int_equal(place->err.code, ERR_NOT_FOUND);
}

static void hostile_files(void **state)
{
    struct place *place = *state;
    char *path = file_join(place->docs, "big.md");
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(ftruncate(fd, (off_t)2 << 30), 0); /* holes: no disk is used */
    close(fd);
    mem_free(path);
    path = file_join(place->docs, "loop");
    assert_int_equal(symlink("..", path), 0);
    mem_free(path);
    path = file_join(place->docs, "pipe.md");
    assert_int_equal(mkfifo(path, 0600), 0);
    mem_free(path);
    path = file_join(place->docs, "binary.txt");
    assert_int_equal(file_write(path, "ab\0cd", 5, &place->err), 0);
    mem_free(path);
    put(place, "latin.txt", "caf\xe9 wavefront \xc3\x28\n");
    put(place, "twin.md", "same words here\n");
    put(place, "twin2.md", "same words here\n");
    put(place, "ignored.xyz", "unknown\n");
    put(place, "other.xyz", "unknown too\n");
    put(place, "object.o", "unknown again\n");
    put(place, ".hidden.md", "hidden\n");
    put(place, "skipped.inl", "int skipped;\n");
    assert_int_equal(add(place, NULL, "*.inl"), 0);
    assert_int_equal(place->change.added, 4);
    assert_int_equal(place->change.too_large, 1);
    assert_int_equal(place->change.not_text, 1);
    assert_int_equal(place->change.links, 1);
    assert_int_equal(place->change.doubles, 1);
    assert_int_equal(place->change.other, 3);
    assert_string_equal(place->change.kinds, ".xyz, .o");
    assert_int_equal(search(place, "wavefront", NULL), 1);
    assert_non_null(strstr(place->items[0].text, "caf\xef\xbf\xbd"));
    assert_int_equal(search(place, "skipped hidden unknown", NULL), 0);
}

static void budget_and_use(void **state)
{
    struct place *place = *state;
    put(place, "a.txt", "Occupancy is one thing among many of them.\n");
    put(place, "b.txt", "Occupancy is one thing among several of them.\n");
    assert_int_equal(add(place, NULL, NULL), 0);
    struct rag_query query = {.text = "occupancy thing", .tokens = 12};
    assert_int_equal(
        rag_search(place->rag, &query, place->arena, &place->items, &place->count, &place->err), 0);
    assert_int_equal(place->count, 1);
    assert_int_equal(search(place, "occupancy thing", NULL), 2);
    uint64_t second = place->items[1].id;
    for (int i = 0; i < 6; i++)
        assert_int_equal(rag_note_use(place->rag, "gemm/memory", &second, 1, i > 0, &place->err),
                         0);
    struct rag_use use;
    assert_int_equal(rag_use(place->rag, "gemm/memory", second, &use, &place->err), 0);
    assert_int_equal(use.prompts, 6);
    assert_int_equal(use.wins, 5);
    query = (struct rag_query){.text = "occupancy thing", .purpose = "gemm/memory"};
    assert_int_equal(
        rag_search(place->rag, &query, place->arena, &place->items, &place->count, &place->err), 0);
    assert_true(place->items[0].id == second);
}

/* One endless line of the same again: each passage is there under a number of its own. */
static void twins_have_their_own_ids(void **state)
{
    struct place *place = *state;
    struct buf text;
    buf_init(&text, 4 << 20);
    for (int i = 0; i < 300000; i++)
        buf_add_text(&text, "{}");
    put(place, "endless.h", buf_text(&text));
    buf_free(&text);
    assert_int_equal(add(place, NULL, NULL), 0);
    char *path = file_join(place->docs, "endless.h");
    assert_int_equal(rag_document_passages(place->rag, path, place->arena, &place->items,
                                           &place->count, &place->err),
                     0);
    mem_free(path);
    assert_true(place->count > 100);
    for (size_t i = 0; i < place->count; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(place->items[i].id != place->items[k].id);
    assert_int_equal(rag_check(place->rag, &place->err), 0);
}

/* What is asked in a message's, a phrase's or a person's words stands before what has the same
 * words otherwise. */
static void ranks_what_is_meant(void **state)
{
    struct place *place = *state;
    static const struct {
        const char *question, *title;
    } cases[] = {
        {"RuntimeError: CUDA error: the launch timed out and was terminated",
         "cudaErrorLaunchTimeout"}, /* its comment has none of these words */
        {"the size of a register file", "Threads"},
        {"tell me whose turn comes after a warp stall", "Warp stalls"},
    };
    put(place, "types.h",
        "/** Errors */\nenum cudaError {\n"
        "/** This device kernel took too long to execute. A program that wants to go on has to "
        "make a new process; what it had is lost, and whoever holds it hears of that no more. "
        "*/\ncudaErrorLaunchTimeout = 702,\n"
        "/** The launch was out of resources and was terminated. */\n"
        "cudaErrorLaunchOutOfResources = 701,\n"
        "/** The driver timed out and was terminated before the launch; CUDA tells of it at once. "
        "*/\ncudaErrorOther = 9,\n"
        "};\n");
    put(place, "phrases.md",
        "# Notes\n## Threads\nWhat is left of the register file when a thread has taken its own.\n"
        "## Buffers\nRegister a buffer first. Then comes a file of words, and another file.\n"
        "## Warp stalls\nA stall of a warp ends when its data is there; then the next one runs.\n"
        "## Tell whose turn\nTell the others whose it is.\n");
    assert_int_equal(add(place, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(search(place, cases[i].question, NULL) > 0);
        assert_string_equal(place->items[0].title, cases[i].title);
    }
}

struct searching {
    struct place *place;
    atomic_bool end;
    atomic_size_t searches, wrong;
};

static void *search_on(void *argument)
{
    struct searching *searching = argument;
    while (!atomic_load(&searching->end)) {
        struct arena *arena = arena_new();
        struct rag_query query = {.text = "steady"};
        struct rag_passage *items;
        struct err err;
        size_t count;
        if (rag_search(searching->place->rag, &query, arena, &items, &count, &err) != 0 ||
            count != 2)
            searching->wrong++;
        searching->searches++;
        arena_free(arena);
    }
    return NULL;
}

/* Two documents are replaced together, again and again: no search sees one alone. */
static void searches_see_one_snapshot(void **state)
{
    struct place *place = *state;
    struct searching searching = {.place = place};
    pthread_t threads[2];
    put(place, "s1.txt", "steady 0 one\n");
    put(place, "s2.txt", "steady 0 two\n");
    assert_int_equal(add(place, NULL, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, search_on, &searching), 0);
    for (int i = 1; i <= 60; i++) {
        char text[64];
        snprintf(text, sizeof text, "steady %d one\n", i);
        put(place, "s1.txt", text);
        snprintf(text, sizeof text, "steady %d two\n", i);
        put(place, "s2.txt", text);
        assert_int_equal(rag_update(place->rag, &place->change, &place->err), 0);
        assert_int_equal(place->change.changed, 2);
    }
    while (atomic_load(&searching.searches) == 0)
        usleep(1000);
    atomic_store(&searching.end, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(searching.wrong, 0);
}

/* Opens and asks in a child, as a run does: 0 where all was well, 1 where the damage was told. */
static int ask_damaged(const struct place *place)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static const char *const words[] = {"bank conflict", "word3 other", "cp.async.bulk"};
        static const int ends[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
            signal(ends[i], SIG_DFL); /* cmocka's own would make an exit of a crash */
        struct rag *rag;
        struct rag_passage *items;
        size_t count;
        struct err err;
        alarm(60);
        int failed = rag_open(place->store, false, &rag, &err) != 0;
        for (size_t i = 0; i < 3 && !failed; i++) {
            struct arena *arena = arena_new();
            failed = rag_search(rag, &(struct rag_query){.text = words[i]}, arena, &items, &count,
                                &err) != 0;
            arena_free(arena);
        }
        if (!failed)
            failed = rag_check(rag, &err) != 0;
        _exit(failed);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status))
        fail_msg("a damaged index ended the process by signal %d", WTERMSIG(status));
    assert_true(WEXITSTATUS(status) <= 1); /* a sanitizer's is more */
    return WEXITSTATUS(status);
}

/* Bytes flipped and the file cut at two hundred places: an error, or passages; never a crash. */
static void damage_is_told(void **state)
{
    struct place *place = *state;
    char text[6000] = "# Other\n";
    for (int i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof name, "f%d.md", i);
        text[8] = '\0';
        for (int k = 0; k < 300; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "word%d other ", i * 3 + k);
        put(place, name, text);
    }
    assert_int_equal(add(place, NULL, NULL), 0);
    rag_close(place->rag);
    place->rag = NULL;
    char *path = file_join(place->store, "rag/data.mdb");
    struct buf whole;
    buf_init(&whole, 64 << 20);
    assert_int_equal(file_read(path, &whole, &place->err), 0);
    uint64_t random = 7;
    int told = 0, asked = 0;
    for (int i = 0; i < 200; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t at = (size_t)(random >> 20) % whole.length, length = whole.length;
        int fd = open(path, O_WRONLY | O_TRUNC);
        if (i % 4 == 0)
            length = at;
        assert_int_equal(write(fd, whole.data, length), (ssize_t)length);
        for (size_t k = 0; i % 4 != 0 && k < (i % 4 == 1 ? 1 : 64) && at + k < length; k++) {
            char other = (char)~(unsigned char)whole.data[at + k];
            assert_int_equal(pwrite(fd, &other, 1, (off_t)(at + k)), 1);
        }
        close(fd);
        told += ask_damaged(place);
        asked++;
    }
    assert_true(told > asked / 3); /* what is in no page that is used hurts nobody */
    /* Made again, it finds what it found. */
    bool repaired;
    assert_int_equal(truncate(path, (off_t)whole.length / 2), 0);
    assert_int_equal(rag_open_repaired(place->store, &repaired, &place->rag, &place->err), 0);
    assert_true(repaired);
    assert_int_equal(rag_update(place->rag, &place->change, &place->err), 0);
    assert_int_equal(place->change.added, 42);
    assert_int_equal(search(place, "bank conflict", NULL), 1);
    /* Cut while it is open. */
    assert_int_equal(truncate(path, 8192), 0);
    struct rag_query query = {.text = "bank"};
    assert_int_equal(
        rag_search(place->rag, &query, place->arena, &place->items, &place->count, &place->err),
        -1);
    assert_int_equal(place->err.code, ERR_CORRUPT);
    assert_true(rag_say_damage(place->rag) && !rag_say_damage(place->rag));
    buf_free(&whole);
    mem_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_what_was_added, start, stop),
        cmocka_unit_test_setup_teardown(updates_what_changed_alone, start, stop),
        cmocka_unit_test_setup_teardown(changes_leave_nothing_behind, start, stop),
        cmocka_unit_test_setup_teardown(hostile_files, start, stop),
        cmocka_unit_test_setup_teardown(budget_and_use, start, stop),
        cmocka_unit_test_setup_teardown(ranks_what_is_meant, start, stop),
        cmocka_unit_test_setup_teardown(searches_see_one_snapshot, start, stop),
        cmocka_unit_test_setup_teardown(damage_is_told, start, stop),
        cmocka_unit_test_setup_teardown(twins_have_their_own_ids, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
