/* twagent serve: the store's runs in a browser, beside whatever goes on in it. */
#include "serve/serve.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/find/control.h"
#include "cli/options/command.h"
#include "cli/serve/evaluations.h"
#include "cli/serve/site.h"
#include "loop/loop.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Kept in the store's folder, so that a bookmark and a scraper outlast a restart; whoever may read
 * it may read the store. */
static int read_token(const char *folder, char token[SERVE_TOKEN + 1], struct err *err)
{
    BUF_LOCAL(text, 1024);
    MEM_LOCAL char *path = file_join(folder, "serve.token");
    int failed = file_read(path, &text, err);
    bool is = !failed && text.length >= SERVE_TOKEN &&
              strspn(buf_text(&text), "0123456789abcdef") == SERVE_TOKEN;
    if (is) {
        snprintf(token, SERVE_TOKEN + 1, "%.*s", SERVE_TOKEN, buf_text(&text));
    } else if (!failed || err->code == ERR_NOT_FOUND) {
        serve_make_token(token);
        failed = file_make_dirs(folder, err) || file_write(path, token, SERVE_TOKEN, err);
    }
    return failed ? -1 : 0;
}

static int serve(const struct settings *settings, const char *folder, struct err *err)
{
    char token[SERVE_TOKEN + 1];
    struct serve_options options = {.listen = settings->listen, .token = token};
    struct serve *server = NULL;
    struct serve_site site;
    if (read_token(folder, token, err))
        return -1;
    struct loop *loop = loop_new();
    struct evaluations *evaluations = evaluations_open(loop, settings, folder);
    serve_site_open(settings, folder, evaluations, &site);
    int failed = serve_new(loop, &options, &site, &server, err);
    if (failed)
        evaluations_stop(evaluations);
    evaluations_tell(evaluations, server);
    if (!failed) {
        printf("%s  (%s; Ctrl-C ends it, runs go on)\n", serve_url(server), folder);
        fflush(stdout);
    }
    loop_run(loop);
    serve_free(server);
    serve_site_close(&site);
    evaluations_free(evaluations);
    loop_free(loop);
    return failed;
}

int command_serve(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct err err = {0};
    MEM_LOCAL char *folder = control_folder(settings);
    (void)arguments, (void)count;
    umask(077); /* the token's file is nobody else's */
    int failed = serve(settings, folder, &err);
    return failed ? command_fail(&err) : 0;
}
