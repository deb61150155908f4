/* From a candidate to a command: the unit is written, `twagent cuda-compile` laid out; the worker's
 * loop starts it. */
#include "eval/cuda/compile/compile.h"

#include "base/file.h"
#include "base/mem.h"
#include "eval/backend/build.h"
#include "eval/cuda/compile/cubin_cache.h"
#include "eval/cuda/compile/nvrtc.h"
#include "eval/cuda/compile/serve.h"
#include "eval/cuda/compile/source.h"
#include "eval/cuda/driver/library_find.h"
#include "process/sandbox.h"
#include "process/toolchain.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* NVRTC is looked for as all of the toolkit is; its headers are those of the same place where
 * it has any. */

static bool has(struct arena *arena, const char *folder, const char *name)
{
    return file_exists(arena_printf(arena, "%s/%s", folder, name));
}

static void find_headers(struct arena *arena, const char *folder, struct cuda_compiler *compiler)
{
    const char *home = getenv("CUDA_HOME");
    const char *const places[] = {
        arena_printf(arena, "%s/../include", folder),
        arena_printf(arena, "%s/../../cuda_runtime/include", folder), /* wheels before 13 */
        home != NULL ? arena_printf(arena, "%s/include", home) : NULL,
        "/usr/local/cuda/include",
        "/usr/include",
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !compiler->includes; i++)
        if (places[i] != NULL && has(arena, places[i], "cuda_fp16.h"))
            compiler->includes = places[i];
    const char *const more[] = {
        compiler->includes != NULL ? arena_printf(arena, "%s/cccl", compiler->includes) : NULL,
        arena_printf(arena, "%s/../../cuda_cccl/include", folder),
        compiler->includes, /* toolkits before 13 */
    };
    for (size_t i = 0; i < sizeof more / sizeof more[0] && !compiler->cccl; i++)
        if (more[i] != NULL && has(arena, more[i], "cub/block"))
            compiler->cccl = more[i];
}

/* Without links and "..", since Landlock's rules are for what lies there. */
static const char *resolved(struct arena *arena, const char *path)
{
    char *real = path != NULL ? realpath(path, NULL) : NULL;
    const char *kept = real != NULL ? arena_strdup(arena, real) : NULL;
    free(real);
    return kept;
}

/* Where it and its headers lie, without opening anything; version 0. ERR_ENVIRONMENT: nowhere. */
static int nvrtc_find(struct arena *arena, struct cuda_compiler *compiler, struct err *err)
{
    *compiler = (struct cuda_compiler){0};
    compiler->library = resolved(arena, cuda_library_find(arena, "TWAGENT_NVRTC", "libnvrtc"));
    if (compiler->library == NULL)
        return err_set(err, ERR_ENVIRONMENT,
                       "no NVRTC found: neither $TWAGENT_NVRTC nor $CUDA_HOME nor /usr/local/cuda "
                       "nor a python's wheels have libnvrtc.so");
    const char *slash = strrchr(compiler->library, '/');
    const char *folder =
        arena_strndup(arena, compiler->library, (size_t)(slash - compiler->library));
    find_headers(arena, folder, compiler);
    compiler->includes = resolved(arena, compiler->includes);
    compiler->cccl = resolved(arena, compiler->cccl);
    return 0;
}

enum { ARGS = 128, OUTPUT_MAX = 64 << 10, VERSION_MS = 20000 };

/* ---- which compiler ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool looked;
    struct arena *arena; /* for the life of the process */
    struct cuda_compiler compiler;
    const char *toolkit; /* NULL: cannot be told */
    struct err err;
} known;

static int find(struct cuda_compiler *compiler, struct err *err)
{
    pthread_mutex_lock(&lock);
    if (!known.looked) {
        known.arena = arena_new_sized(2048);
        if (nvrtc_find(known.arena, &known.compiler, &known.err) == 0) {
            known.err.code = ERR_NONE;
            known.toolkit = cubin_cache_toolkit(known.arena, &known.compiler);
        }
        known.looked = true;
    }
    *compiler = known.compiler;
    int result = known.err.code == ERR_NONE ? 0 : -1;
    if (result != 0 && err != NULL)
        *err = known.err;
    pthread_mutex_unlock(&lock);
    return result;
}

int cuda_compiler_find(struct arena *arena, struct cuda_compiler *compiler, struct err *err)
{
    if (nvrtc_find(arena, compiler, err) != 0)
        return -1;
    const char *const argv[] = {file_program_path(), "cuda-compile",    "--version",
                                "--library",         compiler->library, NULL};
    const char *const reads[] = {"/", NULL}; /* wherever the library and its friends lie */
    const struct tool tool = {.argv = argv,
                              .profile = "reference", /* no source is read: no bound on memory */
                              .reads = reads,
                              .timeout_ms = VERSION_MS};
    BUF_LOCAL(out, 64);
    int result = tool_run(&tool, &out, NULL, err);
    if (result == 0) {
        char *dot;
        compiler->version_major = (int)strtol(buf_text(&out), &dot, 10);
        compiler->version_minor = *dot == '.' ? (int)strtol(dot + 1, NULL, 10) : 0;
        if (compiler->version_major <= 0)
            result =
                err_set(err, ERR_ENVIRONMENT, "%s does not tell its version", compiler->library);
    }
    return result;
}

/* ---- the unit ---- */

static bool header_exists(void *context, const char *name)
{
    const struct cuda_compiler *compiler = (const struct cuda_compiler *)context;
    const char *const roots[] = {compiler->includes, compiler->cccl};
    bool there = false;
    for (size_t i = 0; i < sizeof roots / sizeof roots[0] && !there; i++) {
        char *path = roots[i] != NULL ? file_join(roots[i], name) : NULL;
        there = path != NULL && file_exists(path) && !file_is_dir(path);
        mem_free(path);
    }
    return there;
}

static int write_unit(const struct candidate *candidate, const struct names *tune, const char *name,
                      struct cuda_compiler *compiler, const char *folder, struct err *err)
{
    BUF_LOCAL(prefix, 4096);
    BUF_LOCAL(unit, JOB_UNIT_MAX);
    cuda_source_prefix(candidate->source, candidate->length, header_exists, compiler, &prefix);
    cuda_source_unit(candidate, tune, name, buf_text(&prefix), &unit);
    return build_write(folder, "unit.cu", &unit, err);
}

/* ---- the command ---- */

struct command {
    struct arena *arena;
    const char **argv;
    size_t count;
};

static void add(struct command *command, const char *word)
{
    if (command->count < ARGS - 1)
        command->argv[command->count++] = arena_strdup(command->arena, word);
}

static void add_pair(struct command *command, const char *name, const char *value)
{
    if (value != NULL) {
        add(command, name);
        add(command, value);
    }
}

static void lay_out(struct arena *arena, const char *arch, const struct candidate *candidate,
                    const struct cuda_compiler *compiler, const char *folder, struct build *build)
{
    struct command command = {.arena = arena, .argv = arena_array(arena, ARGS, sizeof(char *))};
    add(&command, file_program_path());
    add(&command, "cuda-compile");
    add_pair(&command, "--library", compiler->library);
    add_pair(&command, "--include", compiler->includes);
    add_pair(&command, "--cccl", compiler->cccl);
    add_pair(&command, "--arch", arch);
    for (size_t i = 0; i < candidate->flag_count; i++)
        add_pair(&command, "--flag", candidate->flags[i]);
    for (size_t i = 0; i < candidate->launch_count; i++)
        add_pair(&command, "--entry", candidate->launches[i].entry);
    if (known.toolkit != NULL) { /* set once, before anybody is told of a compiler */
        add_pair(&command, "--cache", cubin_cache_folder(arena));
        add_pair(&command, "--toolkit", known.toolkit);
    }
    int *server = arena_alloc(arena, sizeof(int));
    *server = cuda_serve_start(compiler, arch);
    if (*server >= 0)
        add_pair(&command, "--server", arena_printf(arena, "%d", SERVE_FD));
    const char **env = arena_array(arena, 5, sizeof(char *));
    env[0] = "PATH=/usr/bin:/bin";
    env[1] = "LC_ALL=C";
    env[2] = "CUDA_CACHE_DISABLE=1"; /* NVRTC before --no-cache */
    env[3] = "CUDA_VISIBLE_DEVICES=";
    *build = (struct build){.artifact = arena_printf(arena, "%s/kernel.cubin", folder),
                            .log = arena_printf(arena, "%s/kernel.json", folder),
                            .spec = {.argv = command.argv,
                                     .env = env,
                                     .folder = arena_strdup(arena, folder),
                                     .pass_fds = *server >= 0 ? server : NULL,
                                     .pass_count = *server >= 0 ? 1 : 0,
                                     .timeout_ms = COMPILE_HANG_MS,
                                     .output_max = OUTPUT_MAX}};
}

/* A baseline has the same form as a candidate. */
static int read_baseline(const struct problem *problem, const struct baseline_spec *baseline,
                         struct candidate **candidate, struct err *err)
{
    BUF_LOCAL(text, JOB_UNIT_MAX);
    int result = file_read(baseline->file, &text, err);
    if (result == 0)
        result =
            candidate_parse(problem, baseline->file, buf_text(&text), text.length, candidate, err);
    return result;
}

void cuda_build_warm(const char *arch)
{
    struct cuda_compiler compiler;
    if (find(&compiler, NULL) == 0)
        (void)cuda_serve_start(&compiler, arch);
}

int cuda_build(struct arena *arena, const char *arch, const struct problem *problem,
               const struct candidate *candidate, const struct names *tune,
               const struct baseline_spec *baseline, enum build_flavour flavour, const char *folder,
               struct build *build, struct err *err)
{
    struct cuda_compiler compiler;
    struct candidate *read = NULL;
    struct names first;
    if (flavour == BUILD_PORTABLE)
        return err_set(err, ERR_UNSUPPORTED, "a CUDA kernel has no portable build");
    if (find(&compiler, err) != 0)
        return -1;
    if (baseline != NULL) {
        if (read_baseline(problem, baseline, &read, err) != 0)
            return -1;
        tune_at(read, 0, &first);
        candidate = read;
        tune = &first;
    }
    int result = write_unit(candidate, tune, baseline != NULL ? "baseline.cu" : "candidate.cu",
                            &compiler, folder, err);
    if (result == 0)
        lay_out(arena, arch, candidate, &compiler, folder, build);
    candidate_free(read);
    return result;
}
