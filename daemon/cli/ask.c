
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/expand.h"
#include "config/load.h"
#include "daemon/base/clock.h"
#include "daemon/base/process.h"
#include "daemon/cli/commands.h"

enum { REPLY_MAX = 64 << 20 }; // bytes

// --- where

static int load(const struct ask *ask, struct config **ret)
{
    static const struct config_load_options only = {.only = "control"};
    const char *config = ask->config ? ask->config : DEFAULT_CONFIG;
    if (!ask->config && access(config, R_OK) < 0)
        return EXIT_OK; // missing, or not readable for this user: use the defaults
    return config_load_with(ret, config, &only, stderr) == 0 ? EXIT_OK : EXIT_CONFIG;
}

// Uses the user's own daemon, or else the system's.
static void find_default(struct ask *ask)
{
    if (access(ask->path, F_OK) < 0)
        strcpy(ask->path, CONTROL_SYSTEM_PATH);
}

static int find_by_config(struct ask *ask)
{
    static const struct control_address by_default = {.off = false};
    struct config *config = NULL;
    int code = load(ask, &config);
    const struct control_address *control = config ? &config->control : &by_default;
    int rc = code == EXIT_OK ? control_path(control, ask->path) : 0;
    if (rc < 0)
        fprintf(stderr, "framed %s: %s\n", ask->command,
                rc == -ENOENT ? "the configuration has control: off"
                              : "the path of the control socket is too long");
    else if (control->at.kind == SINK_NONE)
        find_default(ask);
    config_free(config);
    return rc < 0 ? EXIT_RUNTIME : code;
}

int ask_find(struct ask *ask)
{
    if (!ask->socket) {
        const int code = find_by_config(ask);
        expand_hide(ask->shown, sizeof ask->shown, ask->path, false);
        return code;
    }
    if (strlen(ask->socket) > SOCKET_PATH_MAX) {
        fprintf(stderr, "framed %s: --socket: longer than %d bytes\n", ask->command,
                SOCKET_PATH_MAX);
        return EXIT_USAGE;
    }
    strcpy(ask->path, ask->socket);
    strcpy(ask->shown, ask->socket);
    return EXIT_OK;
}

// --- what

// A user who names a file means the daemon that runs with it. The socket's path does not identify
// the daemon: by default all daemons of a user share it.
int ask_request(const struct ask *ask, const char *word, char *to)
{
    char path[PATH_MAX];
    if (!ask->config || strcmp(ask->config, "-") == 0) {
        snprintf(to, CONTROL_LINE_MAX, "%s", word);
    } else if (realpath(ask->config, path)) {
        snprintf(to, CONTROL_LINE_MAX, "%s %s", word, path);
    } else {
        fprintf(stderr, "framed %s: %s: %s\n", ask->command, ask->config, strerror(errno));
        return EXIT_CONFIG;
    }
    return EXIT_OK;
}

// Lets the next call block until CLOCK_MONOTONIC reaches `until_ns`. -ETIMEDOUT: it has.
static int limit(int fd, int64_t until_ns)
{
    const int64_t left_us = (until_ns - monotonic_ns()) / 1000;
    const struct timeval timeout = {.tv_sec = left_us / 1000000, .tv_usec = left_us % 1000000};
    if (left_us <= 0)
        return -ETIMEDOUT;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    return 0;
}

static int failure(void)
{
    return errno == EAGAIN ? -ETIMEDOUT : -errno;
}

static int connect_to(const char *path, int64_t until_ns)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = limit(fd, until_ns);
    if (rc == 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        rc = failure();
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

// Reads to the end of the connection. -ENODATA: it ends before the line does.
static int read_line(int fd, int64_t until_ns, char **ret)
{
    size_t size = 0;
    FILE *to = open_memstream(ret, &size);
    int rc = to ? 0 : -ENOMEM;
    for (ssize_t n = 1; rc == 0 && n != 0;) {
        char bytes[16384];
        rc = limit(fd, until_ns);
        n = rc == 0 ? recv(fd, bytes, sizeof bytes, 0) : 0;
        if (n < 0 && errno != EINTR)
            rc = failure();
        else if (n > 0 && fwrite(bytes, (size_t)n, 1, to) != 1)
            rc = -ENOMEM;
        else if (ftell(to) > REPLY_MAX)
            rc = -EMSGSIZE;
    }
    if (to && fclose(to) != 0 && rc == 0)
        rc = -ENOMEM;
    if (rc == 0 && (size == 0 || (*ret)[size - 1] != '\n'))
        rc = -ENODATA;
    if (rc == 0)
        (*ret)[size - 1] = 0;
    return rc;
}

static int converse(int fd, const char *request, int64_t until_ns, char **reply)
{
    char line[CONTROL_LINE_MAX];
    int n = snprintf(line, sizeof line, "%s\n", request);
    int rc = limit(fd, until_ns);
    if (rc == 0 && send(fd, line, (size_t)n, MSG_NOSIGNAL) != n)
        rc = failure();
    return rc == 0 ? read_line(fd, until_ns, reply) : rc;
}

int ask_for(struct ask *ask, const char *request, int timeout_s, char **reply, char *why,
            size_t size)
{
    const int64_t until_ns = monotonic_ns() + timeout_s * INT64_C(1000000000);
    *reply = NULL;
    int fd = connect_to(ask->path, until_ns);
    int rc = fd < 0 ? fd : converse(fd, request, until_ns, reply);
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        return 0;
    free(*reply);
    *reply = NULL;
    snprintf(why, size, "framed does not answer on %s: %s%s", ask->shown,
             rc == -ENODATA ? "it hung up" : strerror(-rc),
             rc == -ENOENT || rc == -ECONNREFUSED
                 ? " (is it running? -c FILE or --socket PATH ask another daemon)"
                 : "");
    return rc;
}

// A reply has "ok" with the text, or "exit_code" and "errors".
static int take_text(const struct ask *ask, const json_t *reply, const char *member,
                     const char *failed, char **ret)
{
    const json_t *error;
    const char *text = json_string_value(json_object_get(reply, member));
    int code = (int)json_integer_value(json_object_get(reply, "exit_code"));
    size_t i;
    if (json_is_true(json_object_get(reply, "ok"))) {
        *ret = text ? strdup(text) : NULL;
        return *ret ? EXIT_OK : EXIT_RUNTIME;
    }
    json_array_foreach((json_t *)json_object_get(reply, "errors"), i, error)
    {
        fprintf(stderr, "%s\n", json_string_value(error));
    }
    fprintf(stderr, "framed %s: %s\n", ask->command, failed);
    return code == EXIT_OK ? EXIT_RUNTIME : code;
}

int ask_text(struct ask *ask, const char *request, int timeout_s, const char *member,
             const char *failed, char **ret)
{
    char *text, why[256];
    if (ask_for(ask, request, timeout_s, &text, why, sizeof why) < 0) {
        fprintf(stderr, "framed %s: %s\n", ask->command, why);
        return EXIT_RUNTIME;
    }
    json_t *reply = json_loads(text, 0, NULL);
    int code = EXIT_RUNTIME;
    if (json_object_get(reply, "ok"))
        code = take_text(ask, reply, member, failed, ret);
    else
        fprintf(stderr, "framed %s: %s is not framed's control socket\n", ask->command, ask->shown);
    json_decref(reply);
    free(text);
    return code;
}

int ask_order(struct ask *ask, const char *request, int timeout_s, const char *failed)
{
    char *done = NULL;
    const int code = ask_text(ask, request, timeout_s, "done", failed, &done);
    if (code == EXIT_OK)
        printf("%s\n", done);
    free(done);
    return code;
}
