/* What a call leaves in its process is seen from outside, by name; what it puts back is not. */
#include "kit.c" /* each test is one source file */

static const struct leaving {
    const char *includes, *body;
    const char *name; /* NULL: nothing is left */
} leavings[] = {
    {"#include <fenv.h>\n", "int m = fegetround(); fesetround(FE_UPWARD); fesetround(m);", NULL},
    {"#include <fenv.h>\n", "feraiseexcept(FE_ALL_EXCEPT);", NULL},
    {"#include <fenv.h>\n", "fesetround(FE_TOWARDZERO);", "rounding mode"},
#if defined(__x86_64__)
    {"#include <immintrin.h>\n", "_mm_setcsr(_mm_getcsr() | 0x8000);", "denormal"},
    {"#include <immintrin.h>\n", "_mm_setcsr(_mm_getcsr() | 0x40);", "denormal"},
    {"#include <immintrin.h>\n", "_mm_setcsr(_mm_getcsr() & ~0x400);", "exceptions trap"},
    {"", "unsigned short w = 0x27f; __asm__ volatile(\"fldcw %0\" : : \"m\"(w));", "precision"},
    {"", "__asm__ volatile(\"fld1\");", "x87"},
    {"", "__asm__ volatile(\"movd %0, %%mm0\" : : \"r\"(1));", "MMX"},
    {"", "__asm__ volatile(\"movd %0, %%mm0; emms\" : : \"r\"(1));", NULL},
    {"", "__asm__ volatile(\"std\" : : : \"memory\");", "direction"},
#endif
    {"#include <signal.h>\n", "sigset_t s; sigfillset(&s); sigprocmask(SIG_BLOCK, &s, 0);",
     "blocked signals"},
    {"#include <signal.h>\n",
     "sigset_t s, o; sigfillset(&s); sigprocmask(SIG_BLOCK, &s, &o);"
     " sigprocmask(SIG_SETMASK, &o, 0);",
     NULL},
    {"#include <stdlib.h>\n", "setenv(\"LEFT\", \"1\", 1);", "environment"},
    {"#include <string.h>\n#include <unistd.h>\n", "if (environ[0]) environ[0][0] = 'Z';",
     "environment"},
    {"#include <stdlib.h>\n", "if (getenv(\"LC_ALL\") == 0) *(volatile int *)0 = 1;", NULL},
    {"#include <locale.h>\n", "setlocale(LC_ALL, \"\");", "locale"},
    {"#include <locale.h>\n", "setlocale(LC_ALL, 0);", NULL},
    {"#include <fcntl.h>\n#include <dlfcn.h>\nstatic Dl_info own;\n"
     "__attribute__((constructor)) static void at_load(void)\n"
     "{ if (dladdr(&own, &own)) open(own.dli_fname, O_RDONLY); }\n",
     "", "open files"},
    {"#include <stdlib.h>\n", "free(malloc(8 << 20));", NULL},
};

static void told_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof leavings / sizeof leavings[0]; i++) {
        const struct leaving *leaving = &leavings[i];
        char text[2048];
        snprintf(text, sizeof text, "#define _GNU_SOURCE\n%s%s{" KIT_RIGHT "%s }",
                 leaving->includes, KIT_SIGNATURE, leaving->body);
        if (kit_try(&kit, text) != ERR_NONE)
            fail_msg("%s: %s", leaving->body, kit.err.message);
        kit.subject->ops->pause(kit.subject);
        const char *changed = kit.subject->remains(kit.subject).changed;
        bool as_wanted = leaving->name == NULL ? changed == NULL
                                               : changed != NULL && strstr(changed, leaving->name);
        if (!as_wanted)
            fail_msg("%s: %s", leaving->body, changed != NULL ? changed : "nothing");
        assert_int_equal(kit_call(&kit), 0); /* looked at it goes on as ever */
        assert_true(kit_right(&kit));
    }
}

/* A constructor's, too; but for what compilers do to whatever is linked with -ffast-math. */
static void told_of_loading(void **state)
{
    (void)state;
    assert_int_equal(kit_try(&kit, "#include <fenv.h>\n__attribute__((constructor)) static void "
                                   "f(void) { fesetround(FE_UPWARD); }\n" KIT_SIGNATURE
                                   "{" KIT_RIGHT "}"),
                     ERR_NONE);
    kit.subject->ops->pause(kit.subject);
    assert_non_null(kit.subject->remains(kit.subject).changed);
    assert_int_equal(kit_try(&kit,
                             "/*---\ncompile: {flags: [\"-ffast-math\"]}\n---*/\n" KIT_SIGNATURE
                             "{" KIT_RIGHT "}"),
                     ERR_NONE);
    kit.subject->ops->pause(kit.subject);
    assert_null(kit.subject->remains(kit.subject).changed);
}

static void memory_and_threads_are_counted(void **state)
{
    (void)state;
    assert_int_equal(
        kit_try(&kit,
                "#include <pthread.h>\n#include <stdlib.h>\n#include <string.h>\n"
                "#include <unistd.h>\nstatic void *rest(void *p) { for (;;) sleep(9); return p; }\n"
                "static void *keep;\n" KIT_SIGNATURE "{" KIT_RIGHT
                "pthread_t t; pthread_create(&t, 0, rest, 0); void *p = malloc(6 << 20);"
                "if (p) { memset(p, 1, 6 << 20); *(void **)p = keep; keep = p; } }"),
        ERR_NONE);
    kit.subject->ops->pause(kit.subject);
    struct remains first = kit.subject->remains(kit.subject);
    assert_int_equal(first.threads, 1);
    assert_int_equal(kit_call(&kit), 0);
    kit.subject->ops->pause(kit.subject);
    struct remains second = kit.subject->remains(kit.subject);
    assert_int_equal(second.threads, 2);
    assert_true(second.memory_bytes >= first.memory_bytes + (6 << 20));
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(told_by_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(told_of_loading, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_and_threads_are_counted, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
