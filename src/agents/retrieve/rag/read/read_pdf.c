/* PDF through pdftotext: a parser of hostile files, so a child in the sandbox, with limits on time,
 * memory and output, that reads the system's files and this one. */
#include "agents/retrieve/rag/read/read.h"
#include "agents/retrieve/rag/read/walk.h"
#include "base/file.h"
#include "base/mem.h"
#include "process/spawn.h"

#include <stdlib.h>
#include <unistd.h>

enum { PDF_TIMEOUT_MS = 60000 };

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
    MEM_LOCAL char *program = find_pdftotext();
    *why = "pdftotext is not installed (Debian: poppler-utils)";
    if (program == NULL)
        return READ_UNREADABLE;
    const char *const argv[] = {file_program_path(),
                                "sandbox",
                                "--profile",
                                "tool",
                                "--read",
                                program,
                                "--read",
                                path,
                                "--",
                                program,
                                "-q",
                                "-enc",
                                "UTF-8",
                                path /* absolute */,
                                "-",
                                NULL};
    const struct spawn_spec spec = {.argv = argv, .name = program};
    struct err err;
    BUF_LOCAL(text, (size_t)RAG_FILE_BYTES_MOST * 2);
    int failed = spawn_run(&spec, PDF_TIMEOUT_MS, 0, &text, NULL, &err);
    *why = failed && err.code != ERR_CHILD && err.code != ERR_TIMEOUT ? "pdftotext does not start"
           : failed                                                   ? "pdftotext failed"
           : text.dropped > 0 ? "its text is larger than the limit \"file size\", 32 MiB"
                              : "";
    if (**why)
        return READ_UNREADABLE;
    buf_add(out, buf_text(&text), text.length);
    return READ_WELL;
}
