#include "agents/search/run/space.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { LEVELS_MOST = 16, BLOCK_BYTES = 512 }; /* st_blocks counts these on every file system */

/* What the files take on the disk, not their lengths: the store's map is mostly a hole. Takes the
 * descriptor. */
static int64_t folder_bytes(int fd, int level)
{
    DIR *dir = fdopendir(fd);
    int64_t bytes = 0;
    if (!dir) {
        close(fd);
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        bytes += (int64_t)status.st_blocks * BLOCK_BYTES;
        if (!S_ISDIR(status.st_mode) || level >= LEVELS_MOST)
            continue;
        int child =
            openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (child >= 0)
            bytes += folder_bytes(child, level + 1);
    }
    closedir(dir);
    return bytes;
}

static void add_size(struct buf *out, int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    int unit = 0;
    for (; unit < 4 && size >= 1024; unit++)
        size /= 1024;
    buf_addf(out, "%.*f %s", unit && size < 100 ? 1 : 0, size, units[unit]);
}

bool space_left(const char *folder, int64_t quota, int64_t least_free, struct buf *why)
{
    struct statvfs disk;
    int fd = quota > 0 ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int64_t taken = fd >= 0 ? folder_bytes(fd, 0) : 0;
    if (quota > 0 && taken > quota) {
        buf_addf(why, "%s takes ", folder);
        add_size(why, taken);
        buf_add_text(why, ", and --disk-quota is ");
        add_size(why, quota);
        return false;
    }
    if (least_free <= 0 || statvfs(folder, &disk) != 0 || disk.f_blocks == 0)
        return true;
    int64_t left = (int64_t)((double)disk.f_bavail * (double)disk.f_frsize);
    if (left >= least_free)
        return true;
    buf_addf(why, "the disk of %s has ", folder);
    add_size(why, left);
    buf_add_text(why, " left, and --disk-floor is ");
    add_size(why, least_free);
    return false;
}
