/* Which Python has Triton, and how one of its scripts is started. */
#include "base/file.h"
#include "base/mem.h"
#include "eval/cuda/compile/cubin_cache.h"
#include "eval/cuda/triton/triton.h"
#include "process/spawn.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool looked;
    struct arena *arena; /* for the life of the process */
    struct interpreter interpreter;
    const char *toolkit;
    struct err err;
} known;

/* The package with its ptxas, the Python, our scripts and this program. */
static const char *look_at_files(struct arena *arena)
{
    MEM_LOCAL char *script = file_data_path("libexec/triton_compile.py");
    char *slash = script != NULL ? strrchr(script, '/') : NULL;
    if (slash == NULL || *known.interpreter.folder == '\0')
        return "";
    *slash = '\0';
    const struct cuda_compiler compiler = {
        .library = known.interpreter.path, .includes = known.interpreter.folder, .cccl = script};
    const char *toolkit = cubin_cache_toolkit(arena, &compiler);
    return toolkit != NULL ? toolkit : "";
}

static void look(void)
{
    struct arena *arena = known.arena = arena_new_sized(2048);
    const char *configured = getenv("TWAGENT_TRITON_PYTHON");
    if (configured != NULL && *configured == '\0')
        configured = NULL;
    known.looked = true;
    known.err.code = ERR_NONE;
    known.toolkit = "";
    /* The Python that is named for definitions, where it has Triton: nobody names it twice. */
    const char *also = getenv("TWAGENT_PYTHON");
    if (configured == NULL && also != NULL && *also != '\0' &&
        interpreter_find_triton(also, arena, &known.interpreter, &known.err) == 0)
        configured = also;
    if (interpreter_find_triton(configured, arena, &known.interpreter, &known.err) == 0) {
        known.err.code = ERR_NONE;
        known.toolkit = look_at_files(arena);
    } else if (configured == NULL)
        (void)err_set(&known.err, ERR_ENVIRONMENT,
                      "no Python with triton found: pip install triton numpy, and name that Python "
                      "in TWAGENT_TRITON_PYTHON");
}

int triton_find(struct interpreter *interpreter, struct err *err)
{
    pthread_mutex_lock(&lock);
    if (!known.looked)
        look();
    *interpreter = known.interpreter;
    int result = known.err.code == ERR_NONE ? 0 : -1;
    if (result != 0)
        *err = known.err;
    pthread_mutex_unlock(&lock);
    return result;
}

const char *triton_toolkit(void)
{
    return known.toolkit;
}

/* The wheel's own: "Cuda compilation tools, release 12.9, V12.9.86". */
static const char *ptxas_version(struct arena *arena, const struct interpreter *interpreter)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
    const char *const argv[] = {
        arena_printf(arena, "%s/backends/nvidia/bin/ptxas", interpreter->folder), "--version",
        NULL};
    const struct spawn_spec spec = {.argv = argv, .name = "ptxas", .env = env};
    struct err ignored;
    BUF_LOCAL(said, 4096);
    BUF_LOCAL(errors, 4096);
    if (spawn_run(&spec, 60000, 0, &said, &errors, &ignored) != 0)
        return "?";
    const char *at = strstr(buf_text(&said), ", V");
    return at != NULL ? arena_strndup(arena, at + 2, strcspn(at + 2, " \n")) : "?";
}

const char *triton_versions(struct arena *arena)
{
    struct interpreter interpreter;
    struct err ignored;
    JSON_LOCAL(json, text, 1024);
    bool found = triton_find(&interpreter, &ignored) == 0;
    json_object(&json);
    json_put_text(&json, "triton", found ? interpreter.package : "none");
    if (found)
        json_put_text(&json, "ptxas", ptxas_version(arena, &interpreter));
    json_object_end(&json);
    return buf_keep(&text, arena);
}

void triton_env(struct arena *arena, const char *scratch, const char *env[TRITON_ENV_MAX])
{
    static const char *const usual[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8",
                                        "CUDA_VISIBLE_DEVICES="};
    static const char *const folders[] = {"TRITON_CACHE_DIR", "TMPDIR", "HOME"};
    size_t count = 0;
    for (size_t i = 0; i < 3; i++)
        env[count++] = usual[i];
    for (size_t i = 0; i < 3; i++)
        env[count++] = arena_printf(arena, "%s=%s", folders[i], scratch);
    env[count] = NULL;
}

const char *triton_type(enum dtype dtype)
{
    static const char *const types[DTYPES] = {[DTYPE_FLOAT32] = "fp32",
                                              [DTYPE_FLOAT64] = "fp64",
                                              [DTYPE_INT32] = "i32",
                                              [DTYPE_FLOAT16] = "fp16",
                                              [DTYPE_BFLOAT16] = "bf16"};
    return types[dtype];
}

static int look_up_number(const struct names *from, struct names *into, struct err *err)
{
    for (size_t i = 0; from != NULL && i < from->count; i++)
        if (names_set(into, from->name[i], from->number[i], err) != 0)
            return -1;
    return 0;
}

/* Names that a compile may know: tune parameters, facts, and dims that never change. */
static int scope_of(const struct program *program, const struct names *facts, struct names *scope,
                    struct err *err)
{
    problem_fixed(program->problem, scope);
    return look_up_number(program->tune, scope, err) != 0 || look_up_number(facts, scope, err) != 0
               ? -1
               : 0;
}

int triton_box(const struct program *program, const struct tensor_map *map,
               const struct names *facts, int64_t box[TENSOR_MAP_RANK], struct err *err)
{
    struct names scope;
    if (scope_of(program, facts, &scope, err) != 0)
        return -1;
    for (size_t i = 0; i < map->rank; i++) {
        if (expr_eval(map->box[i], expr_lookup_names, &scope, &box[i], err) != 0) {
            err->code = ERR_LIMIT;
            return err_wrap(err,
                            "%s: box (of tune parameters, facts, and dims that are the same at "
                            "every shape, hidden ones too)",
                            map->name);
        }
        if (box[i] < 1 || (box[i] & (box[i] - 1)) != 0)
            return err_set(err, ERR_LIMIT, "%s: box is %lld, expected powers of two", map->name,
                           (long long)box[i]);
    }
    return 0;
}

int triton_constants(const struct program *program, const struct launch *launch,
                     const struct names *facts, struct names *constants, struct err *err)
{
    struct names scope;
    *constants = (struct names){0};
    if (look_up_number(program->tune, constants, err) != 0 ||
        scope_of(program, facts, &scope, err) != 0)
        return -1;
    for (size_t i = 0; i < launch->constant_count; i++) {
        int64_t number;
        if (expr_eval(launch->constants[i].value, expr_lookup_names, &scope, &number, err) != 0) {
            err->code = ERR_LIMIT;
            return err_wrap(err,
                            "%s: constexpr %s (of tune parameters, facts, and dims that are the "
                            "same at every shape, hidden ones too)",
                            launch->entry, launch->constants[i].name);
        }
        if (names_set(constants, launch->constants[i].name, number, err) != 0)
            return -1;
    }
    return 0;
}

const char *triton_script(struct arena *arena, const char *name, struct err *err)
{
    MEM_LOCAL char *path = file_data_path(name);
    if (path != NULL)
        return arena_strdup(arena, path);
    (void)err_set(err, ERR_ENVIRONMENT, "%s is not where the program expects it", name);
    return NULL;
}

size_t triton_command(struct arena *arena, const struct interpreter *interpreter,
                      const char *profile, const char *folder, const char *scratch,
                      const char *script, const char **argv)
{
    size_t count = 0;
    const char *slash = strrchr(script, '/'); /* it has others beside it */
    const char *ours = arena_printf(arena, "%.*s", slash ? (int)(slash - script) : 0, script);
    const char *reads[] = {interpreter->prefix, interpreter->base_prefix, ours, folder};
    argv[count++] = file_program_path();
    argv[count++] = "sandbox";
    argv[count++] = "--profile";
    argv[count++] = profile;
    for (size_t i = 0; i < 3 + (folder != NULL); i++) {
        argv[count++] = "--read";
        argv[count++] = arena_strdup(arena, reads[i]);
    }
    if (scratch != NULL) {
        argv[count++] = "--write";
        argv[count++] = scratch;
    }
    argv[count++] = "--limit";
    argv[count++] = "as=17179869184"; /* LLVM reserves what it never touches */
    argv[count++] = "--limit";
    argv[count++] = "cpu=120";
    argv[count++] = "--";
    argv[count++] = interpreter->path;
    argv[count++] = "-I";
    argv[count++] = "-B";
    argv[count++] = arena_strdup(arena, script);
    argv[count] = NULL;
    return count;
}
