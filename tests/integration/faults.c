/* faults [PART OF A NAME]: what an unattended night has to survive, in each format where it
 * applies. Prints one line a row and format; with FAULTS_LOG set, the log of each that failed. */
#include "faults.h"

#include "base/file.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *wanted = "";
static char failure[4096];
static int passed, failed;

void row_fail(const char *format, ...)
{
    size_t length = strlen(failure);
    va_list arguments;
    va_start(arguments, format);
    length +=
        (size_t)snprintf(failure + length, sizeof failure - length, "%s", length > 0 ? "; " : "");
    vsnprintf(failure + length, sizeof failure - length, format, arguments);
    va_end(arguments);
}

void row_end(const char *name, unsigned format, int64_t requests)
{
    const char *of = format == 0 ? "every format" : codec_of(format)->name;
    if (failure[0] == '\0') {
        passed++;
        printf("ok %s (%s): %" PRId64 " request%s\n", name, of, requests, requests == 1 ? "" : "s");
    } else {
        failed++;
        printf("FAILED %s (%s): %" PRId64 " requests: %s\n", name, of, requests, failure);
    }
    failure[0] = '\0';
    fflush(stdout);
}

bool row_wanted(const char *name)
{
    return strstr(name, wanted) != NULL;
}

/* The fake's made-up answer. */
static bool is_made_up(const char *text, long size)
{
    for (long i = 0; i < size; i++)
        if (text[i] != (char)(i % 64 == 63 ? '\n' : 'a' + i % 26))
            return false;
    return text[size] == '\0';
}

static void judge(const struct row *row, const struct trial *trial, const struct counts *counts,
                  long size)
{
    const struct ask *ask = &trial->ask[0];
    EXPECT(ask->err.code == row->code && ask->fault == row->fault,
           "%s and fault %d, not %s and %d: %s", err_code_name(ask->err.code), (int)ask->fault,
           err_code_name(row->code), (int)row->fault, ask->err.message);
    EXPECT(counts->chats == row->requests, "%" PRId64 " requests, not %d", counts->chats,
           row->requests);
    EXPECT((trial->blocked.code != ERR_NONE) == row->blocked, "blocked: \"%s\"",
           trial->blocked.message);
    EXPECT(row->event == NULL || trial_logged(trial, row->event), "no event %s", row->event);
    EXPECT(row->words == NULL || strstr(ask->err.message, row->words) != NULL,
           "no \"%s\" in \"%s\"", row->words, ask->err.message);
    EXPECT(trial->ended_ms[0] >= row->at_least_ms, "after %" PRId64 " ms", trial->ended_ms[0]);
    bool kept = ask->err.code == ERR_NONE || ask->fault == FAULT_REFUSED;
    EXPECT(trial->stored == (kept ? 1 : 0), "%zu completions in the store", trial->stored);
    int64_t charged = trial->spent.micro_dollars / 10000; /* a whole reservation is a bit more */
    if (charged < trial->spent.charged)
        charged = trial->spent.charged;
    EXPECT(row->charged < 0 || charged == row->charged,
           "%" PRId64 " charged, not %d: %" PRId64 " micro-dollars", charged, row->charged,
           trial->spent.micro_dollars);
    EXPECT(trial->spent.micro_dollars >= row->least_micro_dollars,
           "%" PRId64 " micro-dollars, not %d at least", trial->spent.micro_dollars,
           row->least_micro_dollars);
    if (ask->err.code == ERR_NONE) {
        const char *finish = row->finish != NULL ? row->finish : "stop";
        EXPECT(strcmp(ask->completion.finish, finish) == 0, "finish \"%s\"",
               ask->completion.finish);
        EXPECT(row->check != NULL || is_made_up(ask->completion.text, size), "the text is \"%s\"",
               ask->completion.text);
        if (row->check != NULL)
            row->check(ask);
    }
    expect_sound(trial);
}

void print_log(const struct trial *trial)
{
    if (failure[0] != '\0' && getenv("FAULTS_LOG") != NULL)
        printf("%s", buf_text(&trial->log));
}

static void run_row(const struct row *row, unsigned format)
{
    long size = row->size > 0 ? row->size : 200;
    struct server provider = provider_start(row->script, size);
    struct trial trial = {.format = format,
                          .url = base_url(format, provider.port),
                          .key = row->key,
                          .tick = row->silent ? leap_in_stream : NULL,
                          .until_event = row->until_event ? row->event : NULL};
    trial_run(&trial);
    struct counts counts = counts_get(provider.port);
    server_stop(&provider, SIGKILL);
    judge(row, &trial, &counts, size);
    print_log(&trial);
    row_end(row->name, format, counts.chats);
    trial_free(&trial);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/twagent-faults-XXXXXX";
    struct err err;
    wanted = argc > 1 ? argv[1] : "";
    work_folder = mkdtemp(folder);
    if (work_folder == NULL) {
        perror("mkdtemp");
        return 3;
    }
    setenv("no_proxy", "*", 1);
    for (size_t i = 0; i < fault_row_count; i++)
        for (unsigned format = OPENAI; format <= RESPONSES; format *= 2)
            if ((fault_rows[i].formats & format) != 0 && row_wanted(fault_rows[i].name))
                run_row(&fault_rows[i], format);
    run_more();
    if (file_remove_tree(folder, &err) != 0)
        fprintf(stderr, "faults: %s\n", err.message);
    printf("faults: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
