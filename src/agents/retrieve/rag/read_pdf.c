/* PDF through pdftotext: a parser of hostile files, so a child with limits on time, memory, output
 * and no way to write. */
#include "agents/retrieve/rag/documents.h"
#include "agents/retrieve/rag/read.h"
#include "base/file.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "loop/process.h"
#include "loop/task.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PDF_TIMEOUT_MS = 60000, PDF_CPU_S = 50 };
#define PDF_MEMORY ((uint64_t)2 << 30)

enum { CONVERT, CONVERTED };
static const char *const states[] = {"convert", "converted"};
static const uint32_t moves[] = {1u << CONVERTED, 0};

struct conversion {
    struct task task;
    const struct process_spec *spec;
    struct process *process;
    struct buf *out;
    enum read_result result;
    const char *why;
};

static void take_output(struct conversion *conversion)
{
    size_t length;
    uint64_t dropped;
    const char *text = process_output(conversion->process, &length, &dropped);
    bool exited = process_outcome(conversion->process) == PROCESS_EXITED &&
                  process_status(conversion->process) == 0;
    conversion->result = exited && dropped == 0 ? READ_WELL : READ_UNREADABLE;
    conversion->why = !exited       ? "pdftotext failed"
                      : dropped > 0 ? "its text is larger than the limit \"file size\", 32 MiB"
                                    : "";
    if (conversion->result == READ_WELL)
        buf_add(conversion->out, text, length);
}

static enum task_result step(struct task *task)
{
    struct conversion *conversion = container_of(task, struct conversion, task);
    struct err err;
    if (task->state == CONVERT) {
        task_move(task, CONVERTED);
        conversion->process = process_start(task->loop, task, conversion->spec, &err);
        if (conversion->process != NULL)
            return TASK_WAIT;
        conversion->result = READ_UNREADABLE;
        conversion->why = "pdftotext does not start";
        return TASK_DONE;
    }
    if (process_outcome(conversion->process) == PROCESS_RUNNING)
        return TASK_WAIT;
    take_output(conversion);
    process_free(conversion->process);
    return TASK_DONE;
}

static const struct task_type conversion_type = {"pdf", states, moves, 2, step, NULL};

static char *find_pdftotext(void)
{
    static const char *const folders[] = {"/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"};
    const char *named = getenv("TWAGENT_PDFTOTEXT");
    if (named != NULL)
        return access(named, X_OK) == 0 ? mem_strdup(named) : NULL;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char *path = file_join(folders[i], "pdftotext");
        if (access(path, X_OK) == 0)
            return path;
        mem_free(path);
    }
    return NULL;
}

enum read_result read_pdf(const char *path, struct buf *out, const char **why)
{
    char *program = find_pdftotext();
    *why = "pdftotext is not installed (Debian: poppler-utils)";
    if (program == NULL)
        return READ_UNREADABLE;
    const char *argv[] = {program, "-q", "-enc", "UTF-8", path, "-", NULL}; /* path is absolute */
    struct process_spec spec = {.argv = argv,
                                .timeout_ms = PDF_TIMEOUT_MS,
                                .output_max = (size_t)RAG_FILE_BYTES_MOST * 2,
                                .memory_max_bytes = PDF_MEMORY,
                                .file_max_bytes = 1,
                                .cpu_max_s = PDF_CPU_S};
    struct conversion conversion = {.spec = &spec, .out = out, .why = ""};
    struct loop *loop = loop_new();
    task_start(loop, &conversion.task, &conversion_type, NULL, "pdftotext");
    loop_run(loop);
    loop_free(loop);
    mem_free(program);
    *why = conversion.why;
    return conversion.result;
}
