#include "daemon/base/machine.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/processors.h"

// --- the control group

// Returns the limit that one group's folder sets; INFINITY if it sets none or has no such file.
typedef double limit_fn(const char *folder);

struct resource {
    const char *controller; // name in version 1
    limit_fn *version_1, *version_2;
};

// Reads the first `n` numbers of a file; false if it has fewer, such as "max" in version 2.
static bool read_numbers(const char *folder, const char *name, double to[], int n)
{
    char *path;
    int got = 0;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return false;
    FILE *file = fopen(path, "re");
    free(path);
    while (file && got < n && fscanf(file, "%lf", &to[got]) == 1)
        got++;
    if (file)
        fclose(file);
    return got == n;
}

// Without a limit, version 2 contains "max", version 1 a number larger than any memory.
static double memory_2(const char *folder)
{
    double bytes;
    return read_numbers(folder, "memory.max", &bytes, 1) ? bytes : INFINITY;
}

static double memory_1(const char *folder)
{
    double bytes;
    return read_numbers(folder, "memory.limit_in_bytes", &bytes, 1) ? bytes : INFINITY;
}

static double cpu_2(const char *folder)
{
    double times[2]; // quota and period
    return read_numbers(folder, "cpu.max", times, 2) ? times[0] / times[1] : INFINITY;
}

// A quota of -1 means no limit.
static double cpu_1(const char *folder)
{
    double quota, period;
    bool limits = read_numbers(folder, "cpu.cfs_quota_us", &quota, 1) && quota > 0 &&
                  read_numbers(folder, "cpu.cfs_period_us", &period, 1);
    return limits ? quota / period : INFINITY;
}

static const struct resource memory_limits = {"memory", memory_1, memory_2},
                             cpu_limits = {"cpu", cpu_1, cpu_2};

// Returns the lowest limit of `group`, a path below `root`, and its ancestors. Groups that a
// container cannot see have no file here.
static double least_limit(const char *root, const char *group, limit_fn *limit_of)
{
    char folder[PATH_MAX];
    double limit = INFINITY;
    snprintf(folder, sizeof folder, "%s%s", root, group);
    while (strlen(folder) > strlen(root)) {
        limit = fmin(limit, limit_of(folder));
        *strrchr(folder, '/') = 0;
    }
    return fmin(limit, limit_of(root));
}

static bool lists_controller(const char *controllers, const char *wanted)
{
    size_t n = strlen(wanted);
    for (const char *name = controllers; name; name = strchr(name, ',')) {
        name += *name == ',';
        if (strncmp(name, wanted, n) == 0 && (name[n] == ',' || name[n] == 0))
            return true;
    }
    return false;
}

// A line is "HIERARCHY:CONTROLLERS:GROUP"; version 2 is hierarchy 0 and lists no controllers.
static double limit_of_line(char *line, const char *root, const struct resource *resource)
{
    char folder[PATH_MAX];
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group || group[1] != '/')
        return INFINITY;
    *controllers++ = *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    if (strcmp(line, "0") == 0)
        return least_limit(root, group, resource->version_2);
    if (!lists_controller(controllers, resource->controller))
        return INFINITY;
    snprintf(folder, sizeof folder, "%s/%s", root, resource->controller);
    return least_limit(folder, group, resource->version_1);
}

static double limit_of(const char *membership, const char *root, const struct resource *resource)
{
    char *line = NULL;
    size_t room = 0;
    double limit = INFINITY;
    FILE *file = fopen(membership, "re");
    if (!file)
        return limit;
    while (getline(&line, &room, file) > 0)
        limit = fmin(limit, limit_of_line(line, root, resource));
    free(line);
    fclose(file);
    return limit;
}

size_t cgroup_memory_limit(const char *membership, const char *root)
{
    double bytes = limit_of(membership, root, &memory_limits);
    return bytes < 0x1p63 ? (size_t)bytes : SIZE_MAX;
}

double cgroup_cpu_limit(const char *membership, const char *root)
{
    return limit_of(membership, root, &cpu_limits);
}

// --- the machine

double processor_time_limit(void)
{
    const struct processors allowed = processors_allowed();
    return fmin(processors_count(&allowed), cgroup_cpu_limit(CGROUP_MEMBERSHIP, CGROUP_ROOT));
}

long long host_memory_available(void)
{
    char line[128];
    long long kib = -1;
    FILE *file = fopen("/proc/meminfo", "re"); // hidden by ProcSubset=pid of our unit
    while (file && kib < 0 && fgets(line, sizeof line, file))
        sscanf(line, "MemAvailable: %lld kB", &kib);
    if (file)
        fclose(file);
    return kib < 0 ? -1 : kib * 1024;
}

// --- limits

bool memory_take(_Atomic size_t *taken, size_t limit, size_t bytes, size_t *left)
{
    size_t before = atomic_load(taken);
    do {
        *left = before < limit ? limit - before : 0;
        if (bytes > *left)
            return false;
    } while (!atomic_compare_exchange_weak(taken, &before, before + bytes));
    return true;
}

void memory_reserve_plan(struct memory_reserve *memory, size_t limit, size_t planned)
{
    atomic_store(&memory->limit, planned < limit ? limit - planned : 0);
}

bool memory_reserve_take(struct memory_reserve *memory, size_t bytes, size_t *left)
{
    return memory_take(&memory->taken, atomic_load(&memory->limit), bytes, left);
}

void memory_reserve_give(struct memory_reserve *memory, size_t bytes)
{
    atomic_fetch_sub(&memory->taken, bytes);
}
