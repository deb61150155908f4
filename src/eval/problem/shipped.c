#include "eval/problem/shipped.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/value.h"
#include "eval/problem/recognise.h"
#include "eval/problem/torch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_shape(struct json *json, const struct tensor_spec *tensor)
{
    json_object(json);
    json_put_text(json, "name", tensor->name);
    json_put_text(json, "dtype", dtype_name(tensor->dtype));
    json_put_array(json, "shape");
    for (size_t i = 0; i < tensor->rank; i++)
        json_text(json, tensor->shape_text[i]);
    json_array_end(json);
    if (tensor->low <= tensor->high) {
        json_put_array(json, "range");
        json_real(json, tensor->low);
        json_real(json, tensor->high);
        json_array_end(json);
    }
    json_object_end(json);
}

static void put_tensors(struct json *json, const char *key, const struct tensor_spec *tensors,
                        size_t count)
{
    json_put_array(json, key);
    for (size_t i = 0; i < count; i++)
        put_shape(json, &tensors[i]);
    json_array_end(json);
}

void shipped_put_tensors(struct json *json, const struct problem *problem)
{
    put_tensors(json, "inputs", problem->inputs, problem->input_count);
    put_tensors(json, "outputs", problem->outputs, problem->output_count);
}

static void put_problem(struct json *json, const struct problem *problem)
{
    json_object(json);
    json_put_text(json, "name", problem->name);
    json_put_text(json, "reference", problem->reference_file);
    json_put_text(json, "function", problem->reference_function);
    json_put_array(json, "dims");
    for (size_t i = 0; i < problem->dim_count; i++) {
        json_object(json);
        json_put_text(json, "name", problem->dims[i].name);
        json_put_bool(json, "derived", problem->dims[i].derived);
        json_put_text(json, "value", problem->dims[i].value_text);
        json_object_end(json);
    }
    json_array_end(json);
    shipped_put_tensors(json, problem);
    json_object_end(json);
}

/* Starts of one that allows lower precision than its tensors have would be wrong elsewhere. */
static bool is_plain(const struct problem *problem)
{
    return problem->reference_kind == REFERENCE_PYTHON &&
           strcmp(problem->precision, dtype_name(problem_precise(problem)->dtype)) == 0;
}

void shipped_put(struct json *json)
{
    struct dirent **entries = NULL;
    MEM_LOCAL char *folder = file_data_path("problems");
    int count = folder != NULL ? scandir(folder, &entries, NULL, alphasort) : 0;
    json_array(json);
    for (int i = 0; i < count; i++) {
        struct problem *problem;
        struct err ignored;
        char *path = file_join(folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && problem_load(path, &problem, &ignored) == 0) {
            if (is_plain(problem))
                put_problem(json, problem);
            problem_free(problem);
        }
        mem_free(path);
        free(entries[i]);
    }
    json_array_end(json);
    free(entries);
}

static bool ships_itself(const struct problem *problem)
{
    MEM_LOCAL char *folder = file_data_path("problems");
    size_t length = folder != NULL ? strlen(folder) : 0;
    return length > 0 && strncmp(problem->folder, folder, length) == 0 &&
           problem->folder[length] == '/';
}

const struct value *shipped_of(const struct problem *problem)
{
    struct shipped *slot = problem->shipped;
    if (problem->torch != NULL)
        return problem->torch->shipped;
    if (slot != NULL && !slot->asked) {
        slot->asked = true;
        slot->found = ships_itself(problem) ? NULL : recognise(problem);
    }
    return slot != NULL ? slot->found : NULL;
}

bool shipped_is_flipped(const struct problem *problem, const char *name)
{
    const struct value *flipped = value_get(shipped_of(problem), "flipped");
    for (size_t i = 0; flipped != NULL && i < flipped->count; i++)
        if (name == NULL || strcmp(flipped->items[i]->text, name) == 0)
            return true;
    return false;
}

char *shipped_folder(const struct problem *problem)
{
    const struct value *shipped = shipped_of(problem);
    const char *name = value_text(shipped, "name", NULL);
    char *relative = name != NULL ? file_join("problems", name) : NULL;
    char *folder = relative != NULL ? file_data_path(relative) : NULL;
    mem_free(relative);
    return folder;
}

const char *shipped_starts_folder(const struct problem *problem, const char *backend)
{
    MEM_LOCAL char *folder = shipped_folder(problem);
    return folder != NULL ? arena_printf(problem->arena, "%s/starts/%s", folder, backend) : NULL;
}
