/* A worker of the test program's own behind two pipes: what is sent to it, what it answers. */
#pragma once

#include "base/value.h"
#include "fake_device.h"
#include "process/python_child.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { HANG_MS = 600000, CORES = 256 };

struct fixture {
    struct child child;
    struct folder folder, builds, locks; /* its own: others' timing is nothing to wait for here */
    struct arena *arena;
};

static void send_text(struct fixture *fixture, const char *format, ...) PRINTF_LIKE(2, 3);

static void send_text(struct fixture *fixture, const char *format, ...)
{
    char text[2048];
    struct err err;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    assert_int_equal(child_send(&fixture->child, text, (size_t)length, &err), 0);
}

static const struct value *record(struct fixture *fixture)
{
    const char *line;
    struct value *value;
    struct err err = {0};
    if (child_line(&fixture->child, HANG_MS, &line, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(value_parse_json(fixture->arena, "record", line, strlen(line), &value, &err),
                     0);
    return value;
}

/* Skips stages; notes them as letters. */
static const struct value *answer(struct fixture *fixture, const char *id, char *stages)
{
    for (;;) {
        const struct value *value = record(fixture);
        bool stage = strcmp(value_text(value, "event", ""), "stage") == 0;
        if (id != NULL)
            assert_string_equal(value_text(value, "id", ""), id);
        if (!stage)
            return value;
        if (stages != NULL) {
            *stages++ = value_text(value, "stage", "?")[0];
            *stages = '\0';
        }
    }
}

static void open_for(struct fixture *fixture, int time_budget_ms)
{
    send_text(fixture,
              "{\"op\":\"open\",\"id\":\"o\",\"problem\":\"%s\",\"baseline\":\"product\","
              "\"time_budget_ms\":%d,\"call_timeout_ms\":600000,\"memory_bytes\":1000000}\n",
              fixture->folder.path, time_budget_ms);
    const struct value *value = answer(fixture, "o", NULL);
    if (strcmp(value_text(value, "event", ""), "result") != 0)
        fail_msg("%s", value_text(value, "message", ""));
    assert_non_null(value_at(value, "versions.numpy"));
    assert_string_equal(value_text(value, "problem", ""), "small");
}

static void open_problem(struct fixture *fixture)
{
    open_for(fixture, 10);
}

static void evaluate(struct fixture *fixture, const char *id, const char *source,
                     const char *effort)
{
    send_text(fixture,
              "{\"op\":\"evaluate\",\"id\":\"%s\",\"name\":\"c.c\",\"source\":\"%s\","
              "\"effort\":\"%s\"}\n",
              id, source, effort);
}

/* Two of ours, each twice: four that compile. One alone four times where there is no other. */
static const char *our_cores(void)
{
    static char text[48];
    cpu_set_t set;
    int first = -1, last = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return NULL;
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, &set)) {
            first = first < 0 ? core : first;
            last = core;
        }
    snprintf(text, sizeof text, "%d,%d,%d,%d", first, last, first, last);
    return text;
}

static void make_locks(const struct folder *locks)
{
    char path[200];
    for (int i = 0; i < CORES; i++) {
        snprintf(path, sizeof path, "%s/cpu%d", locks->path, i);
        assert_int_equal(mkdir(path, 0700), 0);
    }
}

static int set_up_worker(void **state, const char *kind)
{
    static struct fixture fixture;
    struct err err = {0};
    char *self = file_self_path();
    fixture = (struct fixture){.arena = arena_new()};
    fake_problem(&fixture.folder, "def reference(A, B):\n    return A @ B\n", "");
    folder_make(&fixture.builds);
    /* What a worker left behind that was killed; this one sweeps it. */
    char stale[120];
    const struct timespec past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    snprintf(stale, sizeof stale, "%s/twagent-worker-killed", fixture.builds.path);
    if (mkdir(stale, 0700) != 0 || utimensat(AT_FDCWD, stale, past, 0) != 0)
        return -1;
    char temporary[100], locks[100], cache[100];
    snprintf(temporary, sizeof temporary, "TMPDIR=%s", fixture.builds.path);
    folder_make(&fixture.locks);
    make_locks(&fixture.locks);
    snprintf(locks, sizeof locks, "TWAGENT_LOCKS=%s", fixture.locks.path);
    const char *const argv[] = {self, kind, NULL};
    snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%s", fixture.locks.path);
    const char *const env[] = {"PATH=/usr/bin:/bin", temporary, locks, cache, NULL};
    int status = child_start(&fixture.child, argv, env, NULL, 0, &err);
    mem_free(self);
    *state = &fixture;
    return status;
}

static int tear_down(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    child_stop(&fixture->child);
    arena_free(fixture->arena);
    folder_remove(&fixture->folder);
    folder_remove(&fixture->builds);
    folder_remove(&fixture->locks);
    return 0;
}
