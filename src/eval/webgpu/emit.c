/* A kernel for a browser: kernel.wgsl; kernel.js, a module with the source and its plan in it and
 * libexec/emit/web_kernel.js behind them; index.html, the same module with the results of the
 * definition and a page around it, in one file, since a page that was opened from a disk may import
 * no other. */
#include "eval/webgpu/private.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "eval/webgpu/plan.h"
#include "process/python_probe.h"
#include "process/toolchain.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_MOST = 16 << 20, PLAN_MOST = 1 << 20, EXPECTED_MS = 300000, SAID_MOST = 4096 };
static const double EXPECTED_FLOPS = 4e10; /* of a shape whose results are computed */

/* ---- the plan, as a literal ---- */

static void put_expr(const struct emission *e, struct json *json, const struct expr *expr)
{
    json_raw(json, expr != NULL
                       ? arena_printf(e->arena, "(s) => %s", expr_to_javascript(e->arena, expr))
                       : "null");
}

static void put_tensors(const struct emission *e, struct json *json, const char *key,
                        const struct tensor_spec *tensors, size_t count)
{
    emit_put_tensors(e, json, key, tensors, count, put_expr, true);
}

static const char *tensor_name(const struct emission *e, uint32_t index)
{
    const struct problem *problem = e->problem;
    if (index < problem->input_count)
        return problem->inputs[index].name;
    index -= (uint32_t)problem->input_count;
    return index < problem->output_count
               ? problem->outputs[index].name
               : e->candidate->workspaces[index - problem->output_count].name;
}

static void put_program(const struct emission *e, const struct plan *plan, struct json *json)
{
    static const char *const types[] = {"read-only-storage", "storage", "uniform"};
    json_put_array(json, "bindings");
    for (uint32_t i = 0; i < plan->binding_count; i++) {
        const struct plan_binding *binding = &plan->bindings[i];
        json_object(json);
        json_put_int(json, "binding", binding->binding);
        json_put_text(json, "type", types[binding->kind]);
        json_put_text(json, "tensor",
                      binding->kind == PLAN_DIMS ? NULL : tensor_name(e, binding->tensor));
        json_object_end(json);
    }
    json_array_end(json);
    json_put_object(json, "constants");
    for (uint32_t i = 0; i < plan->constant_count; i++)
        json_put_real(json, plan->constants[i].name, plan->constants[i].number);
    json_object_end(json);
    json_put_array(json, "features");
    if (plan->f16)
        json_text(json, "shader-f16");
    if (plan->subgroups)
        json_text(json, "subgroups");
    json_array_end(json);
    json_put_bool(json, "exact", plan->measures_arrays);
    json_put_array(json, "passes");
    for (size_t i = 0; i < e->candidate->launch_count; i++) {
        const struct launch *launch = &e->candidate->launches[i];
        json_object(json);
        json_put_text(json, "entry", launch->entry);
        json_put_array(json, "grid");
        for (size_t k = 0; k < 3 && launch->grid[k] != NULL; k++)
            put_expr(e, json, launch->grid[k]);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}

/* A '<' of a source or a name could end the script that it stands in. An operator's has a blank or
 * an '=' behind it, before which nothing begins. */
static void add_escaped(struct buf *into, const struct buf *text)
{
    for (size_t i = 0; i < text->length; i++) {
        char next = i + 1 < text->length ? text->data[i + 1] : '\0';
        if (text->data[i] == '<' && next != ' ' && next != '=')
            buf_add_text(into, "\\u003c");
        else
            buf_add_char(into, text->data[i]);
    }
}

static int put_plan(const struct emission *e, const char *uncompared, const struct buf *source,
                    struct buf *module, struct err *err)
{
    const struct program program = {
        .problem = e->problem, .candidate = e->candidate, .tune = &e->tune};
    struct plan plan;
    if (plan_program(&program, &plan, err) != 0)
        return -1;
    JSON_LOCAL(json, text, PLAN_MOST);
    json_object(&json);
    json_put_text(&json, "problem", e->problem->name);
    json_put_text(&json, "kernel", e->title);
    json_put_text(&json, "uncompared", uncompared);
    emit_put_dims(e, &json, put_expr);
    json_key(&json, "where");
    put_expr(e, &json, e->problem->where);
    emit_put_limits(e, &json, "checkedUpTo");
    put_tensors(e, &json, "inputs", e->problem->inputs, e->problem->input_count);
    put_tensors(e, &json, "outputs", e->problem->outputs, e->problem->output_count);
    put_tensors(e, &json, "workspaces", e->candidate->workspaces, e->candidate->workspace_count);
    json_put_names(&json, "tune", &e->tune);
    json_key(&json, "tuneWhere");
    put_expr(e, &json, e->candidate->where);
    put_program(e, &plan, &json);
    json_object_end(&json);
    buf_add_text(&text, ";\n\nexport const source = ");
    json = (struct json){.out = &text};
    json_text_n(&json, source->data, source->length);
    buf_add_text(module, "export const plan = ");
    add_escaped(module, &text);
    buf_add_text(module, ";\n");
    return text.dropped > 0 ? err_set(err, ERR_LIMIT, "the kernel is too long") : 0;
}

/* ---- what it is compared with ---- */

/* "0,1,4": those whose results do not take long. */
static const char *shapes_to_compute(const struct emission *e)
{
    const char *list = "";
    for (size_t i = 0; i < e->problem->shape_count; i++) {
        double flops = 0.0, bytes = 0.0;
        if (problem_work(e->problem, &e->problem->shapes[i], &flops, &bytes, NULL) == 0 &&
            flops + 16.0 * bytes <= EXPECTED_FLOPS)
            list = arena_printf(e->arena, "%s%s%zu", list, *list != '\0' ? "," : "", i);
    }
    return list;
}

static int run_definition(const struct emission *e, const char *folder, struct buf *expected,
                          struct err *err)
{
    struct interpreter found;
    struct emission plan = *e;
    MEM_LOCAL char *script = file_data_path("libexec/emit/web_expected.py");
    if (script == NULL)
        return err_set(err, ERR_ENVIRONMENT, "libexec/emit is not where the program expects it");
    plan.folder = folder;
    if (interpreter_find_numpy(NULL, e->arena, &found, err) != 0 || emit_plan(&plan, err) != 0)
        return -1;
    const char *file = e->problem->reference_file;
    const char *const argv[] = {found.path,
                                "-I",
                                "-B",
                                script,
                                arena_printf(e->arena, "%s/plan.json", folder),
                                file,
                                shapes_to_compute(e),
                                NULL};
    const char *const reads[] = {
        folder,
        arena_strndup(e->arena, script, (size_t)(strrchr(script, '/') - script)),
        arena_strndup(e->arena, file, (size_t)(strrchr(file, '/') - file)),
        found.prefix,
        found.base_prefix,
        NULL};
    const struct tool tool = {
        .argv = argv, .profile = "reference", .reads = reads, .timeout_ms = EXPECTED_MS};
    BUF_LOCAL(said, SAID_MOST);
    if (tool_run(&tool, expected, &said, err) == 0)
        return 0;
    const char *text = buf_text(&said), *end = text + said.length;
    while (end > text && end[-1] == '\n')
        end--;
    const char *line = end;
    while (line > text && line[-1] != '\n')
        line--;
    return line < end ? err_wrap(err, "%.*s", (int)(end - line), line) : -1;
}

/* A list, empty where nothing can be computed; then *why is for people. */
static void compute_expected(const struct emission *e, struct buf *expected, const char **why)
{
    struct err err = {0}, ignored;
    char folder[] = "/tmp/twagent-emit-XXXXXX";
    *why = NULL;
    if (e->problem->reference_kind != REFERENCE_PYTHON)
        *why = "Its definition is no numpy function: there are no results to compare with.";
    else if (mkdtemp(folder) == NULL)
        *why = "No folder for the definition's results: there are none to compare with.";
    else if (run_definition(e, folder, expected, &err) != 0)
        *why = arena_printf(e->arena, "No results to compare with: %s", err.message);
    if (*why != NULL) {
        buf_reset(expected);
        buf_add_text(expected, "[]");
    }
    (void)(file_remove_tree(folder, &ignored) == 0);
}

/* ---- the files ---- */

static int add_part(const struct emission *e, const char *name, struct buf *into, struct err *err)
{
    MEM_LOCAL char *path = file_data_path(arena_printf(e->arena, "libexec/emit/%s", name));
    if (path == NULL)
        return err_set(err, ERR_ENVIRONMENT, "libexec/emit/%s is not where the program expects it",
                       name);
    BUF_LOCAL(text, PLAN_MOST);
    if (file_read(path, &text, err) != 0)
        return -1;
    buf_add(into, text.data, text.length);
    return 0;
}

static int write_page(const struct emission *e, const struct buf *module,
                      const struct buf *expected, struct err *err)
{
    BUF_LOCAL(page, PAGE_MOST);
    if (add_part(e, "web.html", &page, err) != 0)
        return -1;
    buf_add_text(&page, "<script type=\"module\">\nconst expected = ");
    add_escaped(&page, expected);
    buf_add_text(&page, ";\n");
    buf_add(&page, module->data, module->length);
    if (add_part(e, "web_page.js", &page, err) != 0)
        return -1;
    buf_add_text(&page, "</script>\n</html>\n");
    return emit_write(e, "index.html", &page, err);
}

static int write_readme(const struct emission *e, struct err *err)
{
    BUF_LOCAL(text, PLAN_MOST);
    buf_addf(&text, "# %s\n\n%s\n\n", e->problem->name, e->title);
    buf_add_text(
        &text,
        "Open `index.html` in a browser that has WebGPU: it runs the kernel, compares it with its "
        "definition's\nresults, which the page has in it, and times it. Nothing is loaded from "
        "elsewhere. `kernel.js` is the kernel as\na module:\n\n```js\nimport { Kernel } from "
        "\"./kernel.js\";\nconst kernel = await Kernel.create();   // or of a GPUDevice of yours\n"
        "const { ");
    for (size_t i = 0; i < e->problem->output_count; i++)
        buf_addf(&text, "%s%s", i > 0 ? ", " : "", e->problem->outputs[i].name);
    buf_add_text(&text, " } = await kernel.run({ ");
    for (size_t i = 0; i < e->problem->input_count; i++)
        buf_addf(&text, "%s%s", i > 0 ? ", " : "", e->problem->inputs[i].name);
    buf_add_text(&text, " }, { ");
    bool any = false;
    for (size_t i = 0; i < e->problem->dim_count; i++)
        if (!e->problem->dims[i].derived) {
            int64_t number = 0;
            struct names shape = e->problem->shapes[0];
            (void)expr_lookup_names(&shape, e->problem->dims[i].name, &number);
            buf_addf(&text, "%s%s: %lld", any ? ", " : "", e->problem->dims[i].name,
                     (long long)number);
            any = true;
        }
    buf_add_text(
        &text,
        " });   // typed arrays\n```\n\n`prepare(dims, buffers)` and `encode(pass, prepared)` "
        "put it into a compute pass of yours, on your GPUBuffers.\n`kernel.wgsl` is its source; "
        "`evidence.json` is how it was proved.\n");
    return emit_write(e, "README.md", &text, err);
}

static int check_types(const struct emission *e, struct err *err)
{
    const struct problem *problem = e->problem;
    const struct {
        const struct tensor_spec *tensors;
        size_t count;
    } kinds[] = {{problem->inputs, problem->input_count},
                 {problem->outputs, problem->output_count},
                 {e->candidate->workspaces, e->candidate->workspace_count}};
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < kinds[k].count; i++)
            if (kinds[k].tensors[i].dtype != DTYPE_FLOAT32 &&
                kinds[k].tensors[i].dtype != DTYPE_INT32)
                return err_set(err, ERR_UNSUPPORTED,
                               "%s is %s: a page takes float32 and int32 alone",
                               kinds[k].tensors[i].name, dtype_name(kinds[k].tensors[i].dtype));
    return 0;
}

static int emit(const struct emission *e, const char *form, const char **note, struct err *err)
{
    BUF_LOCAL(expected, PAGE_MOST);
    BUF_LOCAL(module, PAGE_MOST);
    BUF_LOCAL(source, PAGE_MOST);
    (void)form;
    if (check_types(e, err) != 0)
        return -1;
    compute_expected(e, &expected, note);
    wgsl_compiled(e->candidate, true, &source);
    return put_plan(e, *note, &source, &module, err) != 0 ||
                   add_part(e, "web_kernel.js", &module, err) != 0 ||
                   emit_write(e, "kernel.js", &module, err) != 0 ||
                   emit_write(e, "kernel.wgsl", &source, err) != 0 ||
                   write_page(e, &module, &expected, err) != 0 || write_readme(e, err) != 0
               ? -1
               : 0;
}

static const char *const forms[] = {"web", NULL};
const struct emitter emitter_webgpu = {forms, emit, NULL};
