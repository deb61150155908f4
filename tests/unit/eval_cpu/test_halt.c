/* Watched calls: a thread besides the caller's stops where it writes an output, or reads an input,
 * and goes on where the caller waits for it. */
#include "kit.c" /* each test is one source file */

#include <pthread.h>
#include <signal.h>

/* Of a thread that has begun, and of a caller that looks whether it has. What is watched is the
 * fourth element; the thread writes the first eight, the caller the others. Whoever computes does
 * so for milliseconds of its CPU time, however fast the machine is: who has used twice the usual
 * call's waits in a loop. */
enum how {
    WRITTEN,
    BEFORE, /* and who writes the ninth waits for that */
    READ,   /* in place of that: where the fourth element of the first input is read */
    SEEN,   /* late: where it is seen in the region */
    MOMENT  /* late: after a while */
};

static const struct looking {
    const char *name, *before, *body;
    bool waited;
    enum how how;
} looking[] = {
    {"looks", "", "ask = 1; while (!begun) ; rest(C);", false, WRITTEN},
    {"looks, and is slow", "", "ask = 1; while (!begun) ; rest(C); burn(2);", false, WRITTEN},
    {"waits in a loop", "", "ask = 1; rest(C); while (!over) ;", true, WRITTEN},
    {"waits in the kernel", "", "ask = 1; rest(C); while (sem_wait(&told)) ;", true, WRITTEN},
    {"makes it, and looks", "#define MADE\n",
     "pthread_t t; pthread_create(&t, 0, once, 0); pthread_detach(t); while (!begun) ; rest(C);",
     false, WRITTEN},
    {"makes it, and joins it", "#define MADE\n",
     "pthread_t t; pthread_create(&t, 0, once, 0); rest(C); pthread_join(t, 0);", true, WRITTEN},
    {"waits for another that looks", "",
     "pthread_t t; pthread_create(&t, 0, looks, C); pthread_join(t, 0);", false, WRITTEN},
    {"waits for another that waits", "",
     "pthread_t t; pthread_create(&t, 0, waits, C); pthread_join(t, 0);", true, WRITTEN},
    {"looks at one that comes late", "", "slow = 2; ask = 1; rest(C); if (!begun) while (!over) ;",
     false, BEFORE},
    {"waits for one that comes late", "", "slow = 2; ask = 1; rest(C); while (!over) ;", true,
     BEFORE},
    {"waits for one that waits for it", "", "hand = 1; ask = 1; rest(C); hand = 0; while (!over) ;",
     true, BEFORE},
    {"copies from one that has begun", "",
     "to = own; from = A; ask = 1; while (!begun) ; burn(2); copy(C); rest(C);", false, READ},
    {"copies from one that is done", "",
     "to = own; from = A; ask = 1; while (!over) ; copy(C); rest(C);", true, READ},
    {"looks, and feels nobody", "", "middle = 6; ask = 1; while (!begun) ; rest(C); burn(12);",
     false, SEEN},
    {"waits, and feels nobody", "", "middle = 2; ask = 1; rest(C); while (!over) ;", true, SEEN},
    {"looks at any moment", "", "middle = 8; ask = 1; while (!begun) ; rest(C); burn(12);", false,
     MOMENT},
    {"waits at any moment", "", "middle = 8; ask = 1; rest(C); while (!over) ;", true, MOMENT},
};

static const char threads_of_it[] =
    "#include <pthread.h>\n#include <semaphore.h>\n#include <stdint.h>\n#include <time.h>\n"
    "static volatile int ask, begun, over, slow, middle, hand;\nstatic float *volatile to, own[8];"
    "\nstatic const volatile float *volatile from;\nstatic sem_t told;\n"
    "static long used_us(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);"
    " return t.tv_sec * 1000000 + t.tv_nsec / 1000; }\n"
    "static void burn(int ms) { for (long end = used_us() + ms * 1000L; used_us() < end;) ; }\n"
    "static void part(void) { burn(slow); while (hand) ; begun = 1;"
    " for (int i = 0; i < 8; i++) { if (i == 4) burn(middle);"
    " *(volatile float *)&to[i] = from ? 1 + 0 * from[i] : 1; } over = 1; sem_post(&told); }\n"
    "static void *once(void *p) { part(); return p; }\n"
    "static void *kept(void *p) { for (;;) { while (!ask) ; ask = 0; part(); } return p; }\n"
    "static void rest(float *C) { for (int i = 8; i < 35; i++) *(volatile float *)&C[i] = 1; }\n"
    "static void copy(float *C) { for (int i = 0; i < 8; i++) C[i] = own[i], own[i] = 0; }\n"
    "static void *looks(void *C) { ask = 1; while (!begun) ; rest(C);"
    " burn(6); return C; }\n"
    "static void *waits(void *C) { ask = 1; rest(C); while (!over) ; return C; }\n"
    "static void *use[] = {(void *)kept, (void *)once, (void *)copy, (void *)looks, (void *)waits,"
    " use};\n"
    "#ifndef MADE\n__attribute__((constructor)) static void f(void) { pthread_t t;"
    " pthread_create(&t, 0, kept, 0); }\n#endif\n";

static struct watch watch_of(enum how how)
{
    const uint64_t to = kit.layout.outputs[0].offset;
    struct watch watch = {
        .count = how == BEFORE   ? 2
                 : how == MOMENT ? 0
                                 : 1,
        .targets = how == MOMENT ? 0 : 1,
        .items = {{to + 3 * sizeof(float), 4, false}, {to + 8 * sizeof(float), 4, false}},
        .late = how >= SEEN,
        .at_ns = how == MOMENT ? 6000000 : 0,
        .outputs = kit.region.outputs,
        .usual_ns = 10000000};
    if (how == READ)
        watch.items[0] = (struct watched){kit.layout.inputs[0].offset + 3 * sizeof(float), 4, true};
    return watch;
}

/* True: something is missing. A late one is seen by who comes in time, on a busy machine not
 * always. */
static bool call_it(const struct looking *look)
{
    const struct watch watch = watch_of(look->how);
    bool missing = false;
    kit.subject->watch = &watch;
    if (kit_call(&kit) != 0)
        fail_msg("%s: %s", look->name, kit.err.message);
    assert_null(kit.subject->watch);
    usleep(500); /* whoever looks may be late */
    for (int i = 0; i < 35; i++) {
        bool there = kit_output(&kit)[i] == 1.0F; /* poison is NaN */
        missing |= !there;
        if (!look->waited && (i < 4 || watch.late)) /* the word may have come before them, too */
            continue;
        if (there != (look->waited || i > 7))
            fail_msg("%s: element %d is %sthere", look->name, i, there ? "" : "not ");
    }
    kit.subject->ops->pause(kit.subject);
    return missing;
}

static void who_looks_is_told_that_they_have_begun(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof looking / sizeof looking[0]; i++) {
        char text[4096];
        snprintf(text, sizeof text,
                 "%s%s%s{ begun = over = 0; to = C; from = 0; while (!sem_trywait(&told)) ; %s }",
                 looking[i].before, threads_of_it, KIT_SIGNATURE, looking[i].body);
        if (kit_compile(&kit, "k.c", text, BUILD_FAST) != 0)
            fail_msg("%s: %s", looking[i].name, buf_text(&kit.said));
        unsigned missing = 0;
        for (int call = 0; call < (looking[i].how >= SEEN ? 6 : 3); call++) {
            if (call == 0 || !looking[i].waited) /* what was left is done in the next call */
                assert_int_equal(kit_load(&kit), 0);
            missing += call_it(&looking[i]);
        }
        if (missing == 0 && !looking[i].waited)
            fail_msg("%s: nothing is missing", looking[i].name);
        for (int call = 0; call < 2; call++) { /* and unharmed */
            assert_int_equal(kit_call(&kit), 0);
            usleep(500);
            kit.subject->ops->pause(kit.subject);
        }
    }
}

/* Also one that dies while it is watched, and one whose thread does. */
static void the_end_of_one_that_is_watched_is_told(void **state)
{
    static const char *const bodies[] = {"{ __builtin_trap(); }",
                                         "{ pthread_t t; pthread_create(&t, 0, dies, 0);"
                                         " for (;;) ; }"};
    const struct watch watch = {.usual_ns = 5000000};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char text[1024];
        snprintf(
            text, sizeof text,
            "#include <pthread.h>\nstatic void *dies(void *p) { __builtin_trap(); return p; }\n"
            "static void *use[] = {(void *)dies, use};\n%s%s",
            KIT_SIGNATURE, bodies[i]);
        assert_int_equal(kit_compile(&kit, "k.c", text, BUILD_FAST), 0);
        assert_int_equal(kit_load(&kit), 0);
        kit.subject->watch = &watch;
        assert_int_not_equal(kit_call(&kit), 0);
        assert_int_equal(kit.err.code, ERR_CHILD);
        assert_non_null(strstr(kit.err.message, "SIGILL"));
    }
}

/* One that never ends: it writes what is watched, or nothing at all. */
static void the_time_of_one_that_is_watched_is_bounded(void **state)
{
    static const char *const bodies[] = {"{ for (;;) ; }", "{ for (;;) nap(); }"};
    const struct watch watch = {.usual_ns = 5000000};
    (void)state;
    kit.call.timeout_ms = 1000;
    for (size_t i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "#include <time.h>\nstatic void nap(void) { struct timespec t = "
                 "{0, 1000000}; nanosleep(&t, 0); }\nstatic void *use[] = "
                 "{(void *)nap, use};\n%s%s",
                 KIT_SIGNATURE, bodies[i]);
        assert_int_equal(kit_compile(&kit, "k.c", text, BUILD_FAST), 0);
        assert_int_equal(kit_load(&kit), 0);
        kit.subject->watch = &watch;
        assert_int_not_equal(kit_call(&kit), 0);
        assert_int_equal(kit.err.code, ERR_TIMEOUT);
    }
}

struct killer {
    pid_t pid;
    unsigned us;
};

static void *kill_later(void *argument)
{
    const struct killer *killer = argument;
    usleep(killer->us);
    kill(killer->pid, SIGKILL);
    return NULL;
}

/* Who is stopped at every turn may be killed between a stop and its being taken: that is told, and
 * not somebody else's end. */
static void a_kill_amid_the_stops_is_told(void **state)
{
    static const char text[] =
        "#include <pthread.h>\nstatic void *nothing(void *p) { return p; }\n" KIT_SIGNATURE
        "{ for (;;) { pthread_t t; if (!pthread_create(&t, 0, nothing, 0)) pthread_join(t, 0); } }";
    const struct watch watch = {.usual_ns = 5000000};
    (void)state;
    assert_int_equal(kit_compile(&kit, "k.c", text, BUILD_FAST), 0);
    for (unsigned i = 0; i < 80; i++) {
        assert_int_equal(kit_load(&kit), 0);
        struct killer killer = {.pid = kit.subject->pid, .us = i * 100};
        pthread_t thread;
        if (i % 2 == 0)
            kit.subject->watch = &watch;
        else
            kit.subject->hold_ns = 20000000;
        assert_int_equal(pthread_create(&thread, NULL, kill_later, &killer), 0);
        assert_int_not_equal(kit_call(&kit), 0);
        pthread_join(thread, NULL);
        if (strstr(kit.err.message, "killed by SIGKILL") == NULL)
            fail_msg("%u: %s", i, kit.err.message);
    }
}

int main(int argc, char **argv)
{
    int code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_looks_is_told_that_they_have_begun, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_of_one_that_is_watched_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_time_of_one_that_is_watched_is_bounded, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_kill_amid_the_stops_is_told, set_up, tear_down),
    };
    if (kit_internal(argc, argv, &code))
        return code;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
