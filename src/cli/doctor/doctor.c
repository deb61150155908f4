/* twagent doctor: what this machine has, what it lacks, and what that costs.
 *
 *   ASKING (a worker without a problem says what its lane is) -> done
 */
#include "base/buf.h"
#include "base/mem.h"
#include "base/quota.h"
#include "cli/doctor/adversarial.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "cli/print/display.h"
#include "eval/lane/lane.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

static void print_scalar(const char *key, const struct value *item)
{
    if (item->kind == VALUE_REAL && strstr(key, "bytes_per_s") && item->real > 0)
        printf("  %-20s %.1f GB/s\n", key, item->real / 1e9);
    else if (strstr(key, "flops_per_s") && item->real > 0)
        printf("  %-20s %.0f GFLOP/s\n", key, item->real / 1e9);
    else if (item->kind == VALUE_INT)
        printf("  %-20s %lld\n", key, (long long)item->integer);
    else if (item->kind == VALUE_REAL)
        printf("  %-20s %.4g\n", key, item->real);
    else if (item->kind == VALUE_BOOL)
        printf("  %-20s %s\n", key, item->boolean ? "yes" : "no");
    else
        printf("  %-20s %s\n", key, item->kind == VALUE_TEXT ? item->text : "not known");
}

static void print_object(const char *title, const struct value *object)
{
    if (!object || object->kind != VALUE_MAP || object->count == 0)
        return;
    printf("%s\n", title);
    for (size_t i = 0; i < object->count; i++) {
        const struct value *item = object->items[i];
        if (item->kind == VALUE_LIST) {
            printf("  %-20s", object->keys[i]);
            for (size_t j = 0; j < item->count; j++)
                printf(" %lld", (long long)item->items[j]->integer);
            putchar('\n');
        } else if (item->kind == VALUE_MAP) {
            for (size_t j = 0; j < item->count; j++)
                print_scalar(item->keys[j], item->items[j]);
        } else {
            print_scalar(object->keys[i], item);
        }
    }
}

/* What of the walls around candidates this kernel, or the container, does not give. */
static int print_walls(const struct value *device)
{
    const struct value *sandbox = value_get(device, "sandbox");
    bool seccomp = value_bool(sandbox, "seccomp", true);
    if (!seccomp)
        printf("  MISSING  seccomp: system calls are not filtered, so that a candidate could\n"
               "           reach this user's processes and its own verdict: run and eval\n"
               "           refuse, or with --unconfined go on and say so in every line.\n"
               "           Needed: CONFIG_SECCOMP_FILTER, no container profile against it\n");
    if (value_int(sandbox, "landlock", 1) == 0)
        printf("  WARNING  no Landlock: files that this user can read are not hidden from\n"
               "           candidates and compilers; verdicts say so. Needed: Linux 5.13,\n"
               "           \"landlock\" in /sys/kernel/security/lsm\n");
    return !seccomp;
}

/* A line for each thing that is missing, with what it costs. Returns how many forbid the work. */
static int print_findings(const char *backend, const struct value *answer, const char *folder)
{
    const struct value *versions = value_get(answer, "versions");
    BUF_LOCAL(own, 1 << 14);
    int fatal = backends_find(backend)->findings(answer, &own);
    printf("findings\n%s", buf_text(&own));
    if (!value_get(versions, "numpy")) {
        printf("  MISSING  a Python with numpy, for references: apt-get install python3-numpy, or "
               "--python PATH\n");
        fatal++;
    }
    fatal += print_walls(value_get(answer, "device"));
    struct statvfs disk;
    if (statvfs(folder, &disk) == 0 && (double)disk.f_bavail * (double)disk.f_frsize < 1e9)
        printf("  WARNING  less than 1 GB free where the store is (%s)\n", folder);
    if (fatal == 0)
        printf("  ok       everything that a run needs is here\n");
    return fatal;
}

/* No lane could be opened: what the backend's is made of, and what of it is missing. */
static void print_without_lane(const struct settings *settings, const struct err *err)
{
    if (settings->json) {
        JSON_LOCAL(json, text, 1 << 16);
        json_object(&json);
        json_put_text(&json, "backend", settings->search.backend);
        json_put_text(&json, "error", err->message);
        json_object_end(&json);
        printf("%s\n", buf_text(&text));
        fflush(stdout);
    }
    const struct backend *backend = backends_find(settings->search.backend);
    if (settings->json || !backend->describe)
        return;
    BUF_LOCAL(found, 1 << 14);
    backend->describe();
    if (backend->findings(NULL, &found) > 0)
        printf("findings\n%s", buf_text(&found));
    fflush(stdout); /* before what stderr says */
}

static void print_limit(const char *name, int resource, double unit, const char *words)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        printf("  %-20s %.7g %s\n", name, (double)limit.rlim_cur / unit, words);
}

/* What of the machine is this job's; nothing is said of what has no limit. */
static void print_limits(void)
{
    struct quota quota;
    quota_read(&quota);
    printf("limits of this job\n");
    if (quota.memory_bytes > 0)
        printf("  %-20s %.4g GiB, by its control group, %.4g of them in use\n", "memory",
               (double)quota.memory_bytes / 0x1p30, (double)quota.memory_used / 0x1p30);
    if (quota.cpus > 0)
        printf("  %-20s %.4g, by its control group; held %lld times for more\n", "CPUs", quota.cpus,
               (long long)quota.throttled);
    print_limit("ulimit -v", RLIMIT_AS, 0x1p20, "MiB of addresses");
    print_limit("ulimit -n", RLIMIT_NOFILE, 1, "open files");
    print_limit("ulimit -s", RLIMIT_STACK, 0x1p20, "MiB of stack");
    print_limit("ulimit -u", RLIMIT_NPROC, 1, "processes");
}

static int doctor_report(const struct settings *settings, const struct lane_request *open)
{
    if (open->err.code) {
        print_without_lane(settings, &open->err);
        return command_fail(&open->err);
    }
    if (settings->json) {
        JSON_LOCAL(json, text, 1 << 20);
        json_object(&json);
        lane_put_answer(&json, open->answer);
        json_object_end(&json);
        puts(buf_text(&text));
        return 0;
    }
    char *folder = settings->store ? mem_strdup(settings->store) : store_default_folder();
    print_object("machine", value_get(open->answer, "device"));
    print_limits();
    print_object("versions", value_get(open->answer, "versions"));
    for (size_t i = 0; backends[i]; i++)
        if (backends[i]->describe)
            backends[i]->describe();
    printf("store\n  %-20s %s\n", "folder", folder);
    int fatal = print_findings(settings->search.backend, open->answer, folder);
    mem_free(folder);
    return fatal ? EXIT_ENVIRONMENT : 0;
}

int command_doctor(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct lane_spec spec = settings_lane(settings, NULL);
    struct lane_request open;
    spec.roofline = settings->measure;
    if (settings->adversarial)
        return adversarial_run(settings, count ? arguments[0] : NULL);
    if (count) {
        fprintf(stderr, "twagent: doctor: \"%s\" picks attacks, with --adversarial\n",
                arguments[0]);
        return EXIT_USAGE;
    }
    display_tell_waits(stderr);
    lane_ask(&spec, "doctor", &open, NULL, NULL);
    int code = doctor_report(settings, &open);
    arena_free(open.arena);
    return code;
}
