#include "daemon/base/fingerprint.h"

#include <stdio.h>
#include <string.h>

#include "kernels/processors.h"

static const char *const names[] = {"cpu", "gpu", "driver"};
enum { FIELDS = sizeof names / sizeof *names };

static const char *field(const struct fingerprint *print, int i)
{
    const char *const fields[FIELDS] = {print->cpu, print->gpu, print->driver};
    return fields[i];
}

// --- reading

// Returns whether the system may be asked: ProcSubset=pid of our unit hides what it would say.
static bool read_model(char *to, size_t size)
{
    char line[256], model[160] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %159[^\n]", model) == 1)
            break;
    if (file)
        fclose(file);
    snprintf(to, size, "%s", model);
    return file;
}

char *fingerprint_model(char *to, size_t size)
{
    read_model(to, size);
    return to;
}

char *fingerprint_driver(char *to, size_t size)
{
    char line[256], version[64] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    if (file && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, "Module");
        if (at)
            sscanf(at, "Module%*[ forx86_4-]%63s", version);
    }
    if (file)
        fclose(file);
    snprintf(to, size, "%s", version);
    return to;
}

// Takes out what has a meaning between quotes, in the configuration or in the fingerprint itself.
static void clean(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~' || strchr("\"\\$;=", *c))
            *c = ' ';
}

void fingerprint_read(struct fingerprint *ret, const char *device)
{
    const struct processors allowed = processors_allowed();
    const int n = processors_count(&allowed);
    char model[128];
    *ret = (struct fingerprint){0};
    if (read_model(model, sizeof model))
        snprintf(ret->cpu, sizeof ret->cpu, "%s, %d processor%s", model, n, n == 1 ? "" : "s");
    if (device && *device) {
        snprintf(ret->gpu, sizeof ret->gpu, "%.*s", (int)strcspn(device, ","), device);
        fingerprint_driver(ret->driver, sizeof ret->driver);
    } else if (device) {
        strcpy(ret->gpu, "none");
        strcpy(ret->driver, "none");
    }
    clean(ret->cpu);
    clean(ret->gpu);
    clean(ret->driver);
}

// --- text

char *fingerprint_text(const struct fingerprint *print, char to[FINGERPRINT_TEXT])
{
    size_t used = 0;
    for (int i = 0; i < FIELDS; i++)
        used += (size_t)snprintf(to + used, FINGERPRINT_TEXT - used, "%s%s=%s", i ? "; " : "",
                                 names[i], field(print, i));
    return to;
}

// The value of a name in such a text; "" where it has none.
static void find(const char *text, const char *name, char *to, size_t size)
{
    const size_t n = strlen(name);
    *to = '\0';
    while (*text) {
        text += strspn(text, "; ");
        if (strncmp(text, name, n) == 0 && text[n] == '=') {
            snprintf(to, size, "%.*s", (int)strcspn(text + n + 1, ";"), text + n + 1);
            return;
        }
        text += strcspn(text, ";");
    }
}

bool fingerprint_differs(const struct fingerprint *print, const char *text, char *to, size_t size)
{
    char was[160];
    size_t used = 0;
    *to = '\0';
    for (int i = 0; i < FIELDS; i++) {
        const char *is = field(print, i);
        find(text, names[i], was, sizeof was);
        if (!*is || strcmp(is, was) == 0 || used >= size)
            continue;
        used += (size_t)snprintf(to + used, size - used, "%s%s is %s, was %s", used ? "; " : "",
                                 names[i], is, *was ? was : "not said");
    }
    return used > 0;
}
