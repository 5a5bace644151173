#include "daemon/input/login_pause_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"

#define TITLE "framed login pauses 1"

enum { LINE_MAX_BYTES = 1024 };

static const int64_t SECOND = 1000000000, PAUSE_MAX_NS = 3600 * SECOND;

// Returns the host to replace when there are too many: one without a refusal, else the first.
static struct login_host *replace_host(struct login_hosts *hosts)
{
    for (int i = 0; i < hosts->n; i++)
        if (hosts->list[i].n_refused == 0)
            return &hosts->list[i];
    return &hosts->list[0];
}

struct login_host *login_hosts_get(struct login_hosts *hosts, const char *name)
{
    struct login_host *host = hosts->list;
    for (int i = 0; i < hosts->n; i++, host++)
        if (strcmp(host->name, name) == 0)
            return host;
    if (hosts->n == LOGIN_HOSTS_MAX) {
        host = replace_host(hosts);
    } else {
        host = realloc(hosts->list, (size_t)(hosts->n + 1) * sizeof *host);
        if (!host)
            return NULL;
        hosts->list = host;
        host += hosts->n++;
    }
    *host = (struct login_host){0};
    snprintf(host->name, sizeof host->name, "%s", name);
    return host;
}

// Reads a number, in seconds since 1970, as CLOCK_MONOTONIC.
static bool read_time(char **at, int64_t ahead_ns, int64_t *ret)
{
    char *end;
    errno = 0;
    const int64_t seconds = strtoll(*at, &end, 10);
    if (end == *at || errno || seconds < 0 || seconds > INT64_MAX / SECOND)
        return false;
    *at = end;
    *ret = seconds * SECOND - ahead_ns;
    return true;
}

static bool read_refusal(char **at, int64_t ahead_ns, struct login_refusal *ret)
{
    int bytes = 0;
    if (!read_time(at, ahead_ns, &ret->ns) ||
        sscanf(*at, ":%4" SCNx16 "%n", &ret->credentials, &bytes) != 1)
        return false;
    *at += bytes;
    return true;
}

// "host NAME REFUSALS NEXT TIME:CREDENTIALS ...". Limits the times: a changed clock or a damaged
// file must not lengthen a pause.
static int read_host(struct login_hosts *hosts, char *line, int64_t now_ns, int64_t ahead_ns)
{
    struct login_host read = {0};
    int bytes = 0;
    if (sscanf(line, "host %255s %d%n", read.name, &read.refusals, &bytes) != 2)
        return 0;
    char *at = line + bytes;
    if (read.refusals < 0 || read.refusals >= LOGIN_STEPS ||
        !read_time(&at, ahead_ns, &read.next_ns))
        return 0;
    while (read.n_refused < LOGIN_REFUSED_MAX &&
           read_refusal(&at, ahead_ns, &read.refused[read.n_refused])) {
        struct login_refusal *refusal = &read.refused[read.n_refused++];
        refusal->ns = bounds_min(refusal->ns, now_ns);
    }
    if (read.n_refused == 0 || at[strspn(at, " \n")] != 0)
        return 0;
    read.next_ns = bounds_min(read.next_ns, now_ns + PAUSE_MAX_NS);
    struct login_host *host = login_hosts_get(hosts, read.name);
    if (!host)
        return -ENOMEM;
    *host = read;
    return 0;
}

static bool read_key(uint8_t key[LOGIN_KEY], const char *line)
{
    uint8_t read[LOGIN_KEY];
    int bytes;
    if (strncmp(line, "key ", 4) != 0 || strspn(line + 4, "0123456789abcdef") != 2 * LOGIN_KEY)
        return false;
    for (int i = 0; i < LOGIN_KEY; i++)
        if (sscanf(line + 4 + 2 * i, "%2" SCNx8 "%n", &read[i], &bytes) != 1)
            return false;
    memcpy(key, read, LOGIN_KEY);
    return true;
}

int login_pause_file_read(struct login_hosts *ret, const char *path, int64_t now_ns,
                          int64_t ahead_ns)
{
    char line[LINE_MAX_BYTES];
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    int rc = 0;
    // Hashes are useless without the key.
    bool good = fgets(line, sizeof line, file) && strcmp(line, TITLE "\n") == 0 &&
                fgets(line, sizeof line, file) && read_key(ret->key, line);
    for (int lines = 0;
         good && rc == 0 && lines < LOGIN_HOSTS_MAX && fgets(line, sizeof line, file); lines++)
        rc = read_host(ret, line, now_ns, ahead_ns);
    fclose(file);
    return rc;
}

static bool can_be_written(const char *name)
{
    for (; *name > ' ' && *name < 127; name++)
        ;
    return *name == 0;
}

static int64_t seconds_since_1970(int64_t ns, int64_t ahead_ns)
{
    return ns + ahead_ns > 0 ? (ns + ahead_ns) / SECOND : 0;
}

char *login_pause_file_text(const struct login_hosts *hosts, int64_t ahead_ns)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    if (!file)
        return NULL;
    fputs(TITLE "\nkey ", file);
    for (int i = 0; i < LOGIN_KEY; i++)
        fprintf(file, "%02x", hosts->key[i]);
    fputc('\n', file);
    for (const struct login_host *host = hosts->list; host < hosts->list + hosts->n; host++) {
        if (host->n_refused == 0 || !can_be_written(host->name))
            continue;
        fprintf(file, "host %s %d %" PRId64, host->name, host->refusals,
                seconds_since_1970(host->next_ns, ahead_ns));
        for (int i = 0; i < host->n_refused; i++)
            fprintf(file, " %" PRId64 ":%04x", seconds_since_1970(host->refused[i].ns, ahead_ns),
                    host->refused[i].credentials);
        fputc('\n', file);
    }
    const bool failed = ferror(file);
    if (fclose(file) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}
