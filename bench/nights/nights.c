/* bench_nights list | PROBLEM STORE SCRIPT [NAME=NUMBER]...: one night of 8 h, in virtual time.
 * Nothing in it is chance or depends on the machine: the same script is the same night, always.
 * Prints a line for each request and each evaluation, when it began and ended, and at the end what
 * was spent and billed; nights.py reads them, and the run's record. */
#include "nights.h"

#include "../night/night.h"

#include "agents/search/search.h"
#include "base/clock.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct latencies latencies = {.ideas_s = {30, 90}, .code_s = {40, 180}, .evaluation_s = {0.5, 5}};

static struct search_options options = {.backend = "cpu",
                                        .branching = 4,
                                        .rounds = 1000000,
                                        .implementations = 1,
                                        .repairs = 1,
                                        .lanes = 1,
                                        .launcher = "virtual", /* lanes that need no cores here */
                                        .tuning = 0,
                                        .requests = 8,
                                        .select = 0.25,
                                        .islands = 1,
                                        .seed = 1,
                                        .budget_ms = 8 * 3600 * 1000,
                                        .final = true};

/* The night's date is its own, too. */
int clock_gettime(clockid_t id, struct timespec *now)
{
    const time_t began = 1767571200; /* Monday, 2026-01-05 00:00 UTC */
    if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)
        return (int)syscall(SYS_clock_gettime, id, now);
    double seconds = virtual_ms() / 1000;
    now->tv_sec = began + (time_t)seconds;
    now->tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds));
    return 0;
}

uint64_t night_hash(const char *kind, const char *id, int64_t number)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)number * UINT64_C(0xd6e8feb86659fd93);
    for (; *kind != '\0'; kind++)
        hash = (hash ^ (unsigned char)*kind) * UINT64_C(0x100000001b3);
    for (; *id != '\0'; id++)
        hash = (hash ^ (unsigned char)*id) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

double night_share(uint64_t hash)
{
    return (double)(hash >> 11) * 0x1p-53;
}

uint64_t night_draw(const double range_s[2], uint64_t hash)
{
    return (uint64_t)(1e3 * (range_s[0] + (range_s[1] - range_s[0]) * night_share(hash)));
}

struct night {
    struct task task;
    struct store *store;
    struct search *search;
    struct err err;
};

static enum task_result night_step(struct task *task)
{
    struct night *night = (struct night *)task;
    if (night->search == NULL &&
        search_start(task->loop, task, night->store, &options, &night->search, &night->err) != 0) {
        virtual_time_end();
        return TASK_DONE;
    }
    if (!search_done(night->search))
        return TASK_WAIT;
    struct search_progress progress;
    search_progress(night->search, &progress);
    printf("end %.0f %lld %lld %.6f %.6f %.6f %.6f\n", virtual_ms(), (long long)progress.evaluated,
           (long long)progress.round, (double)progress.spent.micro_dollars / 1e6,
           (double)progress.spent.unknown_micro_dollars / 1e6, fake_bill_dollars(),
           fake_dearest_dollars());
    virtual_time_end();
    return TASK_DONE;
}

static int64_t answer_ms; /* that each takes; 0: as drawn */
static int64_t resume;    /* 1: goes on with the night in the store */

static bool read_number(const char *word)
{
    static const struct {
        const char *name;
        int64_t *number;
    } names[] = {{"budget_ms", &options.budget_ms},
                 {"rounds", &options.rounds},
                 {"cap_micro", &options.budget_micro_dollars},
                 {"branching", &options.branching},
                 {"implementations", &options.implementations},
                 {"tuning", &options.tuning},
                 {"answer_ms", &answer_ms},
                 {"resume", &resume},
                 {"seed", &options.seed}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i].name);
        if (strncmp(word, names[i].name, length) == 0 && word[length] == '=') {
            *names[i].number = strtoll(word + length + 1, NULL, 10);
            return true;
        }
    }
    return false;
}

static int list_scripts(void)
{
    for (size_t i = 0; i < script_count; i++) {
        printf("%s", scripts[i].name);
        for (size_t k = 0; k < 4 && scripts[i].named[k] != NULL; k++)
            printf("\t!%s", scripts[i].named[k]);
        for (size_t k = 0; k < OUTAGES_MOST && scripts[i].outages[k].providers; k++)
            printf("\t%u %.0f %.0f %d", scripts[i].outages[k].providers,
                   scripts[i].outages[k].from_min, scripts[i].outages[k].to_min,
                   (int)scripts[i].outages[k].kind);
        printf("\n");
    }
    return 0;
}

static void run(struct night *night)
{
    static const char *const states[] = {"searching"};
    static const uint32_t moves[] = {0};
    static const struct task_type type = {
        .name = "night", .states = states, .moves = moves, .state_count = 1, .step = night_step};
    struct loop *loop = loop_new();
    virtual_time_start(loop, true);
    task_start(loop, &night->task, &type, NULL, "night");
    loop_run(loop);
    if (night->search != NULL && night->err.code == ERR_NONE)
        night->err = *search_error(night->search);
    if (night->search != NULL)
        search_free(night->search);
    loop_free(loop);
}

int main(int argc, char **argv)
{
    static struct night night;
    static struct model items[PROVIDERS];
    static const char *const names[] = {"a", "b", "c"};
    static const char *const urls[] = {"http://a.invalid/v1", "http://b.invalid/v1",
                                       "http://c.invalid/v1"};
    static const struct models models = {.items = items, .count = PROVIDERS};
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list_scripts();
    for (size_t i = 0; argc > 3 && i < script_count; i++)
        if (strcmp(scripts[i].name, argv[3]) == 0)
            script = &scripts[i];
    for (int i = 4; i < argc; i++)
        if (!read_number(argv[i]))
            script = NULL;
    if (script == NULL) {
        fprintf(stderr, "usage: bench_nights list | PROBLEM STORE SCRIPT [NAME=NUMBER]...\n");
        return 2;
    }
    if (answer_ms > 0)
        for (size_t i = 0; i < 2; i++)
            latencies.ideas_s[i] = latencies.code_s[i] = (double)answer_ms / 1e3;
    for (size_t i = 0; i < PROVIDERS; i++)
        items[i] = (struct model){.name = names[i],
                                  .provider = "openai",
                                  .wire_name = names[i],
                                  .codec = &codec_openai,
                                  .base_url = urls[i],
                                  .key = "sk-of-nobody",
                                  .temperature = -1,
                                  .max_tokens = 2048,
                                  .prompt_price = 1,
                                  .completion_price = 4,
                                  .reasoning = script->bills.known,
                                  .weight = 1,
                                  .where = "bench"};
    options.problem = argv[1];
    options.resume = resume > 0 ? "r1" : NULL;
    options.idea_models = &models;
    if (store_open(argv[2], true, false, &night.store, &night.err) == 0) {
        run(&night);
        store_close(night.store);
    }
    if (night.err.code != ERR_NONE)
        fprintf(stderr, "bench_nights: %s\n", night.err.message);
    return night.err.code != ERR_NONE;
}
