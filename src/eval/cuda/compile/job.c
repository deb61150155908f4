#include "eval/cuda/compile/job.h"
#include "eval/cuda/compile/cubin.h"
#include "eval/cuda/compile/ptx.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "eval/cuda/compile/ptxas.h"
#include "eval/cuda/compile/source.h"
#include "process/sandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- before ---- */

static const char *builtins(struct arena *arena, const char *library, const struct nvrtc *nvrtc)
{
    const char *slash = strrchr(library, '/');
    return arena_printf(arena, "%.*s/libnvrtc-builtins.so.%d.%d",
                        slash != NULL ? (int)(slash - library) : 0, library, nvrtc->version_major,
                        nvrtc->version_minor);
}

int cuda_job_open(const struct cuda_job *job, struct nvrtc *nvrtc, struct err *err)
{
    if (nvrtc_open(job->compiler.library, nvrtc, err) != 0)
        return -1;
    struct arena *arena = arena_new_sized(512);
    /* Its name is then known to the loader, and no file is looked for. One that is not there, or is
     * called otherwise, is NVRTC's to complain about. */
    (void)dlopen(builtins(arena, job->compiler.library, nvrtc), RTLD_NOW | RTLD_GLOBAL);
    arena_free(arena);
    return 0;
}

static uint64_t cpu_s(const struct cuda_job *job)
{
    return job->cpu_s != 0 ? job->cpu_s : COMPILE_CPU_S;
}

static uint64_t memory_mib(const struct cuda_job *job)
{
    return job->memory_mib != 0 ? job->memory_mib : JOB_MEMORY_MIB;
}

static void add_read(struct sandbox_paths *paths, const char *path)
{
    if (path != NULL)
        paths->reads[paths->read_count++] = path;
}

/* Two layers: the compilers' own, and one that takes /usr away from it again. There is libcuda,
 * which NVRTC opens where it can, and a whole system whose files a source could ask for. */
int cuda_job_confine(const struct cuda_job *job, const char *readable, const char *writable,
                     bool bounded, struct err *err)
{
    const struct sandbox_limits limits = {
        .address_bytes = memory_mib(job) << 20,
        .cpu_s = cpu_s(job),
        /* a precompiled header has 200 MB */
        .file_bytes = writable != NULL && readable == NULL ? UINT64_C(1) << 30 : 0,
    };
    struct sandbox_paths paths = {0};
    add_read(&paths, job->compiler.includes);
    add_read(&paths, job->compiler.cccl);
    add_read(&paths, readable);
    if (writable != NULL)
        paths.writes[paths.write_count++] = writable;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "no_new_privs");
    if (bounded && sandbox_confine(SANDBOX_COMPILE, &limits, &paths, err) != 0)
        return -1;
    if (sandbox_landlock(&paths, false, NULL, err) != 0)
        return -1;
    if (!bounded)
        return 0;
    if (sandbox_filter(SANDBOX_COMPILE, NULL, err) != 0)
        return -1;
#if defined(__SANITIZE_ADDRESS__)
    return 0; /* its shadow alone is terabytes of addresses */
#else
    return sandbox_bound_memory(SANDBOX_COMPILE, &limits, err);
#endif
}

/* ---- options ---- */

static bool has_flag(const struct cuda_job *job, const char *begins)
{
    for (size_t i = 0; i < job->flag_count; i++)
        if (strncmp(job->flags[i], begins, strlen(begins)) == 0)
            return true;
    return false;
}

size_t cuda_job_options(struct arena *arena, const struct cuda_job *job, bool soft,
                        const char *options[JOB_OPTIONS_MAX * 2])
{
    const struct cuda_compiler *compiler = &job->compiler;
    size_t count = 0;
    options[count++] = arena_printf(arena, "--gpu-architecture=%s", job->arch);
    options[count++] = "--generate-line-info";
    options[count++] = "--ptxas-options=-v";
    options[count++] = "--device-as-default-execution-space";
    if (!has_flag(job, "-std=") && !has_flag(job, "--std="))
        options[count++] = "--std=c++17";
    if (compiler->includes != NULL)
        options[count++] = arena_printf(arena, "--include-path=%s", compiler->includes);
    if (compiler->cccl != NULL)
        options[count++] = arena_printf(arena, "--include-path=%s", compiler->cccl);
    for (size_t i = 0; i < job->flag_count; i++)
        options[count++] = job->flags[i];
    if (soft) {
        options[count++] = "--no-cache";
        options[count++] = "--brief-diagnostics=true";
    }
    if (soft && job->pch != NULL) {
        options[count++] = "--pch-messages=false";
        options[count++] = arena_printf(arena, "--use-pch=%s", job->pch);
    }
    return count;
}

/* ---- words ---- */

static void tell(int errors, const char *text, size_t length)
{
    (void)!file_write_all(errors, text, length);
}

static void tell_text(int errors, const char *text)
{
    tell(errors, text, strlen(text));
}

void cuda_job_tell_end(const struct cuda_job *job, int signal_number)
{
    char line[200];
    const char *name = sigabbrev_np(signal_number);
    if (signal_number == SIGXCPU)
        snprintf(line, sizeof line,
                 "cuda-compile: the compile took more than %llu s of CPU time: too much is "
                 "unrolled, or templates or constants grow without end\n",
                 (unsigned long long)cpu_s(job));
    else if (signal_number == SIGKILL)
        snprintf(line, sizeof line, "cuda-compile: the compiler was killed, by no limit of ours\n");
    else if (signal_number == SIGXFSZ)
        snprintf(line, sizeof line, "cuda-compile: the compiler wrote more than 64 MiB\n");
    else
        snprintf(line, sizeof line,
                 "cuda-compile: the compiler crashed (SIG%s): the source is too much for it, in "
                 "depth or in memory (%llu MiB)\n",
                 name != NULL ? name : "?", (unsigned long long)memory_mib(job));
    tell_text(job->errors, line);
}

/* The toolkit's own paths become relative; cuda_diagnostics() drops lines of other absolute ones.
 */
static void print_log(const struct cuda_job *job, const char *log, size_t length)
{
    const char *const roots[] = {job->compiler.cccl, job->compiler.includes};
    BUF_LOCAL(text, JOB_ERRORS_MAX);
    for (size_t at = 0; at < length && text.dropped == 0;) {
        const char *stop = (const char *)memchr(log + at, '\n', length - at);
        size_t next = stop != NULL ? (size_t)(stop - log) + 1 : length;
        for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
            size_t root = roots[i] != NULL ? strlen(roots[i]) : 0;
            if (root > 0 && next - at > root + 1 && memcmp(log + at, roots[i], root) == 0 &&
                log[at + root] == '/') {
                at += root + 1;
                break;
            }
        }
        if (next - at < 11 || (memcmp(log + at, "ptxas info ", 11) != 0 && /* kernel.json has it */
                               memcmp(log + at, "ptxas      ", 11) != 0))
            buf_add(&text, log + at, next - at);
        at = next;
    }
    tell(job->errors, buf_text(&text), text.length);
}

/* ---- what came of it ---- */

static bool check_entries(const struct cuda_job *job, const struct cuda_report *report)
{
    bool fine = true;
    BUF_LOCAL(text, 2000);
    for (size_t i = 0; i < job->entry_count; i++) {
        if (ptxas_entry(report, job->entries[i]) != NULL)
            continue;
        buf_addf(&text,
                 "cuda-compile: the launch names %s, which is no extern \"C\" __global__ "
                 "function of the source; there %s:",
                 job->entries[i], report->entry_count == 0 ? "are none" : "are");
        for (size_t k = 0; k < report->entry_count; k++)
            buf_addf(&text, " %s", report->entries[k].entry);
        buf_add_char(&text, '\n');
        fine = false;
    }
    tell(job->errors, buf_text(&text), text.length);
    return fine;
}

/* ptxas says nothing where static shared memory is the reason. */
static void tell_shared(const struct cuda_job *job, const struct cuda_report *report)
{
    char line[300];
    for (size_t i = 0; i < report->entry_count; i++) {
        if (report->entries[i].shared_bytes <= PTXAS_SHARED_MAX)
            continue;
        snprintf(line, sizeof line,
                 "cuda-compile: %.100s has %lld bytes of static shared memory, more than a block "
                 "has; beyond %d use "
                 "extern __shared__ and the launch's \"shared\"\n",
                 report->entries[i].entry, (long long)report->entries[i].shared_bytes,
                 PTXAS_SHARED_MAX);
        tell_text(job->errors, line);
    }
}

static bool write_report(const struct cuda_job *job, const struct cuda_report *report)
{
    JSON_LOCAL(json, text, 64 << 10);
    ptxas_put(report, &json);
    return text.dropped == 0 && file_write_all(job->log, buf_text(&text), text.length) == 0;
}

/* By the PTX that the cubin was made of. */
static bool uses_variables(const struct nvrtc *nvrtc, nvrtc_program program)
{
    size_t bytes = 0;
    if (nvrtc->ptx_size == NULL || nvrtc->ptx == NULL ||
        nvrtc->ptx_size(program, &bytes) != NVRTC_OK || bytes < 2)
        return true;
    char *text = (char *)mem_alloc(bytes);
    bool uses = nvrtc->ptx(program, text) != NVRTC_OK || ptx_uses_variables(text, bytes - 1);
    mem_free(text);
    return uses;
}

static bool write_cubin(const struct cuda_job *job, const struct nvrtc *nvrtc,
                        nvrtc_program program)
{
    size_t bytes = 0;
    if (nvrtc->cubin_size(program, &bytes) != NVRTC_OK || bytes == 0)
        return false;
    char *cubin = (char *)mem_alloc(bytes);
    bool fine =
        nvrtc->cubin(program, cubin) == NVRTC_OK && file_write_all(job->cubin, cubin, bytes) == 0;
    mem_free(cubin);
    if (fine && !uses_variables(nvrtc, program))
        fine = file_write_all(job->cubin, CUBIN_UNUSED, sizeof CUBIN_UNUSED - 1) == 0;
    return fine;
}

/* ---- the compile ---- */

static int compile_once(const struct cuda_job *job, const struct nvrtc *nvrtc, const char *unit,
                        bool soft, nvrtc_program *program)
{
    const char *options[JOB_OPTIONS_MAX * 2];
    size_t headers;
    const char *const *names = cuda_source_header_names(&headers);
    struct arena *arena = arena_new_sized(4096);
    size_t count = cuda_job_options(arena, job, soft, options);
    int result =
        nvrtc->create(program, unit, "unit.cu", (int)headers, cuda_source_header_texts(), names);
    if (result == NVRTC_OK)
        result = nvrtc->compile(*program, (int)count, options);
    arena_free(arena);
    return result;
}

static int take(const struct cuda_job *job, const struct nvrtc *nvrtc, nvrtc_program program,
                int result, bool precompiled, double elapsed_ms)
{
    ARENA_LOCAL(arena);
    struct cuda_report report = {
        .arch = job->arch,
        .version = arena_printf(arena, "NVRTC %d.%d", nvrtc->version_major, nvrtc->version_minor),
        .compile_ms = elapsed_ms,
        .precompiled = precompiled};
    size_t length = 0;
    if (program == NULL || nvrtc->log_size(program, &length) != NVRTC_OK)
        length = 0;
    char *log = (char *)mem_alloc(length + 1);
    if (length > 0 && nvrtc->log(program, log) == NVRTC_OK) {
        length = strnlen(log, length);
        print_log(job, log, length);
        ptxas_parse(arena, log, length, &report);
    }
    mem_free(log);
    bool fine = false;
    if (result == NVRTC_COMPILATION) {
        tell_shared(job, &report);
    } else if (result != NVRTC_OK) {
        tell_text(job->errors, "cuda-compile: ");
        tell_text(job->errors, nvrtc->error_string(result));
        tell_text(job->errors, "\n");
    } else {
        fine = check_entries(job, &report) && write_cubin(job, nvrtc, program) &&
               write_report(job, &report);
    }
    return fine ? 0 : 1;
}

/* "Catastrophic error: cannot open precompiled header file ...": about no line of the source, and
 * not its fault. */
static bool blames_header(const struct nvrtc *nvrtc, nvrtc_program program)
{
    size_t length = 0;
    if (nvrtc->log_size(program, &length) != NVRTC_OK || length == 0)
        return false;
    char *log = (char *)mem_alloc(length + 1);
    bool blames =
        nvrtc->log(program, log) == NVRTC_OK && strstr(log, "Catastrophic error: ") != NULL;
    mem_free(log);
    return blames;
}

int cuda_job_run(const struct cuda_job *job, const struct nvrtc *nvrtc)
{
    char *unit = (char *)mem_alloc(JOB_UNIT_MAX + 1);
    (void)!file_read_at(job->unit, unit, JOB_UNIT_MAX, 0);
    uint64_t started = clock_now_ns();
    bool precompiled = job->pch != NULL;
    nvrtc_program program = NULL;
    int result = compile_once(job, nvrtc, unit, true, &program);
    if (result == NVRTC_INVALID_OPTION ||
        (result != NVRTC_OK && job->pch != NULL && blames_header(nvrtc, program))) {
        nvrtc->destroy(&program);
        precompiled = false;
        result = compile_once(job, nvrtc, unit, false, &program);
    }
    return take(job, nvrtc, program, result, precompiled, (double)(clock_now_ns() - started) / 1e6);
}

int cuda_job_precompile(const struct cuda_job *job, const struct nvrtc *nvrtc, const char *prefix,
                        const char *path)
{
    const char *options[JOB_OPTIONS_MAX * 2 + 2];
    size_t headers;
    const char *const *names = cuda_source_header_names(&headers);
    struct arena *arena = arena_new_sized(4096);
    struct cuda_job plain = *job;
    nvrtc_program program = NULL;
    plain.pch = NULL;
    size_t count = cuda_job_options(arena, &plain, true, options);
    options[count++] = "--pch-messages=false";
    options[count++] = arena_printf(arena, "--create-pch=%s", path);
    int result =
        nvrtc->create(&program, prefix, "unit.cu", (int)headers, cuda_source_header_texts(), names);
    if (result == NVRTC_OK)
        result = nvrtc->compile(program, (int)count, options);
    arena_free(arena);
    return result == NVRTC_OK ? 0 : 1;
}
