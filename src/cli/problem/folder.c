/* One file of a folder:
 *
 *   waiting (for its place among --jobs) -> describing (a PyTorch child says what it is) ->
 *   opening (a worker of its own) -> checking -> ended
 *
 * Whatever happens ends one file alone. One that found no memory beside the others waits once more,
 * for all places at once. */
#include "cli/problem/folder.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/options/command.h"
#include "eval/lane/lane.h"
#include "eval/problem/torch.h"
#include "loop/loop.h"
#include "loop/slots.h"
#include "loop/task.h"
#include "loop/work.h"

#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITING, DESCRIBING, OPENING, CHECKING, ENDED, STATES };
static const char *const states[STATES] = {"waiting", "describing", "opening", "checking", "ended"};
static const uint32_t moves[STATES] = {
    1u << DESCRIBING, 1u << OPENING | 1u << ENDED | 1u << WAITING,
    1u << CHECKING | 1u << ENDED | 1u << WAITING, 1u << ENDED | 1u << WAITING, 0};

enum kind { KIND_FIT, KIND_REFUSED, KIND_NOT_RUN, KIND_ERROR, KINDS };
static const char *const kind_names[KINDS] = {"fit", "refused", "not run", "error"};

enum {
    FILES_MOST = 4096,
    CORES_MOST = 256,
    TEXT_MOST = 1 << 22,
    OUTPUTS_LEAST = 64, /* a scale needs 16 (eval/check/scale.h), and more of them say no more */
    ROWS_LEAST = 4,
    VERY_LARGE = 64 /* times --elements: then two rows are enough, and check shapes have three */
};

struct folder {
    const struct settings *settings;
    struct arena *arena;
    struct slots places;
    bool taken[64]; /* which share of the cores each job has */
    size_t count, ended;
    struct file *files;
};

struct file {
    struct task task;
    struct folder *folder;
    const char *name, *path; /* path: absolute */
    struct arena *arena;
    struct slot place;
    struct work work;
    struct timer limit;
    int share;
    const char *sized; /* the path with the size that is checked */
    const char *size;  /* "B=4"; "": as the file has it */
    struct lane *lane, *first_lane;
    struct lane_request open, check;
    struct err err;
    uint64_t started_ms, elapsed_ms;
    enum kind kind;
    bool no_memory, alone; /* alone: it has all places */
    const char *why;
};

/* ---- describing: on the pool ---- */

/* Elements of the largest tensor of those that the first dimension sizes, and of the smallest
 * output. */
static void measure(const struct problem *problem, int64_t number, int64_t *largest,
                    int64_t *least_output)
{
    int64_t extents[RANK_MAX];
    struct names dims = problem->shapes[0], half = dims;
    struct err ignored;
    dims.number[0] = number;
    half.number[0] = number / 2;
    *largest = 0;
    *least_output = INT64_MAX;
    for (size_t i = 0; i < problem->input_count + problem->output_count; i++) {
        bool input = i < problem->input_count;
        size_t elements, halved;
        const struct tensor_spec *tensor =
            input ? &problem->inputs[i] : &problem->outputs[i - problem->input_count];
        if (tensor_extents(tensor, &dims, extents, &elements, &ignored) != 0 ||
            tensor_extents(tensor, &half, extents, &halved, &ignored) != 0)
            continue;
        if (halved != elements && (int64_t)elements > *largest)
            *largest = (int64_t)elements;
        if (!input && (int64_t)elements < *least_output)
            *least_output = (int64_t)elements;
    }
}

/* The first dimension halved until no tensor of its size is larger than --elements, as far as it
 * may be and enough outputs are left for a tolerance to tell anything. Nothing else of the file is
 * changed: with another constant of its own it would be another module. */
static void choose_size(struct file *file, const struct problem *problem)
{
    int64_t most = file->folder->settings->elements, whole = problem->shapes[0].number[0];
    if (!problem->torch || problem->dim_count != 1 || most <= 0)
        return;
    int64_t number = whole, least = problem->dims[0].hidden_low, largest, outputs, fewer;
    measure(problem, number, &largest, &outputs);
    while (largest > most) {
        bool very = largest / VERY_LARGE > most;
        if (number / 2 < least * (very ? ROWS_LEAST / 2 : ROWS_LEAST))
            break;
        measure(problem, number / 2, &largest, &fewer);
        if (fewer < OUTPUTS_LEAST && fewer < outputs)
            break;
        number /= 2;
        outputs = fewer;
    }
    if (number == whole)
        return;
    file->size = arena_printf(file->arena, "%s=%" PRId64, problem->shapes[0].name[0], number);
    file->sized = arena_printf(file->arena, "%s@%s", file->path, file->size);
}

static void describe(void *argument)
{
    struct file *file = argument;
    struct problem *problem;
    if (problem_load_with(file->path, file->folder->settings->search.python, &problem, &file->err))
        return;
    choose_size(file, problem);
    problem_free(problem);
}

/* ---- the lane ---- */

/* Its share of the cores that we have, as "0,1": all of them where they are fewer than jobs. */
static const char *cores_of(const struct file *file)
{
    const struct settings *settings = file->folder->settings;
    int cores[CORES_MOST], count = 0;
    cpu_set_t set;
    if (settings->search.cores || settings->jobs == 1 || file->alone ||
        sched_getaffinity(0, sizeof set, &set) != 0)
        return settings->search.cores;
    for (int i = 0; i < CORES_MOST; i++)
        if (CPU_ISSET((size_t)i, &set))
            cores[count++] = i;
    int each = count / (int)settings->jobs;
    if (each == 0)
        return arena_printf(file->arena, "%d", cores[file->share % count]);
    BUF_LOCAL(text, 4096);
    for (int i = 0; i < each; i++)
        buf_addf(&text, "%s%d", i ? "," : "", cores[file->share * each + i]);
    return buf_keep(&text, file->arena);
}

static int open_lane(struct file *file)
{
    const struct settings *settings = file->folder->settings;
    struct lane_spec spec = settings_lane(settings, file->sized);
    spec.cores = cores_of(file);
    if (lane_open(file->task.loop, &spec, &file->lane, &file->err))
        return -1;
    file->open.op = LANE_OPEN;
    file->open.id = "open";
    lane_submit(file->lane, &file->open, &file->task);
    return 0;
}

/* ---- the verdict ---- */

static const char *reasons(struct file *file, const struct value *findings)
{
    BUF_LOCAL(text, 1 << 16);
    for (size_t i = 0; findings && i < findings->count; i++)
        if (!value_bool(findings->items[i], "passed", false))
            buf_addf(&text, "%s%s: %s", text.length ? "; " : "",
                     value_text(findings->items[i], "name", ""),
                     value_text(findings->items[i], "text", ""));
    return buf_keep(&text, file->arena);
}

static void judge(struct file *file)
{
    const struct value *answer = file->check.answer;
    file->elapsed_ms = clock_now_ms() - file->started_ms;
    if (file->limit.fired) {
        file->kind = KIND_NOT_RUN;
        file->why = arena_printf(file->arena, "longer than %.0f s here",
                                 (double)file->folder->settings->each_ms / 1e3);
    } else if (file->err.code) {
        /* nobody else sends a worker this signal than a system without memory */
        bool memory =
            strstr(file->err.message, "memory") || strstr(file->err.message, "killed by SIGKILL");
        bool machine = file->err.code == ERR_LIMIT || memory;
        /* more than there is at all is no less of it alone */
        file->no_memory = memory && !strstr(file->err.message, "this machine has");
        file->kind = machine                       ? KIND_NOT_RUN
                     : file->err.code == ERR_USAGE ? KIND_REFUSED
                                                   : KIND_ERROR;
        file->why = arena_strdup(file->arena, file->err.message);
    } else {
        file->kind = value_bool(answer, "fit", false) ? KIND_FIT : KIND_REFUSED;
        file->why = reasons(file, value_get(answer, "findings"));
    }
    /* As PyTorch says it of a GPU, and of a CPU; and who is killed without a signal of its own. */
    bool killed = strstr(file->why, "was killed") && !strstr(file->why, "was killed by SIG");
    bool memory = strstr(file->why, "out of memory") || strstr(file->why, "allocate memory");
    if (file->kind == KIND_REFUSED && (memory || killed)) {
        file->kind = KIND_NOT_RUN;
        file->no_memory = true;
    }
}

/* At the end of the queue, so that the others are not held up. */
static enum task_result wait_again(struct file *file)
{
    file->first_lane = file->lane; /* it ends within a second */
    arena_free(file->open.arena);
    arena_free(file->check.arena);
    file->open = file->check = (struct lane_request){0};
    file->work = (struct work){0};
    file->err = (struct err){0};
    file->lane = NULL;
    file->share = 0;
    file->no_memory = false;
    file->alone = true;
    task_move(&file->task, WAITING);
    task_wake(&file->task);
    return TASK_WAIT;
}

static enum task_result end(struct file *file)
{
    struct folder *folder = file->folder;
    judge(file);
    bool again = file->no_memory && !file->alone && folder->settings->jobs > 1;
    folder->ended += !again;
    if (!folder->settings->json && !again)
        fprintf(stderr, "%3zu/%zu %-8s %5.1f s  %s%s%s%s%s\n", folder->ended, folder->count,
                kind_names[file->kind], (double)file->elapsed_ms / 1e3, file->name,
                *file->size ? " @" : "", file->size, *file->why ? ": " : "", file->why);
    timer_stop(&file->limit);
    if (file->lane)
        lane_close(file->lane);
    folder->taken[file->share] = false;
    slots_release(&file->place);
    if (again)
        return wait_again(file);
    task_move(&file->task, ENDED);
    return TASK_DONE;
}

/* ---- its way ---- */

static enum task_result begin(struct file *file)
{
    struct folder *folder = file->folder;
    unsigned places = file->alone ? (unsigned)folder->settings->jobs : 1;
    if (!file->place.granted && !slots_acquire(&folder->places, &file->place, &file->task, places))
        return TASK_WAIT;
    while (folder->taken[file->share])
        file->share++;
    folder->taken[file->share] = true;
    file->started_ms = clock_now_ms();
    timer_start(file->task.loop, &file->limit, &file->task, (uint64_t)folder->settings->each_ms);
    task_move(&file->task, DESCRIBING);
    work_start(file->task.loop, &file->work, &file->task, describe, file);
    return TASK_WAIT;
}

static enum task_result step(struct task *task)
{
    struct file *file = container_of(task, struct file, task);
    switch (task->state) {
    case WAITING:
        return begin(file);
    case DESCRIBING:
        if (file->work.active)
            return TASK_WAIT; /* a child of its own with a limit of its own */
        if (file->err.code || file->limit.fired || open_lane(file))
            return end(file);
        task_move(task, OPENING);
        return TASK_WAIT;
    case OPENING:
        if (!file->open.done && !file->limit.fired)
            return TASK_WAIT;
        file->err = file->open.err;
        if (file->err.code || file->limit.fired)
            break;
        file->check.op = LANE_CHECK_PROBLEM;
        file->check.id = "check";
        file->check.bare = true;
        lane_submit(file->lane, &file->check, task);
        task_move(task, CHECKING);
        return TASK_WAIT;
    default:
        if (!file->check.done && !file->limit.fired)
            return TASK_WAIT;
        file->err = file->check.err;
    }
    lane_close(file->lane);
    return (file->open.done || !file->open.active) && (file->check.done || !file->check.active)
               ? end(file)
               : TASK_WAIT; /* its requests end with the lane */
}

static const struct task_type type = {"problem-folder", states, moves, STATES, step, NULL};

/* ---- the folder ---- */

bool problem_folder_is(const char *path)
{
    MEM_LOCAL char *spec = file_join(path, "spec.yaml");
    return file_is_dir(path) && !file_exists(spec);
}

/* A folder with a spec.yaml, or a PyTorch file. */
static bool is_problem(const char *path)
{
    MEM_LOCAL char *spec = file_join(path, "spec.yaml");
    bool is = file_exists(spec);
    size_t length = strlen(path);
    if (is || length < 3 || strcmp(path + length - 3, ".py") != 0)
        return is;
    struct err ignored;
    BUF_LOCAL(text, 1 << 20);
    if (file_read(path, &text, &ignored) != 0)
        return false;
    const char *source = buf_text(&text);
    return (strstr(source, "def get_inputs") && strstr(source, "class Model")) ||
           strstr(source, "class ModelNew(") || strstr(source, "generate_kernel(");
}

/* By their first number, then by name: 2_, 10_, 100_. */
static int compare(const void *left, const void *right)
{
    const struct file *a = left, *b = right;
    long x = strtol(a->name, NULL, 10), y = strtol(b->name, NULL, 10);
    return x != y ? (x > y) - (x < y) : strcmp(a->name, b->name);
}

static void list(struct folder *folder, const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    folder->files = mem_array(FILES_MOST, sizeof *folder->files);
    while (directory && (entry = readdir(directory)) != NULL && folder->count < FILES_MOST) {
        char *whole = file_join(path, entry->d_name);
        if (*entry->d_name != '.' && is_problem(whole)) {
            struct file *file = &folder->files[folder->count++];
            *file = (struct file){.folder = folder, .size = "", .why = ""};
            file->name = arena_strdup(folder->arena, entry->d_name);
            file->path = file->sized = command_path(folder->arena, whole);
        }
        mem_free(whole);
    }
    if (directory)
        closedir(directory);
    qsort(folder->files, folder->count, sizeof *folder->files, compare);
}

static void print_json(const struct folder *folder)
{
    JSON_LOCAL(json, text, TEXT_MOST);
    json_array(&json);
    for (size_t i = 0; i < folder->count; i++) {
        const struct file *file = &folder->files[i];
        json_object(&json);
        json_put_text(&json, "file", file->name);
        json_put_text(&json, "verdict", kind_names[file->kind]);
        json_put_text(&json, "size", *file->size ? file->size : NULL);
        json_put_real(&json, "seconds", (double)file->elapsed_ms / 1e3);
        json_put_text(&json, "reason", file->why);
        json_object_end(&json);
    }
    json_array_end(&json);
    printf("%s\n", buf_text(&text));
}

/* What is not fit, then the counts. */
static int report(const struct folder *folder)
{
    size_t counts[KINDS] = {0};
    for (size_t i = 0; i < folder->count; i++)
        counts[folder->files[i].kind]++;
    if (folder->settings->json) {
        print_json(folder);
    } else {
        for (int kind = KIND_REFUSED; kind < KINDS; kind++)
            for (size_t i = 0; i < folder->count; i++)
                if (folder->files[i].kind == (enum kind)kind)
                    printf("%-8s %s%s%s: %s\n", kind_names[kind], folder->files[i].name,
                           *folder->files[i].size ? " @" : "", folder->files[i].size,
                           folder->files[i].why);
        printf("%zu problems: %zu fit, %zu refused, %zu not run, %zu errors\n", folder->count,
               counts[KIND_FIT], counts[KIND_REFUSED], counts[KIND_NOT_RUN], counts[KIND_ERROR]);
    }
    return counts[KIND_FIT] == folder->count ? 0 : EXIT_NONE;
}

int problem_folder_check(const struct settings *settings, const char *path)
{
    struct folder folder = {.settings = settings, .arena = arena_new()};
    char threads[16];
    int code = EXIT_USAGE;
    list(&folder, path);
    snprintf(threads, sizeof threads, "%d", (int)settings->jobs + 2);
    setenv("UV_THREADPOOL_SIZE", threads, 0); /* describing waits for children */
    slots_init(&folder.places, "files", (unsigned)settings->jobs);
    if (folder.count == 0) {
        fprintf(stderr, "twagent: %s: no spec.yaml, and no problem in it\n", path);
    } else {
        struct loop *loop = loop_new();
        for (size_t i = 0; i < folder.count; i++) {
            folder.files[i].arena = arena_new();
            task_start(loop, &folder.files[i].task, &type, NULL, folder.files[i].name);
        }
        loop_run(loop);
        code = report(&folder);
        for (size_t i = 0; i < folder.count; i++) {
            lane_free(folder.files[i].first_lane);
            lane_free(folder.files[i].lane);
            arena_free(folder.files[i].open.arena);
            arena_free(folder.files[i].check.arena);
            arena_free(folder.files[i].arena);
        }
        loop_free(loop);
    }
    mem_free(folder.files);
    arena_free(folder.arena);
    return code;
}
