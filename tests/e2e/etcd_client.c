// A client of etcd for test_etcd.py: reads commands as lines from stdin; prints a line of JSON for
// the result of each, and for each batch of changes of a watch.
//   etcd_client [-u USER -p PASSWORD] [-a CA] [-c CERT -k KEY] ENDPOINT...
//   get ID MS PREFIX | grant ID MS TTL | keepalive ID MS LEASE | revoke ID MS LEASE |
//   commit ID MS [version|above|mod KEY N]... [put KEY VALUE LEASE|delete KEY]... |
//   watch ID PREFIX REVISION | unwatch | cpu | quit
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/cluster/etcd.h"

enum { LINES_MAX = 65536, WORDS_MAX = 64, WRITES_MAX = 16 };

static struct etcd *etcd;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *lines[LINES_MAX];
static int n_lines, n_taken;
static bool quit;

struct command {
    int id;
    int64_t begun_ns;
};

static void put_text(const char *text, size_t length)
{
    putchar('"');
    for (size_t i = 0; i < length; i++)
        if (text[i] == '"' || text[i] == '\\')
            printf("\\%c", text[i]);
        else if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] >= 0x7f)
            printf("\\u%04x", (unsigned char)text[i]);
        else
            putchar(text[i]);
    putchar('"');
}

static void put_answer(int rc, const struct etcd_answer *answer)
{
    printf("\"rc\": %d, \"errno\": \"%s\", \"error\": ", rc, rc ? strerrorname_np(-rc) : "");
    put_text(etcd_error(etcd), strlen(etcd_error(etcd)));
    if (answer) {
        printf(", \"revision\": %" PRId64 ", \"succeeded\": %d, \"lease\": %" PRId64
               ", \"ttl\": %" PRId64 ", \"entries\": [",
               answer->revision, answer->succeeded, answer->lease, answer->ttl);
        for (int i = 0; i < answer->n; i++) {
            const struct etcd_entry *entry = &answer->entries[i];
            printf("%s{\"key\": ", i ? ", " : "");
            put_text(entry->key, strlen(entry->key));
            printf(", \"value\": ");
            put_text(entry->value, entry->length);
            printf(", \"mod\": %" PRId64 ", \"version\": %" PRId64 ", \"lease\": %" PRId64 "}",
                   entry->mod_revision, entry->version, entry->lease);
        }
        printf("]");
    }
    printf("}\n");
    fflush(stdout);
}

static void done(void *opaque, int rc, const struct etcd_answer *answer)
{
    struct command *command = opaque;
    const double ms = (double)(boottime_ns() - command->begun_ns) / 1e6;
    printf("{\"id\": %d, \"ms\": %.3f, \"sent_ms\": %.3f, ", command->id, ms,
           answer ? (double)(answer->sent_ns - command->begun_ns) / 1e6 : 0);
    put_answer(rc, answer);
    free(command);
}

static void changed(void *opaque, int rc, const struct etcd_answer *answer)
{
    printf("{\"id\": %d, \"changes\": %d, ", (int)(intptr_t)opaque, answer ? answer->n : 0);
    put_answer(rc, answer);
}

static void commit(char **words, int n, int64_t timeout_ns, struct command *command)
{
    struct etcd_compare compares[WRITES_MAX];
    struct etcd_write writes[WRITES_MAX];
    int n_compares = 0, n_writes = 0;
    for (int i = 3; i < n;)
        if (strcmp(words[i], "put") == 0) {
            writes[n_writes++] =
                (struct etcd_write){words[i + 1], words[i + 2], atoll(words[i + 3])};
            i += 4;
        } else if (strcmp(words[i], "delete") == 0) {
            writes[n_writes++] = (struct etcd_write){words[i + 1], NULL, 0};
            i += 2;
        } else {
            compares[n_compares++] = (struct etcd_compare){words[i][0] == 'm'   ? ETCD_MOD_REVISION
                                                           : words[i][0] == 'a' ? ETCD_VERSION_ABOVE
                                                                                : ETCD_VERSION,
                                                           words[i + 1], atoll(words[i + 2])};
            i += 3;
        }
    etcd_commit(etcd, compares, n_compares, writes, n_writes, timeout_ns, done, command);
}

static void print_cpu(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    printf("{\"id\": 0, \"cpu\": %.3f}\n", (double)used.tv_sec + (double)used.tv_nsec / 1e9);
    fflush(stdout);
}

static void execute(char *line)
{
    char *words[WORDS_MAX + 4] = {NULL}, *rest = line;
    int n = 0;
    while (n < WORDS_MAX && (words[n] = strsep(&rest, " \n")) && *words[n])
        n++;
    const char *name = n > 0 ? words[0] : "quit";
    const int id = n > 1 ? atoi(words[1]) : 0;
    const int64_t timeout_ns = n > 2 ? atoll(words[2]) * 1000000 : 0;
    struct command *command = malloc(sizeof *command);
    if (!command)
        abort();
    *command = (struct command){id, boottime_ns()};
    if (strcmp(name, "get") == 0) {
        etcd_get(etcd, words[3] ? words[3] : "", timeout_ns, done, command);
    } else if (strcmp(name, "grant") == 0) {
        etcd_grant(etcd, atoll(words[3]), timeout_ns, done, command);
    } else if (strcmp(name, "keepalive") == 0) {
        etcd_keepalive(etcd, atoll(words[3]), timeout_ns, done, command);
    } else if (strcmp(name, "revoke") == 0) {
        etcd_revoke(etcd, atoll(words[3]), timeout_ns, done, command);
    } else if (strcmp(name, "commit") == 0) {
        commit(words, n, timeout_ns, command);
    } else {
        free(command);
        if (strcmp(name, "watch") == 0)
            etcd_watch(etcd, words[2], atoll(words[3]), changed, (void *)(intptr_t)id);
        else if (strcmp(name, "unwatch") == 0)
            etcd_unwatch(etcd);
        else if (strcmp(name, "cpu") == 0)
            print_cpu();
        else
            quit = true;
    }
}

static void *read_lines(void *opaque)
{
    (void)opaque;
    for (bool more = true; more;) {
        char *line = NULL;
        size_t room = 0;
        more = getline(&line, &room, stdin) > 0 && strcmp(line, "quit\n") != 0;
        if (!more) {
            free(line);
            line = strdup("quit");
        }
        pthread_mutex_lock(&lock);
        lines[n_lines++ % LINES_MAX] = line;
        pthread_mutex_unlock(&lock);
        etcd_wake(etcd);
    }
    return NULL;
}

static char *take_line(void)
{
    pthread_mutex_lock(&lock);
    char *line = n_taken < n_lines ? lines[n_taken++ % LINES_MAX] : NULL;
    pthread_mutex_unlock(&lock);
    return line;
}

int main(int argc, char **argv)
{
    struct etcd_options options = {0};
    for (int c; (c = getopt(argc, argv, "u:p:a:c:k:")) != -1;)
        *(c == 'u'   ? &options.user
          : c == 'p' ? &options.password
          : c == 'a' ? &options.ca
          : c == 'c' ? &options.cert
                     : &options.key) = optarg;
    options.endpoints = (const char *const *)argv + optind;
    options.n_endpoints = argc - optind;
    if (etcd_open(&etcd, &options) < 0)
        return 1;
    pthread_t reader;
    if (pthread_create(&reader, NULL, read_lines, NULL) != 0)
        return 1;
    while (!quit) {
        for (char *line; (line = take_line());) {
            execute(line);
            free(line);
        }
        if (!quit)
            etcd_run(etcd, INT64_MAX);
    }
    pthread_join(reader, NULL);
    etcd_close(etcd);
    return 0;
}
