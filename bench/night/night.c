/* bench_night PROBLEM STORE [NAME=NUMBER]...: a night's search in virtual time, with stand-ins for
 * the provider and the lanes. Prints a line for each request and each evaluation: when it began,
 * and the latency that it drew. bench/night/night.py works out from the latencies what was
 * possible. */
#include "night.h"

#include "agents/search/search.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct latencies latencies = {.ideas_s = {20, 60}, .code_s = {30, 120}, .evaluation_s = {0.5, 5}};

static struct search_options options = {.backend = "cpu",
                                        .branching = 10,
                                        .rounds = 10,
                                        .implementations = 3,
                                        .repairs = 2,
                                        .lanes = 8,
                                        .launcher = "virtual", /* lanes that need no cores here */
                                        .tuning = -1,
                                        .requests = 64,
                                        .select = 0.25,
                                        .islands = 4,
                                        .migration = 4,
                                        .seed = 1,
                                        .final = true};

uint64_t night_hash(const char *kind, const char *id, int64_t number)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^
                    (uint64_t)options.seed * UINT64_C(0x9e3779b97f4a7c15) ^
                    (uint64_t)number * UINT64_C(0xd6e8feb86659fd93);
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
    printf("end %.1f %lld %lld %lld %.4f\n", virtual_ms(), (long long)progress.evaluated,
           (long long)progress.kept, (long long)progress.round, progress.lane_busy);
    virtual_time_end();
    return TASK_DONE;
}

static bool read_number(const char *word)
{
    static const struct {
        const char *name;
        int64_t *number;
    } names[] = {{"rounds", &options.rounds},     {"branching", &options.branching},
                 {"lanes", &options.lanes},       {"implementations", &options.implementations},
                 {"repairs", &options.repairs},   {"tuning", &options.tuning},
                 {"requests", &options.requests}, {"seed", &options.seed}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i].name);
        if (strncmp(word, names[i].name, length) == 0 && word[length] == '=') {
            *names[i].number = strtoll(word + length + 1, NULL, 10);
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    static const char *const states[] = {"searching"};
    static const uint32_t moves[] = {0};
    static const struct task_type type = {
        .name = "night", .states = states, .moves = moves, .state_count = 1, .step = night_step};
    static struct night night;
    static const struct model model = {.name = "night",
                                       .provider = "openai",
                                       .wire_name = "night",
                                       .base_url = "http://night.invalid/v1",
                                       .temperature = -1,
                                       .max_tokens = 4096,
                                       .prompt_price = -1,
                                       .completion_price = -1,
                                       .weight = 1,
                                       .where = "bench"};
    static const struct models models = {.items = &model, .count = 1};
    for (int i = 3; i < argc; i++)
        if (!read_number(argv[i])) {
            fprintf(stderr, "bench_night: %s?\n", argv[i]);
            return 2;
        }
    if (argc < 3) {
        fprintf(stderr, "usage: bench_night PROBLEM STORE [NAME=NUMBER]...\n");
        return 2;
    }
    options.problem = argv[1];
    options.idea_models = &models;
    if (store_open(argv[2], true, false, &night.store, &night.err) == 0) {
        struct loop *loop = loop_new();
        virtual_time_start(loop, false);
        task_start(loop, &night.task, &type, NULL, "night");
        loop_run(loop);
        if (night.search != NULL && night.err.code == ERR_NONE)
            night.err = *search_error(night.search);
        if (night.search != NULL)
            search_free(night.search);
        loop_free(loop);
        store_close(night.store);
    }
    if (night.err.code != ERR_NONE)
        fprintf(stderr, "bench_night: %s\n", night.err.message);
    return night.err.code != ERR_NONE;
}
