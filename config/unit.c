#include "config/unit.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { CREDENTIALS_MAX = 1024 }; // of one unit; further ones are ignored

struct credential {
    char *name;
    bool used;
};

struct unit {
    char name[NAME_MAX + 1];     // framed.service, framed@gate.service
    char original[NAME_MAX + 1]; // the template of the instance, or the same name
    struct credential list[CREDENTIALS_MAX];
    int n;
    bool no_memory;
};

static struct credential *find_credential(struct unit *unit, const char *name)
{
    for (int i = 0; i < unit->n; i++)
        if (strcmp(unit->list[i].name, name) == 0)
            return &unit->list[i];
    return NULL;
}

// `text` is "NAME", "NAME:PATH" or "NAME:VALUE".
static void add_credential(struct unit *unit, const char *text)
{
    char *name = strndup(text, strcspn(text, ": \t\n"));
    if (!name) {
        unit->no_memory = true;
    } else if (!*name || unit->n == CREDENTIALS_MAX || find_credential(unit, name)) {
        free(name);
    } else {
        unit->list[unit->n++].name = name;
    }
}

static void read_unit_file(struct unit *unit, const char *path)
{
    static const char *const keys[] = {
        "LoadCredential=", "LoadCredentialEncrypted=", "SetCredential=", "SetCredentialEncrypted="};
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");
    while (file && getline(&line, &size, file) > 0) {
        const char *text = line + strspn(line, " \t");
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strncmp(text, keys[i], strlen(keys[i])) == 0)
                add_credential(unit, text + strlen(keys[i]));
    }
    if (file)
        fclose(file);
    if (line)
        explicit_bzero(line, size); // SetCredential= holds the secret itself
    free(line);
}

static void read_unit(struct unit *unit, const char *folder, const char *name)
{
    char path[PATH_MAX];
    glob_t drop_ins;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    read_unit_file(unit, path);
    snprintf(path, sizeof path, "%s/%s.d/*.conf", folder, name);
    if (glob(path, 0, NULL, &drop_ins) == 0) {
        for (size_t i = 0; i < drop_ins.gl_pathc; i++)
            read_unit_file(unit, drop_ins.gl_pathv[i]);
        globfree(&drop_ins);
    }
}

static void read_folder(struct unit *unit, const char *folder)
{
    read_unit(unit, folder, unit->name);
    if (strcmp(unit->original, unit->name) != 0)
        read_unit(unit, folder, unit->original);
}

// As in systemd.unit(5): a SYSTEMD_UNIT_PATH that ends in a colon comes before the usual folders.
static void read_folders(struct unit *unit)
{
    static const char *const usual[] = {"/etc/systemd/system", "/run/systemd/system",
                                        "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
                                        "/lib/systemd/system"};
    const char *path = getenv("SYSTEMD_UNIT_PATH");
    char folder[PATH_MAX];
    while (path && *path) {
        const size_t n = strcspn(path, ":");
        snprintf(folder, sizeof folder, "%.*s", (int)n, path);
        read_folder(unit, folder);
        if (!path[n])
            return;
        path += n + 1;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        read_folder(unit, usual[i]);
}

static void set_names(struct unit *unit, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t n = strcspn(name, ".");
    if (strncmp(name, "framed.", strlen("framed.")) == 0) {
        strcpy(unit->name, "framed.service");
        strcpy(unit->original, unit->name);
    } else {
        snprintf(unit->name, sizeof unit->name, "framed@%.*s.service", (int)n, name);
        strcpy(unit->original, "framed@.service");
    }
}

int unit_open(struct unit **ret, const char *path)
{
    struct unit *unit = calloc(1, sizeof *unit);
    if (!unit)
        return -ENOMEM;
    set_names(unit, path);
    read_folders(unit);
    if (unit->no_memory) {
        unit_close(unit);
        return -ENOMEM;
    }
    *ret = unit;
    return 0;
}

bool unit_has_credential(struct unit *unit, const char *name)
{
    struct credential *found = unit ? find_credential(unit, name) : NULL;
    if (found)
        found->used = true;
    return found;
}

void unit_print_used(const struct unit *unit, FILE *f)
{
    bool any = false;
    for (int i = 0; i < unit->n; i++) {
        if (!unit->list[i].used)
            continue;
        if (!any)
            fprintf(f, "credentials that only %s can read count as set:", unit->name);
        fprintf(f, "%s %s", any ? "," : "", unit->list[i].name);
        any = true;
    }
    if (any)
        fputc('\n', f);
}

void unit_close(struct unit *unit)
{
    for (int i = 0; unit && i < unit->n; i++)
        free(unit->list[i].name);
    free(unit);
}
