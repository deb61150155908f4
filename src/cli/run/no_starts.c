#include "cli/run/no_starts.h"

#include "agents/prompt/prompt.h"
#include "base/buf.h"
#include "cli/options/command.h"
#include "cli/problem/folder.h"
#include "eval/problem/torch.h"

#include <stdio.h>
#include <string.h>

enum { SKELETON_MOST = 1 << 18 };

static void put_names(const struct tensor_spec *tensors, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++)
        buf_addf(out, "%s, ", tensors[i].name);
}

/* A program for each element of the first output. */
static void put_launch(const struct problem *problem, const struct language *language,
                       struct buf *out)
{
    const struct tensor_spec *output = &problem->outputs[0];
    buf_addf(out, "%s\nlaunch:\n  - entry: first\n    grid: ceil_div(1", language->open);
    for (size_t i = 0; i < output->rank; i++)
        buf_addf(out, " * (%s)", output->shape_text[i]);
    buf_addf(out, ", BLOCK)\n%s    args: [", language->fixes_block ? "" : "    block: BLOCK\n");
    put_names(problem->inputs, problem->input_count, out);
    put_names(problem->outputs, problem->output_count, out);
    for (size_t i = 0; i < problem->dim_count; i++)
        buf_addf(out, "%s, ", problem->dims[i].name);
    out->data[out->length -= 2] = '\0';
    buf_addf(out, "]\ntune:\n  BLOCK: [256, 128, 512]\n%s\n", language->close);
}

static void put_triton(const struct problem *problem, struct buf *out)
{
    buf_add_text(out, "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef first(");
    put_names(problem->inputs, problem->input_count, out);
    put_names(problem->outputs, problem->output_count, out);
    for (size_t i = 0; i < problem->dim_count; i++)
        buf_addf(out, "%s, ", problem->dims[i].name);
    buf_add_text(out, "BLOCK: tl.constexpr):\n");
}

static void put_skeleton(const struct problem *problem, const struct language *language,
                         struct buf *out)
{
    const char *what = problem->torch != NULL ? "Model.forward" : problem->reference_function;
    if (language->plan)
        put_launch(problem, language, out);
    if (language->fixes_block) {
        put_triton(problem, out);
        buf_addf(out, "    pass  # To be written: what %s computes, into %s.\n", what,
                 problem->outputs[0].name);
        return;
    }
    if (language->plan) {
        buf_add_text(out, "extern \"C\" __global__ void first(");
        prompt_arguments(problem, out);
        buf_add_char(out, ')');
    } else {
        prompt_signature(problem, out);
    }
    buf_addf(out, "\n{\n    /* To be written: what %s computes, into %s. */\n}\n", what,
             problem->outputs[0].name);
}

static void print_next(const struct settings *settings, const char *name,
                       const struct problem *problem, const struct language *language)
{
    const struct target *target = target_find(settings->search.backend);
    const char *suffix = language->suffixes[0];
    const char *folder = problem_starts_folder(problem, language_folder(target, language));
    char option[80] = "";
    BUF_LOCAL(text, SKELETON_MOST);
    put_skeleton(problem, language, &text);
    if (settings_given(settings, offsetof(struct settings, search.backend)))
        snprintf(option, sizeof option, " --backend %s", target->name);
    if (settings->search.language != NULL)
        snprintf(option + strlen(option), sizeof option - strlen(option), " --language %s",
                 settings->search.language);
    printf("\nfirst%s, which compiles and is not right yet:\n\n%s\nnext\n"
           "  twagent eval %s first%s%s     until it is a kernel\n"
           "  mkdir -p %s && cp first%s %s/     then twagent run %s%s searches from there\n"
           "  twagent run %s%s --model NAME     asks a model for the first kernel as well\n",
           suffix, buf_text(&text), name, suffix, option, folder, suffix, folder, name, option,
           name, option);
}

int no_starts(const struct settings *settings, const char *name)
{
    struct problem *problem;
    struct err ignored;
    const char *paths[1];
    const struct language *chosen[TARGET_FOLDERS_MAX];
    const struct target *target = target_find(settings->search.backend);
    size_t languages = target_choose(target, settings->search.language, chosen), found = 0;
    if (languages == 0) /* the search says it */
        return -1;
    if (problem_load_with(name, settings->search.python, &problem, &ignored))
        return -1;
    for (size_t i = 0; i < languages; i++)
        found += problem_starts(problem, language_folder(target, chosen[i]), paths, 1);
    if (found > 0) {
        problem_free(problem);
        return -1;
    }
    fprintf(stderr,
            "twagent: %s: nothing to begin a search with: no starts in %s, and no --model\n", name,
            problem_starts_folder(problem, language_folder(target, chosen[0])));
    int code = problem_check_one(settings, name);
    if (code == 0 || code == EXIT_NONE) {
        print_next(settings, name, problem,
                   settings->search.language != NULL ? chosen[0] : language_of_text(target, ""));
        code = EXIT_USAGE;
    }
    problem_free(problem);
    return code;
}
