#include "base/kept.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A file: this, then the key and what is kept. */
struct head {
    char magic[8];
    uint64_t key_bytes, bytes;
    struct hash hash; /* of the two */
};
static const char magic[8] = "twkept01";

enum { STALE_S = 3600, NAMES_MOST = 4096 };

struct place { /* of one key */
    char *shelf;
    char name[33];
};

/* ---- where ---- */

/* One of ours, that nobody else can write to. */
static bool is_private(const struct stat *status)
{
    return status->st_uid == geteuid() && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static void place_open(const char *folder, const struct buf *key, struct place *place)
{
    hash_format(hash_bytes(key->data, key->length), place->name);
    const char shelf[] = {place->name[0], '\0'};
    place->shelf = file_join(folder, shelf);
}

/* A descriptor of the shelf; -1: none that can be trusted. */
static int open_shelf(const struct place *place)
{
    struct stat status;
    int shelf = open(place->shelf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (shelf >= 0 && (fstat(shelf, &status) != 0 || !is_private(&status))) {
        close(shelf);
        shelf = -1;
    }
    return shelf;
}

/* ---- one file ---- */

/* mem_free() it; NULL: not a whole file of ours, for whatever reason. */
static char *read_file(int fd, struct head *head)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !is_private(&status) ||
        status.st_size < (off_t)sizeof *head || status.st_size > KEPT_FILE_BYTES)
        return NULL;
    size_t length = (size_t)status.st_size, rest = length - sizeof *head;
    char *bytes = (char *)mem_alloc(length);
    bool fine = file_read_at(fd, bytes, length, 0) == (ssize_t)length;
    memcpy(head, bytes, sizeof *head);
    fine = fine && memcmp(head->magic, magic, sizeof magic) == 0 && head->key_bytes <= rest &&
           head->bytes == rest - head->key_bytes &&
           hash_compare(hash_bytes(bytes + sizeof *head, rest), head->hash) == 0;
    if (fine)
        return bytes;
    mem_free(bytes);
    return NULL;
}

static bool find_in(int shelf, const char *name, const struct buf *key, struct buf *found)
{
    struct head head;
    int fd = openat(shelf, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    MEM_LOCAL char *bytes = read_file(fd, &head);
    bool fine = bytes != NULL && head.key_bytes == key->length &&
                memcmp(bytes + sizeof head, key->data, key->length) == 0;
    if (!fine) {
        (void)unlinkat(shelf, name, 0);
    } else {
        buf_add(found, bytes + sizeof head + head.key_bytes, head.bytes);
        (void)futimens(fd, NULL); /* asked for now */
    }
    close(fd);
    return fine && found->dropped == 0;
}

bool kept_find(const char *folder, const struct buf *key, struct buf *found)
{
    struct place place;
    if (key->dropped > 0)
        return false;
    place_open(folder, key, &place);
    int shelf = open_shelf(&place);
    bool fine = shelf >= 0 && find_in(shelf, place.name, key, found);
    if (shelf >= 0)
        close(shelf);
    mem_free(place.shelf);
    return fine;
}

/* ---- keeping ---- */

struct listed {
    char name[64];
    struct timespec used;
    off_t bytes;
};

static int compare_listed(const void *a, const void *b)
{
    const struct listed *x = (const struct listed *)a, *y = (const struct listed *)b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Temporary files count, so that those of who died are not forgotten; they go after an hour. */
static size_t list_shelf(int shelf, struct listed *list, off_t *bytes)
{
    int copy = openat(shelf, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
    size_t count = 0;
    if (folder == NULL && copy >= 0)
        close(copy);
    for (struct dirent *entry;
         folder != NULL && count < NAMES_MOST && (entry = readdir(folder)) != NULL;) {
        struct stat status;
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof list->name ||
            fstatat(shelf, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (strchr(entry->d_name, '.') != NULL && status.st_mtime + STALE_S < time(NULL)) {
            (void)unlinkat(shelf, entry->d_name, 0);
            continue;
        }
        strcpy(list[count].name, entry->d_name);
        list[count].used = status.st_mtim;
        list[count++].bytes = status.st_size;
        *bytes += status.st_size;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* A sixteenth of the cache is looked through, whenever something was added to it. */
static void bound_shelf(int shelf)
{
    struct listed *list = (struct listed *)mem_array(NAMES_MOST, sizeof *list);
    off_t bytes = 0;
    size_t count = list_shelf(shelf, list, &bytes);
    if (count > KEPT_SHELF_FILES || bytes > KEPT_SHELF_BYTES)
        qsort(list, count, sizeof *list, compare_listed);
    for (size_t i = 0; i < count && (count - i > KEPT_SHELF_FILES || bytes > KEPT_SHELF_BYTES);
         i++) {
        (void)unlinkat(shelf, list[i].name, 0);
        bytes -= list[i].bytes;
    }
    mem_free(list);
}

/* No fsync: what a crash cuts off is found out when it is read. */
static void put(int shelf, const struct place *place, const char *bytes, size_t length)
{
    static _Atomic unsigned puts;
    char name[80];
    snprintf(name, sizeof name, "%.8s.%ld-%u", place->name, (long)getpid(), puts++);
    int fd = openat(shelf, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    bool fine = file_write_all(fd, bytes, length) == 0;
    fine = close(fd) == 0 && fine;
    if (!fine || renameat(shelf, name, shelf, place->name) != 0)
        (void)unlinkat(shelf, name, 0);
}

void kept_put(const char *folder, const struct buf *key, const void *bytes, size_t length)
{
    struct place place;
    struct err ignored;
    struct head head = {.key_bytes = key->length, .bytes = length};
    size_t rest = key->length + length, whole = sizeof head + rest;
    if (key->dropped > 0 || whole > KEPT_FILE_BYTES)
        return;
    place_open(folder, key, &place);
    int shelf = file_make_dirs(place.shelf, &ignored) == 0 ? open_shelf(&place) : -1;
    if (shelf >= 0) {
        MEM_LOCAL char *file = (char *)mem_alloc(whole);
        memcpy(file + sizeof head, key->data, key->length);
        memcpy(file + sizeof head + key->length, bytes, length);
        memcpy(head.magic, magic, sizeof magic);
        head.hash = hash_bytes(file + sizeof head, rest);
        memcpy(file, &head, sizeof head);
        put(shelf, &place, file, whole);
        bound_shelf(shelf);
        close(shelf);
    }
    mem_free(place.shelf);
}
