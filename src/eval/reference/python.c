/* eval/reference/python: a numpy function in a sandboxed Python child (libexec/reference.py, which
 * describes the protocol). The child is started at the first call and again after it died. A
 * PyTorch module's child speaks the same protocol, and more of it: torch.c. */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/value.h"
#include "eval/data/parallel.h"
#include "eval/data/timeline.h"
#include "eval/reference/python_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REQUEST_MOST = 1 << 20, ARGUMENTS_MOST = 64, START_TIMEOUT_MS = 30000 };

static void put_tensors(struct json *json, const char *key, const struct tensor_spec *tensors,
                        size_t count)
{
    json_put_array(json, key);
    for (size_t i = 0; i < count; i++) {
        json_object(json);
        json_put_text(json, "name", tensors[i].name);
        json_put_text(json, "dtype", dtype_name(tensors[i].dtype));
        json_object_end(json);
    }
    json_array_end(json);
}

/* --- starting --- */

static int start(struct python *python, struct err *err)
{
    const char *argv[ARGUMENTS_MOST];
    size_t count = 0;
    MEM_LOCAL char *libexec = mem_strdup(python->script);
    *strrchr(libexec, '/') = '\0';
    MEM_LOCAL char *folder = mem_strdup(python->problem->reference_file);
    *strrchr(folder, '/') = '\0';
    const char *readable[] = {libexec, folder, python->interpreter.prefix,
                              python->interpreter.base_prefix, python->interpreter.bytecode};
    bool bytecode =
        *python->interpreter.bytecode != '\0' && file_is_dir(python->interpreter.bytecode);
    argv[count++] = python->self;
    argv[count++] = "sandbox";
    argv[count++] = "--profile";
    argv[count++] = python->device != NULL ? "gpu" : "reference";
    for (size_t i = 0; i < sizeof readable / sizeof readable[0] - (bytecode ? 0 : 1); i++) {
        argv[count++] = "--read";
        argv[count++] = readable[i];
    }
    for (size_t i = 0; i < python->extra_count; i++)
        argv[count++] = python->extra[i];
    argv[count++] = "--limit";
    argv[count++] = "fsize=18446744073709551615"; /* results are as large as the problem is */
    argv[count++] = "--";
    argv[count++] = python->interpreter.path;
    argv[count++] = "-I";
    argv[count++] = "-B"; /* writes no byte code */
    argv[count++] = python->script;
    if (bytecode)
        argv[count++] = python->interpreter.bytecode;
    argv[count] = NULL;
    static const char *const plain_env[] = {"LC_ALL=C.UTF-8", NULL};
    /* Where kernels are measured against other kernels, on a GPU, the definition's own time is
     * nobody's measure: what it lets go of large arrays is kept, since fresh pages cost more than
     * the arithmetic. OpenBLAS's threads sleep 2^14 cycles after a product, not 2^26: who computes
     * small ones again and again is on all cores else, and mostly for nothing. */
    static const char *const keeping_env[] = {"LC_ALL=C.UTF-8", "MALLOC_MMAP_MAX_=0",
                                              "MALLOC_TRIM_THRESHOLD_=17179869184",
                                              "OPENBLAS_THREAD_TIMEOUT=14", NULL};
    const char *const *env = python->env != NULL ? python->env
                             : python->lane->gpu ? keeping_env
                                                 : plain_env;
    int pass[] = {python->region->inputs_read_fd, python->results};
    return child_start(&python->child, argv, env, pass, 2, err);
}

static int ask_to_open(struct python *python, struct err *err)
{
    const struct problem *problem = python->problem;
    size_t cores = python->lane->core_count;
    struct json json;
    python_begin(python, &json, "open");
    json_put_text(&json, "file", problem->reference_file);
    json_put_text(&json, "function", problem->reference_function);
    json_put_text(&json, "name", problem->name);
    json_put_array(&json, "cores");
    for (size_t i = 0; i < cores; i++)
        json_int(&json, python->lane->cores[i]);
    json_array_end(&json);
    json_put_int(&json, "threads", (int64_t)(python->threads > 0 ? python->threads : cores));
    put_tensors(&json, "inputs", problem->inputs, problem->input_count);
    put_tensors(&json, "outputs", problem->outputs, problem->output_count);
    if (python->open_more != NULL)
        python->open_more(python, &json);
    json_object_end(&json);
    return python_tell(python, err);
}

static int hear_of_open(struct python *python, struct err *err)
{
    ARENA_LOCAL(arena);
    const struct value *answer = NULL;
    int status = python_hear(python, python->start_timeout_ms, arena, &answer, err);
    timeline_end(python->warms != NULL ? "python.warm" : "python.open", python->opening_ns);
    if (status == 0 && python->reference.versions == NULL)
        python->reference.versions = value_json(value_get(answer, "versions"), python->arena);
    return status;
}

/* As every runner's: the first thread on the lane's first core. Those of a BLAS library were made
 * while numpy was imported, and have all of them. Nothing is timed so on a GPU's lane, nor beside
 * another process: all that numpy does without BLAS would be on the one core, whoever else is. */
static void bind_first(const struct python *python)
{
    cpu_set_t set;
    if (python->lane->core_count == 0 || python->lane->gpu || python->threads > 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)python->lane->cores[0], &set);
    (void)sched_setaffinity(python->child.pid, sizeof set, &set);
}

int python_start(struct python *python, struct err *err)
{
    python->opening_ns = timeline_begin();
    if (start(python, err) != 0)
        return -1;
    if (ask_to_open(python, err) != 0) {
        child_stop(&python->child);
        return -1;
    }
    python->opening = true;
    python->eager.subject.pid = python->compiled.subject.pid = python->child.pid;
    return 0;
}

static int end_opening(struct python *python, struct err *err)
{
    python->opening = false;
    if (hear_of_open(python, err) != 0 ||
        (python->opened != NULL && python->opened(python, err) != 0)) {
        child_stop(&python->child);
        return -1;
    }
    if (python->open_more == NULL)
        bind_first(python); /* PyTorch makes threads whenever it likes, which inherit it */
    return 0;
}

int python_ensure(struct python *python, struct err *err)
{
    if (python->child.pid == 0 && python_start(python, err) != 0)
        return -1;
    child_resume(&python->child);
    return python->opening ? end_opening(python, err) : 0;
}

bool python_pending(const struct reference *reference)
{
    const struct python *python = (const struct python *)(const void *)reference;
    return python->opening && !child_said(&python->child);
}

int python_ready(struct reference *reference, struct err *err)
{
    return python_ensure(python_of(reference), err);
}

/* --- computing --- */

void python_put_place(struct json *json, const char *name, size_t offset, size_t rank,
                      const int64_t *extents)
{
    json_object(json);
    if (name != NULL)
        json_put_text(json, "name", name);
    json_put_int(json, "offset", (int64_t)offset);
    json_put_array(json, "shape");
    for (size_t axis = 0; axis < rank; axis++)
        json_int(json, extents[axis]);
    json_array_end(json);
    json_object_end(json);
}

static void put_call(struct python *python, struct json *json, const struct layout *layout,
                     const struct call *call, int bits)
{
    const struct problem *problem = python->problem;
    json_put_known(json, "bits", bits);
    json_put_names(json, "dims", &layout->dims);
    json_put_array(json, "inputs");
    for (size_t i = 0; i < problem->input_count; i++) {
        python_put_place(json, NULL, call->offsets[i], problem->inputs[i].rank,
                         layout->inputs[i].extents);
    }
    json_array_end(json);
}

/* The child writes through a map of its own, which must not be smaller than what it writes. */
int python_make_room(struct python *python, size_t bytes, struct err *err)
{
    if (bytes <= python->mapped_bytes)
        return 0;
    if (ftruncate(python->results, (off_t)bytes) != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make shared memory");
    if (python->mapped != NULL)
        munmap(python->mapped, python->mapped_bytes);
    python->mapped = NULL;
    python->mapped_bytes = 0;
    void *mapped = mmap(NULL, bytes, PROT_READ, MAP_SHARED, python->results, 0);
    if (mapped == MAP_FAILED)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot map shared memory");
    python->mapped = (unsigned char *)mapped;
    python->mapped_bytes = bytes;
    return 0;
}

static size_t result_bytes(const struct python *python, const struct layout *layout, size_t output)
{
    size_t each =
        python->sent_exact ? sizeof(double) : dtype_bytes(python->problem->outputs[output].dtype);
    return layout->outputs[output].elements * each;
}

/* `baseline` NULL: the definition itself. */
static int send_for(struct python *python, const char *baseline, const struct layout *layout,
                    const struct call *call, enum reference_precision precision, struct err *err)
{
    const struct problem *problem = python->problem;
    size_t end = 0;
    struct json json;
    if (python_ensure(python, err) != 0)
        return -1;
    const bool wide = precision == PRECISION_WIDE;
    python->sent_exact = precision == PRECISION_EXACT || wide;
    python_begin(python, &json, "compute");
    json_put_text(&json, "precision", wide ? "wide" : python->sent_exact ? "exact" : "spec");
    json_put_text(&json, "baseline", baseline);
    put_call(python, &json, layout, call, reference_bits(problem, precision));
    json_put_array(&json, "outputs");
    for (size_t i = 0; i < problem->output_count; i++) {
        python_put_place(&json, NULL, end, problem->outputs[i].rank, layout->outputs[i].extents);
        end += (result_bytes(python, layout, i) + 63) / 64 * 64;
    }
    json_array_end(&json);
    json_object_end(&json);
    return python_make_room(python, end, err) != 0 ? -1 : python_tell(python, err);
}

static int take_within(struct python *python, uint64_t limit_ms, const struct layout *layout,
                       void **out, struct err *err)
{
    ARENA_LOCAL(arena);
    const struct value *answer;
    size_t offset = 0;
    int status = python_hear(python, limit_ms, arena, &answer, err);
    for (size_t i = 0; status == 0 && i < python->problem->output_count; i++) {
        size_t bytes = result_bytes(python, layout, i);
        parallel_copy(out[i], python->mapped + offset, bytes);
        offset += (bytes + 63) / 64 * 64;
    }
    return status;
}

static int take(struct reference *reference, const struct layout *layout, void **out,
                struct err *err)
{
    return take_within(python_of(reference), REFERENCE_TIMEOUT_MS, layout, out, err);
}

static int send(struct reference *reference, const struct layout *layout, const struct call *call,
                enum reference_precision precision, struct err *err)
{
    return send_for(python_of(reference), NULL, layout, call, precision, err);
}

static int compute_for(struct reference *reference, const char *baseline,
                       const struct layout *layout, const struct call *call,
                       enum reference_precision precision, void **out, struct err *err)
{
    struct python *python = python_of(reference);
    uint64_t limit_ms = baseline != NULL ? python->start_timeout_ms : REFERENCE_TIMEOUT_MS;
    uint64_t begun = timeline_begin();
    int status = send_for(python, baseline, layout, call, precision, err);
    if (status == 0) /* a baseline's first call may compile it, on however busy a machine */
        status = take_within(python, limit_ms, layout, out, err);
    timeline_end("python.compute", begun);
    return status;
}

int python_compute(struct reference *reference, const struct layout *layout,
                   const struct call *call, enum reference_precision precision, void **out,
                   struct err *err)
{
    return compute_for(reference, NULL, layout, call, precision, out, err);
}

int python_compute_baseline(struct reference *reference, const char *name,
                            const struct layout *layout, const struct call *call, void **out,
                            struct err *err)
{
    return compute_for(reference, name, layout, call, PRECISION_SPEC, out, err);
}

/* --- as a subject to be timed --- */

static struct python *subject_of(struct subject *subject)
{
    return container_of(subject, struct python_subject, subject)->python;
}

/* The request is read and the arrays are made before the clock starts; `go` and `done` are all that
 * lies between the two readings besides the user's function. */
static int subject_run(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                       struct err *err)
{
    struct python *python = subject_of(subject);
    struct layout layout = {0};
    struct json json;
    if (python_ensure(python, err) != 0)
        return -1;
    for (size_t i = 0; i < call->dim_count && i < python->problem->dim_count; i++)
        if (names_set(&layout.dims, python->problem->dims[i].name, call->dims[i], err) != 0)
            return -1;
    for (size_t i = 0; i < python->problem->input_count; i++) {
        size_t elements;
        if (tensor_extents(&python->problem->inputs[i], &layout.dims, layout.inputs[i].extents,
                           &elements, err) != 0)
            return -1;
    }
    python_begin(python, &json, "prepare");
    json_put_text(&json, "baseline",
                  container_of(subject, struct python_subject, subject)->baseline);
    put_call(python, &json, &layout, call, reference_bits(python->problem, PRECISION_SPEC));
    json_object_end(&json);
    ARENA_LOCAL(arena);
    const struct value *answer;
    int status = python_ask(python, python->start_timeout_ms, arena, &answer, err);
    const char *line;
    if (status != 0)
        return -1;
    uint64_t started = clock_now_ns();
    if (child_send(&python->child, "go\n", 3, err) != 0 ||
        child_line(&python->child, call->timeout_ms, &line, err) != 0)
        return -1;
    *elapsed_ns = clock_now_ns() - started;
    timeline_put("python.go", started, *elapsed_ns);
    if (subject->device_clock && strncmp(line, "done ", 5) == 0) {
        uint64_t device_ns = strtoull(line + 5, NULL, 10);
        *elapsed_ns = device_ns > 0 && device_ns < *elapsed_ns ? device_ns : *elapsed_ns;
        return 0;
    }
    if (strcmp(line, "done") != 0)
        return err_set(err, ERR_USAGE, "the reference raised while it was timed: %.200s", line);
    return 0;
}

static void subject_pause(struct subject *subject)
{
    child_pause(&subject_of(subject)->child);
}

static void subject_resume(struct subject *subject)
{
    child_resume(&subject_of(subject)->child);
}

static void subject_close(struct subject *subject)
{
    child_stop(&subject_of(subject)->child); /* started again by the next call */
}

/* --- opening and closing --- */

void python_close(struct reference *reference)
{
    struct python *python = python_of(reference);
    child_stop(&python->child);
    if (python->mapped != NULL)
        munmap(python->mapped, python->mapped_bytes);
    if (python->results >= 0)
        close(python->results);
    buf_free(&python->request);
    mem_free(python->self);
    mem_free(python->script);
    mem_free(python);
}

struct python *python_new(const struct problem *problem, const struct lane_facts *lane,
                          const struct region *region, struct arena *arena,
                          const struct reference_ops *ops, const char *script)
{
    static const struct subject_ops subject_ops = {.call = subject_run,
                                                   .pause = subject_pause,
                                                   .resume = subject_resume,
                                                   .close = subject_close};
    struct python *python = MEM_NEW(struct python);
    python->reference = (struct reference){.ops = ops, .subject = &python->eager.subject};
    python->eager = (struct python_subject){
        .subject = {.ops = &subject_ops, .name = "reference", .own_results = true},
        .python = python};
    python->compiled = (struct python_subject){
        .subject = {.ops = &subject_ops, .name = "compile", .own_results = true},
        .python = python,
        .baseline = "compile"};
    python->problem = problem;
    python->lane = lane;
    python->region = region;
    python->arena = arena;
    python->start_timeout_ms = START_TIMEOUT_MS;
    buf_init(&python->request, REQUEST_MOST);
    const char *self = getenv("TWAGENT_SELF");
    python->self = self != NULL ? mem_strdup(self) : file_self_path();
    python->script = file_data_path(script);
    python->results = memfd_create("twagent-results", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (python->results >= 0)
        (void)fcntl(python->results, F_ADD_SEALS, F_SEAL_SHRINK);
    return python;
}

int python_usable(const struct python *python, const char *script, struct err *err)
{
    if (python->script == NULL)
        return err_set(err, ERR_ENVIRONMENT, "%s is not where the program expects it", script);
    if (python->results < 0)
        return err_set(err, ERR_ENVIRONMENT, "cannot make shared memory");
    return 0;
}

static int find_numpy(const char *path, struct arena *arena, struct interpreter *interpreter,
                      struct err *err)
{
    uint64_t begun = timeline_begin();
    int status = interpreter_find_numpy(path, arena, interpreter, err);
    timeline_end("open.python", begun);
    return status;
}

static const char script[] = "libexec/reference.py";

static struct reference *again(struct reference *reference, const struct region *region,
                               size_t threads, struct err *err)
{
    const struct python *first = python_of(reference);
    struct python *python =
        python_new(first->problem, first->lane, region, first->arena, reference->ops, script);
    python->interpreter = first->interpreter;
    python->threads = threads;
    if (python_usable(python, script, err) == 0 && python_start(python, err) == 0)
        return &python->reference;
    python_close(&python->reference);
    return NULL;
}

int reference_open(const struct problem *problem, const struct lane_facts *lane,
                   const struct region *region, const char *python_path, struct arena *arena,
                   const char **python_found, struct reference **reference, struct err *err)
{
    static const struct reference_ops ops = {.compute = python_compute,
                                             .close = python_close,
                                             .pending = python_pending,
                                             .ready = python_ready,
                                             .double_steps = python_double_steps,
                                             .again = again,
                                             .send = send,
                                             .take = take};
    struct python *python = python_new(problem, lane, region, arena, &ops, script);
    if (python_usable(python, script, err) == 0 &&
        find_numpy(python_path, arena, &python->interpreter, err) == 0 &&
        python_start(python, err) == 0) {
        *python_found = python->interpreter.path;
        *reference = &python->reference;
        return 0;
    }
    python_close(&python->reference);
    return -1;
}
