/* twagent pause, twagent stop: a word to a run that goes on in another terminal. */
#include "cli/find/control.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/find/find.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

char *control_folder(const struct settings *settings)
{
    return settings->store ? mem_strdup(settings->store) : store_default_folder();
}

/* The owner's lock is one of its process (store/owner), so the kernel knows whose. */
pid_t control_owner(const char *folder)
{
    struct flock holder = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    MEM_LOCAL char *path = file_join(folder, "owner.lock");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    int failed = fcntl(fd, F_GETLK, &holder);
    close(fd);
    if (failed || holder.l_type == F_UNLCK)
        return 0;
    return holder.l_pid > 0 ? holder.l_pid : -1;
}

bool control_is_live(const char *folder, const struct run_record *run)
{
    return run->pid > 0 && strcmp(run->state, "running") == 0 && control_owner(folder) == run->pid;
}

int control_find(const struct settings *settings, struct arena *arena, const char *folder,
                 const char *id, bool any, struct run_record *run, struct err *err)
{
    struct store *store = NULL;
    struct run_record *runs;
    size_t count;
    int failed = -1;
    if (history_open(settings, &store, err)) {
        if (err->code == ERR_NOT_FOUND)
            (void)err_set(err, ERR_USAGE, "no runs yet; begin with: twagent run conv2d");
    } else if (id) {
        failed = history_run(store, arena, id, run, err);
        if (failed && err->code == ERR_NOT_FOUND)
            failed = find_no_id(settings, store, arena, id, err);
    } else if (history_runs(store, arena, &runs, &count, err) == 0) {
        for (size_t i = count; failed && i-- > 0;)
            if (control_is_live(folder, &runs[i])) {
                *run = runs[i];
                failed = 0;
            }
        if (failed && any && count > 0) {
            *run = runs[count - 1];
            failed = 0;
        }
        if (failed)
            (void)err_set(err, ERR_USAGE, "no run goes on now: name one (twagent list)");
    }
    store_close(store);
    return failed;
}

static int not_live(const char *folder, const struct run_record *run, struct err *err)
{
    pid_t owner = control_owner(folder);
    if (strcmp(run->state, "running") != 0)
        return err_set(err, ERR_NOT_FOUND, "%s does not go on now: %s%s%s", run->id, run->state,
                       *run->stopped ? ": " : "", run->stopped);
    if (owner == -1)
        return err_set(err, ERR_NOT_FOUND, "%s goes on where this process cannot reach it: %s",
                       run->id, "in another container or on another machine");
    return err_set(err, ERR_NOT_FOUND, "%s died; go on with: twagent resume %s", run->id, run->id);
}

int control_signal(const char *folder, const struct run_record *run, int signal_number,
                   struct err *err)
{
    if (!control_is_live(folder, run))
        return not_live(folder, run, err);
    /* A descriptor of the process, and the lock looked at again: its number cannot be another's. */
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)run->pid, 0);
    int failed = 0;
    if (fd < 0 && errno == ENOSYS)
        failed = kill((pid_t)run->pid, signal_number);
    else if (fd < 0 || !control_is_live(folder, run))
        failed = not_live(folder, run, err);
    else
        failed = (int)syscall(SYS_pidfd_send_signal, fd, signal_number, NULL, 0);
    if (failed && err->code == ERR_NONE)
        failed = err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot reach process %lld of %s",
                               (long long)run->pid, run->id);
    if (fd >= 0)
        close(fd);
    return failed ? -1 : 0;
}

bool control_await_pause(const struct settings *settings, const char *id, bool paused, unsigned ms)
{
    enum { STEP_MS = 100 };
    for (unsigned waited = 0; waited < ms; waited += STEP_MS) {
        struct arena *arena = arena_new();
        struct store *store = NULL;
        struct run_record run;
        struct err ignored;
        bool is = history_open(settings, &store, &ignored) == 0 &&
                  history_run(store, arena, id, &run, &ignored) == 0 &&
                  (*run.paused != '\0') == paused;
        store_close(store);
        arena_free(arena);
        if (is)
            return true;
        poll(NULL, 0, STEP_MS);
    }
    return false;
}

/* ---- the commands ---- */

enum { PAUSE_WAIT_MS = 5000, STOP_WAIT_MS = 20000 };

/* One fact, for a program or for a person. */
static void say(const struct settings *settings, const char *id, const char *state,
                const char *sentence)
{
    JSON_LOCAL(json, text, 4096);
    json_object(&json);
    json_put_text(&json, "run", id);
    json_put_text(&json, "state", state);
    json_object_end(&json);
    if (settings->json)
        printf("%s\n", buf_text(&text));
    else if (!settings->quiet)
        printf("%s %s; go on with: twagent resume %s\n", id, sentence, id);
}

static int pause_run(const struct settings *settings, const char *folder,
                     const struct run_record *run, struct err *err)
{
    if (control_signal(folder, run, SIGUSR1, err))
        return -1;
    bool seen = control_await_pause(settings, run->id, true, PAUSE_WAIT_MS);
    say(settings, run->id, seen ? "paused" : "running",
        seen ? "is paused: what is under way ends and is kept"
             : "was told to pause: what is under way ends and is kept");
    return 0;
}

/* Gone means that the store has no owner, or another one. */
static int stop_run(const struct settings *settings, const char *folder,
                    const struct run_record *run, struct err *err)
{
    enum { STEP_MS = 100 };
    if (control_signal(folder, run, SIGTERM, err))
        return -1;
    for (unsigned waited = 0; waited < STOP_WAIT_MS; waited += STEP_MS) {
        if (control_owner(folder) != run->pid) {
            say(settings, run->id, "stopped", "is stopped");
            return 0;
        }
        poll(NULL, 0, STEP_MS);
    }
    return err_set(err, ERR_TIMEOUT, "%s was told to stop, but process %lld is still there",
                   run->id, (long long)run->pid);
}

static int control(const struct settings *settings, const char *const *arguments, size_t count,
                   int (*act)(const struct settings *, const char *, const struct run_record *,
                              struct err *))
{
    ARENA_LOCAL(arena);
    MEM_LOCAL char *folder = control_folder(settings);
    struct run_record run;
    struct err err = {0};
    int code = 0;
    if (control_find(settings, arena, folder, count ? arguments[0] : NULL, false, &run, &err) ||
        act(settings, folder, &run, &err)) {
        code = command_fail(&err);
        if (err.code == ERR_NOT_FOUND) /* the run is there, but nothing to act on */
            code = EXIT_NONE;
    }
    return code;
}

int command_pause(const struct settings *settings, const char *const *arguments, size_t count)
{
    return control(settings, arguments, count, pause_run);
}

int command_stop(const struct settings *settings, const char *const *arguments, size_t count)
{
    return control(settings, arguments, count, stop_run);
}
