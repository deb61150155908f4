#include "eval/cpu/artifact.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool mentions(const char *bytes, size_t length, const char *word)
{
    return memmem(bytes, length, word, strlen(word)) != NULL;
}

struct artifact_needs artifact_inspect(int fd)
{
    static const char *const makers[] = {"pthread_create", "thrd_create", "_M_start_thread",
                                         "libopenblas",    "libblas",     "libcblas",
                                         "libmkl",         "libtbb",      "libblis"};
    struct artifact_needs needs = {0};
    off_t length = lseek(fd, 0, SEEK_END);
    if (length <= 0)
        return needs;
    void *memory = mmap(NULL, (size_t)length, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        return needs;
    if (mentions(memory, (size_t)length, "GOMP_parallel"))
        needs.openmp = "libgomp.so.1";
    else if (mentions(memory, (size_t)length, "libomp.so.5")) /* clang needs it, used or not */
        needs.openmp = "libomp.so.5";
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
        needs.own_threads |= mentions(memory, (size_t)length, makers[i]);
    munmap(memory, (size_t)length);
    return needs;
}

bool artifact_may_load(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash != NULL ? slash + 1 : path, ARTIFACT_BASELINE) == 0;
}
