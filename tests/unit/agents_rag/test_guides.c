/* The guides that ship with the program: taken in once, again when they change, and not against a
 * person's will. */
#include "agents/retrieve/rag/documents.h"
#include "base/file.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct place {
    char folder[64];
    struct rag *rag;
    struct arena *arena;
    struct err err;
};

/* data/rag/NAME of this place, and TWAGENT_DATA to data. */
static void put(struct place *place, const char *data, const char *name, const char *text)
{
    char folder[160], path[240];
    snprintf(folder, sizeof folder, "%s/%s/rag", place->folder, data);
    assert_int_equal(file_make_dirs(folder, &place->err), 0);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(file_write(path, text, strlen(text), &place->err), 0);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(setenv("TWAGENT_DATA", folder, 1), 0);
}

static int start(void **state)
{
    struct place *place = MEM_NEW(struct place);
    char store[100];
    strcpy(place->folder, "/tmp/test_guides.XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(store, sizeof store, "%s/store", place->folder);
    put(place, "data", "banks.md", "# Shared memory\n## Banks\nThirty-two banks.\n");
    put(place, "data", "numa.md", "# Threads\n## NUMA\nFirst touch.\n");
    assert_int_equal(rag_open(store, true, &place->rag, &place->err), 0);
    place->arena = arena_new();
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

static void ensure(struct place *place)
{
    assert_int_equal(rag_ensure_guides(place->rag, &place->err), 0);
}

static size_t found(struct place *place, const char *text, const char *tags)
{
    struct rag_query query = {.text = text, .tags = tags};
    struct rag_passage *items;
    size_t count;
    assert_int_equal(rag_search(place->rag, &query, place->arena, &items, &count, &place->err), 0);
    return count;
}

static size_t documents(struct place *place, struct rag_document **items)
{
    size_t count;
    assert_int_equal(rag_documents(place->rag, place->arena, items, &count, &place->err), 0);
    return count;
}

static void taken_in_once_and_when_changed(void **state)
{
    struct place *place = *state;
    struct rag_document *items;
    ensure(place);
    ensure(place);
    assert_int_equal(documents(place, &items), 2);
    assert_string_equal(items[0].tags, ",builtin,");
    assert_int_equal(found(place, "bank", RAG_BUILTIN), 1);
    put(place, "data", "banks.md", "# Shared memory\n## Banks\nWavefronts of thirty-two banks.\n");
    ensure(place);
    assert_int_equal(found(place, "wavefront", NULL), 1);
    assert_int_equal(documents(place, &items), 2);
}

/* Another version of the program, in another folder: its guides, not both. */
static void follows_the_program(void **state)
{
    struct place *place = *state;
    struct rag_document *items;
    ensure(place);
    put(place, "moved", "banks.md", "# Shared memory\n## Banks\nThirty-two banks.\n");
    ensure(place);
    assert_int_equal(documents(place, &items), 1);
    assert_non_null(strstr(items[0].source, "/moved/"));
}

static void removed_is_removed(void **state)
{
    struct place *place = *state;
    struct rag_document *items;
    struct rag_change change;
    ensure(place);
    assert_int_equal(rag_remove(place->rag, "tag:" RAG_BUILTIN, &change, &place->err), 0);
    assert_int_equal(change.removed, 2);
    ensure(place);
    put(place, "data", "banks.md", "# Shared memory\n## Banks\nOther words.\n");
    ensure(place);
    assert_int_equal(documents(place, &items), 0);
    assert_int_equal(rag_add_guides(place->rag, &change, &place->err), 0);
    assert_int_equal(change.added, 2);
    /* One of them alone: the others go on being followed. */
    char path[160];
    snprintf(path, sizeof path, "%s/data/rag/numa.md", place->folder);
    assert_int_equal(rag_remove(place->rag, path, &change, &place->err), 0);
    put(place, "data", "banks.md", "# Shared memory\n## Banks\nWavefronts.\n");
    ensure(place);
    assert_int_equal(documents(place, &items), 1);
    assert_int_equal(found(place, "wavefront", RAG_BUILTIN), 1);
}

/* Who added the folder before keeps the tags. */
static void keeps_a_persons_tags(void **state)
{
    struct place *place = *state;
    struct rag_document *items;
    struct rag_change change;
    char path[160];
    const char *paths[] = {path};
    struct rag_add what = {.paths = paths, .path_count = 1, .tags = "mine"};
    snprintf(path, sizeof path, "%s/data/rag", place->folder);
    assert_int_equal(rag_add(place->rag, &what, &change, &place->err), 0);
    ensure(place);
    put(place, "data", "new.md", "# New\nA third.\n");
    ensure(place);
    assert_int_equal(documents(place, &items), 3);
    assert_string_equal(items[0].tags, ",builtin,mine,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(taken_in_once_and_when_changed, start, stop),
        cmocka_unit_test_setup_teardown(follows_the_program, start, stop),
        cmocka_unit_test_setup_teardown(removed_is_removed, start, stop),
        cmocka_unit_test_setup_teardown(keeps_a_persons_tags, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
