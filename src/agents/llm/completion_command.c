/* agents/llm/completion: a request that a program answers. It has a folder of its own, which goes
 * when it ends; its group is killed at its limit. What it costs is reserved before and settled
 * after, as any answer's. */
#include "agents/llm/completion_private.h"

#include "agents/llm/providers/text.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/value.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    WORDS_MOST = 200,
    WORD_MOST = 1 << 16,
    REQUEST_MOST = 64 << 20,
    BYTES_A_TOKEN = 4,
    MEMFD = 3,
    KILL_AFTER_MS = 20 * 1000, /* of process/keep, which is quicker */
    LAST_WORDS = 1500
};

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

/* "{file}", "{folder}" and "{twagent}" in a word. */
static const char *filled(const struct ask *ask, const char *word)
{
    const char *const named[][2] = {
        {"{file}", ask->site ? arena_printf(ask->arena, "%s/TASK.md", ask->folder)
                             : arena_printf(ask->arena, "/dev/fd/%d", MEMFD)},
        {"{folder}", ask->folder},
        {"{twagent}", file_program_path()}};
    BUF_LOCAL(out, WORD_MOST);
    while (*word) {
        size_t i = 0, count = sizeof named / sizeof named[0];
        while (i < count && strncmp(word, named[i][0], strlen(named[i][0])) != 0)
            i++;
        if (i < count)
            buf_add_text(&out, named[i][1]);
        else
            buf_add_char(&out, *word);
        word += i < count ? strlen(named[i][0]) : 1;
    }
    return arena_strdup(ask->arena, buf_text(&out));
}

/* Whatever it starts, it is all ended with it: process/keep. */
static const char *const *words_of(struct ask *ask)
{
    const struct command_model *command = ask->model->command;
    const char *self = file_program_path();
    const char *const first[] = {
        self,        "keep",        self,
        "sandbox",   "--profile",   ask->site || command->acp ? "agent" : "reference",
        "--limit",   "cpu=1000000", "--write",
        ask->folder, "--read",      command->program,
        "--read",    self};
    const char **words = (const char **)arena_array(ask->arena, WORDS_MOST, sizeof *words);
    size_t count = command->sandboxed ? sizeof first / sizeof first[0] : 2;
    memcpy(words, first, count * sizeof *first);
    for (size_t i = 0; command->reads && command->reads[i] && count < WORDS_MOST / 2; i++) {
        words[count++] = "--read";
        words[count++] = command->reads[i];
    }
    if (command->sandboxed)
        words[count++] = "--";
    if (command->acp) {
        words[count++] = self;
        words[count++] = "acp";
        if (command->sandboxed)
            words[count++] = "--boxed";
    }
    words[count++] = command->program;
    for (size_t i = 1; command->words[i] && count < WORDS_MOST - 1; i++)
        words[count++] = filled(ask, command->words[i]);
    return words;
}

/* A sandboxed one is told nothing of us. */
static const char *const *environment_of(const struct ask *ask)
{
    static const char attempt[] = "TWAGENT_ATTEMPT=";
    extern char **environ;
    bool boxed = ask->model->command->sandboxed;
    size_t ours = 0, count = 0;
    while (!boxed && environ[ours])
        ours++;
    const char **made = (const char **)arena_array(ask->arena, ours + 5, sizeof *made);
    for (size_t i = 0; i < ours; i++)
        if (strncmp(environ[i], attempt, sizeof attempt - 1) != 0)
            made[count++] = environ[i];
    if (boxed) {
        made[count++] = "PATH=/usr/local/bin:/usr/bin:/bin";
        made[count++] = "LANG=C.UTF-8";
        made[count++] = arena_printf(ask->arena, "HOME=%s", ask->folder);
    }
    if (ask->site)
        made[count++] = arena_printf(ask->arena, "%s%s", attempt, ask->folder);
    return made;
}

static int make_folder(struct ask *ask, struct buf *text, struct err *err)
{
    if (ask->site) {
        ask->folder = ask->site->begin(ask->site->context, text, err);
        return ask->folder ? 0 : -1;
    }
    const char *where = getenv("TMPDIR");
    char *folder =
        arena_printf(ask->arena, "%s/twagent-ask-XXXXXX", where && *where == '/' ? where : "/tmp");
    if (!mkdtemp(folder))
        return err_set(err, ERR_ENVIRONMENT, "cannot make a folder for %.80s", ask->model->name);
    ask->folder = folder;
    if (ask->model->command->evaluations == 0)
        return 0;
    /* An agent that is asked for ideas finds the file that its words name, with no server in it. */
    static const char servers[] = "{\"mcpServers\": {}}\n";
    return file_write(arena_printf(ask->arena, "%s/.mcp.json", folder), servers, sizeof servers - 1,
                      err);
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
    if (make_folder(ask, &text, err) != 0)
        return -1;
    bool by_file = command->by_file && !ask->site;
    if (by_file && (file = request_file(&text, err)) < 0) {
        ask_free_command(ask);
        return -1;
    }
    const struct process_spec spec = {.argv = words_of(ask),
                                      .env = environment_of(ask),
                                      .folder = ask->folder,
                                      .input = command->by_file ? "" : buf_text(&text),
                                      .input_length = command->by_file ? 0 : text.length,
                                      .kill_after_ms = KILL_AFTER_MS,
                                      .timeout_ms = command->limit_ms,
                                      .output_max = command->output_max + 1,
                                      .pass_fds = &file,
                                      .pass_count = by_file};
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
    if (ask->folder && !ask->site)
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

void ask_bound(struct ask *ask)
{
    size_t length;
    uint64_t dropped = 0;
    if (!ask->process || process_outcome(ask->process) != PROCESS_RUNNING || ask->flooded)
        return;
    (void)process_output(ask->process, &length, &dropped);
    ask->flooded = dropped > 0;
    if (ask->flooded)
        process_stop(ask->process);
}

/* The object that it printed: all of it, or its last line that is one. */
static const struct value *printed_object(const struct ask *ask, const char *text)
{
    struct value *root = NULL;
    size_t length = strlen(text);
    if (value_parse_json(ask->arena, "output", text, length, &root, NULL) == 0 &&
        root->kind == VALUE_MAP)
        return root;
    while (length > 0) {
        const char *line = memrchr(text, '\n', length);
        size_t from = line ? (size_t)(line - text) + 1 : 0;
        if (length > from &&
            value_parse_json(ask->arena, "line", text + from, length - from, &root, NULL) == 0 &&
            root->kind == VALUE_MAP)
            return root;
        length = from > 0 ? from - 1 : 0;
    }
    return NULL;
}

/* What it costs by its own word; less than nothing, and nothing at all, are no word. */
static int64_t billed_by(const struct value *object, const char *member)
{
    double dollars = member ? value_real(object, member, 0) : 0;
    return dollars > 0 && dollars < 1e6 ? (int64_t)(dollars * 1e6 + 0.5) : 0;
}

static void take_answer(struct ask *ask, const char *output, size_t length, const char *how)
{
    const struct command_model *command = ask->model->command;
    BUF_LOCAL(clean, 3 * length + 1);
    text_clean(output, length, &clean);
    size_t asked =
        strlen(ask->request.prompt) + (ask->request.system ? strlen(ask->request.system) : 0);
    bool json = command->bill || command->answer;
    const struct value *object = json ? printed_object(ask, buf_text(&clean)) : NULL;
    const char *text = buf_text(&clean);
    if (command->answer)
        text = value_text(object, command->answer, text);
    size_t said = strlen(text);
    const char *last = text + (said > LAST_WORDS ? said - LAST_WORDS : 0);
    while ((*last & 0xC0) == 0x80)
        last++;
    ask->completion =
        (struct completion){.text = ask->site ? arena_printf(ask->arena, "%s\n\n%s", how, last)
                                              : arena_strdup(ask->arena, text),
                            .prompt_tokens = (int64_t)(asked / BYTES_A_TOKEN),
                            .completion_tokens = (int64_t)(length / BYTES_A_TOKEN),
                            .billed_micro = billed_by(object, command->bill),
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
    const char *came = ask->site ? ask->site->came(ask->site->context) : NULL;
    bool well = outcome == PROCESS_EXITED && process_status(ask->process) == 0 && !ask->flooded;
    BUF_LOCAL(how, sizeof verdict->err.message - 1);
    if (ask->flooded)
        buf_addf(&how, "stopped: it printed more than %zu bytes (output_limit)",
                 ask->model->command->output_max);
    else
        process_describe(ask->process, &how);
    verdict->fault = FAULT_RETRY;
    verdict->money = SPEND_LOST;
    if (ask->site && (well || came)) {
        verdict->fault = FAULT_NONE;
        verdict->alive = true;
        buf_addf(&how, ", %s", came ? came : "nothing evaluated");
        take_answer(ask, output, length, buf_text(&how));
    } else if (!well) {
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
        take_answer(ask, output, length, "");
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
