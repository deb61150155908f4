/* agents/llm/completion: a request that a program answers. It has a folder of its own, which goes
 * when it ends; its group is killed at its limit. What it costs is reserved before and settled
 * after, as any answer's. */
#include "agents/llm/completion_private.h"

#include "agents/llm/providers/text.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS_MOST = 200, REQUEST_MOST = 64 << 20, BYTES_A_TOKEN = 4, MEMFD = 3 };

/* ---- begin ---- */

static void put_request(const struct completion_request *request, struct buf *out)
{
    if (request->system && *request->system)
        buf_addf(out, "%s\n\n", request->system);
    buf_add_text(out, request->prompt);
    if (request->schema)
        buf_addf(out, "\n\nAnswer with one JSON object of this schema, and nothing else:\n%s",
                 request->schema);
    buf_add_char(out, '\n');
}

static const char *with_file(struct arena *arena, const char *word)
{
    const char *at = strstr(word, "{file}");
    return at ? arena_printf(arena, "%.*s/dev/fd/%d%s", (int)(at - word), word, MEMFD, at + 6)
              : word;
}

static const char *const *words_of(struct ask *ask, const char *folder)
{
    const struct command_model *command = ask->model->command;
    const char **words = (const char **)arena_array(ask->arena, WORDS_MOST, sizeof *words);
    size_t count = 0;
    if (command->sandboxed) {
        const char *const first[] = {
            file_program_path(), "sandbox", "--profile", "reference", "--limit",
            "cpu=1000000",       "--write", folder,      "--read",    command->program};
        memcpy(words, first, sizeof first);
        count = sizeof first / sizeof first[0];
        for (size_t i = 0; command->reads && command->reads[i] && count < WORDS_MOST / 2; i++) {
            words[count++] = "--read";
            words[count++] = command->reads[i];
        }
        words[count++] = "--";
    }
    words[count++] = command->program;
    for (size_t i = 1; command->words[i] && count < WORDS_MOST - 1; i++)
        words[count++] = with_file(ask->arena, command->words[i]);
    return words;
}

/* A sandboxed one is told nothing of us. */
static const char *const *environment_of(const struct ask *ask, const char *folder)
{
    extern char **environ;
    if (!ask->model->command->sandboxed)
        return (const char *const *)environ;
    const char **made = (const char **)arena_array(ask->arena, 4, sizeof *made);
    made[0] = "PATH=/usr/local/bin:/usr/bin:/bin";
    made[1] = "LANG=C.UTF-8";
    made[2] = arena_printf(ask->arena, "HOME=%s", folder);
    return made;
}

static int make_folder(struct ask *ask, struct err *err)
{
    const char *where = getenv("TMPDIR");
    char *folder =
        arena_printf(ask->arena, "%s/twagent-ask-XXXXXX", where && *where == '/' ? where : "/tmp");
    if (!mkdtemp(folder))
        return err_set(err, ERR_ENVIRONMENT, "cannot make a folder for %.80s", ask->model->name);
    ask->folder = folder;
    return 0;
}

/* In memory, at its begin; the child has it as descriptor MEMFD. */
static int request_file(const struct buf *text, struct err *err)
{
    int file = memfd_create("request", MFD_CLOEXEC);
    if (file >= 0 && write(file, buf_text(text), text->length) == (ssize_t)text->length &&
        lseek(file, 0, SEEK_SET) == 0)
        return file;
    if (file >= 0)
        close(file);
    return err_set(err, ERR_ENVIRONMENT, "no memory for a request of %zu bytes", text->length);
}

int ask_start_command(struct ask *ask, struct err *err)
{
    const struct command_model *command = ask->model->command;
    BUF_LOCAL(text, REQUEST_MOST);
    int file = -1;
    put_request(&ask->request, &text);
    if (make_folder(ask, err) != 0)
        return -1;
    if (command->by_file && (file = request_file(&text, err)) < 0) {
        ask_free_command(ask);
        return -1;
    }
    const struct process_spec spec = {.argv = words_of(ask, ask->folder),
                                      .env = environment_of(ask, ask->folder),
                                      .folder = ask->folder,
                                      .input = command->by_file ? "" : buf_text(&text),
                                      .input_length = command->by_file ? 0 : text.length,
                                      .timeout_ms = command->limit_ms,
                                      .output_max = command->output_max + 1,
                                      .pass_fds = &file,
                                      .pass_count = command->by_file};
    ask->process = process_start(ask->task.loop, &ask->task, &spec, err);
    if (file >= 0)
        close(file);
    if (!ask->process) {
        ask_free_command(ask);
        return -1;
    }
    ask->heard = 0;
    ask->sent_ns = clock_now_ns();
    ask->completions->totals.requests++;
    ask->tally->view.asked++;
    return 0;
}

void ask_free_command(struct ask *ask)
{
    struct err ignored;
    process_free(ask->process);
    ask->process = NULL;
    if (ask->folder)
        (void)!file_remove_tree(ask->folder, &ignored);
    ask->folder = NULL;
}

bool ask_stops_command(struct ask *ask)
{
    if (!ask->process || process_outcome(ask->process) != PROCESS_RUNNING)
        return false;
    process_stop(ask->process);
    return true;
}

/* ---- end ---- */

static void take_answer(struct ask *ask, const char *output, size_t length)
{
    BUF_LOCAL(clean, 3 * length + 1);
    text_clean(output, length, &clean);
    size_t asked =
        strlen(ask->request.prompt) + (ask->request.system ? strlen(ask->request.system) : 0);
    ask->completion = (struct completion){.text = arena_strdup(ask->arena, buf_text(&clean)),
                                          .prompt_tokens = (int64_t)(asked / BYTES_A_TOKEN),
                                          .completion_tokens = (int64_t)(length / BYTES_A_TOKEN),
                                          .finish = "stop",
                                          .model = ""};
}

/* The end of what it said of itself. */
static void add_last_words(const struct ask *ask, struct buf *out)
{
    enum { LAST = 200 };
    size_t length;
    const char *errors = process_errors(ask->process, &length, NULL);
    while (length > 0 && strchr(" \n", errors[length - 1]))
        length--;
    size_t from = length > LAST ? length - LAST : 0;
    if (length > 0)
        buf_addf(out, ": %.*s", (int)(length - from), errors + from);
}

static void judge(struct ask *ask, struct verdict *verdict)
{
    size_t length;
    uint64_t dropped;
    enum process_outcome outcome = process_outcome(ask->process);
    const char *output = process_output(ask->process, &length, &dropped);
    BUF_LOCAL(how, sizeof verdict->err.message - 1);
    process_describe(ask->process, &how);
    verdict->fault = FAULT_RETRY;
    verdict->money = SPEND_LOST;
    if (outcome != PROCESS_EXITED || process_status(ask->process) != 0) {
        add_last_words(ask, &how);
        err_set(&verdict->err, outcome == PROCESS_TIMEOUT ? ERR_TIMEOUT : ERR_CHILD, "%s",
                buf_text(&how));
    } else if (dropped > 0 || length > ask->model->command->output_max) {
        verdict->malformed = verdict->alive = true;
        err_set(&verdict->err, ERR_LIMIT, "an answer of more than %zu bytes (output_limit)",
                ask->model->command->output_max);
    } else if (length == 0) {
        verdict->fault = FAULT_EMPTY;
        err_set(&verdict->err, ERR_PROTOCOL, "it ended well, and printed nothing");
    } else {
        verdict->fault = FAULT_NONE;
        verdict->alive = true;
        take_answer(ask, output, length);
    }
    err_one_line(verdict->err.message);
}

enum task_result ask_step_command(struct ask *ask)
{
    struct verdict verdict = {.after_ms = -1};
    if (process_outcome(ask->process) == PROCESS_RUNNING)
        return TASK_WAIT;
    judge(ask, &verdict);
    ask_free_command(ask);
    return ask_judged(ask, &verdict);
}
