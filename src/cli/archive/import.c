/* twagent import FILE.py[:FUNCTION] [PROBLEM]: a Triton file as people have them becomes a
 * candidate. libexec/triton_import.py reads its syntax tree, in a sandbox; nothing of it is run. */
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/value.h"
#include "cli/find/find.h"
#include "cli/options/command.h"
#include "eval/candidate/candidate.h"
#include "eval/problem/torch.h"
#include "process/python_probe.h"
#include "process/spawn.h"

#include <stdio.h>
#include <string.h>

enum { SOURCE_MOST = 1 << 20, ANSWER_MOST = 4 << 20, READ_MS = 60000 };

struct importing {
    struct arena *arena;
    const struct settings *settings;
    const char *path, *function; /* "": the only one */
    struct problem *problem;     /* NULL: none is named */
    const struct value *said;    /* by the script */
};

static void put_tensors(const char *key, const struct tensor_spec *tensors, size_t count,
                        struct json *json)
{
    json_put_array(json, key);
    for (size_t i = 0; i < count; i++) {
        json_object(json);
        json_put_text(json, "name", tensors[i].name);
        json_put_text(json, "dtype", dtype_name(tensors[i].dtype));
        json_put_array(json, "shape");
        for (size_t k = 0; k < tensors[i].rank; k++)
            json_text(json, tensors[i].shape_text[k]);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}

static const char *problem_text(const struct importing *in)
{
    JSON_LOCAL(json, text, SOURCE_MOST);
    json_object(&json);
    if (in->problem != NULL) {
        put_tensors("inputs", in->problem->inputs, in->problem->input_count, &json);
        put_tensors("outputs", in->problem->outputs, in->problem->output_count, &json);
        struct names fixed;
        problem_fixed(in->problem, &fixed);
        json_put_names(&json, "fixed", &fixed);
    }
    json_object_end(&json);
    return arena_strdup(in->arena, buf_text(&text));
}

static int read_file(struct importing *in, struct err *err)
{
    struct interpreter python;
    struct value *root;
    BUF_LOCAL(said, ANSWER_MOST);
    BUF_LOCAL(errors, 4096);
    const char *path = command_path(in->arena, in->path), *script;
    char *found = file_data_path("libexec/triton_import.py");
    if (found == NULL)
        return err_set(err, ERR_ENVIRONMENT, "libexec/triton_import.py is not installed");
    script = arena_strdup(in->arena, found);
    mem_free(found);
    if (interpreter_find(in->settings->search.python, "json", in->arena, &python, err) != 0)
        return -1;
    const char *slash = strrchr(script, '/');
    const char *own = arena_printf(in->arena, "%s/bin/python3", python.prefix); /* no shim of it */
    const char *const argv[] = {file_program_path(),
                                "sandbox",
                                "--profile",
                                "sanitized",
                                "--read",
                                python.prefix,
                                "--read",
                                python.base_prefix,
                                "--read",
                                arena_strndup(in->arena, script, (size_t)(slash - script)),
                                "--read",
                                path,
                                "--limit",
                                "as=2147483648",
                                "--limit",
                                "cpu=30",
                                "--",
                                file_exists(own) ? own : python.path,
                                "-I",
                                "-B",
                                script,
                                path,
                                in->function,
                                problem_text(in),
                                NULL};
    static const char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL};
    const struct spawn_spec spec = {.argv = argv, .name = "import", .env = env};
    if (spawn_run(&spec, READ_MS, 0, &said, &errors, err) != 0)
        return err_wrap(err, "%s could not be read: %.300s", in->path, buf_text(&errors));
    if (value_parse_json(in->arena, "import", buf_text(&said), said.length, &root, err) != 0)
        return -1;
    in->said = root;
    return 0;
}

static int check(const struct importing *in, const char *source, struct err *err)
{
    struct candidate *candidate;
    if (in->problem == NULL)
        return candidate_check_text(in->path, source, strlen(source), err);
    if (candidate_parse(in->problem, "imported.py", source, strlen(source), &candidate, err) != 0)
        return -1;
    candidate_free(candidate);
    return 0;
}

static void put_list(const char *label, const struct value *tensors, struct buf *out)
{
    buf_addf(out, "  %-10s ", label);
    for (size_t i = 0; tensors != NULL && i < tensors->count; i++) {
        const struct value *shape = value_get(tensors->items[i], "shape");
        buf_addf(out, "%s%s", i > 0 ? ", " : "", value_text(tensors->items[i], "name", ""));
        for (size_t k = 0; shape != NULL && k < shape->count; k++)
            buf_addf(out, "%s%s%s", k == 0 ? " [" : ", ", shape->items[k]->text,
                     k + 1 == shape->count ? "]" : "");
    }
    buf_add_char(out, '\n');
}

/* On stderr, where the source itself goes to stdout. */
static void explain(const struct importing *in)
{
    const struct value *notes = value_get(in->said, "notes");
    BUF_LOCAL(text, 1 << 16);
    buf_addf(&text, "%s: a candidate of %s(), line %lld\n", in->path,
             value_text(in->said, "function", ""), (long long)value_int(in->said, "line", 1));
    put_list("inputs", value_get(in->said, "inputs"), &text);
    put_list("outputs", value_get(in->said, "outputs"), &text);
    for (size_t i = 0; notes != NULL && i < notes->count; i++)
        buf_addf(&text, "  note       %s\n", notes->items[i]->text);
    if (in->problem == NULL)
        buf_add_text(
            &text, "  names are the function's; with a PROBLEM behind the file they are its own\n");
    else
        buf_addf(&text, "  next       twagent eval %s %s\n", in->problem->name,
                 in->settings->output != NULL ? in->settings->output : "OUT.py");
    fputs(buf_text(&text), stderr);
}

static int write_out(const struct importing *in, const char *source, struct err *err)
{
    if (in->settings->json) {
        ARENA_LOCAL(arena);
        puts(value_json(in->said, arena));
        return 0;
    }
    if (in->settings->output != NULL) {
        if (file_put(in->settings->output, source, strlen(source), err) != 0)
            return -1;
    } else {
        fputs(source, stdout);
    }
    explain(in);
    return 0;
}

static int import(struct importing *in, const char *problem, int *code, struct err *err)
{
    const char *named = NULL;
    const struct language *language = language_of_file("imported.py");
    if (problem != NULL &&
        (find_problem(in->arena, problem, language_target(language)->name, &named, err) != 0 ||
         problem_load_with(named, in->settings->search.python, &in->problem, err) != 0))
        return -1;
    if (!file_exists(in->path))
        return err_set(err, ERR_USAGE, "%s: no such file", in->path);
    if (read_file(in, err) != 0)
        return -1;
    const char *source = value_text(in->said, "source", NULL);
    *code = EXIT_NONE;
    if (source == NULL && in->settings->json)
        return write_out(in, "", err);
    if (source == NULL)
        return err_set(err, ERR_CHILD, "%s:%lld: %s", in->path,
                       (long long)value_int(in->said, "line", 1),
                       value_text(in->said, "reason", "is no candidate"));
    if (check(in, source, err) != 0)
        return err_wrap(err, "what %s becomes is no candidate", in->path);
    *code = EXIT_WIN;
    return write_out(in, source, err);
}

int command_import(const struct settings *settings, const char *const *arguments, size_t count)
{
    ARENA_LOCAL(arena);
    struct importing in = {
        .arena = arena, .settings = settings, .path = arguments[0], .function = ""};
    const char *colon = strrchr(arguments[0], ':');
    struct err err = {0};
    int code = EXIT_NONE;
    if (colon != NULL && strchr(colon, '/') == NULL && !file_exists(arguments[0])) {
        in.path = arena_strndup(arena, arguments[0], (size_t)(colon - arguments[0]));
        in.function = colon + 1;
    }
    int failed = import(&in, count > 1 ? arguments[1] : NULL, &code, &err);
    problem_free(in.problem);
    if (failed && err.code == ERR_CHILD) {
        fprintf(stderr, "twagent: %s\n", err.message);
        return EXIT_NONE;
    }
    return failed ? command_fail(&err) : code;
}
