#include "process/sandbox.h"

#include "process/overseer.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB         ((uint64_t)1 << 20)
#define GIB         ((uint64_t)1 << 30)
#define NO_LIMIT    UINT64_MAX
#define PICK(field) (given->field != 0 ? given->field : own->field)

static const struct profile {
    const char *name;
    struct sandbox_limits limits;
    const char *proc;  /* what of /proc can be read; NULL: nothing */
    int keep;          /* the highest descriptor that stays open for PROGRAM */
    bool system;       /* /usr, /lib and what a loader needs can be read */
    bool overseen;     /* it may start processes, which are to end with it */
    bool keeps_access; /* CAP_DAC_OVERRIDE, if it was there: a user's folder seen by root */
} profiles[SANDBOX_PROFILES] = {
    [SANDBOX_COMPILE] =
        {"compile", {2 * GIB, COMPILE_CPU_S, 64 * MIB, 256}, NULL, 2, true, false, true},
    [SANDBOX_RUNNER] = {"runner", {NO_LIMIT, NO_LIMIT, 1, 64}, NULL, 8, false, false, false},
    [SANDBOX_REFERENCE] =
        {"reference", {NO_LIMIT, NO_LIMIT, 64 * MIB, 1024}, "/proc", 8, true, true, true},
    [SANDBOX_GPU] = {"gpu", {NO_LIMIT, NO_LIMIT, 64 * MIB, 4096}, "/proc", 8, true, true, true},
    [SANDBOX_TOOL] = {"tool", {4 * GIB, 30, 64 * MIB, 256}, NULL, 2, true, false, true},
    [SANDBOX_SANITIZED] =
        {"sanitized", {NO_LIMIT, 60, MIB, 64}, "/proc/self", 5, true, false, false},
    [SANDBOX_AGENT] =
        {"agent", {NO_LIMIT, NO_LIMIT, 256 * MIB, 1024}, "/proc", 8, true, false, true},
};

const char *sandbox_profile_name(enum sandbox_profile profile)
{
    return profiles[profile].name;
}

static bool sandbox_profile_parse(const char *name, enum sandbox_profile *profile)
{
    for (int i = 0; i < SANDBOX_PROFILES; i++)
        if (strcmp(profiles[i].name, name) == 0) {
            *profile = (enum sandbox_profile)i;
            return true;
        }
    return false;
}

static int limit_one(int resource, uint64_t wanted, struct err *err)
{
    if (wanted == NO_LIMIT)
        return 0;
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
        return err_set_errno(err, ERR_IO, errno, "getrlimit");
    /* A second between the two: SIGXCPU first, which tells the limit from somebody's SIGKILL. */
    uint64_t hard = resource == RLIMIT_CPU ? wanted + 1 : wanted;
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > hard)
        limit.rlim_max = hard;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit((__rlimit_resource_t)resource, &limit) != 0)
        return err_set_errno(err, ERR_IO, errno, "setrlimit");
    return 0;
}

static int limit_all(const struct sandbox_limits *own, const struct sandbox_limits *given,
                     struct err *err)
{
    if (limit_one(RLIMIT_CPU, PICK(cpu_s), err) != 0 ||
        limit_one(RLIMIT_FSIZE, PICK(file_bytes), err) != 0 ||
        limit_one(RLIMIT_NOFILE, PICK(files), err) != 0 || limit_one(RLIMIT_CORE, 0, err) != 0)
        return -1;
    return 0;
}

int sandbox_bound_memory(enum sandbox_profile profile, const struct sandbox_limits *given,
                         struct err *err)
{
    const struct sandbox_limits *own = &profiles[profile].limits;
    return limit_one(RLIMIT_AS, PICK(address_bytes), err);
}

static int drop_capabilities(bool keeps_access, struct err *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0)
        return err_set_errno(err, ERR_IO, errno, "capget");
    uint32_t kept = keeps_access ? data[0].permitted & (1u << CAP_DAC_OVERRIDE) : 0;
    memset(data, 0, sizeof data);
    data[0].permitted = data[0].effective = kept;
    if (syscall(SYS_capset, &header, data) != 0)
        return err_set_errno(err, ERR_IO, errno, "capset");
    return 0;
}

int sandbox_confine(enum sandbox_profile profile, const struct sandbox_limits *limits,
                    const struct sandbox_paths *paths, struct err *err)
{
    const struct profile *p = &profiles[profile];
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "no_new_privs");
    if (limit_all(&p->limits, limits, err) != 0 ||
        (profile != SANDBOX_GPU && sandbox_landlock(paths, p->system, p->proc, err) != 0))
        return -1;
    return drop_capabilities(p->keeps_access, err);
}

void sandbox_probe(struct sandbox_facts *facts)
{
    static const char *const missing[2][2] = {
        {"NOT SANDBOXED: no Landlock, no seccomp", "SANDBOX INCOMPLETE: no Landlock"},
        {"NOT SANDBOXED: no seccomp", NULL}};
    uint32_t action = 0x80000000u; /* SECCOMP_RET_KILL_PROCESS */
    facts->landlock_abi = sandbox_landlock_abi();
    facts->seccomp = syscall(SYS_seccomp, 2 /* SECCOMP_GET_ACTION_AVAIL */, 0, &action) == 0;
    facts->missing = missing[facts->landlock_abi > 0][facts->seccomp];
}

void sandbox_describe(const struct sandbox_facts *facts, struct json *json)
{
    json_object(json);
    json_put_int(json, "landlock", facts->landlock_abi);
    json_put_bool(json, "seccomp", facts->seccomp);
    json_put_bool(json, "complete", facts->missing == NULL);
    if (facts->missing != NULL)
        json_put_text(json, "missing", facts->missing);
    json_object_end(json);
}

/* ---- twagent sandbox ---- */

struct request {
    enum sandbox_profile profile;
    struct sandbox_limits limits;
    struct sandbox_paths paths;
    const char *errors;   /* file that takes stderr, or NULL */
    char *const *program; /* argv of PROGRAM */
};

static int parse_limit(struct sandbox_limits *limits, const char *text, struct err *err)
{
    static const struct {
        const char *key;
        size_t offset;
    } keys[] = {{"as=", offsetof(struct sandbox_limits, address_bytes)},
                {"cpu=", offsetof(struct sandbox_limits, cpu_s)},
                {"fsize=", offsetof(struct sandbox_limits, file_bytes)},
                {"nofile=", offsetof(struct sandbox_limits, files)}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t length = strlen(keys[i].key);
        if (strncmp(text, keys[i].key, length) != 0)
            continue;
        char *end;
        errno = 0;
        uint64_t number = strtoull(text + length, &end, 10);
        if (errno != 0 || end == text + length || *end != '\0')
            break;
        memcpy((char *)limits + keys[i].offset, &number, sizeof number);
        return 0;
    }
    return err_set(err, ERR_USAGE, "--limit %s: expected as=, cpu=, fsize= or nofile= NUMBER",
                   text);
}

static int parse_option(struct request *request, const char *name, const char *text,
                        struct err *err)
{
    struct sandbox_paths *paths = &request->paths;
    if (strcmp(name, "--profile") == 0)
        return sandbox_profile_parse(text, &request->profile)
                   ? 0
                   : err_set(err, ERR_USAGE, "--profile %s: no such profile", text);
    if (strcmp(name, "--limit") == 0)
        return parse_limit(&request->limits, text, err);
    if (strcmp(name, "--read") == 0 && paths->read_count < SANDBOX_PATHS_MAX) {
        paths->reads[paths->read_count++] = text;
        return 0;
    }
    if (strcmp(name, "--write") == 0 && paths->write_count < SANDBOX_PATHS_MAX) {
        paths->writes[paths->write_count++] = text;
        return 0;
    }
    if (strcmp(name, "--stderr") == 0) {
        request->errors = text;
        return 0;
    }
    return err_set(err, ERR_USAGE, "%s: no such option, or too many of it", name);
}

static int parse(int argc, char **argv, struct request *request, struct err *err)
{
    *request = (struct request){.profile = SANDBOX_TOOL};
    int i = 0;
    for (; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
        if (i + 1 >= argc)
            return err_set(err, ERR_USAGE, "%s: expected a value", argv[i]);
        if (parse_option(request, argv[i], argv[i + 1], err) != 0)
            return -1;
    }
    if (i + 1 >= argc)
        return err_set(err, ERR_USAGE, "expected -- PROGRAM");
    request->program = argv + i + 1;
    return 0;
}

/* ---- a compiler's children ---- */

static void end_group(int signal_number)
{
    (void)signal_number;
    kill(0, SIGKILL); /* us among them */
}

/* Waits for the driver and ends as it did. */
static int supervise(pid_t child)
{
    siginfo_t info = spawn_reap(child);
    if (info.si_code == CLD_EXITED)
        _exit(info.si_status);
    signal(info.si_status, SIG_DFL);
    raise(info.si_status);
    _exit(128 + info.si_status);
}

/* A driver's children do not inherit that it dies with its parent: a cc1 would go on for minutes
 * after the worker, on cores that somebody times on. So one of us stays above the driver, and takes
 * the group with it. Returns in the process that is to become the driver. */
static int split(struct err *err)
{
    const struct sigaction action = {.sa_handler = end_group}, usual = {.sa_handler = SIG_DFL};
    if (sigaction(SIGTERM, &action, NULL) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0)
        return err_set_errno(err, ERR_IO, errno, "PR_SET_PDEATHSIG");
    pid_t child = spawn_fork();
    if (child < 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "fork");
    if (child > 0)
        return supervise(child);
    sigaction(SIGTERM, &usual, NULL);
    return 0;
}

/* Where memory ends the kernel takes this program and all that it starts before others. */
static void end_first(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "1000", 4);
    if (fd >= 0)
        close(fd);
}

static int become(const struct request *request, struct err *err)
{
    /* Our parent's death is ours; what it started in a group of its own stays in it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        return err_set_errno(err, ERR_IO, errno, "PR_SET_PDEATHSIG");
    if (getpgrp() != getpid() && setpgid(0, 0) != 0)
        return err_set_errno(err, ERR_IO, errno, "setpgid");
    if (request->profile == SANDBOX_COMPILE && split(err) != 0)
        return -1;
    if (request->errors != NULL) {
        int fd = open(request->errors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || dup2(fd, 2) < 0)
            return err_set_errno(err, ERR_IO, errno, "%s", request->errors);
    }
    if (profiles[request->profile].overseen) {
        overseer_start();
        end_first();
    }
    int keep = profiles[request->profile].keep;
    if (close_range((unsigned)keep + 1, ~0u, 0) != 0)
        for (int fd = keep + 1; fd < 1024; fd++)
            close(fd);
    if (sandbox_confine(request->profile, &request->limits, &request->paths, err) != 0 ||
        sandbox_filter(request->profile, NULL, err) != 0 ||
        sandbox_bound_memory(request->profile, &request->limits, err) != 0)
        return -1;
    execv(request->program[0], request->program);
    return err_set_errno(err, ERR_ENVIRONMENT, errno, "%s", request->program[0]);
}

int sandbox_main(int argc, char **argv)
{
    struct request request;
    struct err err;
    if (parse(argc, argv, &request, &err) == 0 && request.program != NULL)
        (void)become(&request, &err);
    fprintf(stderr, "twagent sandbox: %s\n", err.message);
    return err_exit_code(err.code);
}
