#include "daemon/source/login_pause.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/log.h"
#include "daemon/base/number.h"
#include "daemon/base/process.h"
#include "daemon/rtsp/url.h"

static const int64_t MS = 1000000, SECOND = 1000 * MS, MINUTE = 60 * SECOND, LIMIT_NS = 30 * MINUTE;
static const int64_t PAUSES[] = {10 * MINUTE, 30 * MINUTE, 60 * MINUTE};
static const int64_t TRY_NS = 750 * MS;       // a camera answers within this time or not at all
static const int64_t PROVEN_NS = 10 * SECOND; // after a success, the host's cameras need not wait
static const int64_t ASK_NS = 100 * MS;       // how soon a waiting camera may ask again
enum {
    KEY_BYTES = 16,
    HOSTS_MAX = 4096,
    REFUSED_MAX = 4, // refusals within LIMIT_NS
    STEPS = sizeof PAUSES / sizeof *PAUSES,
    LINE_BYTES = 1024,
};
static const char TITLE[] = "framed login pauses 1\n";

struct refusal {
    int64_t ns; // CLOCK_MONOTONIC, below 0 if it was before the machine started
    uint16_t credentials;
};

struct host {
    char name[256];
    int refusals;                        // in a row, below STEPS: pauses grow no further
    int64_t next_ns;                     // CLOCK_MONOTONIC
    struct refusal refused[REFUSED_MAX]; // the newest first
    int n_refused;
    // Not in the file:
    uint16_t accepted;              // credentials
    int64_t accepted_ns, trying_ns; // when; 0: never
};

struct login_pause {
    char *path;              // of the file; NULL: none
    int64_t ahead_ns;        // CLOCK_REALTIME minus CLOCK_MONOTONIC
    uint8_t key[KEY_BYTES];  // for the hashes of credentials
    pthread_mutex_t writing; // taken before `lock`; held while the file is written
    bool failed;             // writing failed, and this was logged
    _Atomic bool changed;    // the file is not up to date
    pthread_mutex_t lock;    // protects the hosts
    int n_hosts;
    struct host hosts[HOSTS_MAX]; // takes memory as they are added
};

// Returns the host of this name, added if it is new. If there are too many, it replaces one without
// a refusal, else the first.
static struct host *get_host(struct login_pause *pause, const char *name)
{
    struct host *unused = pause->hosts, *host = pause->hosts;
    for (; host < pause->hosts + pause->n_hosts; host++) {
        if (strcmp(host->name, name) == 0)
            return host;
        unused = host->n_refused > 0 ? unused : host;
    }
    if (pause->n_hosts == HOSTS_MAX)
        host = unused;
    else
        pause->n_hosts++;
    *host = (struct host){0};
    snprintf(host->name, sizeof host->name, "%s", name);
    return host;
}

// --- the file that keeps the pauses over restarts: text, a line for each host

static bool is_time(int64_t seconds)
{
    return seconds >= 0 && seconds <= INT64_MAX / SECOND;
}

// "host NAME REFUSALS NEXT TIME:CREDENTIALS ...", with times in seconds since 1970. Limits them: a
// changed clock or a damaged file must not lengthen a pause.
static void read_host(struct login_pause *pause, const char *line, int64_t now_ns)
{
    struct host read = {0};
    struct refusal *refusal = read.refused;
    int64_t s;
    int bytes;
    if (sscanf(line, "host %255s %d %" SCNd64 "%n", read.name, &read.refusals, &s, &bytes) != 3 ||
        read.refusals < 0 || read.refusals >= STEPS || !is_time(s))
        return;
    read.next_ns = bounds_min(s * SECOND - pause->ahead_ns, now_ns + PAUSES[STEPS - 1]);
    for (line += bytes; read.n_refused < REFUSED_MAX; line += bytes, read.n_refused++, refusal++) {
        if (sscanf(line, "%" SCNd64 ":%4" SCNx16 "%n", &s, &refusal->credentials, &bytes) != 2 ||
            !is_time(s))
            break;
        refusal->ns = bounds_min(s * SECOND - pause->ahead_ns, now_ns);
    }
    if (read.n_refused > 0 && line[strspn(line, " \n")] == 0)
        *get_host(pause, read.name) = read;
}

static bool read_key(struct login_pause *pause, char *line)
{
    uint8_t key[KEY_BYTES];
    size_t bytes;
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "key ", 4) != 0 ||
        OPENSSL_hexstr2buf_ex(key, sizeof key, &bytes, line + 4, 0) != 1 || bytes != sizeof key)
        return false;
    memcpy(pause->key, key, sizeof key);
    return true;
}

// Skips unknown lines.
static void read_file(struct login_pause *pause, int64_t now_ns)
{
    char line[LINE_BYTES];
    FILE *file = fopen(pause->path, "re");
    if (!file)
        return;
    // Hashes are useless without the key.
    const bool good = fgets(line, sizeof line, file) && strcmp(line, TITLE) == 0 &&
                      fgets(line, sizeof line, file) && read_key(pause, line);
    for (int i = 0; good && i < HOSTS_MAX && fgets(line, sizeof line, file); i++)
        read_host(pause, line, now_ns);
    fclose(file);
}

static int64_t seconds_of(const struct login_pause *pause, int64_t ns)
{
    return bounds_max(ns + pause->ahead_ns, 0) / SECOND;
}

// Returns the text of the file, which the caller frees; NULL: no memory.
static char *file_text(const struct login_pause *pause)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    if (!file)
        return NULL;
    fprintf(file, "%skey ", TITLE);
    for (int i = 0; i < KEY_BYTES; i++)
        fprintf(file, "%02x", pause->key[i]);
    for (const struct host *host = pause->hosts; host < pause->hosts + pause->n_hosts; host++) {
        if (host->n_refused == 0)
            continue;
        fprintf(file, "\nhost %s %d %" PRId64, host->name, host->refusals,
                seconds_of(pause, host->next_ns));
        for (int i = 0; i < host->n_refused; i++)
            fprintf(file, " %" PRId64 ":%04x", seconds_of(pause, host->refused[i].ns),
                    host->refused[i].credentials);
    }
    fputc('\n', file);
    const bool failed = ferror(file);
    if (fclose(file) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

// Writes the file if it is not up to date. The next call retries a failed write.
static void write_changes(struct login_pause *pause)
{
    if (!pause->path || !atomic_load(&pause->changed))
        return;
    pthread_mutex_lock(&pause->writing);
    pthread_mutex_lock(&pause->lock);
    atomic_store(&pause->changed, false);
    char *text = file_text(pause);
    pthread_mutex_unlock(&pause->lock);
    const int rc = text ? state_file_write(pause->path, text, 0600) : -ENOMEM;
    free(text);
    if (rc < 0)
        atomic_store(&pause->changed, true);
    if (rc < 0 && !pause->failed)
        log_event(LOG_LEVEL_WARNING,
                  "cannot write %s: %s; after a restart a camera may be tried too soon with a "
                  "password that it refused",
                  pause->path, strerror(-rc));
    pause->failed = rc < 0;
    pthread_mutex_unlock(&pause->writing);
}

// --- the pauses

int login_pause_open(struct login_pause **ret, const char *folder, int64_t now_ns,
                     int64_t realtime_ns)
{
    struct login_pause *pause = calloc(1, sizeof *pause);
    if (!pause)
        return -ENOMEM;
    pthread_mutex_init(&pause->lock, NULL);
    pthread_mutex_init(&pause->writing, NULL);
    pause->ahead_ns = realtime_ns - now_ns;
    int rc = getrandom(pause->key, KEY_BYTES, 0) == KEY_BYTES ? 0 : -EIO;
    if (rc == 0 && folder && asprintf(&pause->path, "%s/login-pauses", folder) < 0)
        rc = -ENOMEM;
    if (rc < 0) {
        login_pause_close(pause);
        return rc;
    }
    if (folder)
        read_file(pause, now_ns);
    *ret = pause;
    return 0;
}

void login_pause_close(struct login_pause *pause)
{
    if (!pause)
        return;
    pthread_mutex_destroy(&pause->lock);
    pthread_mutex_destroy(&pause->writing);
    explicit_bzero(pause->key, KEY_BYTES);
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
            ret->host[i] = // always a word of the file
                isgraph((unsigned char)parsed.host[i]) ? (char)tolower(parsed.host[i]) : '?';
        const size_t user = strlen(parsed.user) + 1, password = strlen(parsed.password);
        memcpy(text, parsed.user, user);
        memcpy(text + user, parsed.password, password);
        // If this fails for lack of memory, all credentials of the host are the same.
        HMAC(EVP_sha256(), pause->key, KEY_BYTES, text, user + password, hash, NULL);
        ret->credentials = (uint16_t)(hash[0] << 8 | hash[1]);
        explicit_bzero(text, sizeof text);
    }
    explicit_bzero(&parsed, sizeof parsed);
}

// Returns the login's host, with the lock; NULL, without it: it has none.
static struct host *lock_host(struct login_pause *pause, const struct login *login)
{
    if (!login->host[0])
        return NULL;
    pthread_mutex_lock(&pause->lock);
    return get_host(pause, login->host);
}

static void unlock_and_write(struct login_pause *pause)
{
    pthread_mutex_unlock(&pause->lock);
    write_changes(pause);
}

static bool was_refused(const struct host *host, uint16_t credentials)
{
    for (int i = 0; i < host->n_refused; i++)
        if (host->refused[i].credentials == credentials)
            return true;
    return false;
}

// Returns when these credentials may be tried, and marks the try as begun if that is now.
static int64_t begin_try(struct host *host, uint16_t credentials, int64_t now_ns)
{
    int64_t until_ns = now_ns;
    if (was_refused(host, credentials))
        until_ns = bounds_max(until_ns, host->next_ns);
    if (host->n_refused == REFUSED_MAX)
        until_ns = bounds_max(until_ns, host->refused[REFUSED_MAX - 1].ns + LIMIT_NS);
    if (until_ns > now_ns)
        return until_ns;
    const bool proven = host->accepted_ns && host->accepted == credentials &&
                        now_ns - host->accepted_ns < PROVEN_NS;
    if (!proven && host->trying_ns && now_ns - host->trying_ns < TRY_NS)
        return bounds_min(host->trying_ns + TRY_NS, now_ns + ASK_NS);
    host->trying_ns = now_ns;
    return now_ns;
}

int64_t login_pause_until(struct login_pause *pause, const struct login *login, int64_t now_ns)
{
    struct host *host = lock_host(pause, login);
    if (!host)
        return now_ns;
    const int64_t until_ns = begin_try(host, login->credentials, now_ns);
    unlock_and_write(pause); // a reload's changes
    return until_ns;
}

void login_pause_refused(struct login_pause *pause, const struct login *login, bool other_scheme,
                         int64_t now_ns)
{
    struct host *host = lock_host(pause, login);
    if (!host)
        return;
    if (!was_refused(host, login->credentials))
        host->refusals = 0; // new credentials begin with the shortest pause again
    host->n_refused += host->n_refused < REFUSED_MAX;
    memmove(host->refused + 1, host->refused, (REFUSED_MAX - 1) * sizeof *host->refused);
    host->refused[0] = (struct refusal){now_ns, login->credentials};
    host->accepted_ns = host->trying_ns = 0;
    host->next_ns = now_ns + (other_scheme ? 0 : PAUSES[host->refusals]);
    host->refusals += !other_scheme && host->refusals < STEPS - 1;
    atomic_store(&pause->changed, true);
    unlock_and_write(pause);
}

void login_pause_accepted(struct login_pause *pause, const struct login *login, int64_t now_ns)
{
    struct host *host = lock_host(pause, login);
    if (!host)
        return;
    const int before = host->n_refused;
    host->n_refused = 0;
    for (int i = 0; i < before; i++) // refusals of other credentials stay
        if (host->refused[i].credentials != login->credentials)
            host->refused[host->n_refused++] = host->refused[i];
    if (host->n_refused == 0)
        host->refusals = 0;
    if (host->n_refused != before)
        atomic_store(&pause->changed, true);
    host->accepted = login->credentials;
    host->accepted_ns = now_ns;
    host->trying_ns = 0;
    unlock_and_write(pause);
}

void login_pause_reload(struct login_pause *pause)
{
    pthread_mutex_lock(&pause->lock);
    for (int i = 0; i < pause->n_hosts; i++) {
        struct host *host = &pause->hosts[i];
        if (host->n_refused > 0)
            atomic_store(&pause->changed, true);
        host->refusals = 0;
        host->next_ns = 0;
    }
    pthread_mutex_unlock(&pause->lock);
}
