/* twagent report [RUN]: a run's report again, as text, as the page or as the page's facts. */
#include "cli/find/control.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "cli/print/print.h"
#include "cli/report/fill.h"

#include "base/file.h"
#include "base/mem.h"

#include <stdio.h>

int command_report(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct arena *arena = arena_new();
    struct store *store = NULL;
    struct run_record run;
    struct report report;
    struct buf text;
    struct err err = {0};
    MEM_LOCAL char *folder = control_folder(settings);
    buf_init(&text, (size_t)64 << 20);
    int failed =
        control_find(settings, arena, folder, count ? arguments[0] : NULL, true, &run, &err) ||
        history_open(settings, &store, &err);
    if (!failed) {
        report_fill(store, arena, &run, true, &report);
        if (settings->json)
            report_json(&report, &text);
        else if (settings->html)
            report_html(&report, &text);
        else
            report_text(&report, &text);
        if (settings->json)
            buf_add_char(&text, '\n');
    }
    if (!failed && settings->output)
        failed = file_put(settings->output, text.data, text.length, &err);
    else if (!failed && (settings->json || settings->html))
        fwrite(text.data, 1, text.length, stdout);
    else if (!failed)
        print_lines(buf_text(&text), false);
    if (!failed && settings->output)
        fprintf(stderr, "wrote %s\n", settings->output);
    buf_free(&text);
    store_close(store);
    arena_free(arena);
    return failed ? command_fail(&err) : 0;
}
