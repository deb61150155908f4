/* From a candidate to a command: what the compiler reads is written, what it runs is laid out; the
 * worker's loop starts it. One invocation of the driver, in the folder, on relative names, so that
 * no path of this machine stands in a diagnostic. */
#include "eval/cpu/compile.h"

#include "base/file.h"
#include "eval/backend/build.h"
#include "eval/cpu/artifact.h"
#include "eval/cpu/built.h"
#include "eval/cpu/source.h"
#include "eval/cpu/target.h"
#include "process/sandbox.h"
#include "process/toolchain.h"

#include <string.h>

enum { SOURCE_MAX = 8 << 20, ARGS = 96, OUTPUT_MAX = 64 << 10, SIGNATURE_MAX = 16 << 10 };

#if defined(__aarch64__)
#define SYSTEM_LIBRARIES "/usr/lib/aarch64-linux-gnu"
#else
#define SYSTEM_LIBRARIES "/usr/lib/x86_64-linux-gnu"
#endif

struct command {
    struct arena *arena;
    const char **argv;
    size_t count;
};

static void add(struct command *command, const char *word)
{
    if (command->count < ARGS - 1)
        command->argv[command->count++] = word;
}

static void add_list(struct command *command, const char *const *words)
{
    for (; *words != NULL; words++)
        add(command, *words);
}

static bool ends_with(const char *text, const char *tail)
{
    size_t length = strlen(text), more = strlen(tail);
    return length >= more && strcmp(text + length - more, tail) == 0;
}

/* NULL: gcc, or clang where there is no gcc. */
const char *compile_driver(const char *compiler, bool cplusplus, bool *clang)
{
    const char *path = NULL;
    *clang = compiler != NULL && strcmp(compiler, "clang") == 0;
    if (!*clang)
        path = tool_find(cplusplus ? "g++" : "gcc");
    if (path == NULL && (*clang || compiler == NULL)) {
        *clang = true;
        path = tool_find(cplusplus ? "clang++" : "clang");
    }
    return path;
}

int cpu_ready(struct err *err)
{
    bool clang;
    if (compile_driver(NULL, false, &clang) != NULL)
        return 0;
    return err_set(
        err, ERR_ENVIRONMENT,
        "no C compiler: there is neither gcc nor clang in /usr/bin, /usr/local/bin or on "
        "PATH (on Debian: apt-get install gcc g++)");
}

/* ---- the compiler's own words ---- */

static const char *const common[] = {"-O3", "-fopenmp", "-fPIC", "-fvisibility=hidden",
                                     /* the prologue includes headers before the source can ask */
                                     "-D_GNU_SOURCE=", NULL};
static const char *const gcc_manners[] = {"-fmax-errors=5",
                                          "-fmax-include-depth=64",
                                          "-fno-diagnostics-show-caret",
                                          "-fdiagnostics-color=never",
                                          "-fdiagnostics-urls=never",
                                          NULL};
static const char *const clang_manners[] = {"-ferror-limit=5", "-fno-caret-diagnostics",
                                            "-fno-color-diagnostics", NULL};

static const struct flavour {
    const char *unit, *artifact;
    bool program, log; /* with main(); leaves remarks */
    const char *march;
    const char *gcc[8], *clang[8];
} flavours[] = {
    /* -g1: lines for samples; it changes no code.
     * -z defs: what is not there is said now, with its name, and not when a runner loads it. */
    [BUILD_FAST] = {"unit",
                    "kernel.so",
                    false,
                    false,
                    "-march=native",
                    {"-shared", "-Wl,-z,defs", "-Wl,-z,now", "-g1"},
                    {"-shared", "-Wl,-z,defs", "-Wl,-z,now", "-g1"}},
    [BUILD_SANITIZED] = {"sanitized",
                         "sanitized",
                         true,
                         false,
                         "-march=native",
                         {"-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
                          /* a source shall not see that it is watched */
                          "-fno-sanitize-recover=all", "-U__SANITIZE_ADDRESS__"},
                         {"-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
                          "-fno-sanitize-recover=all"}},
    [BUILD_REMARKS] = {"remarks",
                       "remarks.o",
                       false,
                       true,
                       "-march=native",
                       {"-fopt-info-vec-all=remarks.txt", "-c"},
                       {"-Rpass=loop-vectorize", "-Rpass-missed=loop-vectorize",
                        "-Rpass-analysis=loop-vectorize", "-g1", "-c"}},
};
static const struct flavour portable = {"portable",         "portable", true,   false,
                                        "-march=x86-64-v3", {"-g1"},    {"-g1"}};

/* A distribution's runtime package has libopenblas.so.0 alone; -lopenblas wants the developer's
 * link libopenblas.so. NULL where neither is there: the linker says so. */
static const char *versioned_library(struct command *command, const char *name, int length)
{
    static const char *const folders[] = {SYSTEM_LIBRARIES, "/usr/lib64", "/usr/lib",
                                          "/usr/local/lib"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *plain = arena_printf(command->arena, "%s/lib%.*s.so", folders[i], length, name);
        if (file_exists(plain))
            return NULL;
        for (int version = 9; version >= 0; version--) {
            const char *path = arena_printf(command->arena, "%s.%d", plain, version);
            if (file_exists(path))
                return path;
        }
    }
    return NULL;
}

static void add_libraries(struct command *command, const char *libraries)
{
    while (libraries != NULL && *(libraries += strspn(libraries, " ")) != '\0') {
        int length = (int)strcspn(libraries, " ");
        const char *path = versioned_library(command, libraries, length);
        add(command,
            path != NULL ? path : arena_printf(command->arena, "-l%.*s", length, libraries));
        libraries += length;
    }
}

static void add_compiler(struct command *command, const struct source *source, bool clang,
                         const struct flavour *flavour, const char *unit, const char *artifact)
{
    const struct candidate *candidate = source->candidate;
    add(command, source->cplusplus ? "-std=gnu++20" : "-std=gnu17");
    add(command, flavour->march);
    add_list(command, common);
    add_list(command, clang ? clang_manners : gcc_manners);
    if (!source->cplusplus) /* a linker would say it without a line */
        add(command, "-Werror=implicit-function-declaration");
    for (size_t i = 0; candidate != NULL && i < candidate->flag_count; i++)
        add(command, candidate->flags[i]);
    add_list(command, clang ? flavour->clang : flavour->gcc);
    add(command, "-o");
    add(command, artifact);
    add(command, unit);
}

/* Before the sandbox: who looks for what another build has made. What a build leaves beside its
 * artifact is not kept. */
static void add_built(struct command *command, const struct flavour *flavour, const char *artifact,
                      const char *unit, const char *harness)
{
    const char *kept = built_folder(command->arena);
    if (kept == NULL || flavour->log)
        return;
    add_list(command, (const char *const[]){file_program_path(), "cpu-compile", kept, artifact,
                                            unit, flavour->program ? harness : "--",
                                            flavour->program ? "--" : NULL, NULL});
}

static void add_sandbox(struct command *command, const char *driver, const char *folder,
                        const char *log)
{
    const char *prefix = tool_prefix(driver);
    add_list(command, (const char *const[]){file_program_path(), "sandbox", "--profile", "compile",
                                            "--write", folder, NULL});
    if (prefix != NULL)
        add_list(command,
                 (const char *const[]){"--read", arena_strdup(command->arena, prefix), NULL});
    if (log != NULL)
        add_list(command, (const char *const[]){"--stderr", log, NULL});
    add(command, "--");
}

/* ---- files ---- */

static int write_files(const struct source *source, bool program, const char *folder,
                       const char *unit, const char *harness, struct err *err)
{
    BUF_LOCAL(text, SOURCE_MAX);
    source_unit(source, &text);
    int result = build_write(folder, unit, &text, err);
    buf_reset(&text);
    if (result == 0 && program) {
        source_harness(source, &text);
        result = build_write(folder, harness, &text, err);
    }
    return result;
}

static int read_baseline(struct arena *arena, const struct baseline_spec *baseline,
                         struct source *source, struct err *err)
{
    BUF_LOCAL(text, SOURCE_MAX);
    if (file_read(baseline->file, &text, err) != 0)
        return -1;
    source->length = text.length;
    source->text = arena_strndup(arena, buf_text(&text), text.length);
    source->cplusplus = ends_with(baseline->file, ".cc") || ends_with(baseline->file, ".cpp") ||
                        ends_with(baseline->file, ".cxx");
    source->name = source->cplusplus ? "baseline.cc" : "baseline.c";
    return 0;
}

static int lay_out(struct arena *arena, const struct source *source,
                   const struct baseline_spec *baseline, const struct flavour *flavour,
                   const char *folder, struct build *build, struct err *err)
{
    bool clang;
    const char *compiler = source->candidate != NULL ? source->candidate->compiler : NULL;
    const char *driver = compile_driver(compiler, source->cplusplus, &clang);
    if (driver == NULL)
        return err_set(err, ERR_ENVIRONMENT, "no %s found in /usr/bin or on PATH",
                       compiler != NULL ? compiler : "gcc or clang");
    const char *suffix = source->cplusplus ? "cc" : "c";
    const char *unit = arena_printf(arena, "%s.%s", flavour->unit, suffix);
    const char *harness = arena_printf(arena, "harness.%s", suffix);
    if (write_files(source, flavour->program, folder, unit, harness, err) != 0)
        return -1;
    struct command command = {.arena = arena, .argv = arena_array(arena, ARGS, sizeof(char *))};
    const char *artifact =
        baseline != NULL && !flavour->program ? ARTIFACT_BASELINE : flavour->artifact;
    *build = (struct build){.artifact = arena_printf(arena, "%s/%s", folder, artifact)};
    if (flavour->log)
        build->log = arena_printf(arena, "%s/remarks.txt", folder);
    add_built(&command, flavour, artifact, unit, harness);
    add_sandbox(&command, driver, folder, clang ? build->log : NULL);
    add(&command, driver);
    add_compiler(&command, source, clang, flavour, unit, artifact);
    if (flavour->program)
        add(&command, harness);
    if (baseline != NULL)
        add_libraries(&command, baseline->libraries);
    add(&command, "-lm");
    const char **env = arena_array(arena, 6, sizeof(char *));
    env[0] = "PATH=/usr/bin:/bin";
    env[1] = "LC_ALL=C";
    env[2] = arena_printf(arena, "TMPDIR=%s", folder);
    env[3] = BUILT_VARIABLE;
#if defined(__SANITIZE_ADDRESS__)
    env[4] = "ASAN_OPTIONS=detect_leaks=0"; /* of the command itself: that needs ptrace */
#endif
    build->spec = (struct process_spec){.argv = command.argv,
                                        .env = env,
                                        .folder = arena_strdup(arena, folder),
                                        .timeout_ms = COMPILE_HANG_MS,
                                        .output_max = OUTPUT_MAX};
    return 0;
}

static struct source candidate_source(const struct problem *problem,
                                      const struct candidate *candidate, const struct names *tune)
{
    bool cplusplus = candidate->language == &language_cxx;
    return (struct source){.problem = problem,
                           .candidate = candidate,
                           .tune = tune,
                           .name = cplusplus ? "candidate.cc" : "candidate.c",
                           .text = candidate->source,
                           .length = candidate->length,
                           .cplusplus = cplusplus};
}

int cpu_build(struct arena *arena, const struct lane_facts *lane, const struct problem *problem,
              const struct candidate *candidate, const struct names *tune,
              const struct baseline_spec *baseline, enum build_flavour flavour, const char *folder,
              struct build *build, struct err *err)
{
    (void)lane;
    struct source source = {.problem = problem};
    if (baseline == NULL)
        source = candidate_source(problem, candidate, tune);
    else if (read_baseline(arena, baseline, &source, err) != 0)
        return -1;
    const struct flavour *how = flavour == BUILD_PORTABLE ? &portable : &flavours[flavour];
    if (lay_out(arena, &source, baseline, how, folder, build, err) != 0)
        return -1;
    if (baseline != NULL) {
        BUF_LOCAL(signature, SIGNATURE_MAX);
        source_signature(problem, NULL, &signature);
        build->signature = arena_strdup(arena, buf_text(&signature));
    }
    return 0;
}
