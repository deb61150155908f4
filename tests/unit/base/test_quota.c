#include "check.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/twagent-quota-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    struct err err;
    return file_remove_tree(folder, &err);
}

static void put(const char *name, const char *text)
{
    struct err err;
    MEM_LOCAL char *path = file_join(folder, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(file_make_dirs(path, &err), 0);
    *slash = '/';
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static struct quota read_list(const char *text)
{
    struct quota quota;
    put("list", text);
    MEM_LOCAL char *list = file_join(folder, "list");
    quota_read_at(list, folder, &quota);
    return quota;
}

static void test_second(void **state)
{
    (void)state;
    put("job/step/memory.max", "max\n");
    put("job/step/cpu.max", "max 100000\n");
    put("job/memory.max", "2147483648\n");
    put("job/memory.current", "1073741824\n");
    put("job/cpu.max", "150000 100000\n");
    put("job/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 7\nthrottled_usec 1\n");
    struct quota quota = read_list("0::/job/step\n");
    assert_true(quota.memory_bytes == UINT64_C(2147483648));
    assert_true(quota.memory_used == UINT64_C(1073741824));
    assert_true(quota.cpus == 1.5);
    assert_int_equal(quota.throttled, 7);
    put("job/step/memory.max", "4096\n"); /* the tightest counts */
    put("job/step/cpu.max", "400000 100000\n");
    quota = read_list("0::/job/step\n");
    assert_true(quota.memory_bytes == 4096 && quota.cpus == 1.5);
}

static void test_first(void **state)
{
    (void)state;
    put("memory/slurm/memory.limit_in_bytes", "3221225472\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("cpu/cpu.cfs_quota_us", "-1\n");
    put("cpu/cpu.cfs_period_us", "100000\n");
    struct quota quota = read_list("9:cpuset:/\n4:memory:/slurm\n2:cpu,cpuacct:/slurm\n");
    assert_true(quota.memory_bytes == UINT64_C(3221225472));
    assert_true(quota.cpus == 0);
    put("cpu/cpu.cfs_quota_us", "200000\n"); /* a container's root, its path the host's */
    put("cpu/cpu.stat", "nr_periods 9\nnr_throttled 3\n");
    quota = read_list("2:cpuacct,cpu:/docker/of/the/host\n");
    assert_true(quota.cpus == 2 && quota.throttled == 3);
}

static void test_none(void **state)
{
    (void)state;
    struct quota quota = read_list("1:name=systemd:/x\nnonsense\n0::/not/there\n");
    assert_true(quota.memory_bytes == 0 && quota.cpus == 0 && quota.throttled == 0);
    quota_read_at("/nowhere/at/all", folder, &quota);
    assert_true(quota.memory_bytes == 0 && quota.cpus == 0);
    assert_true(quota_memory() > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_none), cmocka_unit_test(test_second),
                                       cmocka_unit_test(test_first)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
