#include "daemon/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

// Version 2 says "max" where there is no limit, version 1 a number beyond all memory.
static size_t read_limit(const char *folder, const char *name)
{
    char *path;
    unsigned long long limit;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return SIZE_MAX;
    FILE *file = fopen(path, "re");
    free(path);
    if (!file)
        return SIZE_MAX;
    bool is_number = fscanf(file, "%llu", &limit) == 1;
    fclose(file);
    return is_number ? (size_t)limit : SIZE_MAX;
}

// Of `group`, a path below `root`, and all above it. Those that a container does not see have no
// file here.
static size_t least_limit(const char *root, const char *group, const char *name)
{
    char folder[PATH_MAX];
    size_t limit = SIZE_MAX;
    snprintf(folder, sizeof folder, "%s%s", root, group);
    while (strlen(folder) > strlen(root)) {
        limit = smaller(limit, read_limit(folder, name));
        *strrchr(folder, '/') = 0;
    }
    return smaller(limit, read_limit(root, name));
}

static bool lists(const char *controllers, const char *wanted)
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
static size_t limit_of_line(char *line, const char *root)
{
    char memory_root[PATH_MAX];
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group || group[1] != '/')
        return SIZE_MAX;
    *controllers++ = *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    if (strcmp(line, "0") == 0)
        return least_limit(root, group, "memory.max");
    if (!lists(controllers, "memory"))
        return SIZE_MAX;
    snprintf(memory_root, sizeof memory_root, "%s/memory", root);
    return least_limit(memory_root, group, "memory.limit_in_bytes");
}

size_t cgroup_memory_limit(const char *membership, const char *root)
{
    char *line = NULL;
    size_t room = 0, limit = SIZE_MAX;
    FILE *file = fopen(membership, "re");
    if (!file)
        return limit;
    while (getline(&line, &room, file) > 0)
        limit = smaller(limit, limit_of_line(line, root));
    free(line);
    fclose(file);
    return limit;
}
