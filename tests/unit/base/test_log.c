#include "check.h"

#include "base/buf.h"
#include "base/log.h"

#include <pthread.h>
#include <stdio.h>

static void collect(void *context, const struct event *event)
{
    buf_addf((struct buf *)context, "%d %s|%s|%s;", (int)event->level, event->kind, event->subject,
             event->message);
}

static void sinks_see_what_they_asked_for(void **state)
{
    (void)state;
    struct buf all, warnings;
    buf_init(&all, 1000);
    buf_init(&warnings, 1000);
    log_event(LOG_ERROR, "nobody", "", "listens");
    log_add_sink(collect, &all, LOG_DEBUG);
    log_add_sink(collect, &warnings, LOG_WARN);
    log_event(LOG_DEBUG, "a.b", "c1", "x %d", 1);
    log_event(LOG_WARN, "w", "", "y\n\x1b[0m");
    log_event(LOG_ERROR, "e", NULL, "z");
    assert_string_equal(buf_text(&all), "0 a.b|c1|x 1;2 w||y  [0m;3 e||z;");
    assert_string_equal(buf_text(&warnings), "2 w||y  [0m;3 e||z;");
    log_remove_sink(collect, &all);
    log_remove_sink(collect, &all); /* once is enough; twice is harmless */
    log_event(LOG_INFO, "i", "", "unheard");
    log_event(LOG_ERROR, "e", "", "heard");
    assert_string_equal(buf_text(&warnings), "2 w||y  [0m;3 e||z;3 e||heard;");
    log_remove_sink(collect, &warnings);
    buf_free(&all);
    buf_free(&warnings);
}

static void lines_are_plain(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    struct event event = {.wall_ms = 1795246724123u,
                          .level = LOG_INFO,
                          .kind = "candidate.move",
                          .subject = "r1-c3",
                          .message = "timing"};
    log_sink_lines(file, &event);
    event.subject = "";
    event.level = LOG_ERROR;
    log_sink_lines(file, &event);
    fclose(file);
    assert_string_equal(text, "07:38:44 info candidate.move r1-c3 timing\n"
                              "07:38:44 error candidate.move timing\n");
    free(text);
}

static void count_event(void *context, const struct event *event)
{
    (void)event;
    ++*(int *)context; /* not atomic on purpose: sinks run one at a time */
}

static void *emit_many(void *unused)
{
    for (int i = 0; i < 1000; i++)
        log_event(LOG_INFO, "many", "", "%d", i);
    return unused;
}

static void threads_take_turns(void **state)
{
    (void)state;
    int count = 0;
    log_add_sink(count_event, &count, LOG_INFO);
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, emit_many, NULL), 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    log_remove_sink(count_event, &count);
    assert_int_equal(count, 4000);
}

static void ninth_sink(void)
{
    int unused = 0;
    for (int i = 0; i < 9; i++)
        log_add_sink(count_event, &unused, LOG_INFO);
}

static void emitting_sink(void *context, const struct event *event)
{
    (void)context;
    log_event(event->level, "again", "", "and again");
}

static void emit_from_sink(void)
{
    log_add_sink(emitting_sink, NULL, LOG_INFO);
    log_event(LOG_INFO, "once", "", "!");
}

static void misuse_aborts(void **state)
{
    (void)state;
    assert_true(aborts(ninth_sink));
    assert_true(aborts(emit_from_sink));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sinks_see_what_they_asked_for),
        cmocka_unit_test(lines_are_plain),
        cmocka_unit_test(threads_take_turns),
        cmocka_unit_test(misuse_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
