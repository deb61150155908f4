/* One ring for each thread of the runner, read after each call. What a sample's address belongs to
 * is looked up in the runner's map afterwards. */
#include "eval/cpu/samples.h"

#include "base/clock.h"
#include "base/mem.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    THREADS_MOST = 32,
    RING_PAGES = 16,
    SAMPLES_MOST = 1 << 15,
    ENOUGH = 1000,
    FREQUENCY = 8000 /* a second and thread */
};
#define USUAL_NS UINT64_C(150000000)
#define MOST_NS  UINT64_C(1500000000) /* on a machine so busy that there are hardly any by then */

struct ring {
    int fd;
    void *memory;
};

struct sampling {
    struct ring rings[THREADS_MOST];
    size_t count, page;
    int failed; /* errno of the first that was not given */
    uint64_t *addresses;
    size_t address_count;
};

/* ---- rings ---- */

static int open_event(int thread)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attributes,
        .config = PERF_COUNT_SW_CPU_CLOCK, /* virtual machines have it, too */
        .freq = 1,
        .sample_freq = FREQUENCY,
        .sample_type = PERF_SAMPLE_IP,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

bool samples_available(void)
{
    int fd = open_event(0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void open_ring(struct sampling *sampling, int thread)
{
    struct ring *ring = &sampling->rings[sampling->count];
    ring->fd = open_event(thread);
    if (ring->fd < 0) {
        sampling->failed = errno;
        return;
    }
    ring->memory = mmap(NULL, (1 + RING_PAGES) * sampling->page, PROT_READ | PROT_WRITE, MAP_SHARED,
                        ring->fd, 0);
    if (ring->memory == MAP_FAILED)
        close(ring->fd);
    else
        sampling->count++;
}

static void open_rings(struct sampling *sampling, int pid)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.' && sampling->count < THREADS_MOST)
            open_ring(sampling, (int)strtol(entry->d_name, NULL, 10));
    closedir(folder);
}

static void switch_rings(const struct sampling *sampling, unsigned long request)
{
    for (size_t i = 0; i < sampling->count; i++)
        ioctl(sampling->rings[i].fd, request, 0);
}

/* A record may lie across the ring's end. */
static void copy_out(const struct sampling *sampling, const struct ring *ring, uint64_t at,
                     void *to, size_t length)
{
    const unsigned char *data = (const unsigned char *)ring->memory + sampling->page;
    size_t size = RING_PAGES * sampling->page;
    for (size_t i = 0; i < length; i++)
        ((unsigned char *)to)[i] = data[(at + i) % size];
}

static void read_ring(struct sampling *sampling, struct ring *ring)
{
    struct perf_event_mmap_page *page = ring->memory;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
    while (tail + sizeof(struct perf_event_header) <= head) {
        struct perf_event_header header;
        uint64_t address;
        copy_out(sampling, ring, tail, &header, sizeof header);
        if (header.size < sizeof header)
            break;
        if (header.type == PERF_RECORD_SAMPLE && sampling->address_count < SAMPLES_MOST) {
            copy_out(sampling, ring, tail + sizeof header, &address, sizeof address);
            sampling->addresses[sampling->address_count++] = address;
        }
        tail += header.size;
    }
    __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

static void close_rings(struct sampling *sampling)
{
    for (size_t i = 0; i < sampling->count; i++) {
        munmap(sampling->rings[i].memory, (1 + RING_PAGES) * sampling->page);
        close(sampling->rings[i].fd);
    }
}

/* ---- whose addresses they are ---- */

struct mapping {
    uint64_t from, to, offset, inode;
    char name[SAMPLES_NAME];
};

/* "7f12...-7f13... r-xp 00001000 fd:01 1234  /usr/lib/libm.so.6" */
static bool read_mapping(const char *line, struct mapping *mapping)
{
    char *at;
    mapping->from = strtoull(line, &at, 16);
    if (*at != '-')
        return false;
    mapping->to = strtoull(at + 1, &at, 16);
    if (strncmp(at, " r-x", 4) != 0 && strncmp(at, " --x", 4) != 0)
        return false;
    mapping->offset = strtoull(at + 6, &at, 16);
    at = strchr(at + 1, ' '); /* past the device */
    if (at == NULL)
        return false;
    mapping->inode = strtoull(at, &at, 10);
    at += strspn(at, " ");
    const char *slash = strrchr(at, '/');
    const char *name = slash != NULL ? slash + 1 : at;
    snprintf(mapping->name, sizeof mapping->name, "%.*s", (int)strcspn(name, " \n"), name);
    return true;
}

/* From an offset in the file to the address that a disassembly has; false: in no segment. */
static bool to_address(const char *artifact, uint64_t *offset, size_t count)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    FILE *file = fopen(artifact, "re");
    bool found = false;
    if (file == NULL)
        return false;
    if (fread(&header, sizeof header, 1, file) == 1 &&
        memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_phentsize == sizeof segment)
        for (int i = 0; i < header.e_phnum && !found; i++) {
            if (fseek(file, (long)(header.e_phoff + (uint64_t)i * sizeof segment), SEEK_SET) != 0 ||
                fread(&segment, sizeof segment, 1, file) != 1)
                break;
            found = segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0;
        }
    for (size_t i = 0; i < count && found; i++)
        offset[i] += segment.p_vaddr - segment.p_offset;
    fclose(file);
    return found;
}

static void count_library(struct samples *samples, const char *name)
{
    size_t i = 0;
    while (i < samples->library_count && strcmp(samples->libraries[i].name, name) != 0)
        i++;
    if (i == SAMPLES_LIBRARIES)
        return;
    if (i == samples->library_count) {
        samples->library_count++;
        snprintf(samples->libraries[i].name, SAMPLES_NAME, "%s", name);
    }
    samples->libraries[i].count++;
}

static int ascending(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void sort_out(const struct sampling *sampling, int pid, const char *artifact,
                     struct samples *samples)
{
    enum { MAPPINGS_MOST = 256 };
    struct mapping *mappings = mem_array(MAPPINGS_MOST, sizeof *mappings);
    struct stat status;
    char path[40], line[512];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && count < MAPPINGS_MOST && fgets(line, sizeof line, file) != NULL)
        count += read_mapping(line, &mappings[count]);
    if (file != NULL)
        fclose(file);
    uint64_t inode = stat(artifact, &status) == 0 ? status.st_ino : 0;
    samples->addresses = mem_array(sampling->address_count + 1, sizeof *samples->addresses);
    samples->total = sampling->address_count;
    for (size_t i = 0; i < sampling->address_count; i++) {
        uint64_t address = sampling->addresses[i];
        for (size_t k = 0; k < count; k++) {
            const struct mapping *mapping = &mappings[k];
            if (address < mapping->from || address >= mapping->to)
                continue;
            if (mapping->inode == inode && inode != 0)
                samples->addresses[samples->own++] = address - mapping->from + mapping->offset;
            else
                count_library(samples, mapping->name);
            break;
        }
    }
    mem_free(mappings);
    if (!to_address(artifact, samples->addresses, samples->own))
        samples->own = 0;
    qsort(samples->addresses, samples->own, sizeof *samples->addresses, ascending);
}

/* ---- taking ---- */

void samples_take(struct subject *subject, const char *artifact, const struct call *call,
                  struct samples *samples)
{
    struct sampling sampling = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    struct err ignored;
    uint64_t elapsed_ns, start = clock_now_ns();
    *samples = (struct samples){0};
    open_rings(&sampling, subject->pid);
    samples->failed = sampling.count == 0 ? sampling.failed : 0;
    sampling.addresses = mem_array(SAMPLES_MOST, sizeof *sampling.addresses);
    while (sampling.count > 0) {
        switch_rings(&sampling, PERF_EVENT_IOC_ENABLE);
        bool failed = subject_call(subject, call, &elapsed_ns, &ignored) != 0;
        switch_rings(&sampling, PERF_EVENT_IOC_DISABLE);
        for (size_t i = 0; i < sampling.count; i++)
            read_ring(&sampling, &sampling.rings[i]);
        uint64_t most_ns = sampling.address_count < SAMPLES_FEW ? MOST_NS : USUAL_NS;
        if (failed || sampling.address_count >= ENOUGH || clock_now_ns() - start > most_ns)
            break;
    }
    if (sampling.address_count > 0)
        sort_out(&sampling, subject->pid, artifact, samples);
    close_rings(&sampling);
    mem_free(sampling.addresses);
}

void samples_free(struct samples *samples)
{
    mem_free(samples->addresses);
    *samples = (struct samples){0};
}

/* The first that is not below `address`. */
static size_t first_from(const struct samples *samples, uint64_t address)
{
    size_t low = 0, high = samples->own;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (samples->addresses[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t samples_between(const struct samples *samples, uint64_t from, uint64_t to)
{
    return from <= to ? first_from(samples, to + 1) - first_from(samples, from) : 0;
}
