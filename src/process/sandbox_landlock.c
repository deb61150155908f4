/* Landlock by raw system calls, since Debian 12's headers and libc know only the first versions.
 * https://docs.kernel.org/userspace-api/landlock.html; each right is asked for only where the
 * running kernel knows it. */
#include "process/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The numbers are the same on every architecture. */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446 };
enum { CREATE_VERSION = 1, RULE_PATH = 1 };

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_REMOVE_DIR = 1 << 4,
    FS_REMOVE_FILE = 1 << 5,
    FS_MAKE_DIR = 1 << 7,
    FS_MAKE_REG = 1 << 8,
    FS_FIRST_13 = (1 << 13) - 1,
    FS_REFER = 1 << 13,    /* version 2 */
    FS_TRUNCATE = 1 << 14, /* version 3 */
    FS_IOCTL_DEV = 1 << 15 /* version 5 */
};

struct ruleset {
    uint64_t handled_fs;
    uint64_t handled_net; /* version 4: TCP bind and connect */
    uint64_t scoped;      /* version 6: abstract unix sockets, signals */
};

struct path_rule {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

static const char *const system_paths[] = {
    "/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache", "/etc/alternatives",
};

int sandbox_landlock_abi(void)
{
    long version = syscall(LANDLOCK_CREATE, NULL, (size_t)0, CREATE_VERSION);
    return version > 0 ? (int)version : 0;
}

static uint64_t rights_known(int abi)
{
    uint64_t rights = FS_FIRST_13;
    if (abi >= 2)
        rights |= FS_REFER;
    if (abi >= 3)
        rights |= FS_TRUNCATE;
    if (abi >= 5)
        rights |= FS_IOCTL_DEV;
    return rights;
}

/* A path that is not there cannot be opened either: no rule is needed. */
static int allow(int ruleset, const char *path, uint64_t rights, struct err *err)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : err_set_errno(err, ERR_ENVIRONMENT, errno, "sandbox: %s", path);
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISCHR(status.st_mode))
        rights &= ~(uint64_t)FS_IOCTL_DEV; /* only a device that is named itself: a GPU's */
    if (fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode))
        rights &= FS_EXECUTE | FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV;
    struct path_rule rule = {.allowed = rights, .parent_fd = fd};
    long result = syscall(LANDLOCK_ADD, ruleset, RULE_PATH, &rule, 0);
    int failed = errno;
    close(fd);
    if (result != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, failed, "Landlock rule for %s", path);
    return 0;
}

static int allow_all(int ruleset, uint64_t known, const struct sandbox_paths *paths, bool system,
                     const char *proc, struct err *err)
{
    const uint64_t read = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
    const uint64_t write =
        (FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR |
         FS_MAKE_REG | FS_TRUNCATE | FS_IOCTL_DEV) &
        known;
    if (allow(ruleset, "/dev/null", FS_READ_FILE | FS_WRITE_FILE, err) != 0)
        return -1;
    size_t count = sizeof system_paths / sizeof system_paths[0];
    for (size_t i = 0; system && i < count; i++)
        if (allow(ruleset, system_paths[i], read, err) != 0)
            return -1;
    if (proc != NULL && allow(ruleset, proc, FS_READ_FILE | FS_READ_DIR, err) != 0)
        return -1;
    for (size_t i = 0; i < paths->read_count; i++)
        if (allow(ruleset, paths->reads[i], read, err) != 0)
            return -1;
    for (size_t i = 0; i < paths->write_count; i++)
        if (allow(ruleset, paths->writes[i], write, err) != 0)
            return -1;
    return 0;
}

int sandbox_landlock(const struct sandbox_paths *paths, bool system, const char *proc,
                     struct err *err)
{
    int abi = sandbox_landlock_abi();
    if (abi == 0)
        return 0; /* sandbox_probe() has said so */
    struct ruleset attributes = {
        .handled_fs = rights_known(abi),
        .handled_net = abi >= 4 ? 3 : 0,
        .scoped = abi >= 6 ? 3 : 0,
    };
    size_t size = abi >= 6   ? sizeof attributes
                  : abi >= 4 ? offsetof(struct ruleset, scoped)
                             : offsetof(struct ruleset, handled_net);
    int ruleset = (int)syscall(LANDLOCK_CREATE, &attributes, size, 0);
    if (ruleset < 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "Landlock ruleset");
    int result = allow_all(ruleset, attributes.handled_fs, paths, system, proc, err);
    if (result == 0 && syscall(LANDLOCK_RESTRICT, ruleset, 0) != 0)
        result = err_set_errno(err, ERR_ENVIRONMENT, errno, "Landlock");
    close(ruleset);
    return result;
}
