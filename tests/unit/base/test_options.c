#include "check.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/options.h"

enum { RUN = 1, SHOW = 2 };

struct settings {
    bool json, color;
    int64_t branching, timeout_ms, memory, call_ms;
    double select;
    const char *store, *provider;
};

#define AT(field) offsetof(struct settings, field), #field

/* clang-format off */
static const struct option options[] = {
    {"branching", 'b', OPTION_INT, AT(branching), "8", 1, 4096, NULL, NULL, "N",
     "ideas asked for in each round", RUN},
    {"select", 's', OPTION_REAL, AT(select), "0.25", 0.001, 1, NULL, NULL, "F",
     "share of the kept kernels that become parents of the next round, and more words to wrap", RUN},
    {"provider", 0, OPTION_CHOICE, AT(provider), "builtin", 0, 0, "builtin|openai",
     "TEST_PROVIDER", NULL, "where completions come from", RUN},
    {"timeout", 't', OPTION_DURATION, AT(timeout_ms), "90s", 1, 86400000, NULL, NULL, NULL,
     "time limit", RUN},
    {"call-timeout-of-a-long-name", 0, OPTION_DURATION, AT(call_ms), "1s", 1, 0, NULL, NULL, NULL,
     "time limit of a call", RUN},
    {"memory", 0, OPTION_SIZE, AT(memory), "64M", 0, 0, NULL, NULL, NULL, "memory limit", RUN},
    {"color", 0, OPTION_BOOL, AT(color), "true", 0, 0, NULL, NULL, NULL, "colors", RUN | SHOW},
    {"json", 'j', OPTION_BOOL, AT(json), NULL, 0, 0, NULL, NULL, NULL, "prints JSON", RUN | SHOW},
    {"store", 0, OPTION_TEXT, AT(store), NULL, 0, 0, NULL, "TEST_STORE", "DIR",
     "folder of the store", SHOW},
};
/* clang-format on */

static const struct option_table table = {options, COUNT(options)};
static enum option_origin origins[COUNT(options)];
static struct settings settings;
static struct arena *arena;
static struct err err;
static const char *positionals[2];
static size_t positional_count;

static int set_defaults(void)
{
    memset(&settings, 0xff, sizeof settings);
    return options_defaults(&table, &settings, origins, arena, &err);
}

static void show(struct buf *out)
{
    for (size_t i = 0; i < COUNT(options); i++) {
        option_show(&options[i], &settings, out);
        buf_add_text(out, "# here\n");
    }
}

static int begin(void **state)
{
    (void)state;
    arena = arena_new();
    unsetenv("TEST_PROVIDER");
    unsetenv("TEST_STORE");
    return set_defaults();
}

static int end(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

/* Splits at blanks; "_" stands for an empty argument. */
static int command_line(uint32_t mask, const char *line)
{
    char *argv[32];
    int argc = 0;
    char *copy = arena_strdup(arena, line), *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = strcmp(word, "_") == 0 ? arena_strdup(arena, "") : word;
    return options_command_line(&table, &settings, origins, arena, mask, argc, argv, positionals, 2,
                                &positional_count, &err);
}

static int file(const char *text)
{
    char path[] = "/tmp/twagent-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(file_write(path, text, strlen(text), &err), 0);
    int result = options_file(&table, &settings, origins, arena, path, &err);
    unlink(path);
    if (result != 0) { /* so that messages can be compared */
        assert_int_equal(strncmp(err.message, path, strlen(path)), 0);
        memmove(err.message, err.message + strlen(path), strlen(err.message + strlen(path)) + 1);
    }
    return result;
}

static void defaults_fill_everything(void **state)
{
    (void)state;
    assert_int_equal(settings.branching, 8);
    assert_true(settings.select == 0.25);
    assert_string_equal(settings.provider, "builtin");
    assert_int_equal(settings.timeout_ms, 90000);
    assert_int_equal(settings.memory, 64 << 20);
    assert_true(settings.color);
    assert_false(settings.json);
    assert_null(settings.store);
    for (size_t i = 0; i < COUNT(options); i++)
        assert_int_equal(origins[i], ORIGIN_DEFAULT);
}

static void later_sources_win(void **state)
{
    (void)state;
    setenv("TEST_PROVIDER", "openai", 1);
    setenv("TEST_STORE", "", 1); /* as good as not set */
    assert_int_equal(file("branching: 3\nprovider: builtin\ntimeout: 2m\njson: true\n"
                          "store: \"a b\"\nselect: 1\nmemory: 4096\n"),
                     0);
    assert_int_equal(options_environment(&table, &settings, origins, arena, &err), 0);
    assert_int_equal(command_line(RUN, "--timeout 5s --no-json"), 0);
    assert_int_equal(settings.branching, 3);
    assert_int_equal(origins[0], ORIGIN_FILE);
    assert_true(settings.select == 1.0);
    assert_string_equal(settings.provider, "openai");
    assert_int_equal(origins[2], ORIGIN_ENVIRONMENT);
    assert_int_equal(settings.timeout_ms, 5000);
    assert_int_equal(origins[3], ORIGIN_COMMAND_LINE);
    assert_int_equal(settings.memory, 4096);
    assert_int_equal(origins[6], ORIGIN_DEFAULT);
    assert_false(settings.json);
    assert_string_equal(settings.store, "a b");
}

static void command_lines_are_read(void **state)
{
    (void)state;
    assert_int_equal(command_line(RUN, "one --branching=5 -s 0.5 - -b7 --no-color -j"), 0);
    assert_int_equal(settings.branching, 7);
    assert_true(settings.select == 0.5);
    assert_false(settings.color);
    assert_true(settings.json);
    assert_int_equal(positional_count, 2);
    assert_string_equal(positionals[0], "one");
    assert_string_equal(positionals[1], "-");
    assert_int_equal(command_line(RUN, "-jb9 -- --json -x"), 0);
    assert_int_equal(settings.branching, 9);
    assert_int_equal(positional_count, 2);
    assert_string_equal(positionals[0], "--json");
    assert_int_equal(command_line(RUN, "--json=no --color=TRUE"), 0);
    assert_false(settings.json);
    assert_true(settings.color);
    assert_int_equal(command_line(SHOW, "--store=a=b"), 0);
    assert_string_equal(settings.store, "a=b");
    assert_int_equal(command_line(SHOW, "--store _ _"), 0);
    assert_string_equal(settings.store, "");
    assert_int_equal(positional_count, 1);
    assert_int_equal(command_line(RUN, ""), 0);
    assert_int_equal(positional_count, 0);
}

static void bad_command_lines_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t mask;
        const char *line, *message;
    } cases[] = {
        {RUN, "--brnaching 5", "expected an option, not \"--brnaching\"; is it --branching?"},
        {RUN, "--xyzzy", "expected an option, not \"--xyzzy\"; --help lists them"},
        {RUN, "--no-jsno", "expected an option, not \"--no-jsno\"; --help lists them"},
        {RUN, "--no-store", "expected an option, not \"--no-store\"; --help lists them"},
        {RUN, "-x", "expected an option, not \"-x\"; --help lists them"},
        {RUN, "-jx", "expected an option, not \"-jx\"; --help lists them"},
        {RUN, "--=3", "expected an option, not \"--\"; --help lists them"},
        {SHOW, "--branching 5", "expected an option of this command, not \"--branching\""},
        {SHOW, "-b5", "expected an option of this command, not \"-b\""},
        {RUN, "--branching", "--branching: expected N after it, not the end"},
        {RUN, "-t", "-t: expected DURATION after it, not the end"},
        {RUN, "--branching 0", "--branching: expected a whole number from 1 to 4096, not \"0\""},
        {RUN, "-b 4097", "-b: expected a whole number from 1 to 4096, not \"4097\""},
        {RUN, "-b 5x", "-b: expected a whole number from 1 to 4096, not \"5x\""},
        {RUN, "-b _", "-b: expected a whole number from 1 to 4096, not \"\""},
        {RUN, "-b 99999999999999999999", "-b: expected a whole number from 1 to 4096"},
        {RUN, "--select=nan", "--select: expected a number from 0.001 to 1, not \"nan\""},
        {RUN, "--select=-1", "--select: expected a number from 0.001 to 1, not \"-1\""},
        {RUN, "--select=1e999", "--select: expected a number from 0.001 to 1"},
        {RUN, "--provider open", "--provider: expected one of builtin, openai, not \"open\""},
        {RUN, "--provider _", "--provider: expected one of builtin, openai, not \"\""},
        {RUN, "--provider builtin|openai", "--provider: expected one of"},
        {RUN, "--timeout 90", "--timeout: expected a duration like 250ms, 90s, 10m or 1.5h, not"},
        {RUN, "--timeout 2d", "--timeout: expected a duration from 1ms to 1d, not \"2d\""},
        {RUN, "--call-timeout-of-a-long-name 0",
         "--call-timeout-of-a-long-name: expected a duration at least 1ms, not \"0\""},
        {RUN, "--memory 5X", "--memory: expected a size like 4096, 64M or 2G, not \"5X\""},
        {RUN, "--json=maybe", "--json: expected true or false, not \"maybe\""},
        {RUN, "--no-json=true", "--no-json: expected no value, not \"true\""},
        {RUN, "a b c", "expected at most 2 arguments, not \"c\" too"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (command_line(cases[i].mask, cases[i].line) == 0)
            fail_msg("\"%s\" is not refused", cases[i].line);
        assert_int_equal(err.code, ERR_USAGE);
        assert_contains(err.message, cases[i].message);
    }
    assert_int_equal(settings.branching, 8); /* what is refused is not stored */
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"json: true\nbraching: 1\n", ":2: expected the key \"branching\", not \"braching\""},
        {"xyzzy:\n  a: 1\n", ":1: expected the name of an option, not \"xyzzy\""},
        {"\nbranching: many\n", ":2: branching: expected a whole number from 1 to 4096, not"},
        {"branching: [1]\n", ":1: branching: expected one value, not a list"},
        {"branching:\n  a: 1\n", ":2: branching: expected one value, not a map"},
        {"branching:\n", ":1: branching: expected one value, not nothing"},
        {"- a\n", ":1: expected \"option: value\" lines"},
        {"json: 2\n", ":1: json: expected true or false, not \"2\""},
        {"a: [\n", ":1: expected YAML"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (file(cases[i].text) == 0)
            fail_msg("\"%s\" is not refused", cases[i].text);
        assert_int_equal(err.code, ERR_USAGE);
        assert_contains(err.message, cases[i].message);
    }
    assert_int_equal(file("# nothing\n"), 0);
    assert_int_equal(options_file(&table, &settings, origins, arena, "/none", &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    setenv("TEST_PROVIDER", "x", 1);
    assert_int_equal(options_environment(&table, &settings, origins, arena, &err), -1);
    assert_string_equal(err.message, "TEST_PROVIDER in the environment: expected one of builtin, "
                                     "openai, not \"x\"");
}

static void durations_and_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t duration, size; /* -1: refused */
    } cases[] = {
        {"250ms", 250, -1},
        {"90s", 90000, -1},
        {"10m", 600000, 10 << 20},
        {"1.5h", 5400000, -1},
        {"1d", 86400000, -1},
        {"0.1s", 100, -1},
        {"0", 0, 0},
        {"4096", -1, 4096},
        {"4096B", -1, 4096},
        {"64M", 64 * 60000, 64 << 20},
        {"64MiB", -1, 64 << 20},
        {"2G", -1, INT64_C(2) << 30},
        {"1.5k", -1, 1536},
        {"1T", -1, INT64_C(1) << 40},
        {"9223372036854775807", -1, INT64_MAX},
        {"9223372036854775808", -1, -1},
        {"99999999999T", -1, -1},
        {"8388607.9999999999999T", -1, -1},
        {"", -1, -1},
        {"s", -1, -1},
        {".5s", -1, -1},
        {"5.s", -1, -1},
        {"-5s", -1, -1},
        {" 5s", -1, -1},
        {"5 s", -1, -1},
        {"1e3s", -1, -1},
        {"0x10", -1, -1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t duration = -1, size = -1;
        int duration_result = options_parse_duration(cases[i].text, &duration, &err);
        int size_result = options_parse_size(cases[i].text, &size, &err);
        if (duration != cases[i].duration || size != cases[i].size)
            fail_msg("\"%s\" is %lld ms, %lld bytes", cases[i].text, (long long)duration,
                     (long long)size);
        assert_int_equal(duration_result, duration == -1 ? -1 : 0);
        assert_int_equal(size_result, size == -1 ? -1 : 0);
    }
}

static void help_is_in_columns(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 10000);
    options_help(&table, RUN, &out);
    static const char *const expected =
        "Options:\n"
        "  -b, --branching N       ideas asked for in each round [from 1 to 4096; default\n"
        "                          8]\n"
        "  -s, --select F          share of the kept kernels that become parents of the\n"
        "                          next round, and more words to wrap [from 0.001 to 1;\n"
        "                          default 0.25]\n"
        "      --provider CHOICE   where completions come from [one of builtin, openai;\n"
        "                          default builtin; $TEST_PROVIDER]\n"
        "  -t, --timeout DURATION  time limit [from 1ms to 1d; default 90s]\n"
        "      --call-timeout-of-a-long-name DURATION\n"
        "                          time limit of a call [at least 1ms; default 1s]\n"
        "      --memory SIZE       memory limit [default 64M]\n"
        "\n"
        "Options of every command:\n"
        "      --[no-]color        colors [default on]\n"
        "  -j, --json              prints JSON\n";
    assert_string_equal(buf_text(&out), expected);
    buf_reset(&out);
    options_help(&table, SHOW, &out);
    assert_contains(buf_text(&out),
                    "Options:\n      --store DIR   folder of the store [$TEST_STORE]");
    buf_free(&out);
}

/* What "show config" prints is a configuration file that gives the same settings. */
static void show_can_be_read_back(void **state)
{
    (void)state;
    static const char *const stores[] = {"/a/b", "a b # c", "-",           "---",  "-5",
                                         "true", "- x",     "\"q\"\\\n\t", "",     "null",
                                         "~",    "12",      "\xc3\xa9",    "a: b", ".."};
    struct buf out;
    buf_init(&out, 10000);
    for (size_t i = 0; i < COUNT(stores); i++) {
        settings.store = arena_strdup(arena, stores[i]);
        settings.branching = 77;
        settings.select = 1.0 / 3;
        settings.timeout_ms = 61000;
        settings.memory = (1 << 20) + 1;
        settings.json = true;
        buf_reset(&out);
        show(&out);
        struct settings before = settings;
        assert_int_equal(set_defaults(), 0);
        if (file(buf_text(&out)) != 0)
            fail_msg("%s\n%s", err.message, buf_text(&out));
        assert_int_equal(settings.branching, before.branching);
        assert_true(settings.select == before.select);
        assert_int_equal(settings.timeout_ms, before.timeout_ms);
        assert_int_equal(settings.memory, before.memory);
        assert_true(settings.json);
        assert_string_equal(settings.store, stores[i]);
    }
    assert_int_equal(set_defaults(), 0);
    assert_int_equal(command_line(RUN, "-b 3"), 0);
    buf_reset(&out);
    show(&out);
    assert_contains(buf_text(&out), "branching: 3                            # here\n");
    assert_contains(buf_text(&out), "timeout: 90s                            # here\n");
    assert_contains(buf_text(&out), "# store: not set                        # here\n");
    buf_free(&out);
}

static void man_and_completion_come_from_the_table(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 10000);
    options_man(&table, SHOW, &out);
    assert_string_equal(
        buf_text(&out),
        ".TP\n\\fB\\-\\-color\\fR, \\fB\\-\\-no\\-color\\fR\ncolors [default on]\n"
        ".TP\n\\fB\\-j\\fR, \\fB\\-\\-json\\fR, \\fB\\-\\-no\\-json\\fR\n"
        "prints JSON\n"
        ".TP\n\\fB\\-\\-store\\fR \\fIDIR\\fR\nfolder of the store [$TEST_STORE]\n");
    buf_reset(&out);
    options_completion(&table, SHOW, &out);
    assert_string_equal(buf_text(&out), "--color --no-color --json --no-json -j --store");
    buf_free(&out);
}

static void roff_is_escaped(void **state)
{
    (void)state;
    static const struct option odd[] = {
        {"a-b", 0, OPTION_SIZE, AT(memory), NULL, 1024, 1 << 30, NULL, NULL, "N-M", ".a\\b - c", 1},
    };
    static const struct option_table odd_table = {odd, 1};
    struct buf out;
    buf_init(&out, 1000);
    options_man(&odd_table, 1, &out);
    assert_string_equal(buf_text(&out), ".TP\n\\fB\\-\\-a\\-b\\fR \\fIN\\-M\\fR\n"
                                        "\\&.a\\eb \\- c [from 1K to 1G]\n");
    buf_free(&out);
}

static void defaults_of_nothing_are_zero(void **state)
{
    (void)state;
    static const struct option none[] = {
        {"i", 0, OPTION_INT, AT(branching), NULL, 0, 0, NULL, NULL, NULL, "", 1},
        {"r", 0, OPTION_REAL, AT(select), NULL, 0, 0, NULL, NULL, NULL, "", 1},
    };
    static const struct option bad[] = {
        {"i", 0, OPTION_INT, AT(branching), "x", 0, 0, NULL, NULL, NULL, "", 1},
    };
    const struct option_table none_table = {none, 2}, bad_table = {bad, 1};
    settings.branching = 5;
    settings.select = 5;
    assert_int_equal(options_defaults(&none_table, &settings, origins, arena, &err), 0);
    assert_int_equal(settings.branching, 0);
    assert_true(settings.select == 0.0);
    char *line[] = {arena_strdup(arena, "--i"), arena_strdup(arena, "99999999999999999999")};
    assert_int_equal(options_command_line(&none_table, &settings, origins, arena, 1, 2, line,
                                          positionals, 2, &positional_count, &err),
                     -1);
    assert_contains(err.message, "--i: expected a whole number, not \"9999");
    assert_int_equal(options_defaults(&bad_table, &settings, origins, arena, &err), -1);
    assert_contains(err.message, "the default of --i: expected a whole number, not \"x\"");
}

static void nearest_is_near(void **state)
{
    (void)state;
    static const char *const names[] = {"branching", "select",    "rounds",   "json",   "run",
                                        "in",        "alphabets", "alphabet", "alphas", NULL};
    static const struct {
        const char *word, *nearest;
    } cases[] = {
        {"branchign", "branching"},
        {"barnching", "branching"},
        {"selekt", "select"},
        {"round", "rounds"},
        {"jsno", "json"},
        {"rnu", "run"},
        {"in", "in"},
        {"an", NULL},
        {"", NULL},
        {"xyzzy", NULL},
        {"select", "select"},
        {"slct", "select"},
        {"alphabt", "alphabet"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *nearest = options_nearest(cases[i].word, names);
        if (cases[i].nearest == NULL)
            assert_null(nearest);
        else
            assert_string_equal(nearest != NULL ? nearest : "(none)", cases[i].nearest);
    }
    char word[300];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_null(options_nearest(word, names));
}

#define WITH_DEFAULTS(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DEFAULTS(defaults_fill_everything),
        WITH_DEFAULTS(later_sources_win),
        WITH_DEFAULTS(command_lines_are_read),
        WITH_DEFAULTS(bad_command_lines_are_refused),
        WITH_DEFAULTS(bad_files_are_refused),
        WITH_DEFAULTS(durations_and_sizes),
        WITH_DEFAULTS(help_is_in_columns),
        WITH_DEFAULTS(show_can_be_read_back),
        WITH_DEFAULTS(man_and_completion_come_from_the_table),
        WITH_DEFAULTS(roff_is_escaped),
        WITH_DEFAULTS(defaults_of_nothing_are_zero),
        WITH_DEFAULTS(nearest_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
