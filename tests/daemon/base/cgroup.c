// Memory left by control groups: versions 1 and 2, parent groups, and missing or invalid files.
#include "daemon/base/machine.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/test.h"

enum { MIB = 1 << 20 };

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0, "%s", path);
    if (file)
        fclose(file);
}

static void expect(const char *membership, size_t limit)
{
    put("self", membership);
    size_t got = cgroup_memory_limit("self", "fs");
    CHECK(got == limit, "'%s': %zu, not %zu", membership, got, limit);
}

static void test_version_2(void)
{
    put("fs/a/b/memory.max", "104857600\n");
    expect("0::/a/b\n", 100 * MIB);
    expect("0::/a/b", 100 * MIB);
    expect("0::/a/b/c\n", 100 * MIB); // below it, without a file
    expect("0::/a\n", SIZE_MAX);
    expect("0::/\n", SIZE_MAX);
    put("fs/a/memory.max", "52428800\n");
    expect("0::/a/b\n", 50 * MIB);
    put("fs/a/memory.max", "max\n");
    expect("0::/a/b\n", 100 * MIB);
    put("fs/memory.max", "1048576\n"); // a container's root has one
    expect("0::/a/b\n", MIB);
    expect("0::/../elsewhere\n", MIB);
    expect("0::/\n", MIB);
    unlink("fs/memory.max");
}

static void test_version_1(void)
{
    put("fs/memory/a/memory.limit_in_bytes", "3145728\n");
    put("fs/memory/memory.limit_in_bytes", "9223372036854771712\n");
    expect("12:cpu,cpuacct:/a\n4:memory:/a\n1:name=systemd:/a\n", 3 * MIB);
    expect("4:hugetlb,memory:/a\n", 3 * MIB);
    expect("4:memory,hugetlb:/a\n", 3 * MIB);
    expect("4:memoryless:/a\n3:no-memory:/a\n", SIZE_MAX);
    expect("4:memory:/a\n0::/a/b\n", 3 * MIB);
    expect("4:memory:/\n", 9223372036854771712u);
}

static void expect_cpu(const char *membership, double limit)
{
    put("self", membership);
    double got = cgroup_cpu_limit("self", "fs");
    CHECK(got == limit, "'%s': %g, not %g", membership, got, limit);
}

static void test_processors(void)
{
    expect_cpu("0::/a/b\n", INFINITY);
    put("fs/a/cpu.max", "max 100000\n");
    expect_cpu("0::/a/b\n", INFINITY);
    put("fs/a/cpu.max", "150000 100000\n");
    expect_cpu("0::/a/b\n", 1.5);
    put("fs/a/b/cpu.max", "200000 100000\n");
    expect_cpu("0::/a/b\n", 1.5);
    put("fs/cpu/a/cpu.cfs_quota_us", "-1\n");
    put("fs/cpu/a/cpu.cfs_period_us", "100000\n");
    expect_cpu("3:cpuacct,cpu:/a\n", INFINITY);
    put("fs/cpu/a/cpu.cfs_quota_us", "50000\n");
    expect_cpu("3:cpuacct,cpu:/a\n", 0.5);
    expect_cpu("3:cpuset:/a\n", INFINITY);
}

static void test_nonsense(void)
{
    expect("", SIZE_MAX);
    expect("\n0\n0:\n0::\n::\n0::a/b\n", SIZE_MAX);
    put("fs/a/memory.max", "");
    expect("0::/a\n", SIZE_MAX);
    CHECK(cgroup_memory_limit("missing", "fs") == SIZE_MAX, "no such file");
}

int main(void)
{
    char folder[] = "/tmp/framed-cgroup-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) < 0 ||
        system("mkdir -p fs/a/b/c fs/memory/a fs/cpu/a") != 0)
        abort();
    TEST(test_version_2());
    TEST(test_version_1());
    TEST(test_processors());
    TEST(test_nonsense());
    CHECK(system("rm -r self fs") == 0 && rmdir(folder) == 0, "%s", folder);
    return test_end();
}
