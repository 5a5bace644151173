#include "daemon/source/login_pause.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/log.h"
#include "daemon/base/number.h"
#include "daemon/base/process.h"
#include "daemon/rtsp/url.h"

// --- the file that keeps login pauses over restarts: text, a line for each host

enum {
    LOGIN_KEY = 16,
    LOGIN_HOST = 256,
    LOGIN_HOSTS_MAX = 4096,
    LOGIN_REFUSED_MAX = 4,
    LOGIN_STEPS = 3
};

struct login_refusal {
    int64_t ns; // CLOCK_MONOTONIC, below 0 if it was before the machine started
    uint16_t credentials;
};

struct login_host {
    char name[LOGIN_HOST];
    int refusals;    // in a row, below LOGIN_STEPS: pauses grow no further
    int64_t next_ns; // CLOCK_MONOTONIC
    struct login_refusal refused[LOGIN_REFUSED_MAX]; // the newest first
    int n_refused;
    // Not in the file:
    uint16_t accepted;              // credentials
    int64_t accepted_ns, trying_ns; // when; 0: never
};

struct login_hosts {
    uint8_t key[LOGIN_KEY]; // for the hashes of credentials
    struct login_host *list;
    int n;
};

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

// Returns the host of this name, added if it is new; NULL: no memory.
static struct login_host *login_hosts_get(struct login_hosts *hosts, const char *name)
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

// Adds the file's hosts to `ret` and replaces its key. Skips unknown lines, and limits impossible
// times. `ahead_ns`: CLOCK_REALTIME minus CLOCK_MONOTONIC. Returns 0; -ENOMEM; -ENOENT and others:
// the file cannot be opened.
static int login_pause_file_read(struct login_hosts *ret, const char *path, int64_t now_ns,
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

// Returns the text of the file, which the caller frees; NULL: no memory.
static char *login_pause_file_text(const struct login_hosts *hosts, int64_t ahead_ns)
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

// --- the pauses

#define NAME "login-pauses"

static const int64_t MS = 1000000, MINUTE = 60000 * MS, LIMIT_NS = 30 * MINUTE,
                     TRY_NS = 750 * MS, // a camera answers within this time or not at all
    PROVEN_NS = 10000 * MS, // so long after a success, the host's other cameras need not wait
    TURN_NS = 100 * MS;

struct login_pause {
    char *path;              // of the file; NULL: none
    int64_t ahead_ns;        // CLOCK_REALTIME minus CLOCK_MONOTONIC
    pthread_mutex_t writing; // taken before `lock`; held while the file is written
    bool failed;             // writing failed, and this was logged
    pthread_mutex_t lock;    // protects the members below
    struct login_hosts hosts;
    bool changed; // the file is not up to date
};

int login_pause_open(struct login_pause **ret, const char *folder, int64_t now_ns,
                     int64_t realtime_ns)
{
    struct login_pause *pause = calloc(1, sizeof *pause);
    if (!pause)
        return -ENOMEM;
    pthread_mutex_init(&pause->lock, NULL);
    pthread_mutex_init(&pause->writing, NULL);
    pause->ahead_ns = realtime_ns - now_ns;
    int rc = 0;
    if (getrandom(pause->hosts.key, LOGIN_KEY, 0) != LOGIN_KEY)
        rc = -EIO;
    else if (folder && asprintf(&pause->path, "%s/" NAME, folder) < 0)
        rc = -ENOMEM;
    if (rc == 0 && pause->path &&
        login_pause_file_read(&pause->hosts, pause->path, now_ns, pause->ahead_ns) == -ENOMEM)
        rc = -ENOMEM;
    if (rc < 0) {
        login_pause_close(pause);
        return rc;
    }
    *ret = pause;
    return 0;
}

void login_pause_close(struct login_pause *pause)
{
    if (!pause)
        return;
    pthread_mutex_destroy(&pause->lock);
    pthread_mutex_destroy(&pause->writing);
    explicit_bzero(pause->hosts.key, LOGIN_KEY);
    free(pause->hosts.list);
    free(pause->path);
    free(pause);
}

void login_pause_identify(const struct login_pause *pause, const char *url, struct login *ret)
{
    struct rtsp_url parsed;
    uint8_t text[sizeof parsed.user + sizeof parsed.password], hash[EVP_MAX_MD_SIZE] = {0};
    *ret = (struct login){0};
    if (rtsp_url_parse(&parsed, url) == 0 && (parsed.user[0] || parsed.password[0])) {
        for (size_t i = 0; parsed.host[i]; i++)
            ret->host[i] = (char)tolower((unsigned char)parsed.host[i]);
        const size_t user = strlen(parsed.user) + 1, password = strlen(parsed.password);
        memcpy(text, parsed.user, user);
        memcpy(text + user, parsed.password, password);
        // If this fails for lack of memory, all credentials of the host are the same.
        HMAC(EVP_sha256(), pause->hosts.key, LOGIN_KEY, text, user + password, hash, NULL);
        ret->credentials = (uint16_t)(hash[0] << 8 | hash[1]);
        explicit_bzero(text, sizeof text);
    }
    explicit_bzero(&parsed, sizeof parsed);
}

// Writes the file if it is not up to date. The next call retries a failed write.
static void write_changes(struct login_pause *pause)
{
    char *text = NULL;
    pthread_mutex_lock(&pause->writing);
    pthread_mutex_lock(&pause->lock);
    const bool changed = pause->changed && pause->path;
    if (changed)
        text = login_pause_file_text(&pause->hosts, pause->ahead_ns);
    pause->changed = false;
    pthread_mutex_unlock(&pause->lock);
    int rc = 0;
    if (changed)
        rc = text ? state_file_write(pause->path, text, 0600) : -ENOMEM;
    free(text);
    if (rc < 0) {
        pthread_mutex_lock(&pause->lock);
        pause->changed = true;
        pthread_mutex_unlock(&pause->lock);
    }
    if (rc < 0 && !pause->failed)
        log_event(LOG_LEVEL_WARNING,
                  "cannot write %s: %s; after a restart a camera may be tried too soon with a "
                  "password that it refused",
                  pause->path, strerror(-rc));
    pause->failed = rc < 0;
    pthread_mutex_unlock(&pause->writing);
}

static bool was_refused(const struct login_host *host, uint16_t credentials)
{
    for (int i = 0; i < host->n_refused; i++)
        if (host->refused[i].credentials == credentials)
            return true;
    return false;
}

// Returns when these credentials may be tried, and marks the try as begun if that is now.
static int64_t begin_try(struct login_host *host, uint16_t credentials, int64_t now_ns)
{
    int64_t until_ns = now_ns;
    if (was_refused(host, credentials))
        until_ns = bounds_max(until_ns, host->next_ns);
    if (host->n_refused == LOGIN_REFUSED_MAX)
        until_ns = bounds_max(until_ns, host->refused[LOGIN_REFUSED_MAX - 1].ns + LIMIT_NS);
    if (until_ns > now_ns)
        return until_ns;
    const bool proven = host->accepted_ns && host->accepted == credentials &&
                        now_ns - host->accepted_ns < PROVEN_NS;
    if (!proven && host->trying_ns && now_ns - host->trying_ns < TRY_NS)
        return bounds_min(host->trying_ns + TRY_NS, now_ns + TURN_NS);
    host->trying_ns = now_ns;
    return now_ns;
}

int64_t login_pause_until(struct login_pause *pause, const struct login *login, int64_t now_ns)
{
    if (!login->host[0])
        return now_ns;
    pthread_mutex_lock(&pause->lock);
    struct login_host *host = login_hosts_get(&pause->hosts, login->host);
    const int64_t until_ns = host ? begin_try(host, login->credentials, now_ns) : now_ns;
    const bool changed = pause->changed; // by a reload
    pthread_mutex_unlock(&pause->lock);
    if (changed)
        write_changes(pause);
    return until_ns;
}

// New credentials begin with the shortest pause again.
static void add_refusal(struct login_host *host, uint16_t credentials, bool other_scheme,
                        int64_t now_ns)
{
    static const int64_t minutes[LOGIN_STEPS] = {10, 30, 60};
    if (!was_refused(host, credentials))
        host->refusals = 0;
    if (host->n_refused < LOGIN_REFUSED_MAX)
        host->n_refused++;
    memmove(host->refused + 1, host->refused, (LOGIN_REFUSED_MAX - 1) * sizeof *host->refused);
    host->refused[0] = (struct login_refusal){.ns = now_ns, .credentials = credentials};
    host->accepted_ns = host->trying_ns = 0;
    if (other_scheme) {
        host->next_ns = now_ns;
        return;
    }
    host->next_ns = now_ns + minutes[host->refusals] * MINUTE;
    if (host->refusals < LOGIN_STEPS - 1)
        host->refusals++;
}

void login_pause_refused(struct login_pause *pause, const struct login *login, bool other_scheme,
                         int64_t now_ns)
{
    if (!login->host[0])
        return;
    pthread_mutex_lock(&pause->lock);
    struct login_host *host = login_hosts_get(&pause->hosts, login->host);
    if (host)
        add_refusal(host, login->credentials, other_scheme, now_ns);
    pause->changed |= host != NULL;
    pthread_mutex_unlock(&pause->lock);
    write_changes(pause);
}

// Removes the refusals of the accepted credentials only.
static bool remove_refusals(struct login_host *host, uint16_t credentials)
{
    const int before = host->n_refused;
    host->n_refused = 0;
    for (int i = 0; i < before; i++)
        if (host->refused[i].credentials != credentials)
            host->refused[host->n_refused++] = host->refused[i];
    if (host->n_refused == 0)
        host->refusals = 0;
    return host->n_refused != before;
}

void login_pause_accepted(struct login_pause *pause, const struct login *login, int64_t now_ns)
{
    if (!login->host[0])
        return;
    pthread_mutex_lock(&pause->lock);
    struct login_host *host = login_hosts_get(&pause->hosts, login->host);
    if (host) {
        pause->changed |= remove_refusals(host, login->credentials);
        host->accepted = login->credentials;
        host->accepted_ns = now_ns;
        host->trying_ns = 0;
    }
    const bool changed = pause->changed;
    pthread_mutex_unlock(&pause->lock);
    if (changed)
        write_changes(pause);
}

void login_pause_reload(struct login_pause *pause)
{
    pthread_mutex_lock(&pause->lock);
    for (int i = 0; i < pause->hosts.n; i++) {
        struct login_host *host = &pause->hosts.list[i];
        pause->changed |= host->n_refused > 0;
        host->refusals = 0;
        host->next_ns = 0;
    }
    pthread_mutex_unlock(&pause->lock);
}
