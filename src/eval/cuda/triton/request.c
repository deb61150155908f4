/* What is compiled: each launch, for what is known of its numbers at the problem's shapes, and once
 * for any numbers, since hidden shapes are drawn later. */
#include "base/file.h"
#include "eval/cuda/compile/cubin_cache.h"
#include "eval/cuda/run/variants.h"
#include "eval/cuda/triton/triton.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { REQUEST_MOST = JOB_UNIT_MAX };

struct asked {
    const struct program *program;
    const struct names *facts;
    bool main_only; /* no other shape */
};

/* Not arguments of the function, but of the compile. */
static const char *const options[] = {"num_warps", "num_stages", "num_ctas", "maxnreg", NULL};

static bool is_option(const char *name)
{
    for (size_t i = 0; options[i] != NULL; i++)
        if (strcmp(options[i], name) == 0)
            return true;
    return false;
}

static const struct tensor_spec *find_tensor(const struct program *program, const char *name)
{
    return candidate_find_tensor(program->problem, program->candidate, name, NULL);
}

/* Of an argument that is no tensor. */
static int number_of(const struct names *dims, const char *name, int64_t *number, struct err *err)
{
    struct names scope = *dims;
    char *end;
    if (isalpha((unsigned char)*name))
        return expr_lookup_names(&scope, name, number)
                   ? 0
                   : err_set(err, ERR_LIMIT, "args: %s is neither a tensor nor a dim", name);
    errno = 0;
    *number = strtoll(name, &end, strchr(name, 'x') != NULL ? 16 : 10);
    return *end == '\0' && errno == 0 ? 0 : err_set(err, ERR_LIMIT, "args: %s is no number", name);
}

static int known_at(const struct program *program, const struct launch *launch,
                    const struct names *dims, unsigned *known, struct err *err)
{
    for (size_t i = 0; i < launch->arg_count; i++) {
        int64_t number;
        known[i] = 0;
        if (find_tensor(program, launch->args[i]) != NULL ||
            candidate_find_map(program->candidate, launch->args[i]) >= 0)
            continue;
        if (number_of(dims, launch->args[i], &number, err) != 0)
            return -1;
        known[i] = known_of(number);
    }
    return 0;
}

/* A number in the list is the same at every shape; of a dim nothing but its width is known. */
static void know_least(const struct launch *launch, unsigned *known)
{
    for (size_t i = 0; i < launch->arg_count; i++)
        if (isalpha((unsigned char)*launch->args[i]))
            known[i] &= KNOWN_WIDE;
}

static void put_variant(struct json *json, const unsigned *known, size_t count)
{
    static const char *const words[] = {[0] = "",
                                        [KNOWN_ONE] = "1",
                                        [KNOWN_16] = "16",
                                        [KNOWN_WIDE] = "64",
                                        [KNOWN_WIDE | KNOWN_16] = "64 16"};
    json_array(json);
    for (size_t i = 0; i < count; i++)
        json_text(json, words[known[i]]);
    json_array_end(json);
}

static int put_variants(const struct asked *asked, const struct launch *launch, struct json *json,
                        unsigned *kernels, struct err *err)
{
    const struct program *program = asked->program;
    const struct problem *problem = program->problem;
    unsigned known[VARIANTS_MAX][KERNEL_ARGS_MAX];
    size_t count = 0, shapes = asked->main_only ? 1 : problem->shape_count + 1;
    for (size_t i = 0; i < shapes; i++) {
        bool last = i == problem->shape_count, seen = false;
        if (known_at(program, launch, &problem->shapes[last ? 0 : i], known[count], err) != 0)
            return -1;
        if (last)
            know_least(launch, known[count]);
        for (size_t k = 0; k < count; k++)
            seen =
                seen || memcmp(known[k], known[count], launch->arg_count * sizeof known[0][0]) == 0;
        count += !seen;
    }
    *kernels += (unsigned)count;
    json_put_array(json, "variants");
    for (size_t i = 0; i < count; i++)
        put_variant(json, known[i], launch->arg_count);
    json_array_end(json);
    return 0;
}

/* "tensordesc<fp16[128,64]>", as Triton has it. */
static int put_map(const struct program *program, const struct tensor_map *map,
                   const struct names *facts, struct json *json, struct err *err)
{
    int64_t box[TENSOR_MAP_RANK];
    BUF_LOCAL(text, 256);
    if (triton_box(program, map, facts, box, err) != 0)
        return -1;
    buf_addf(&text, "tensordesc<%s[", triton_type(find_tensor(program, map->tensor)->dtype));
    for (size_t i = 0; i < map->rank; i++)
        buf_addf(&text, "%s%lld", i > 0 ? "," : "", (long long)box[i]);
    buf_addf(&text, "]>");
    json_text(json, buf_text(&text));
    return 0;
}

static int put_args(const struct program *program, const struct launch *launch,
                    const struct names *facts, struct json *json, struct err *err)
{
    json_put_array(json, "args");
    for (size_t i = 0; i < launch->arg_count; i++) {
        const struct tensor_spec *spec = find_tensor(program, launch->args[i]);
        int map = candidate_find_map(program->candidate, launch->args[i]);
        if (map < 0)
            json_text(json, spec != NULL ? triton_type(spec->dtype) : "int");
        else if (put_map(program, &program->candidate->maps[map], facts, json, err) != 0)
            return -1;
    }
    json_array_end(json);
    return 0;
}

static int put_launch(const struct asked *asked, const struct launch *launch, struct json *json,
                      unsigned *kernels, struct err *err)
{
    const struct program *program = asked->program;
    const struct names *facts = asked->facts;
    struct names constants;
    if (launch->arg_count > KERNEL_ARGS_MAX)
        return err_set(err, ERR_LIMIT, "%s: args has %zu names, expected at most %d", launch->entry,
                       launch->arg_count, KERNEL_ARGS_MAX);
    if (triton_constants(program, launch, facts, &constants, err) != 0)
        return -1;
    json_object(json);
    json_put_text(json, "entry", launch->entry);
    if (put_args(program, launch, facts, json, err) != 0)
        return -1;
    json_put_array(json, "said");
    for (size_t i = 0; i < launch->constant_count; i++)
        if (!is_option(launch->constants[i].name))
            json_text(json, launch->constants[i].name);
    json_array_end(json);
    json_put_object(json, "options");
    for (size_t i = 0; i < constants.count; i++)
        if (is_option(constants.name[i]))
            json_put_int(json, constants.name[i], constants.number[i]);
    json_object_end(json);
    json_put_names(json, "constexprs", &constants);
    if (put_variants(asked, launch, json, kernels, err) != 0)
        return -1;
    json_object_end(json);
    return 0;
}

/* Each kernel is a process's. */
static int write_request(const struct asked *asked, const char *arch, const char *folder,
                         unsigned *kernels, struct err *err)
{
    BUF_LOCAL(text, REQUEST_MOST);
    BUF_LOCAL(path, 4096);
    struct json json = {.out = &text};
    const struct candidate *candidate = asked->program->candidate;
    json_object(&json);
    json_key(&json, "source");
    json_text_n(&json, candidate->source, candidate->length);
    json_put_int(&json, "arch", strtol(arch + strlen("sm_"), NULL, 10));
    json_put_array(&json, "launches");
    for (size_t i = 0; i < candidate->launch_count; i++)
        if (put_launch(asked, &candidate->launches[i], &json, kernels, err) != 0)
            return -1;
    json_array_end(&json);
    json_object_end(&json);
    if (text.dropped > 0)
        return err_set(err, ERR_LIMIT, "more is to be compiled than %d bytes can say",
                       REQUEST_MOST);
    buf_addf(&path, "%s/request.json", folder);
    return file_write(buf_text(&path), buf_text(&text), text.length, err);
}

int triton_build(struct arena *arena, const char *arch, const struct program *program,
                 const struct names *facts, bool main_only, const char *folder, struct build *build,
                 struct err *err)
{
    const struct asked asked = {program, facts, main_only};
    struct interpreter interpreter;
    unsigned kernels = 0;
    if (triton_find(&interpreter, err) != 0 ||
        write_request(&asked, arch, folder, &kernels, err) != 0)
        return -1;
    const char *script = triton_script(arena, "libexec/triton_compile.py", err);
    if (script == NULL)
        return -1;
    const char **argv = arena_array(arena, 12, sizeof *argv);
    const char **env = arena_array(arena, 3, sizeof *env);
    const char *cache = cubin_cache_folder(arena);
    int *server = arena_alloc(arena, sizeof *server);
    *server = triton_serve_start(&interpreter, script);
    const char *words[] = {file_program_path(),
                           "cuda-compile",
                           "--triton",
                           interpreter.path,
                           interpreter.prefix,
                           interpreter.base_prefix,
                           script,
                           arena_strdup(arena, arch),
                           cache != NULL ? cache : "",
                           triton_toolkit(),
                           *server >= 0 ? "served" : "alone"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        argv[i] = words[i];
    env[0] = "PATH=/usr/bin:/bin";
    env[1] = "LC_ALL=C";
    *build = (struct build){.artifact = arena_printf(arena, "%s/kernel.cubin", folder),
                            .log = arena_printf(arena, "%s/kernel.json", folder),
                            .width = kernels,
                            .spec = {.argv = argv,
                                     .env = env,
                                     .folder = arena_strdup(arena, folder),
                                     .pass_fds = *server >= 0 ? server : NULL,
                                     .pass_count = *server >= 0 ? 1 : 0,
                                     .timeout_ms = 600000,
                                     .output_max = 64 << 10}};
    return 0;
}

void triton_warm(void)
{
    struct interpreter interpreter;
    struct err ignored;
    ARENA_LOCAL(arena);
    const char *script = triton_script(arena, "libexec/triton_compile.py", &ignored);
    if (script != NULL && triton_find(&interpreter, &ignored) == 0)
        (void)triton_serve_start(&interpreter, script);
}
