#include "cli/cache/execute.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/cache/use.h"
#include "cli/options/backends.h"
#include "cli/options/devices.h"
#include "eval/backend/build.h"
#include "eval/candidate/layout.h"
#include "eval/data/npy.h"
#include "eval/problem/torch.h"
#include "report/words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, DIAGNOSTICS_MOST = 1 << 14, COMPILER_SAYS = 1 << 16 };

struct execution {
    struct arena *arena;
    const struct settings *settings;
    const struct cache_entry *entry;
    const struct backend *backend;
    struct problem *problem;
    struct candidate *candidate;
    struct names tune;
    struct lane_facts lane;
    struct layout layout;
    struct region region;
    struct subject *subject;
    char folder[PATH_MAX]; /* of the build; "": none yet */
    int lock;
    const char *artifact;
    uint64_t elapsed_ns;
};

/* ---- what it is ---- */

/* A definition that has changed would take arrays of another meaning. */
static int load_problem(struct execution *e, struct err *err)
{
    const struct cache_entry *entry = e->entry;
    const char *python = e->settings->search.python;
    struct hash hash;
    char hex[33];
    const struct value *told = value_get(entry->question, "settings");
    if (problem_load_with(entry->problem_file, python, &e->problem, err) ||
        cache_definition(e->arena, e->problem, value_text(told, "baseline", NULL), &hash, err))
        return err_wrap(err, "the problem of %s", entry->name);
    hash_format(hash, hex);
    if (strcmp(hex, value_text(entry->question, "definition", "")) != 0)
        return err_set(err, ERR_USAGE,
                       "%s is not what this kernel was checked against: a file of it has changed "
                       "since",
                       entry->problem_file);
    return 0;
}

static int load_candidate(struct execution *e, struct err *err)
{
    const struct cache_entry *entry = e->entry;
    struct value *tune = NULL;
    char identity[33];
    if (value_parse_json(e->arena, "tune", entry->evaluation.tune, strlen(entry->evaluation.tune),
                         &tune, err) ||
        candidate_parse_for(e->backend->target, e->problem, entry->file, entry->source,
                            strlen(entry->source), tune, &e->lane.facts, &e->candidate, &e->tune,
                            err))
        return -1;
    hash_format(candidate_identity(e->candidate, &e->tune), identity);
    if (strcmp(identity, entry->evaluation.identity) != 0)
        return err_set(err, ERR_CORRUPT, "%s: its figures are another source's", entry->name);
    return 0;
}

static int open_lane(struct execution *e, struct err *err)
{
    struct lane_facts *lane = &e->lane;
    const char *name = value_text(value_get(e->entry->question, "device"), "backend", "");
    int cores[sizeof lane->cores / sizeof lane->cores[0]];
    size_t count = 0, most = sizeof cores / sizeof cores[0];
    cpu_set_t set;
    e->backend = backends_find(name);
    if (!e->backend)
        return err_set(err, ERR_USAGE, "%s: this twagent has no backend \"%s\"", e->entry->name,
                       name);
    CPU_ZERO(&set);
    (void)sched_getaffinity(0, sizeof set, &set);
    for (size_t core = 0; core < CPU_SETSIZE && count < most; core++)
        if (CPU_ISSET(core, &set))
            cores[count++] = (int)core;
    lane->gpu_index = e->settings->search.devices ? devices_first(e->settings->search.devices) : 0;
    if (e->backend->probe(cores, count, false, e->arena, lane, err) ||
        (e->backend->ready && e->backend->ready(err)))
        return -1;
    if (lane->exposed && !e->settings->search.unconfined)
        return err_set(
            err, ERR_ENVIRONMENT,
            "%s: a kernel could reach this user's files; twagent doctor says what to do, "
            "--unconfined goes on all the same",
            lane->unconfined);
    return 0;
}

/* ---- arrays ---- */

static const char *shape_text(struct arena *arena, size_t rank, const int64_t *extents)
{
    BUF_LOCAL(text, 1024);
    for (size_t i = 0; i < rank; i++)
        buf_addf(&text, "%s%lld", i ? "x" : "", (long long)extents[i]);
    return rank ? buf_keep(&text, arena) : "a single number";
}

static int check_array(struct execution *e, const char *file, const struct npy *npy,
                       const struct tensor_spec *tensor, const struct placed *placed, off_t bytes,
                       struct err *err)
{
    const char *name = tensor->name;
    if (!npy->known || npy->dtype != tensor->dtype)
        return err_set(err, ERR_USAGE, "%s: its dtype is %s, %s is %s: a.astype(\"%s\")%s", file,
                       npy->known ? dtype_name(npy->dtype) : npy->descr, name,
                       dtype_name(tensor->dtype), dtype_name(tensor->dtype),
                       *npy->descr == '>' ? ", little-endian" : "");
    if (npy->rank != tensor->rank ||
        memcmp(npy->extents, placed->extents, npy->rank * sizeof *npy->extents) != 0)
        return err_set(err, ERR_USAGE, "%s: its shape is %s, %s of this entry is %s", file,
                       shape_text(e->arena, npy->rank, npy->extents), name,
                       shape_text(e->arena, tensor->rank, placed->extents));
    if (npy->fortran && npy->rank > 1)
        return err_set(err, ERR_USAGE,
                       "%s: is in Fortran's order, %s is row-major: numpy.ascontiguousarray(a)",
                       file, name);
    if (bytes != (off_t)(npy->offset + placed->bytes))
        return err_set(err, ERR_USAGE, "%s: has %lld bytes of elements, its header says %zu", file,
                       (long long)bytes - (long long)npy->offset, placed->bytes);
    return 0;
}

static int read_all(int fd, void *to, size_t bytes, off_t from, const char *file, struct err *err)
{
    unsigned char *at = to;
    while (bytes > 0) {
        ssize_t got = pread(fd, at, bytes, from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_set_errno(err, ERR_USAGE, got < 0 ? errno : EIO, "%s", file);
        at += got;
        from += got;
        bytes -= (size_t)got;
    }
    return 0;
}

static int read_array(struct execution *e, const char *file, size_t i, struct err *err)
{
    struct stat status;
    struct npy npy;
    size_t most = NPY_HEADER_MOST + 16;
    unsigned char *head = arena_alloc(e->arena, most);
    const struct placed *placed = &e->layout.inputs[i];
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), failed;
    if (fd < 0)
        return err_set_errno(err, ERR_USAGE, errno, "%s", file);
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        failed = err_set(err, ERR_USAGE, "%s: is no file", file);
    } else {
        size_t length = status.st_size < (off_t)most ? (size_t)status.st_size : most;
        failed = read_all(fd, head, length, 0, file, err) ||
                 npy_parse(file, head, length, &npy, err) ||
                 check_array(e, file, &npy, &e->problem->inputs[i], placed, status.st_size, err) ||
                 read_all(fd, e->region.inputs + placed->offset, placed->bytes, (off_t)npy.offset,
                          file, err);
    }
    close(fd);
    return failed;
}

static int read_arrays(struct execution *e, const char *const *files, size_t count, struct err *err)
{
    const struct problem *problem = e->problem;
    if (count != problem->input_count) {
        BUF_LOCAL(text, 400);
        for (size_t i = 0; i < problem->input_count; i++)
            buf_addf(&text, "%s%s %s %s", i ? ", " : "", problem->inputs[i].name,
                     dtype_name(problem->inputs[i].dtype),
                     shape_text(e->arena, problem->inputs[i].rank, e->layout.inputs[i].extents));
        return err_set(err, ERR_USAGE, "%s takes %zu .npy files, not %zu: %s", problem->name,
                       problem->input_count, count, buf_text(&text));
    }
    for (size_t i = 0; i < count; i++)
        if (read_array(e, files[i], i, err))
            return -1;
    return 0;
}

static int write_array(struct execution *e, const char *file, size_t i, struct err *err)
{
    const struct placed *placed = &e->layout.outputs[i];
    const struct tensor_spec *tensor = &e->problem->outputs[i];
    BUF_LOCAL(text, placed->bytes + NPY_HEADER_MOST);
    npy_header(tensor->dtype, tensor->rank, placed->extents, &text);
    buf_add(&text, e->region.outputs + placed->offset, placed->bytes);
    if (file_put(file, buf_text(&text), text.length, err))
        return -1;
    printf("  wrote      %s: %s, %s %s\n", file, tensor->name, dtype_name(tensor->dtype),
           shape_text(e->arena, tensor->rank, placed->extents));
    return 0;
}

static int write_arrays(struct execution *e, struct err *err)
{
    const char *output = e->settings->output;
    const struct problem *problem = e->problem;
    if (problem->output_count == 1 && !file_is_dir(output))
        return write_array(e, output, 0, err);
    if (file_make_dirs(output, err))
        return -1;
    for (size_t i = 0; i < problem->output_count; i++)
        if (write_array(e, arena_printf(e->arena, "%s/%s.npy", output, problem->outputs[i].name), i,
                        err))
            return -1;
    return 0;
}

/* ---- the call ---- */

/* As a worker's: what a kill leaves behind is swept by the next one. */
static int make_folder(struct execution *e, struct err *err)
{
    const char *parent = getenv("TMPDIR");
    snprintf(e->folder, sizeof e->folder, "%s/twagent-worker-XXXXXX",
             parent && *parent == '/' ? parent : "/tmp");
    if (!mkdtemp(e->folder)) {
        int failed = err_set_errno(err, ERR_IO, errno, "%s", e->folder);
        *e->folder = '\0';
        return failed;
    }
    e->lock = open(e->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (e->lock >= 0)
        (void)flock(e->lock, LOCK_EX | LOCK_NB);
    return 0;
}

static int build_kernel(struct execution *e, struct err *err)
{
    struct build build = {0};
    bool killed;
    BUF_LOCAL(said, COMPILER_SAYS);
    if (make_folder(e, err) ||
        e->backend->build(e->arena, &e->lane, e->problem, e->candidate, &e->tune, NULL, BUILD_FAST,
                          e->folder, &build, err))
        return -1;
    if (build_run_heard(&build.spec, &said, &killed, err))
        return err_wrap(err, "it does not compile here, now");
    e->artifact = build.artifact;
    return 0;
}

/* Outputs begin as NaN: what the kernel leaves out is no number. */
static int call_kernel(struct execution *e, struct err *err)
{
    const struct program program = {e->problem, e->candidate, &e->tune, NULL};
    struct call call;
    memset(e->region.outputs, 0xff, e->region.outputs_bytes);
    call_make(&e->layout, 0, (uint64_t)e->settings->search.call_timeout_ms, &call);
    if (e->backend->open(&e->lane, &e->region, e->artifact, &program, true, &e->subject, err)) {
        e->subject = NULL;
        return err_wrap(err, "the kernel");
    }
    return subject_call(e->subject, &call, &e->elapsed_ns, err) ? err_wrap(err, "the kernel") : 0;
}

static size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE + PAGE;
}

static int open_region(struct execution *e, struct err *err)
{
    const struct problem *problem = e->problem;
    layout_align(e->backend->alignment > 0 ? e->backend->alignment : TENSOR_ALIGN);
    return layout_make(problem, &problem->shapes[0], e->candidate, &e->tune, 0, &e->layout, err) ||
                   region_open(pages(e->layout.inputs_bytes), pages(e->layout.outputs_bytes),
                               &e->region, err)
               ? -1
               : 0;
}

static void finish(struct execution *e)
{
    struct err ignored;
    if (e->subject)
        e->subject->ops->close(e->subject);
    if (e->region.inputs)
        region_close(&e->region);
    if (*e->folder)
        (void)!file_remove_tree(e->folder, &ignored);
    if (e->lock >= 0)
        close(e->lock);
    candidate_free(e->candidate);
    problem_free(e->problem);
}

int cache_execute(const struct settings *settings, struct arena *arena,
                  const struct cache_entry *entry, const char *const *files, size_t count,
                  struct err *err)
{
    struct execution e = {.arena = arena, .settings = settings, .entry = entry, .lock = -1};
    char time[32], date[32];
    if (!entry->accepted)
        return err_set(err, ERR_USAGE, "%s was %s: %.200s", entry->name,
                       verdict_name(entry->evaluation.verdict), entry->evaluation.reason);
    if (!settings->output)
        return err_set(err, ERR_USAGE, "cache run: where does the output go? -o OUT.npy");
    int failed = open_lane(&e, err) || load_problem(&e, err) || load_candidate(&e, err) ||
                 open_region(&e, err) || read_arrays(&e, files, count, err) ||
                 build_kernel(&e, err) || call_kernel(&e, err);
    if (!failed) {
        printf("%s of %s, called once: %s (one call is no measurement)\n", entry->file,
               entry->problem, words_time((double)e.elapsed_ns, time));
        failed = write_arrays(&e, err);
    }
    if (!failed)
        printf("  checked    %s, not on these arrays: compare them yourself\n",
               words_date(entry->written_ms, date));
    finish(&e);
    return failed;
}
