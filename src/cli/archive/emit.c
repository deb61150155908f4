/* twagent emit ID DIR: a kernel of the store as a folder that works without twagent. */
#include "eval/emit/emit.h"

#include "base/file.h"
#include "cli/find/find.h"
#include "cli/find/history.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "cli/print/run_words.h"
#include "eval/problem/torch.h"
#include "report/words.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { RECORD_MOST = 64 << 20 };

static bool is(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

/* ---- which kernel ---- */

static int read_tune(struct emission *e, const char *text, struct err *err)
{
    struct value *root;
    if (!text || value_parse_json(e->arena, "tune", text, strlen(text), &root, err))
        return -1;
    tune_at(e->candidate, 0, &e->tune);
    for (size_t i = 0; i < root->count; i++)
        if (names_set(&e->tune, root->keys[i], root->items[i]->integer, err))
            return -1;
    return 0;
}

/* What the speed-up is worth to whoever finds the folder. */
static const char *worth(const struct emission *e, const struct run_record *run)
{
    if (!run->verified || !is(run->best, e->id))
        return "not verified";
    if (*run->noise)
        return run->finding;
    return arena_printf(e->arena, "verified: %s",
                        words_finding(run->finding, run->win, run->speedup_high));
}

static const char *title_of(const struct emission *e, const struct evaluation *last,
                            const struct run_record *run)
{
    char time[32];
    const struct interval *speedup = &last->speedup;
    const struct value *device = value_get(e->evaluation, "device");
    const char *on = value_text(device, "gpu", value_text(device, "cpu", NULL));
    return arena_printf(
        e->arena, "%s, %s: %s, %s, %s%s%s", e->problem->name, e->id,
        run_words_speedup(e->arena, speedup->median, speedup->low, speedup->high, last->baseline),
        worth(e, run),
        words_time_by(last->time_ns.median, speedup->median, speedup->low, speedup->high, time),
        on ? " on " : "", on ? on : "");
}

/* Everything but the folder. */
static int open_emission(struct emission *e, const struct settings *settings, struct store *store,
                         const char *id, struct err *err)
{
    struct candidate_record record = {0};
    struct run_record run = {0};
    if (find_kernel(store, e->arena, id, &record, &run, err))
        return -1;
    if (!is(record.state, "kept"))
        return err_set(err, ERR_USAGE, "%s is no kernel: %s %s", record.id, record.state,
                       record.reason);
    const char *source = history_source(store, e->arena, &record);
    if (!source)
        return err_set(err, ERR_ENVIRONMENT, "the source of %s is not in the store", record.id);
    const char *path = settings->search.problem ? command_path(e->arena, settings->search.problem)
                                                : run.problem_file;
    if (find_same_definition(e->arena, &run, path, err) ||
        problem_load_with(path, settings->search.python, &e->problem, err))
        return err_wrap(err, "the problem of %s (--problem names another place)", run.id);
    if (candidate_parse(e->problem, record.name, source, strlen(source), &e->candidate, err) ||
        !e->candidate || read_tune(e, record.tune, err))
        return -1;
    struct evaluation last = {.time_ns = {.median = record.time_ns},
                              .speedup = {.median = record.speedup,
                                          .low = record.speedup_low,
                                          .high = record.speedup_high},
                              .baseline = *run.baseline ? run.baseline : "its baseline"};
    e->id = record.id;
    e->evaluation = history_evaluation(store, e->arena, record.id);
    if (e->evaluation && evaluation_from_value(e->arena, e->evaluation, &last, err))
        return -1;
    e->title = title_of(e, &last, &run);
    if (!settings->unchecked_shapes)
        emit_limits(e);
    return 0;
}

/* ---- the folder ---- */

static int make_folder(struct emission *e, const char *word, struct err *err)
{
    if (file_exists(word))
        return err_set(err, ERR_USAGE, "%s: is there already; name a folder that is not", word);
    if (file_make_dirs(word, err))
        return -1;
    (void)chmod(word, 0755);
    e->folder = command_path(e->arena, arena_printf(e->arena, "%s/.", word));
    return 0;
}

static int write_evidence(const struct emission *e, struct err *err)
{
    if (!e->evaluation)
        return 0;
    JSON_LOCAL(json, text, RECORD_MOST);
    json_value(&json, e->evaluation);
    buf_add_char(&text, '\n');
    return emit_write(e, "evidence.json", &text, err);
}

struct written {
    const char *folder, *form;
    const char *note;   /* or NULL */
    const char *test;   /* a command */
    const char *beyond; /* what it does at a larger size */
};

/* In the emitters' forms: C has nothing to fall back to, nor has a browser. */
static const char *beyond_words(const struct emission *e, const char *form)
{
    if (is(form, "c") || is(form, "web"))
        return "it refuses what is larger (--unchecked-shapes does not)";
    if (is(form, "numpy") && e->problem->reference_kind != REFERENCE_PYTHON)
        return "it refuses what is larger, since the definition is no Python (--unchecked-shapes "
               "does not)";
    return "beyond it the definition runs in the kernel's place, with one warning "
           "(--unchecked-shapes: the kernel)";
}

static void say(const struct emission *e, const struct written *written, bool as_json)
{
    JSON_LOCAL(json, text, 1 << 16);
    json_object(&json);
    json_put_text(&json, "id", e->id);
    json_put_text(&json, "folder", written->folder);
    json_put_text(&json, "form", written->form);
    json_put_text(&json, "title", e->title);
    json_put_text(&json, "note", written->note);
    emit_put_limits(e, &json, "checked_up_to");
    json_put_text(&json, "test", written->test);
    json_object_end(&json);
    if (as_json) {
        printf("%s\n", buf_text(&text));
        return;
    }
    printf("wrote %s: %s\n", written->folder, e->title);
    if (e->checked_up_to.count > 0)
        printf("  checked up to %s: %s\n", emit_limits_words(e), written->beyond);
    if (written->note)
        printf("  %s\n", written->note);
    printf("  test it: %s\n", written->test);
}

static int write_all(struct emission *e, const struct settings *settings, const char *word,
                     struct err *err)
{
    const char *form = settings->to;
    const struct target *target = language_target(e->candidate->language);
    const struct emitter *emitter = backends_find(target->name)->emitter;
    bool known = false;
    const char *note = NULL;
    if (!emitter)
        return err_set(err, ERR_UNSUPPORTED,
                       "%s is a kernel of the backend %s, which writes no folders", e->id,
                       target->name);
    form = form ? form : emitter->forms[0];
    BUF_LOCAL(forms, 100);
    for (size_t i = 0; emitter->forms[i]; i++) {
        known = known || is(form, emitter->forms[i]);
        buf_addf(&forms, "%s%s", i ? " or " : "", emitter->forms[i]);
    }
    int failed = known ? make_folder(e, word, err)
                       : err_set(err, ERR_USAGE, "%s is a kernel of the backend %s: --to %s", e->id,
                                 target->name, buf_text(&forms));
    if (failed || emitter->emit(e, form, &note, err) || write_evidence(e, err))
        return -1;
    const char *test = is(form, "c") ? arena_printf(e->arena, "sh %s/build.sh test", word)
                       : is(form, "web")
                           ? arena_printf(e->arena, "%s/index.html in a browser", word)
                           : arena_printf(e->arena, "python3 %s/test.py", word);
    const struct written written = {word, form, note, test, beyond_words(e, form)};
    say(e, &written, settings->json);
    return 0;
}

int command_emit(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct emission emission = {.arena = arena_new()};
    struct store *store = NULL;
    struct err err = {0};
    (void)count;
    int failed = history_open(settings, &store, &err) ||
                 open_emission(&emission, settings, store, arguments[0], &err);
    if (failed && err.code == ERR_NOT_FOUND)
        failed = find_no_id(settings, store, emission.arena, arguments[0], &err);
    store_close(store);
    if (!failed && emission.candidate)
        failed = write_all(&emission, settings, arguments[1], &err);
    candidate_free(emission.candidate);
    problem_free(emission.problem);
    arena_free(emission.arena);
    return failed ? command_fail(&err) : 0;
}
