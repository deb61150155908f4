#include "agents/llm/mailbox.h"

#include "agents/llm/providers/text.h"
#include "base/file.h"
#include "base/json.h"
#include "base/value.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_MAX_BYTES = 4096, ANSWER_BYTES_MAX = 16 << 20, REQUEST_BYTES_MAX = 64 << 20 };

static void path_of(const struct mail *mail, const char *ending, char path[PATH_MAX_BYTES])
{
    snprintf(path, PATH_MAX_BYTES, "%s/%s.%s", mail->folder, mail->key, ending);
}

/* ---- the request ---- */

static void write_json(const struct mail *mail, struct buf *out)
{
    const struct completion_request *request = mail->request;
    struct json json = {.out = out};
    json_object(&json);
    json_put_text(&json, "key", mail->key);
    json_put_text(&json, "asker", mail->asker);
    json_put_text(&json, "purpose", mail->purpose);
    json_put_text(&json, "model", request->model);
    json_put_text(&json, "system", request->system);
    json_put_text(&json, "prompt", request->prompt);
    if (request->max_tokens > 0)
        json_put_int(&json, "max_tokens", request->max_tokens);
    if (request->temperature >= 0)
        json_put_real(&json, "temperature", request->temperature);
    json_put_bool(&json, "json", request->json);
    if (request->schema != NULL) {
        json_put_raw(&json, "schema", request->schema);
    }
    json_object_end(&json);
    buf_add_char(out, '\n');
}

static void write_words(const struct mail *mail, struct buf *out)
{
    const struct completion_request *request = mail->request;
    buf_addf(out,
             "# %s for %s\n\n"
             "Write the answer beside this file, as `%s.answer.txt` (the text alone), or as\n"
             "`%s.answer.json` with `{\"text\": ..., \"usage\": {...}}`.\n",
             mail->purpose, mail->asker, mail->key, mail->key);
    if (request->json)
        buf_add_text(out, "The answer has to be one JSON object.\n");
    if (request->schema != NULL)
        buf_addf(out, "\n## Its JSON schema\n\n%s\n", request->schema);
    if (request->system != NULL && *request->system != '\0')
        buf_addf(out, "\n## System\n\n%s\n", request->system);
    buf_addf(out, "\n## Prompt\n\n%s\n", request->prompt);
}

static int write_one(const struct mail *mail, const char *ending,
                     void (*write)(const struct mail *mail, struct buf *out), struct err *err)
{
    char path[PATH_MAX_BYTES];
    path_of(mail, ending, path);
    if (file_exists(path))
        return 0;
    BUF_LOCAL(text, REQUEST_BYTES_MAX);
    write(mail, &text);
    return file_write(path, buf_text(&text), text.length, err);
}

/* The readable one first: whoever watches for requests finds both. */
void mailbox_post(struct mail *mail)
{
    mail->err = (struct err){ERR_NONE, ""};
    mail->posted = file_make_dirs(mail->folder, &mail->err) == 0 &&
                   write_one(mail, "md", write_words, &mail->err) == 0 &&
                   write_one(mail, "request.json", write_json, &mail->err) == 0;
    if (mail->posted)
        mail->err.code = ERR_NONE;
}

/* ---- the answer ---- */

static void take_text(struct mail *mail, const char *text, size_t length)
{
    BUF_LOCAL(clean, (size_t)ANSWER_BYTES_MAX * 3);
    text_clean(text, length, &clean);
    mail->completion =
        (struct completion){.text = arena_strdup(mail->arena, buf_text(&clean)),
                            .prompt_tokens = -1,
                            .completion_tokens = -1,
                            .finish = "stop",
                            .model = arena_strdup(mail->arena, mail->request->model)};
    mail->taken = true;
}

static void take_json(struct mail *mail, const char *text, size_t length)
{
    struct value *root;
    BUF_LOCAL(clean, (size_t)ANSWER_BYTES_MAX * 3);
    text_clean_json(text, length, &clean);
    int status = value_parse_json(mail->arena, "the answer", buf_text(&clean), clean.length, &root,
                                  &mail->err);
    if (status != 0)
        return;
    const char *words = value_text(root, "text", NULL);
    const struct value *usage = value_get(root, "usage");
    if (words == NULL) {
        err_set(&mail->err, ERR_PARSE, "expected an object with \"text\"");
        return;
    }
    mail->completion = (struct completion){
        .text = arena_strdup(mail->arena, words),
        .prompt_tokens = value_int(usage, "prompt_tokens", -1),
        .completion_tokens = value_int(usage, "completion_tokens", -1),
        .finish = value_text(root, "finish", "stop"),
        .model = value_text(root, "model", arena_strdup(mail->arena, mail->request->model))};
    mail->taken = true;
}

/* Has this file been the same since the last look? Notes what it is now. */
static bool is_still(struct mail *mail, const struct stat *now)
{
    uint64_t changed_ns =
        (uint64_t)now->st_mtim.tv_sec * 1000000000u + (uint64_t)now->st_mtim.tv_nsec;
    bool still = mail->inode == now->st_ino && mail->bytes == (uint64_t)now->st_size &&
                 mail->changed_ns == changed_ns;
    mail->inode = now->st_ino;
    mail->bytes = (uint64_t)now->st_size;
    mail->changed_ns = changed_ns;
    return still;
}

void mailbox_look(struct mail *mail)
{
    static const char *const endings[] = {"answer.json", "answer.txt"};
    char path[PATH_MAX_BYTES];
    struct stat file;
    size_t which = 0;
    mail->err = (struct err){ERR_NONE, ""};
    mail->seen = mail->taken = false;
    for (; which < 2; which++) {
        path_of(mail, endings[which], path);
        if (stat(path, &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0)
            break;
    }
    if (which == 2)
        return;
    mail->seen = true;
    if (!is_still(mail, &file))
        return;
    BUF_LOCAL(text, ANSWER_BYTES_MAX);
    if (file_read(path, &text, &mail->err) == 0) {
        mail->err.code = ERR_NONE;
        if (which == 0)
            take_json(mail, buf_text(&text), text.length);
        else
            take_text(mail, buf_text(&text), text.length);
    }
    if (mail->err.code != ERR_NONE)
        (void)err_wrap(&mail->err, "%.200s", path);
}
