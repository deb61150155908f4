/* Held calls: threads that the caller waits for compute, others do not. */
#include "kit.c" /* each test is one source file */

/* Threads in many ways. Those that are waited for compute in a held call as ever; of those that
 * nobody waits for nothing is seen, however little they have to do. Who makes them has no name that
 * could be found in the artifact. */
static const struct threaded {
    const char *name, *before, *body;
    bool waited;
} threaded[] = {
    {"joined", "", "pthread_t t; make(&t, one, C); for (int i = 1; i < 35; i++) C[i] = 1; join(t);",
     true},
    {"left", "", "pthread_t t; make(&t, one, C); for (int i = 1; i < 35; i++) C[i] = 1;", false},
    {"left by one that computes", "",
     "pthread_t t; make(&t, one, C); for (int i = 1; i < 35; i++) C[i] = 1; burn(20000000);",
     false},
    {"left by one that naps", "",
     "pthread_t t; make(&t, one, C); for (int i = 1; i < 35; i++) C[i] = 1;"
     "for (int i = 0; i < 20; i++) { struct timespec s = {0, 1000}; nanosleep(&s, 0); "
     "sched_yield(); }",
     false},
    {"waited for in a loop", "",
     "pthread_t t; done = 0; make(&t, flagged, C); for (int i = 1; i < 35; i++) C[i] = 1;"
     "while (!done) ;",
     true},
    {"waited for in a loop that yields", "",
     "pthread_t t; done = 0; make(&t, flagged, C); for (int i = 1; i < 35; i++) C[i] = 1;"
     "while (!done) sched_yield();",
     true},
    {"kept, and waited for",
     "static sem_t ask, told; static float *job;\n"
     "static void *work(void *p) { for (;;) { sem_wait(&ask); *job = 1; sem_post(&told); } return "
     "p; }\n"
     "__attribute__((constructor)) static void f(void) { pthread_t t; sem_init(&ask, 0, 0);"
     " sem_init(&told, 0, 0); make(&t, work, 0); }\n",
     "job = C; sem_post(&ask); for (int i = 1; i < 35; i++) C[i] = 1; sem_wait(&told);", true},
    {"kept, and left",
     "static sem_t ask; static float *job;\n"
     "static void *work(void *p) { for (;;) { sem_wait(&ask); *job = 1; } return p; }\n"
     "__attribute__((constructor)) static void f(void) { pthread_t t; sem_init(&ask, 0, 0);"
     " make(&t, work, 0); }\n",
     "job = C; sem_post(&ask); for (int i = 1; i < 35; i++) C[i] = 1; burn(20000000);", false},
    {"kept, looking for work",
     "static float *volatile job;\n"
     "static void *work(void *p) { for (;;) if (job) { *job = 1; job = 0; } return p; }\n"
     "__attribute__((constructor)) static void f(void) { pthread_t t; make(&t, work, 0); }\n",
     "job = C; for (int i = 1; i < 35; i++) C[i] = 1; burn(20000000);", false},
    {"left beside one that is waited for",
     "static volatile float *job;\n"
     "static void *other(void *p) { C0 = p; while (!job) sched_yield(); *job = 1; job = 0; return "
     "p; }\n",
     "static float s; pthread_t t, u; job = 0; make(&u, other, C); make(&t, one, &s);"
     "for (int i = 1; i < 35; i++) C[i] = 1; job = C; join(t);",
     false},
    {"OpenMP", "",
     "\n#pragma omp parallel for num_threads(2)\nfor (int i = 0; i < 35; i++) C[i] = 1;\n", true},
};

static void count_turn(void *count, unsigned thread)
{
    *(unsigned *)count += thread > 0;
}

static void only_threads_that_are_waited_for_compute(void **state)
{
    static const char prelude[] =
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <pthread.h>\n#include <sched.h>\n"
        "#include <semaphore.h>\n#include <time.h>\nstatic volatile int done;\nstatic void *C0;\n"
        "static int make(pthread_t *t, void *(*f)(void *), void *p) { char n[] = "
        "\"Pthread_create\";"
        " n[0] = 'p'; int (*c)(pthread_t *, void *, void *(*)(void *), void *);"
        " *(void **)&c = dlsym(RTLD_DEFAULT, n); return c(t, 0, f, p); }\n"
        "static void join(pthread_t t) { pthread_join(t, 0); }\n"
        "static void burn(int n) { for (volatile int i = 0; i < n / 10; i++) ; }\n"
        "static void *one(void *p) { *(float *)p = 1; return 0; }\n"
        "static void *flagged(void *p) { *(float *)p = 1; done = 1; return 0; }\n"
        "static void *use[] = {(void *)join, (void *)burn, (void *)one, (void *)flagged, &C0, "
        "use};\n";
    (void)state;
    kit.call.timeout_ms = 600000; /* none of these hangs */
    for (size_t i = 0; i < sizeof threaded / sizeof threaded[0]; i++) {
        char text[4096];
        unsigned late = 0;
        snprintf(text, sizeof text, "%s%s%s{ %s }", prelude, threaded[i].before, KIT_SIGNATURE,
                 threaded[i].body);
        assert_int_equal(kit_compile(&kit, "k.c", text, BUILD_FAST), 0);
        assert_int_equal(kit_load(&kit), 0);
        bool beside = strstr(threaded[i].name, "beside") != NULL; /* chance decides who begins */
        for (int call = 0; call < (beside ? 30 : 12); call++) {
            kit.subject->ops->pause(kit.subject);
            unsigned turns = 0;
            /* Who is not waited for has no turn however slow the caller is, or is made. */
            kit.subject->hold_ns = threaded[i].waited ? 20000000 : UINT64_C(600000000000);
            kit.subject->ran = count_turn;
            kit.subject->ran_context = &turns;
            if (kit_call(&kit) != 0)
                fail_msg("%s, call %d: %s", threaded[i].name, call, kit.err.message);
            if ((turns > 0) != (threaded[i].waited || beside))
                fail_msg("%s, call %d: others had %u turns", threaded[i].name, call, turns);
            assert_int_equal(kit.subject->hold_ns, 0);
            usleep(500);                         /* whoever looks may be late */
            late += kit_output(&kit)[0] != 1.0F; /* poison is NaN */
            kit.subject->ops->pause(kit.subject);
            late += kit_output(&kit)[0] != 1.0F;
            for (int j = 1; j < 35; j++)
                assert_true(kit_output(&kit)[j] == 1);
        }
        if (threaded[i].waited ? late > 0 : late < (beside ? 6 : 24))
            fail_msg("%s: late %u times of %u", threaded[i].name, late, beside ? 60 : 24);
        kit.subject->ops->resume(kit.subject); /* and unharmed */
        assert_int_equal(kit_call(&kit), 0);
    }
}

/* In place of a caller that has no word of its own. */
static void no_other_thread_says_that_it_is_done(void **state)
{
    static const char text[] =
        "#include <pthread.h>\n#include <unistd.h>\n"
        "static void *says(void *p) { uint64_t one = 1; if (write(7, &one, 8)) {} return p; "
        "}\n" KIT_SIGNATURE "{ pthread_t t; if (pthread_create(&t, 0, says, 0)) return; "
        "pthread_join(t, 0); _exit(0); }";
    (void)state;
    assert_int_equal(kit_compile(&kit, "k.c", text, BUILD_FAST), 0);
    assert_int_equal(kit_load(&kit), 0);
    kit.subject->ops->pause(kit.subject);
    kit.subject->hold_ns = 20000000;
    assert_int_not_equal(kit_call(&kit), 0);
    assert_int_equal(kit.err.code, ERR_PROTOCOL);
    assert_string_equal(kit.err.message, "another thread than the caller's said \"done\"");
}

int main(int argc, char **argv)
{
    int code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_threads_that_are_waited_for_compute, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(no_other_thread_says_that_it_is_done, set_up, tear_down),
    };
    if (kit_internal(argc, argv, &code))
        return code;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
