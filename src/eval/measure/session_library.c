#include "eval/measure/session_library.h"

#include "base/file.h"
#include "eval/problem/torch.h"

#include <string.h>

enum { BINDING_MOST = 1 << 18 };

static const char *path_of(const struct session *session)
{
    return arena_printf(session->arena, "%s/baselines/torch.py", session->problem->folder);
}

static bool library_has(const struct session *session)
{
    return session->problem->torch == NULL && file_exists(path_of(session));
}

void library_add(struct session *session)
{
    if (session->baseline_count < BASELINES_MOST && library_has(session))
        session->baselines[session->baseline_count++] =
            (struct baseline){.name = "torch", .library = path_of(session)};
}

/* Inputs as they are, then every dim of the main shape, where alone baselines are called. */
static const char *binding_of(const struct session *session)
{
    const struct problem *problem = session->problem;
    const struct names *dims = &session->shapes[0].dims;
    BUF_LOCAL(text, BINDING_MOST);
    struct json json = {.out = &text};
    json_object(&json);
    json_put_array(&json, "arguments");
    for (size_t i = 0; i < problem->input_count; i++) {
        json_object(&json);
        json_put_text(&json, "input", problem->inputs[i].name);
        json_put_text(&json, "torch", dtype_name(problem->inputs[i].dtype));
        json_object_end(&json);
    }
    for (size_t i = 0; i < dims->count; i++) {
        json_object(&json);
        json_put_int(&json, "value", dims->number[i]);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_put_array(&json, "parameters");
    json_array_end(&json);
    json_object_end(&json);
    return arena_strdup(session->arena, buf_text(&text));
}

int library_open(struct session *session, struct baseline *baseline, struct err *err)
{
    struct arena *arena = session->arena;
    struct problem *shadow = ARENA_NEW(arena, struct problem);
    struct problem_torch *torch = ARENA_NEW(arena, struct problem_torch);
    struct err ignored;
    const char *python = session->options.python;
    bool found =
        python != NULL && interpreter_find(python, "torch", arena, &torch->python, &ignored) == 0;
    if (!found && interpreter_find(NULL, "torch", arena, &torch->python, err) != 0)
        return -1;
    torch->binding = binding_of(session);
    torch->notes = "";
    *shadow = *session->problem;
    shadow->torch = torch;
    shadow->reference_kind = REFERENCE_TORCH;
    shadow->reference_file = baseline->library;
    shadow->reference_function = "Model";
    return reference_open_torch(shadow, session->lane, &session->region, session->backend->torch,
                                session->options.folder, arena, &baseline->own, err);
}
