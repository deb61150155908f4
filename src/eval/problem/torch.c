/* eval/problem/torch: asks the child, or what is remembered of its answer, and reads the answer's
 * spec as any spec.yaml. */
#include "eval/problem/torch.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "eval/problem/question.h"
#include "eval/problem/read.h"
#include "eval/problem/shipped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FILE_MOST = 1 << 20,
    ANSWER_MOST = 1 << 20,
    DESCRIBE_TIMEOUT_MS = 300000, /* the file's own inputs are made, and its module is called */
    REQUEST_MOST = 1 << 18
};

static const char *const structure_names[STRUCTURES] = {[STRUCTURE_FREE] = "free",
                                                        [STRUCTURE_WHOLE] = "whole",
                                                        [STRUCTURE_UPPER] = "upper",
                                                        [STRUCTURE_LOWER] = "lower",
                                                        [STRUCTURE_SYMMETRIC] = "symmetric",
                                                        [STRUCTURE_GIVEN] = "given",
                                                        [STRUCTURE_OWN] = "own",
                                                        [STRUCTURE_MASK] = "mask"};

/* --- reading the answer --- */

static size_t input_index(const struct problem *problem, const char *name)
{
    size_t i = 0;
    while (i < problem->input_count && strcmp(problem->inputs[i].name, name) != 0)
        i++;
    return i;
}

static void take_draws(const struct problem *problem, const struct value *answer,
                       struct problem_torch *torch)
{
    const struct value *draws = value_get(answer, "draws"), *own = value_get(answer, "initial");
    for (size_t i = 0; draws != NULL && i < draws->count; i++) {
        size_t index = input_index(problem, draws->keys[i]);
        for (int k = 0; k < STRUCTURES && index < problem->input_count; k++)
            if (draws->items[i]->kind == VALUE_TEXT &&
                strcmp(draws->items[i]->text, structure_names[k]) == 0)
                torch->inputs[index].structure = (enum torch_structure)k;
    }
    for (size_t i = 0; own != NULL && i < own->count; i++) {
        size_t index = own->items[i]->kind == VALUE_TEXT ? input_index(problem, own->items[i]->text)
                                                         : problem->input_count;
        if (index < problem->input_count)
            torch->inputs[index].initial = true;
    }
}

static const char *keep_json(struct arena *arena, const struct value *value)
{
    JSON_LOCAL(json, text, ANSWER_MOST);
    if (value != NULL)
        json_value(&json, value);
    return arena_strdup(arena, value != NULL ? buf_text(&text) : "{}");
}

static const char *join_notes(struct arena *arena, const struct value *notes)
{
    BUF_LOCAL(text, 4096);
    for (size_t i = 0; notes != NULL && i < notes->count; i++)
        if (notes->items[i]->kind == VALUE_TEXT)
            buf_addf(&text, "%s%s", i > 0 ? "; " : "", notes->items[i]->text);
    return buf_keep(&text, arena);
}

static int read_spec(struct problem *problem, const char *path, const char *spec, struct err *err)
{
    const char *name = strrchr(path, '/') + 1;
    struct reading reading = {
        .document = {.arena = problem->arena, .name = name, .err = err},
        .problem = problem,
    };
    struct value *root;
    problem->file = arena_strdup(problem->arena, path);
    problem->folder =
        name - 1 == path ? "/" : arena_strndup(problem->arena, path, (size_t)(name - 1 - path));
    if (value_parse_yaml(problem->arena, name, spec, strlen(spec), &root, err) != 0)
        return -1;
    reading.root = root;
    return problem_read(&reading);
}

int problem_take_torch(struct problem *problem, const char *path, const char *answer, size_t length,
                       struct err *err)
{
    struct problem_torch *torch = ARENA_NEW(problem->arena, struct problem_torch);
    const char *name = strrchr(path, '/') + 1;
    struct value *root;
    if (value_parse_json(problem->arena, name, answer, length, &root, err) != 0)
        return -1;
    const char *spec = value_text(root, "spec", NULL), *fault = value_text(root, "error", NULL);
    if (fault != NULL)
        return err_set(err, value_bool(root, "limit", false) ? ERR_LIMIT : ERR_USAGE, "%s: %s",
                       name, fault);
    if (spec == NULL)
        return err_set(err, ERR_PROTOCOL, "%s: described without a spec", name);
    if (read_spec(problem, path, spec, err) != 0)
        return -1;
    torch->binding = keep_json(problem->arena, value_get(root, "binding"));
    torch->notes = join_notes(problem->arena, value_get(root, "notes"));
    torch->shipped = value_get(root, "shipped");
    take_draws(problem, root, torch);
    problem->reference_kind = REFERENCE_TORCH;
    problem->reference_function = "Model";
    problem->torch = torch;
    problem->baseline = "eager";
    problem->baseline_count = 1;
    problem->baselines[0] = (struct baseline_spec){.name = "compile"};
    return 0;
}

/* --- what is drawn --- */

bool problem_may_spoil(const struct problem *problem, size_t input)
{
    const struct tensor_spec *tensor = &problem->inputs[input];
    bool free = problem->torch == NULL || problem->torch->inputs[input].structure == STRUCTURE_FREE;
    bool bounded = tensor->low <= tensor->high && problem->non_finite != NON_FINITE_PROPAGATE;
    return dtype_is_float(tensor->dtype) && free && !bounded;
}

bool problem_is_spoiled(const struct problem *problem)
{
    bool found = false, floating = false, whole = false;
    for (size_t i = 0; i < problem->input_count; i++)
        found = found || problem_may_spoil(problem, i);
    for (size_t i = 0; i < problem->output_count; i++) {
        floating = floating || dtype_is_float(problem->outputs[i].dtype);
        whole = whole || !dtype_is_float(problem->outputs[i].dtype);
    }
    /* What comes of comparing, an index or a code, has no order for a NaN. */
    whole = whole && problem->non_finite != NON_FINITE_PROPAGATE;
    return found && floating && !whole && !problem->normwise &&
           problem->non_finite != NON_FINITE_IGNORE;
}

/* --- asking the child --- */

static int ask(struct arena *arena, const struct interpreter *python, const char *script,
               const char *path, struct buf *answer, struct err *err)
{
    struct question question = {
        .python = python, .script = script, .timeout_ms = DESCRIBE_TIMEOUT_MS, .arena = arena};
    MEM_LOCAL char *folder = mem_strdup(path);
    MEM_LOCAL char *problems = file_data_path("problems");
    *strrchr(folder, '/') = '\0';
    question.readable[0] = folder;
    question.readable[1] = problems;
    if (question_open(&question, err) != 0)
        return -1;
    JSON_LOCAL(json, request, REQUEST_MOST);
    json_object(&json);
    json_put_text(&json, "op", "describe");
    json_put_text(&json, "file", path);
    json_put_text(&json, "scratch", question.scratch);
    json_key(&json, "shipped");
    shipped_put(&json);
    json_object_end(&json);
    int status = question_ask(&question, buf_text(&request), answer, err);
    question_close(&question);
    return status;
}

/* --- what is remembered --- */

static struct hash hash_text(const char *text)
{
    return hash_bytes(text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

static int hash_file(const char *path, struct hash *hash, struct err *err)
{
    BUF_LOCAL(text, FILE_MOST);
    int status = file_read(path, &text, err);
    if (status == 0)
        *hash = hash_combine(*hash, hash_bytes(buf_text(&text), text.length));
    return status;
}

/* Everything that an answer follows from, but for what is installed beside the interpreter. */
static int make_key(const char *path, const char *script, const char *python, char key[33],
                    struct err *err)
{
    static const char *const describers[] = {
        "torch_problem.py", "torch_module.py",  "torch_rows.py", "torch_forms.py",
        "torch_shipped.py", "shipped_match.py", "torch_sums.py", "torch_state.py",
        "torch_inputs.py",  "source_text.py"};
    MEM_LOCAL char *libexec = mem_strdup(script);
    *strrchr(libexec, '/') = '\0';
    struct hash hash = hash_text(path);
    hash = hash_combine(hash, hash_text(python));
    hash = hash_combine(hash, hash_text(getenv("VIRTUAL_ENV")));
    hash = hash_combine(hash, hash_text(getenv("PATH")));
    JSON_LOCAL(json, shipped, REQUEST_MOST);
    shipped_put(&json);
    hash = hash_combine(hash, hash_text(buf_text(&shipped)));
    int status = hash_file(path, &hash, err) != 0 || hash_file(script, &hash, err) != 0 ? -1 : 0;
    for (size_t i = 0; status == 0 && i < sizeof describers / sizeof describers[0]; i++) {
        char *describer = file_join(libexec, describers[i]);
        status = hash_file(describer, &hash, err);
        mem_free(describer);
    }
    hash_format(hash, key);
    return status;
}

/* Of the files that the user's imports from beside it, by the answer's list of them. */
static void hash_beside(struct arena *arena, const char *answer, char key[33])
{
    struct hash hash = hash_text("");
    struct value *root;
    struct err ignored;
    if (value_parse_json(arena, "answer", answer, strlen(answer), &root, NULL) == 0) {
        const struct value *beside = value_get(root, "beside");
        for (size_t i = 0; beside != NULL && i < beside->count; i++)
            if (beside->items[i]->kind == VALUE_TEXT &&
                hash_file(beside->items[i]->text, &hash, &ignored) != 0)
                hash = hash_combine(hash, hash_text("gone"));
    }
    hash_format(hash, key);
}

static bool recall(struct arena *arena, const char *memory, struct interpreter *python,
                   struct buf *answer)
{
    struct value *root;
    bool fine = false;
    BUF_LOCAL(text, 2 * ANSWER_MOST);
    if (memory != NULL && file_read(memory, &text, NULL) == 0 &&
        value_parse_json(arena, "memory", buf_text(&text), text.length, &root, NULL) == 0) {
        const char *told = value_text(root, "answer", NULL);
        *python = (struct interpreter){.path = value_text(root, "path", ""),
                                       .prefix = value_text(root, "prefix", ""),
                                       .base_prefix = value_text(root, "base_prefix", ""),
                                       .python = value_text(root, "python", ""),
                                       .package = value_text(root, "torch", ""),
                                       .bytecode = value_text(root, "bytecode", "")};
        char beside[33];
        hash_beside(arena, told != NULL ? told : "", beside);
        fine = told != NULL && access(python->path, X_OK) == 0 &&
               strcmp(beside, value_text(root, "beside", "")) == 0;
        if (fine)
            buf_add_text(answer, told);
    }
    return fine;
}

/* A note to ourselves: where it cannot be kept, the child is asked again. */
static void remember(const char *memory, const struct interpreter *python, const char *answer)
{
    ARENA_LOCAL(arena);
    struct err ignored;
    char beside[33];
    hash_beside(arena, answer, beside);
    MEM_LOCAL char *folder = mem_strdup(memory);
    *strrchr(folder, '/') = '\0';
    JSON_LOCAL(json, text, 2 * ANSWER_MOST);
    json_object(&json);
    json_put_text(&json, "path", python->path);
    json_put_text(&json, "prefix", python->prefix);
    json_put_text(&json, "base_prefix", python->base_prefix);
    json_put_text(&json, "python", python->python);
    json_put_text(&json, "torch", python->package);
    json_put_text(&json, "bytecode", python->bytecode);
    json_put_text(&json, "beside", beside);
    json_put_text(&json, "answer", answer);
    json_object_end(&json);
    if (text.dropped == 0 && file_make_dirs(folder, &ignored) == 0)
        (void)(file_write(memory, buf_text(&text), text.length, &ignored) == 0);
}

int problem_read_torch(struct problem *problem, const char *path, const char *python,
                       struct err *err)
{
    MEM_LOCAL char *script = file_data_path("libexec/reference_torch.py");
    char key[33] = "", *memory = NULL;
    struct interpreter found = {0};
    int status = 0;
    BUF_LOCAL(answer, ANSWER_MOST);
    if (python == NULL || *python == '\0')
        python = getenv("TWAGENT_PYTHON");
    if (python != NULL && *python == '\0')
        python = NULL;
    if (script == NULL)
        status = err_set(err, ERR_ENVIRONMENT,
                         "libexec/reference_torch.py is not where the program expects it");
    if (status == 0)
        status = make_key(path, script, python, key, err);
    if (status == 0)
        memory = file_cache_path("torch", key);
    if (status == 0 && !recall(problem->arena, memory, &found, &answer)) {
        buf_reset(&answer);
        status = interpreter_find(python, "torch", problem->arena, &found, err);
        if (status == 0 && (status = ask(problem->arena, &found, script, path, &answer, err)) != 0)
            (void)err_wrap(err, "%s", strrchr(path, '/') + 1);
        if (status == 0 && memory != NULL && strstr(buf_text(&answer), "\"spec\"") != NULL)
            remember(memory, &found, buf_text(&answer));
    }
    if (status == 0)
        status = problem_take_torch(problem, path, buf_text(&answer), answer.length, err);
    if (status == 0) {
        struct problem_torch *torch = ARENA_NEW(problem->arena, struct problem_torch);
        *torch = *problem->torch;
        torch->python = found;
        problem->torch = torch;
    }
    mem_free(memory);
    return status;
}
