#include "eval/cpu/left.h"

#include "base/hash.h"
#include "eval/cpu/private.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

/* ---- the calling thread's registers ---- */

#if defined(__x86_64__)
/* Sticky flags are no state that anybody counts on: any division may set one. */
static bool read_registers(int thread, struct left *left)
{
    enum { STICKY = 0x3f, EXCEPTIONS = 0x1f80, ROUNDING = 0x6000, FLUSHING = 0x8040 };
    enum { X87_EXCEPTIONS = 0x3f, DIRECTION = 0x400, ALIGNMENT = 0x40000 };
    struct user_fpregs_struct floats;
    struct user_regs_struct general;
    struct iovec places[] = {{&floats, sizeof floats}, {&general, sizeof general}};
    if (ptrace(PTRACE_GETREGSET, thread, (void *)(uintptr_t)NT_PRFPREG, &places[0]) != 0 ||
        ptrace(PTRACE_GETREGSET, thread, (void *)(uintptr_t)NT_PRSTATUS, &places[1]) != 0)
        return false;
    left->rounding = (floats.mxcsr & ROUNDING) | (uint64_t)(floats.cwd & ~X87_EXCEPTIONS) << 16;
    left->flushing = floats.mxcsr & FLUSHING;
    left->exceptions = (floats.mxcsr & EXCEPTIONS) | (uint64_t)(floats.cwd & X87_EXCEPTIONS) << 16;
    left->stack = floats.ftw;
    left->direction = general.eflags & (DIRECTION | ALIGNMENT);
    return true;
}
#elif defined(__aarch64__)
static bool read_registers(int thread, struct left *left)
{
    enum { ROUNDING = 3 << 22, FLUSHING = 1 << 24 | 1 << 19, EXCEPTIONS = 0x9f00 };
    struct user_fpsimd_struct floats;
    struct iovec place = {&floats, sizeof floats};
    if (ptrace(PTRACE_GETREGSET, thread, (void *)(uintptr_t)NT_PRFPREG, &place) != 0)
        return false;
    left->rounding = floats.fpcr & ROUNDING;
    left->flushing = floats.fpcr & FLUSHING;
    left->exceptions = floats.fpcr & EXCEPTIONS;
    return true;
}
#else
static bool read_registers(int thread, struct left *left)
{
    (void)thread;
    (void)left;
    return false;
}
#endif

/* In a stop of its group a thread can be seized at once, and is stopped again when it is let go. */
static void look_at_registers(int pid, struct left *left)
{
    int status;
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
        return;
    if (!thread_await_stop(pid, pid, &status))
        return;
    left->traced = read_registers(pid, left);
    (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

/* ---- its memory ---- */

uint64_t left_mapped_at(int pid, ino_t inode)
{
    char path[64], line[512];
    uint64_t from = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    while (from == 0 && fgets(line, sizeof line, file) != NULL) {
        char *at = line, *fields[6] = {NULL}; /* from-to rights offset device inode path */
        for (size_t i = 0; i < 6; i++)
            fields[i] = strsep(&at, " ");
        if (fields[4] != NULL && strtoull(fields[2], NULL, 16) == 0 &&
            strtoull(fields[4], NULL, 10) == inode)
            from = strtoull(fields[0], NULL, 16);
    }
    fclose(file);
    return from;
}

static ssize_t read_memory(int pid, uint64_t at, void *to, size_t bytes)
{
    const struct iovec own = {to, bytes}, theirs = {(void *)(uintptr_t)at, bytes};
    return at == 0 ? -1 : process_vm_readv(pid, &own, 1, &theirs, 1, 0);
}

/* The runner is this program once more, with the same libraries elsewhere. */
static uint64_t place_there(int pid, const char *name)
{
    Dl_info info;
    struct stat status;
    void *here = dlsym(RTLD_DEFAULT, name);
    if (here == NULL || dladdr(here, &info) == 0 || info.dli_fbase == NULL)
        return 0;
    const char *file = strchr(info.dli_fname, '/') != NULL ? info.dli_fname : "/proc/self/exe";
    uint64_t base = stat(file, &status) == 0 ? left_mapped_at(pid, status.st_ino) : 0;
    return base == 0 ? 0 : base + (uint64_t)((char *)here - (char *)info.dli_fbase);
}

struct left_places left_find(int pid)
{
    return (struct left_places){place_there(pid, "environ"), place_there(pid, "_nl_msg_cat_cntr")};
}

/* Where its list of variables is, and what it says. */
static uint64_t hash_environment(int pid, uint64_t at)
{
    enum { VARIABLES = 64, LONGEST = 256 };
    uint64_t list = 0, entries[VARIABLES] = {0}, sum = 0;
    char text[LONGEST];
    if (read_memory(pid, at, &list, sizeof list) != (ssize_t)sizeof list)
        return 0;
    ssize_t got = read_memory(pid, list, entries, sizeof entries);
    sum = hash_checksum(&list, sizeof list, 1);
    for (size_t i = 0; got > 0 && i < (size_t)got / sizeof entries[0] && entries[i] != 0; i++) {
        ssize_t bytes = read_memory(pid, entries[i], text, sizeof text);
        size_t length = bytes > 0 ? strnlen(text, (size_t)bytes) : 0;
        sum = hash_checksum(text, length, sum ^ entries[i]);
    }
    return sum;
}

/* libc counts how often setlocale() has set one: here there is none but C. */
static uint64_t count_locales(int pid, uint64_t at)
{
    int changes = 0;
    ssize_t got = read_memory(pid, at, &changes, sizeof changes);
    return got == (ssize_t)sizeof changes ? (uint64_t)changes : 0;
}

/* ---- the kernel's account ---- */

static void read_status(int pid, struct left *left)
{
    const uint64_t of_libc = UINT64_C(3) << 31; /* signals 32 and 33 */
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        if (colon == NULL)
            continue;
        *colon++ = '\0';
        if (strcmp(line, "VmData") == 0)
            left->memory_bytes = strtoull(colon, NULL, 10) << 10;
        else if (strcmp(line, "Threads") == 0)
            left->threads = (unsigned)strtoul(colon, NULL, 10) - 1;
        else if (strcmp(line, "SigBlk") == 0)
            left->blocked = strtoull(colon, NULL, 16) & ~of_libc;
        else if (strcmp(line, "SigIgn") == 0)
            left->ignored = strtoull(colon, NULL, 16) & ~of_libc;
        else if (strcmp(line, "SigCgt") == 0)
            left->handled = strtoull(colon, NULL, 16) & ~of_libc;
    }
    if (file != NULL)
        fclose(file);
}

static uint64_t count_files(int pid)
{
    char path[64];
    uint64_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

static uint64_t folder_of(int pid)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/cwd", pid);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

/* Its memory is the first thing that goes when a process ends, so that it is asked for last. */
bool left_look(int pid, const struct left_places *places, struct left *left)
{
    *left = (struct left){0};
    look_at_registers(pid, left);
    left->files = count_files(pid);
    left->folder = folder_of(pid);
    left->environment = hash_environment(pid, places->environment);
    left->locale = count_locales(pid, places->locales);
    read_status(pid, left);
    return left->memory_bytes > 0;
}

const char *left_change(const struct left *before, const struct left *after, bool loading)
{
    const struct {
        uint64_t before, after;
        const char *name;
        bool kept; /* where it is known of both, and counts */
    } facts[] = {
        {before->rounding, after->rounding, "the rounding mode or precision of its arithmetic",
         true},
        {before->flushing, after->flushing, "how denormal numbers are treated", !loading},
        {before->exceptions, after->exceptions, "which floating-point exceptions trap", true},
        {before->stack, after->stack, "the x87 or MMX registers in use", true},
        {before->direction, after->direction, "the direction or alignment flag", true},
        {before->blocked, after->blocked, "the mask of blocked signals", true},
        {before->ignored, after->ignored, "which signals are ignored", true},
        {before->handled, after->handled, "the handlers of signals", true},
        {before->environment, after->environment, "the environment", true},
        {before->locale, after->locale, "the locale", true},
        {before->files, after->files, "the open files", true},
        {before->folder, after->folder, "the current folder", true},
    };
    bool traced = before->traced && after->traced;
    for (size_t i = traced ? 0 : 5; i < sizeof facts / sizeof facts[0]; i++)
        if (facts[i].kept && facts[i].before != facts[i].after)
            return facts[i].name;
    return NULL;
}
