#include "daemon/service/routes.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/schema.h"
#include "config/url.h"
#include "daemon/base/log.h"
#include "daemon/service/bottleneck.h"
#include "daemon/service/status.h"

// --- a command of framed's own binary, run by the loop in a child process

enum { OWN_COMMAND_INPUT_MAX = 4096, OWN_COMMAND_OUTPUT_MAX = 1 << 20 };

struct own_command_options {
    const char *const *arguments; // from the command's name up to a NULL
    const char *input;            // for its standard input, less than OWN_COMMAND_INPUT_MAX bytes
    int64_t timeout_ms;           // then the child is killed
    // The child has ended. `rc`: its exit code; -ETIMEDOUT; -EMSGSIZE: more output than
    // OWN_COMMAND_OUTPUT_MAX; -EIO: ended by a signal. `output`: its standard output with a zero
    // byte after it, valid during the call.
    void (*done)(void *opaque, int rc, const char *output, size_t size);
    void *opaque;
};

enum { ARGUMENTS_MAX = 16, BEHIND = 10 }; // BEHIND: of nice(2)

struct own_command {
    struct own_command_options options;
    pid_t pid;
    int pid_fd, output_fd;
    uv_poll_t exit, readable;
    uv_timer_t deadline;
    int handles;
    bool dropped; // `done` is not called
    int rc;       // why it is killed
    char *output; // OWN_COMMAND_OUTPUT_MAX and a zero byte
    size_t used;
};

static void handle_closed(uv_handle_t *handle)
{
    struct own_command *child = handle->data;
    if (--child->handles > 0)
        return;
    if (child->pid_fd >= 0)
        close(child->pid_fd);
    close(child->output_fd);
    free(child->output);
    free(child);
}

// Closes the handles that watch_child() has opened; the last one frees the child.
static void close_handles(struct own_command *child)
{
    uv_handle_t *const handles[] = {(uv_handle_t *)&child->deadline, (uv_handle_t *)&child->exit,
                                    (uv_handle_t *)&child->readable};
    for (int i = 0, n = child->handles; i < n; i++)
        uv_close(handles[i], handle_closed);
}

static void kill_for(struct own_command *child, int rc)
{
    child->rc = child->rc ? child->rc : rc;
    kill(child->pid, SIGKILL); // a zombie until waited for, never another process
}

// Reads all of the pipe.
static void take_output(struct own_command *child)
{
    ssize_t n;
    while ((n = read(child->output_fd, child->output + child->used,
                     OWN_COMMAND_OUTPUT_MAX - child->used)) > 0)
        child->used += (size_t)n;
    if (child->used == OWN_COMMAND_OUTPUT_MAX)
        kill_for(child, -EMSGSIZE);
    if (n == 0)
        uv_poll_stop(&child->readable);
}

static void output_came(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    take_output(poll->data);
}

static void child_ended(uv_poll_t *poll, int status, int events)
{
    struct own_command *child = poll->data;
    int how = 0;
    (void)status, (void)events;
    take_output(child);
    while (waitpid(child->pid, &how, 0) < 0 && errno == EINTR)
        ;
    child->output[child->used] = 0;
    const int rc = child->rc ? child->rc : WIFEXITED(how) ? WEXITSTATUS(how) : -EIO;
    close_handles(child);
    if (!child->dropped)
        child->options.done(child->options.opaque, rc, child->output, child->used);
}

static void deadline_passed(uv_timer_t *timer)
{
    kill_for(timer->data, -ETIMEDOUT);
}

// --- the start of a child

// Returns the read end of a pipe with the input, which fits into any pipe, or a negative errno.
static int pipe_with(const char *input)
{
    int ends[2];
    const size_t length = strlen(input);
    if (length >= OWN_COMMAND_INPUT_MAX || pipe2(ends, O_CLOEXEC) < 0)
        return length >= OWN_COMMAND_INPUT_MAX ? -EMSGSIZE : -errno;
    const bool written = write(ends[1], input, length) == (ssize_t)length;
    close(ends[1]);
    if (!written)
        close(ends[0]);
    return written ? ends[0] : -EIO;
}

static int spawn_child(pid_t *ret, const char *const *arguments, int input, int output)
{
    char *argv[ARGUMENTS_MAX + 2] = {(char *)"framed"};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    for (int i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
        argv[i + 1] = (char *)arguments[i];
    sigfillset(&all);
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&actions))
        return -ENOMEM;
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    // Shares memory with the child until its exec: no page of the daemon is copied.
    const int rc = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

// Running cameras come first, and if memory runs out, the child is killed. If that is forbidden,
// the child runs all the same.
static void put_behind(pid_t pid)
{
    char path[64];
    setpriority(PRIO_PROCESS, (id_t)pid, BEHIND);
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    const ssize_t written = write(fd, "1000", 4);
    (void)written;
    close(fd);
}

static int watch_child(struct own_command *child, uv_loop_t *loop)
{
    child->exit.data = child->readable.data = child->deadline.data = child;
    uv_timer_init(loop, &child->deadline);
    child->handles = 1;
    int rc = uv_poll_init(loop, &child->exit, child->pid_fd);
    child->handles += rc == 0;
    if (rc == 0)
        rc = uv_poll_init(loop, &child->readable, child->output_fd);
    child->handles += rc == 0;
    if (rc < 0)
        return rc;
    // These fail only on a closing handle.
    uv_poll_start(&child->exit, UV_READABLE, child_ended);
    uv_poll_start(&child->readable, UV_READABLE, output_came);
    uv_timer_start(&child->deadline, deadline_passed, (uint64_t)child->options.timeout_ms, 0);
    return 0;
}

// Ends a child that cannot be watched.
static void abandon_child(struct own_command *child)
{
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close_handles(child);
}

// Starts it with lower priority for processors and memory than the daemon. 0 or a negative errno.
static int own_command_start(struct own_command **ret, uv_loop_t *loop,
                             const struct own_command_options *options)
{
    struct own_command *child = calloc(1, sizeof *child);
    int output[2] = {-1, -1}, input = -1;
    int rc = child && (child->output = malloc(OWN_COMMAND_OUTPUT_MAX + 1)) ? 0 : -ENOMEM;
    if (rc == 0 && pipe2(output, O_CLOEXEC | O_NONBLOCK) < 0)
        rc = -errno;
    if (rc == 0 && (input = pipe_with(options->input)) < 0)
        rc = input;
    if (rc == 0) {
        fcntl(output[1], F_SETFL, 0); // only the child's end blocks
        rc = spawn_child(&child->pid, options->arguments, input, output[1]);
    }
    if (output[1] >= 0)
        close(output[1]);
    if (input >= 0)
        close(input);
    if (rc < 0) {
        if (output[0] >= 0)
            close(output[0]);
        free(child ? child->output : NULL);
        free(child);
        return rc;
    }
    child->options = *options;
    child->output_fd = output[0];
    child->pid_fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    put_behind(child->pid);
    rc = watch_child(child, loop);
    if (rc < 0)
        abandon_child(child);
    else
        *ret = child;
    return rc;
}

// Kills it without a call of `done`; must not be called after `done`. Accepts NULL.
static void own_command_kill(struct own_command *child)
{
    if (!child)
        return;
    child->dropped = true;
    kill_for(child, -ECANCELED);
}

// --- searches

enum {
    TEXT_MAX_BYTES = 255, // of a user, a password or a name
    URL_MAX = 1024,
    SECONDS_MAX = 10,
    ADDRESSES_MAX = 16, // of `framed discover`
    ADDRESS_MAX_BYTES = 63,
    OVERHEAD_MS = 20000, // added to the seconds, for connecting and all else
};

// The search of one kind; one runs at a time.
struct search {
    struct camera_finder *finder;
    const char *what;
    struct own_command *child;      // NULL: none runs
    struct http_exchange *exchange; // waits for the child
};

struct camera_finder {
    struct camera_finder_context context;
    struct search discovery, probe;
};

// The parameters of a request; its JSON owns the texts.
struct wish {
    const char *url, *user, *password, *name;
    json_t *addresses; // NULL: none are given
    double seconds;
    int clear;
};

// --- the request

// True if it can be a line of its own in a child's standard input.
static bool is_line(const char *text, size_t max)
{
    const size_t n = strlen(text);
    return n <= max && strcspn(text, "\r\n") == n;
}

// True if they are words that no command takes for an option.
static bool are_addresses(json_t *list)
{
    size_t i;
    json_t *one;
    if (!json_is_array(list) || json_array_size(list) > ADDRESSES_MAX)
        return false;
    json_array_foreach(list, i, one)
    {
        const char *text = json_string_value(one);
        if (!text || !*text || *text == '-' || !is_line(text, ADDRESS_MAX_BYTES))
            return false;
    }
    return true;
}

static const char *mistake_in(const struct wish *wish)
{
    if (!is_line(wish->user, TEXT_MAX_BYTES) || !is_line(wish->password, TEXT_MAX_BYTES) ||
        !is_line(wish->name, TEXT_MAX_BYTES) || !is_line(wish->url, URL_MAX))
        return "user, password and name are lines of at most 255 bytes, url of 1024";
    if (!*wish->user && *wish->password)
        return "a password comes with a user";
    if (wish->addresses && !are_addresses(wish->addresses))
        return "addresses is a list of up to 16 addresses of cameras";
    if (!(wish->seconds >= 0.1 && wish->seconds <= SECONDS_MAX))
        return "seconds is a number from 0.1 to 10";
    const size_t n = strspn(wish->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789_-");
    if (wish->name[n] || n == 0 || n > (size_t)camera_table.name_max)
        return "name is that of a camera: letters, digits, _ and -";
    return NULL;
}

// False: the request was refused.
static bool read_wish(struct http_exchange *exchange, json_t *body, double seconds,
                      struct wish *ret)
{
    const char *wrong = body ? NULL : "the body is an object of JSON";
    json_error_t error;
    *ret = (struct wish){"", "", "", "camera", NULL, seconds, 0};
    if (!wrong && json_unpack_ex(body, &error, 0, "{s?s, s?s, s?s, s?s, s?o, s?F, s?b !}", "url",
                                 &ret->url, "user", &ret->user, "password", &ret->password, "name",
                                 &ret->name, "addresses", &ret->addresses, "seconds", &ret->seconds,
                                 "clear", &ret->clear) < 0)
        wrong = "url, user, password and name are strings, addresses is a list of them, seconds is "
                "a number, clear true or false; there are no others";
    if (!wrong)
        wrong = mistake_in(ret);
    if (wrong)
        http_refuse(exchange, 400, "%s", wrong);
    return !wrong;
}

static json_t *read_body(struct http_exchange *exchange)
{
    size_t size;
    const char *text = http_body(exchange, &size);
    return json_loadb(text, size, 0, NULL);
}

// --- the child

static void client_gone(void *opaque)
{
    struct search *search = opaque;
    own_command_kill(search->child);
    search->child = NULL;
    search->exchange = NULL;
}

// Answers with the child's output; adds the room for more cameras to a probe's output with a cost.
static void answer(struct search *search, json_t *said)
{
    struct metrics metrics;
    json_t *cost = json_object_get(said, "cost");
    if (cost) {
        const struct camera_finder_context *context = &search->finder->context;
        context->snapshot(context->opaque, &metrics);
        json_t *room = load_bottleneck_json(&metrics.status->load, &metrics);
        const json_t *more = json_object_get(room, "cameras_more");
        if (json_is_integer(more) && json_integer_value(more) == 0 &&
            json_is_true(json_object_get(cost, "fits"))) {
            json_object_set_new(cost, "fits", json_false());
            json_object_set_new(cost, "why",
                                json_string("the cameras that run take all that there is"));
        }
        json_object_set_new(said, "room", room);
    }
    http_answer_json(search->exchange, 200, json_incref(said));
}

static void child_done(void *opaque, int rc, const char *output, size_t size)
{
    struct search *search = opaque;
    json_t *said = rc >= 0 ? json_loadb(output, size, 0, NULL) : NULL;
    search->child = NULL;
    if (said)
        answer(search, said);
    else if (rc == -ETIMEDOUT)
        http_refuse(search->exchange, 503, "the %s took too long", search->what);
    else
        http_refuse(search->exchange, 503, "the %s failed", search->what);
    json_decref(said);
    search->exchange = NULL;
}

static void start_search(struct search *search, struct http_exchange *exchange,
                         const char *const arguments[], const char *input, double seconds)
{
    const struct own_command_options options = {
        .arguments = arguments,
        .input = input,
        .timeout_ms = (int64_t)(seconds * 1000) + OVERHEAD_MS,
        .done = child_done,
        .opaque = search,
    };
    int rc = own_command_start(&search->child, search->finder->context.loop, &options);
    if (rc < 0) {
        http_refuse(exchange, 503, "no %s: %s", search->what, strerror(-rc));
        return;
    }
    search->exchange = exchange;
    http_hold(exchange, client_gone, search);
}

static bool is_busy(const struct search *search, struct http_exchange *exchange)
{
    if (search->child)
        http_refuse(exchange, 503, "another %s is under way: ask again when it is done",
                    search->what);
    return search->child;
}

// The JSON owns the addresses of the wish.
static void start_discovery(struct search *search, struct http_exchange *exchange,
                            const struct wish *wish)
{
    char seconds[32], input[TEXT_MAX_BYTES + 2];
    const char *arguments[8 + ADDRESSES_MAX + 1] = {"discover", "--json", "--seconds", seconds};
    int n = 4;
    snprintf(seconds, sizeof seconds, "%g", wish->seconds);
    snprintf(input, sizeof input, "%s\n", wish->password);
    if (*wish->password) {
        arguments[n++] = "--user";
        arguments[n++] = wish->user;
        arguments[n++] = "--password-file";
        arguments[n++] = "-";
    }
    for (size_t i = 0; i < json_array_size(wish->addresses); i++)
        arguments[n++] = json_string_value(json_array_get(wish->addresses, i));
    log_event(LOG_LEVEL_INFO, "http: cameras are looked for");
    start_search(search, exchange, arguments, input, wish->seconds);
    explicit_bzero(input, sizeof input);
}

void routes_discover(void *opaque, struct http_exchange *exchange)
{
    struct camera_finder *finder = ((struct routes_context *)opaque)->finder;
    struct wish wish;
    json_t *body = read_body(exchange);
    if (is_busy(&finder->discovery, exchange) || !read_wish(exchange, body, 2, &wish)) {
        json_decref(body);
        return;
    }
    if (*wish.password && json_array_size(wish.addresses) == 0)
        http_refuse(exchange, 400,
                    "a password goes to named cameras: addresses, as a search without a password "
                    "lists them");
    else
        start_discovery(&finder->discovery, exchange, &wish);
    json_decref(body);
}

// Writes the URL line for the child, with user and password in it. False: the request was refused.
static bool make_line(struct http_exchange *exchange, const struct wish *wish, char *to,
                      size_t size)
{
    char *url = NULL;
    const enum url_kind kind = config_url_kind(wish->url);
    const bool remote = kind == URL_RTSP || kind == URL_TCP;
    const char *mistake = remote ? config_url_mistake(wish->url) : NULL;
    int rc = remote && !mistake ? 0 : -EINVAL;
    if (rc == 0 && *wish->user)
        rc = config_url_with_login(&url, wish->url, wish->user, wish->password);
    if (mistake)
        http_refuse(exchange, 400, "the url %s", mistake);
    else if (rc == -EINVAL)
        http_refuse(exchange, 400,
                    "the url has to be a camera's: rtsp://HOST/PATH, rtsps:// or tcp://");
    else if (rc < 0)
        http_refuse(exchange, 503, "%s", strerror(-rc));
    else
        snprintf(to, size, "%s\n", url ? url : wish->url);
    if (url)
        explicit_bzero(url, strlen(url));
    free(url);
    return rc == 0;
}

void routes_probe(void *opaque, struct http_exchange *exchange)
{
    struct camera_finder *finder = ((struct routes_context *)opaque)->finder;
    char seconds[32], shown[256], input[OWN_COMMAND_INPUT_MAX];
    struct wish wish;
    json_t *body = read_body(exchange);
    if (!is_busy(&finder->probe, exchange) && read_wish(exchange, body, 3, &wish) &&
        make_line(exchange, &wish, input, sizeof input)) {
        const char *const arguments[] = {
            "probe", "-",      "--json",  "--seconds",
            seconds, "--name", wish.name, wish.clear ? "--clear" : NULL,
            NULL};
        snprintf(seconds, sizeof seconds, "%g", wish.seconds);
        log_event(LOG_LEVEL_INFO, "http: %s is probed",
                  config_url_shown(wish.url, shown, sizeof shown));
        start_search(&finder->probe, exchange, arguments, input, wish.seconds);
    }
    explicit_bzero(input, sizeof input);
    json_decref(body);
}

// --- life

int camera_finder_open(struct camera_finder **ret, const struct camera_finder_context *context)
{
    struct camera_finder *finder = calloc(1, sizeof *finder);
    if (!finder)
        return -ENOMEM;
    finder->context = *context;
    finder->discovery = (struct search){.finder = finder, .what = "search for cameras"};
    finder->probe = (struct search){.finder = finder, .what = "probe"};
    *ret = finder;
    return 0;
}

void camera_finder_close(struct camera_finder *finder)
{
    if (!finder)
        return;
    own_command_kill(finder->discovery.child);
    own_command_kill(finder->probe.child);
    free(finder);
}
