/* twagent config, twagent backup: small commands on settings and store. */
#include "base/buf.h"
#include "base/mem.h"
#include "cli/command.h"
#include "store/store.h"

#include <stdio.h>

int command_config(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct buf text;
    (void)arguments, (void)count;
    buf_init(&text, 1 << 20);
    options_show(&settings_table, settings, settings->origins, COMMAND_ALL, &text);
    fputs(buf_text(&text), stdout);
    buf_free(&text);
    return 0;
}

int command_backup(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct err err = {0};
    char *folder = settings->store ? mem_strdup(settings->store) : store_default_folder();
    int failed = store_backup(folder, arguments[0], &err);
    (void)count;
    if (!failed && !settings->quiet)
        printf("copied %s to %s\n", folder, arguments[0]);
    mem_free(folder);
    return failed ? command_fail(&err) : 0;
}
