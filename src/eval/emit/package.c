#include "eval/emit/package.h"

#include "base/file.h"
#include "base/mem.h"
#include "eval/problem/torch.h"
#include "process/python_child.h"
#include "process/python_probe.h"
#include "process/toolchain.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    REQUEST_MOST = 1 << 20,
    ARGUMENTS_MOST = 48,
    SAID_MOST = 4096,
    BUILD_MS = 120000,
    OPEN_MS = 120000,  /* PyTorch's import, on a busy machine with cold files */
    BESIDES_MS = 60000 /* copies from and to Python's memory */
};

struct package {
    struct subject subject; /* first */
    struct child child;
    const struct problem *problem;
    struct arena *arena;
    const char *folder; /* the package's, of ours */
    struct buf request;
};

static struct package *package_of(struct subject *subject)
{
    return (struct package *)(void *)subject;
}

/* ---- what it is told ---- */

static void put_place(struct json *json, const struct tensor_spec *tensor, uint64_t offset,
                      const int64_t *extents)
{
    json_object(json);
    json_put_text(json, "name", tensor->name);
    json_put_text(json, "dtype", dtype_name(tensor->dtype));
    json_put_int(json, "offset", (int64_t)offset);
    json_put_array(json, "shape");
    for (size_t i = 0; i < tensor->rank; i++)
        json_int(json, extents[i]);
    json_array_end(json);
    json_object_end(json);
}

static int put_places(struct json *json, const char *key, const struct tensor_spec *tensors,
                      size_t count, const uint64_t *offsets, const struct names *dims,
                      struct err *err)
{
    json_put_array(json, key);
    for (size_t i = 0; i < count; i++) {
        int64_t extents[RANK_MAX];
        size_t elements;
        if (tensor_extents(&tensors[i], dims, extents, &elements, err) != 0)
            return -1;
        put_place(json, &tensors[i], offsets[i], extents);
    }
    json_array_end(json);
    return 0;
}

/* How the process ended, as of a runner: subject.h fixes the message of one that was killed. */
static int name_end(struct err *err)
{
    static const char known[] = "the reference ", killed[] = "was killed";
    char words[sizeof err->message];
    const char *tail = err->message;
    if (err->code != ERR_CHILD || strncmp(tail, known, sizeof known - 1) != 0)
        return -1;
    tail += sizeof known - 1;
    bool by_signal = strncmp(tail, killed, sizeof killed - 1) == 0;
    tail += by_signal ? sizeof killed - 1 : 0;
    bool named = strncmp(tail, " by ", 4) == 0;
    snprintf(words, sizeof words, "%s%s",
             !by_signal ? ""
             : named    ? "killed"
                        : "killed by SIGKILL",
             tail);
    return err_set(err, ERR_CHILD, "%s", words);
}

/* It answers {} or {"error": ...}; a text of the answer's member `library` is kept where asked. */
static int ask(struct package *package, uint64_t limit_ms, const char **library, struct err *err)
{
    ARENA_LOCAL(arena);
    const char *line;
    struct value *answer;
    buf_add_char(&package->request, '\n');
    if (child_send(&package->child, buf_text(&package->request), package->request.length, err) !=
            0 ||
        child_line(&package->child, limit_ms, &line, err) != 0)
        return name_end(err);
    if (value_parse_json(arena, "answer", line, strlen(line), &answer, err) != 0)
        return err_set(err, ERR_CHILD, "its process said something that is no answer");
    const char *error = value_text(answer, "error", NULL);
    if (error != NULL)
        return err_set(err, value_bool(answer, "ours", false) ? ERR_ENVIRONMENT : ERR_CHILD,
                       "%.300s", error);
    if (library != NULL)
        *library = arena_strdup(package->arena, value_text(answer, "library", "Python"));
    return 0;
}

/* ---- the subject ---- */

static int call(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                struct err *err)
{
    struct package *package = package_of(subject);
    const struct problem *problem = package->problem;
    struct names dims = {0};
    buf_reset(&package->request);
    struct json json = {.out = &package->request};
    *elapsed_ns = 1; /* nobody times it */
    for (size_t i = 0; i < call->dim_count && i < problem->dim_count; i++)
        if (names_set(&dims, problem->dims[i].name, call->dims[i], err) != 0)
            return -1;
    json_object(&json);
    json_put_text(&json, "op", "call");
    json_put_object(&json, "dims"); /* the others follow from them */
    for (size_t i = 0; i < dims.count; i++)
        if (!problem->dims[i].derived)
            json_put_int(&json, dims.name[i], dims.number[i]);
    json_object_end(&json);
    if (put_places(&json, "inputs", problem->inputs, problem->input_count, call->offsets, &dims,
                   err) != 0 ||
        put_places(&json, "outputs", problem->outputs, problem->output_count,
                   call->offsets + problem->input_count, &dims, err) != 0)
        return -1;
    json_object_end(&json);
    return ask(package, call->timeout_ms + BESIDES_MS, NULL, err);
}

static void pause_it(struct subject *subject)
{
    child_pause(&package_of(subject)->child);
}

static void resume(struct subject *subject)
{
    child_resume(&package_of(subject)->child);
}

static void close_it(struct subject *subject)
{
    struct package *package = package_of(subject);
    struct err ignored;
    child_stop(&package->child);
    (void)(file_remove_tree(package->folder, &ignored) == 0);
    buf_free(&package->request);
    mem_free(package);
}

/* ---- its start ---- */

static int build(const struct emission *e, struct err *err)
{
    const char *script = arena_printf(e->arena, "%s/build.sh", e->folder);
    const char *const argv[] = {"/bin/sh", script, NULL};
    const char *const env[] = {"PATH=/usr/bin:/bin:/usr/local/bin", "LC_ALL=C",
                               arena_printf(e->arena, "TMPDIR=%s", e->folder), NULL};
    const struct tool tool = {
        .argv = argv, .profile = "compile", .env = env, .write = e->folder, .timeout_ms = BUILD_MS};
    if (!file_exists(script))
        return 0;
    BUF_LOCAL(said, SAID_MOST);
    return tool_run(&tool, NULL, &said, err) != 0 ? err_wrap(err, "it does not build") : 0;
}

/* One with PyTorch, where that is what was named, or what the package is for; else numpy's. */
static int find_python(const struct package_request *request, struct interpreter *found,
                       struct err *err)
{
    struct arena *arena = request->emission->arena;
    struct err ignored;
    bool needs_torch = request->device != NULL;
    if (request->emission->problem->torch != NULL) { /* the definition's own */
        *found = request->emission->problem->torch->python;
        return 0;
    }
    if (needs_torch)
        return interpreter_find_torch(request->python, arena, found, &ignored) == 0
                   ? 0
                   : err_set(err, ERR_ENVIRONMENT, "no Python with PyTorch");
    if (request->python != NULL &&
        interpreter_find_torch(request->python, arena, found, &ignored) == 0)
        return 0;
    return interpreter_find_numpy(request->python, arena, found, &ignored) == 0
               ? 0
               : err_set(err, ERR_ENVIRONMENT, "no Python with numpy");
}

static int start(struct package *package, const struct package_request *request,
                 const struct interpreter *python, struct err *err)
{
    const struct emission *e = request->emission;
    const struct torch_device *device = request->device;
    static const char *const plain_env[] = {"LC_ALL=C.UTF-8", NULL};
    const char *argv[ARGUMENTS_MOST];
    size_t count = 0;
    MEM_LOCAL char *script = file_data_path("libexec/package_host.py");
    if (script == NULL)
        return err_set(err, ERR_ENVIRONMENT, "libexec is not where the program expects it");
    const char *libexec = arena_strndup(e->arena, script, (size_t)(strrchr(script, '/') - script));
    const char *const reads[] = {libexec, e->folder, python->prefix, python->base_prefix,
                                 "/dev/urandom"}; /* PyTorch's generators open it */
    argv[count++] = file_program_path();
    argv[count++] = "sandbox";
    argv[count++] = "--profile";
    argv[count++] = device != NULL ? "gpu" : "reference";
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        argv[count++] = "--read";
        argv[count++] = reads[i];
    }
    if (device != NULL) {
        argv[count++] = "--read";
        argv[count++] = "/sys";
    }
    for (const char *const *node = device != NULL ? device->nodes : NULL;
         node != NULL && *node != NULL && count + 8 < ARGUMENTS_MOST; node++) {
        if (access(*node, F_OK) != 0)
            continue;
        argv[count++] = "--write";
        argv[count++] = *node;
    }
    argv[count++] = "--";
    argv[count++] = python->path;
    argv[count++] = "-I";
    argv[count++] = "-B";
    argv[count++] = script;
    argv[count] = NULL;
    const int fds[] = {request->region->inputs_read_fd, request->region->outputs_fd};
    const char *const *env =
        device != NULL ? device->env(e->arena, request->lane->gpu_index) : plain_env;
    return child_start(&package->child, argv, env, fds, 2, err);
}

static int ask_to_open(struct package *package, const struct package_request *request,
                       const char **library, struct err *err)
{
    struct json json = {.out = &package->request};
    json_object(&json);
    json_put_text(&json, "op", "open");
    json_put_text(&json, "folder", package->folder);
    json_put_text(&json, "device", request->device != NULL ? request->device->name : "cpu");
    json_put_int(&json, "threads", (int64_t)request->lane->core_count);
    json_object_end(&json);
    return ask(package, OPEN_MS, library, err);
}

int package_open(const struct package_request *request, struct subject **subject,
                 const char **library, struct err *err)
{
    static const struct subject_ops ops = {
        .call = call, .pause = pause_it, .resume = resume, .close = close_it};
    struct emission *e = request->emission;
    const char *note = NULL;
    struct interpreter python;
    if (find_python(request, &python, err) != 0)
        return -1;
    struct package *package = MEM_NEW(struct package);
    package->subject = (struct subject){.ops = &ops, .name = "package"};
    package->problem = e->problem;
    package->arena = e->arena;
    package->folder = e->folder;
    buf_init(&package->request, REQUEST_MOST);
    if (file_make_dirs(e->folder, err) == 0 &&
        request->emitter->emit(e, request->emitter->python, &note, err) == 0 &&
        build(e, err) == 0 && start(package, request, &python, err) == 0 &&
        ask_to_open(package, request, library, err) == 0) {
        package->subject.pid = package->child.pid;
        *subject = &package->subject;
        return 0;
    }
    close_it(&package->subject);
    return -1;
}
