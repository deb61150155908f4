#include "eval/problem/question.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/quota.h"
#include "process/python_child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS_MOST = 32, FOLDERS_MOST = 8 };

/* "as=BYTES": what this machine has, and room for the libraries' addresses, so that a module which
 * asks for more is told so and nothing else has to die. */
static const char *memory_limit(struct arena *arena)
{
    const double share = 0.8, libraries = 16.0 * 0x1p30;
    double memory = (double)quota_memory(), bytes = memory * share + libraries;
    return memory > 0 ? arena_printf(arena, "as=%.0f", bytes) : "as=18446744073709551615";
}

/* PyTorch imports less of itself where it has no folder for temporary files. */
int question_open(struct question *question, struct err *err)
{
    const char *temporary = getenv("TMPDIR");
    MEM_LOCAL char *scratch = file_join(temporary != NULL && *temporary == '/' ? temporary : "/tmp",
                                        "twagent-ask-XXXXXX");
    if (mkdtemp(scratch) == NULL)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make %s", scratch);
    question->scratch = arena_strdup(question->arena, scratch);
    return 0;
}

void question_close(struct question *question)
{
    struct err ignored;
    (void)(file_remove_tree(question->scratch, &ignored) == 0);
}

static size_t put_folders(const struct question *question, const char *libexec, const char **argv)
{
    const struct interpreter *python = question->python;
    bool bytecode = *python->bytecode != '\0' && file_is_dir(python->bytecode);
    const char *const readable[FOLDERS_MOST] = {libexec,
                                                question->readable[0],
                                                question->readable[1],
                                                python->prefix,
                                                python->base_prefix,
                                                "/dev/urandom",
                                                bytecode ? python->bytecode : NULL};
    size_t count = 0;
    for (size_t i = 0; i < FOLDERS_MOST; i++)
        if (readable[i] != NULL) {
            argv[count++] = "--read";
            argv[count++] = readable[i];
        }
    return count;
}

int question_ask(const struct question *question, const char *request, struct buf *answer,
                 struct err *err)
{
    const char *argv[ARGUMENTS_MOST], *line = NULL, *self = getenv("TWAGENT_SELF");
    size_t count = 0;
    MEM_LOCAL char *own = self != NULL && *self != '\0' ? mem_strdup(self) : file_self_path();
    MEM_LOCAL char *libexec = mem_strdup(question->script);
    *strrchr(libexec, '/') = '\0';
    argv[count++] = own;
    argv[count++] = "sandbox";
    argv[count++] = "--profile";
    argv[count++] = "reference";
    count += put_folders(question, libexec, argv + count);
    argv[count++] = "--write";
    argv[count++] = question->scratch;
    argv[count++] = "--limit";
    argv[count++] = memory_limit(question->arena);
    argv[count++] = "--";
    argv[count++] = question->python->path;
    argv[count++] = "-I";
    argv[count++] = "-B";
    argv[count++] = question->script;
    if (*question->python->bytecode != '\0' && file_is_dir(question->python->bytecode))
        argv[count++] = question->python->bytecode;
    argv[count] = NULL;
    static const char *const env[] = {"LC_ALL=C.UTF-8", NULL};
    struct child child = {0};
    if (child_start(&child, argv, env, NULL, 0, err) != 0)
        return -1;
    int status = child_send(&child, request, strlen(request), err);
    if (status == 0)
        status = child_send(&child, "\n", 1, err);
    struct err ended;
    if (child_line(&child, question->timeout_ms, &line, status == 0 ? err : &ended) == 0)
        buf_add_text(answer, line);
    else
        status = -1;
    child_stop(&child);
    return status;
}
