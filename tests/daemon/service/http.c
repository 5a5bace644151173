// Requests with bodies, delayed answers and streams, with a client in a thread of its own.
#include "daemon/service/http.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"

enum { NUMBERS = 200000, LIMIT_S = 60 };

static struct rig {
    uv_loop_t loop;
    uv_async_t over, change;
    uv_timer_t later, limit;
    struct http *http;
    struct http_exchange *held;
    struct http_exchange *stream;
    unsigned next; // number of the stream
    atomic_int gone;
    bool paused;
    const char *token, *read_token;
    atomic_bool changing;
} rig;

// --- served routes

static void answer_text(struct http_exchange *exchange, const char *text, size_t size)
{
    char *body = malloc(size + 1);
    memcpy(body, text, size);
    http_answer(exchange, &(struct http_page){
                              .status = 200, .type = "text/plain", .body = body, .size = size});
}

static void serve_echo(void *opaque, struct http_exchange *exchange)
{
    size_t size;
    const char *body = http_body(exchange, &size);
    (void)opaque;
    CHECK(body[size] == 0, "no zero byte behind a body");
    answer_text(exchange, body, size);
}

static void serve_names(void *opaque, struct http_exchange *exchange)
{
    char text[200];
    const char *width = http_argument(exchange, "width");
    (void)opaque;
    snprintf(text, sizeof text, "%s|%s|%s", http_part(exchange, 0), http_part(exchange, 1),
             width ? width : "none");
    answer_text(exchange, text, strlen(text));
}

static void client_gone(void *opaque)
{
    (void)opaque;
    rig.held = NULL;
    atomic_fetch_add(&rig.gone, 1);
}

static void answer_later(uv_timer_t *timer)
{
    (void)timer;
    if (rig.held)
        answer_text(rig.held, "later", 5);
    rig.held = NULL;
}

static void serve_later(void *opaque, struct http_exchange *exchange)
{
    (void)opaque;
    rig.held = exchange;
    http_hold(exchange, client_gone, NULL);
    uv_timer_start(&rig.later, answer_later, 100, 0);
}

static void serve_now(void *opaque, struct http_exchange *exchange)
{
    (void)opaque;
    http_hold(exchange, client_gone, NULL);
    answer_text(exchange, "at once", 7);
}

static void serve_never(void *opaque, struct http_exchange *exchange)
{
    (void)opaque;
    http_hold(exchange, client_gone, NULL);
}

static void resume(uv_timer_t *timer)
{
    (void)timer;
    if (rig.stream)
        http_wake(rig.stream);
}

// Another stream may have begun meanwhile.
static void stream_gone(void *opaque)
{
    if (rig.stream == opaque)
        rig.stream = NULL;
    atomic_fetch_add(&rig.gone, 1);
}

// Writes endless numbers, with a pause after each thousand.
static size_t fill_numbers(void *opaque, char *to, size_t room)
{
    size_t n = 0;
    (void)opaque;
    if (!rig.paused && rig.next > 0 && rig.next % 1000 == 0) {
        rig.paused = true;
        uv_timer_start(&rig.later, resume, 1, 0);
        return 0;
    }
    rig.paused = false;
    for (; room - n >= 8; n += 7) {
        snprintf(to + n, 8, "%06u\n", rig.next++);
        if (rig.next % 1000 == 0)
            return n + 7;
    }
    return n;
}

static void serve_numbers(void *opaque, struct http_exchange *exchange)
{
    const struct http_stream stream = {
        .type = "text/plain", .fill = fill_numbers, .gone = stream_gone, .opaque = exchange};
    (void)opaque;
    rig.next = 0;
    rig.stream = exchange;
    CHECK(http_stream(exchange, &stream) == 0, "no stream");
}

static void serve_kept(void *opaque, struct http_exchange *exchange)
{
    static char text[] = "kept";
    (void)opaque;
    http_answer(exchange, &(struct http_page){.status = 200,
                                              .type = "text/css",
                                              .body = text,
                                              .size = 4,
                                              .constant = true,
                                              .etag = "\"abc\""});
}

static const struct http_route routes[] = {
    {.method = "POST", .pattern = "/api/echo", .serve = serve_echo},
    {.method = "PUT", .pattern = "/api/echo", .serve = serve_echo, .writes = true},
    {.method = "GET", .pattern = "/api/cameras/*/outputs/*", .serve = serve_names},
    {.method = "GET", .pattern = "/later", .serve = serve_later},
    {.method = "GET", .pattern = "/now", .serve = serve_now},
    {.method = "GET", .pattern = "/never", .serve = serve_never},
    {.method = "GET", .pattern = "/numbers", .serve = serve_numbers},
    {.method = "GET", .pattern = "/kept", .serve = serve_kept, .open = true},
};

// --- the client

// Runs on the loop's thread.
static void change_token(const char *token)
{
    rig.token = token;
    atomic_store(&rig.changing, true);
    uv_async_send(&rig.change);
    while (atomic_load(&rig.changing))
        usleep(1000);
}

// Connects from 127.0.0.`host`.
static int dial_from(unsigned host)
{
    const struct sockaddr_in from = {.sin_family = AF_INET,
                                     .sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~255u) | host)};
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)http_port(rig.http)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct timeval limit = {.tv_sec = 10};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    CHECK(bind(fd, (const struct sockaddr *)&from, sizeof from) == 0, "no address");
    CHECK(connect(fd, (const struct sockaddr *)&to, sizeof to) == 0, "no connection");
    return fd;
}

static int dial(void)
{
    return dial_from(1);
}

static void say(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        text += sent;
        n -= (size_t)sent;
    }
}

// Returns the whole response to a request with a body of `size` bytes, with `Connection: close`.
static char *ask(const char *line, const char *headers, const char *body, size_t size)
{
    char head[1000], *heard = calloc(1, (2 << 20) + 1);
    size_t n = 0;
    int fd = dial();
    snprintf(head, sizeof head,
             "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n",
             line, headers, size);
    say(fd, head, strlen(head));
    say(fd, body, size);
    for (ssize_t got; n < 2 << 20 && (got = recv(fd, heard + n, (2 << 20) - n, 0)) > 0;)
        n += (size_t)got;
    close(fd);
    return heard;
}

static void expect(const char *line, const char *headers, const char *body, size_t size,
                   const char *status, const char *end)
{
    char *heard = ask(line, headers, body, size);
    const size_t n = strlen(heard), m = strlen(end);
    CHECK(strncmp(heard + strlen("HTTP/1.1 "), status, 3) == 0, "%s: %.60s, not %s", line, heard,
          status);
    CHECK(n >= m && strcmp(heard + n - m, end) == 0, "%s: no '%s' at the end of: %s", line, end,
          heard + (n > 300 ? n - 300 : 0));
    free(heard);
}

static void ask_with_bodies(void)
{
    static const char json[] = "Content-Type: application/json\r\n";
    char *large = malloc(HTTP_BODY_BYTES + 1);
    memset(large, 'x', HTTP_BODY_BYTES + 1);
    strcpy(large + HTTP_BODY_BYTES - 4, "end!");
    expect("POST /api/echo", json, "{}", 2, "200", "\r\n\r\n{}");
    expect("POST /api/echo", json, "", 0, "200", "\r\n\r\n");
    expect("POST /api/echo", json, large, HTTP_BODY_BYTES, "200", "xxxend!");
    expect("POST /api/echo", json, large, HTTP_BODY_BYTES + 1, "413",
           "{\"error\": \"a body of at most 1048576 bytes\"}\n");
    expect("POST /api/echo", "Content-Type: text/plain\r\n", "{}", 2, "415",
           "must be application/json\"}\n");
    expect("PUT /api/echo", json, "{}", 2, "403", "nothing can be changed by HTTP\"}\n");
    expect("DELETE /api/echo", json, "", 0, "405", "{\"error\": \"POST, PUT\"}\n");
    free(large);
}

static void ask_for_parts(void)
{
    expect("GET /api/cameras/gate/outputs/o?width=640&x=1", "", "", 0, "200", "\r\n\r\ngate|o|640");
    expect("GET /api/cameras/g%C3%A4te/outputs/o", "", "", 0, "200", "\r\n\r\ng\u00e4te|o|none");
    expect("GET /api/cameras//outputs/o", "", "", 0, "404", "no such page\"}\n");
    expect("GET /api/cameras/a/b/outputs/o", "", "", 0, "404", "no such page\"}\n");
    expect("GET /kept", "", "", 0, "200", "\r\n\r\nkept");
    expect("GET /kept", "If-None-Match: \"abc\"\r\n", "", 0, "304", "\r\n\r\n");
}

static void ask_for_answers_later(void)
{
    expect("GET /later", "", "", 0, "200", "later");
    expect("GET /now", "", "", 0, "200", "at once");
    const int gone = atomic_load(&rig.gone);
    int fd = dial();
    say(fd, "GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n", 41);
    usleep(50000);
    CHECK(atomic_load(&rig.gone) == gone, "gone before it is");
    close(fd);
    for (int i = 0; i < 200 && atomic_load(&rig.gone) == gone; i++)
        usleep(10000);
    CHECK(atomic_load(&rig.gone) == gone + 1, "nobody is told that a client is gone");
}

// Clients that shut down sending after their request.
static void ask_by_half(void)
{
    static const struct {
        const char *request, *end;
    } cases[] = {
        {"GET /kept HTTP/1.1\r\nHost: localhost\r\n\r\n", "\r\n\r\nkept"},
        {"GET /kept HTTP/1.0\r\n\r\n", "\r\n\r\nkept"},
        {"GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n", "\r\n\r\nlater"},
        {"GET /later HTTP/1.0\r\n\r\n", "\r\n\r\nlater"},
        {"POST /api/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
         "Content-Length: 2\r\n\r\n{}",
         "\r\n\r\n{}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char heard[2000] = "";
        size_t n = 0;
        const int fd = dial();
        const uint64_t begun = uv_hrtime();
        say(fd, cases[i].request, strlen(cases[i].request));
        shutdown(fd, SHUT_WR);
        for (ssize_t got; (got = recv(fd, heard + n, sizeof heard - 1 - n, 0)) > 0;)
            n += (size_t)got;
        close(fd);
        const size_t m = strlen(cases[i].end);
        CHECK(n >= m && strcmp(heard + n - m, cases[i].end) == 0, "%s\nis answered with '%s'",
              cases[i].request, heard);
        CHECK(uv_hrtime() - begun < 2000000000, "the connection stays open: %s", cases[i].request);
        CHECK(!strstr(cases[i].request, "1.0") || !strstr(heard, " 100 "),
              "an interim response to HTTP/1.0: %s", heard);
    }
}

// Checks that the stream's numbers have no gap, after decoding chunked transfer.
static void read_numbers(int fd)
{
    FILE *from = fdopen(dup(fd), "r");
    char line[300];
    unsigned expected = 0, chunk = 0, left = 0;
    while (fgets(line, sizeof line, from) && strcmp(line, "\r\n") != 0)
        ;
    while (expected < NUMBERS) {
        if (left == 0) {
            if (fscanf(from, "%x\r\n", &chunk) != 1 || chunk == 0 || chunk % 7 != 0)
                break;
            left = chunk;
        }
        if (fread(line, 1, 7, from) != 7 || (unsigned)atoi(line) != expected)
            break;
        expected++;
        if ((left -= 7) == 0 && fread(line, 1, 2, from) != 2)
            break;
    }
    fclose(from);
    CHECK(expected == NUMBERS, "the stream has a fault at number %u", expected);
}

static void ask_for_a_stream(void)
{
    const int gone = atomic_load(&rig.gone);
    int fd = dial();
    say(fd, "GET /numbers HTTP/1.1\r\nHost: localhost\r\n\r\n", 43);
    read_numbers(fd);
    close(fd);
    for (int i = 0; i < 200 && atomic_load(&rig.gone) == gone; i++)
        usleep(10000);
    CHECK(atomic_load(&rig.gone) == gone + 1, "a stream is not told that its client is gone");
}

// Reads the stream until it ends, or for 2 s. Returns true if it ended.
static bool stream_ends(int fd)
{
    static char heard[65536];
    const struct timeval limit = {.tv_sec = 2};
    ssize_t got = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    for (int i = 0; i < 5000 && got > 0; i++)
        got = recv(fd, heard, sizeof heard, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

// Another token ends the streams that began without it; an equal token ends none.
static void ask_by_tokens(void)
{
    static const char wish[] =
        "GET /numbers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer first\r\n\r\n";
    char heard[16];
    int fd = dial();
    say(fd, wish, strlen(wish));
    CHECK(recv(fd, heard, sizeof heard, MSG_WAITALL) == sizeof heard, "no stream");
    change_token("first");
    CHECK(stream_ends(fd), "a stream goes on that began without a token");
    close(fd);
    fd = dial();
    say(fd, wish, strlen(wish));
    CHECK(recv(fd, heard, sizeof heard, MSG_WAITALL) == sizeof heard, "no stream by the token");
    change_token("first");
    usleep(100000);
    CHECK(recv(fd, heard, sizeof heard, MSG_WAITALL) == sizeof heard, "an equal token ends it");
    change_token("second");
    CHECK(stream_ends(fd), "a stream goes on that began by an old token");
    close(fd);
    fd = dial();
    rig.read_token = "second";
    change_token("third");
    rig.read_token = NULL;
    say(fd, wish, strlen(wish));
    CHECK(recv(fd, heard, sizeof heard, MSG_WAITALL) == sizeof heard &&
              strncmp(heard, "HTTP/1.1 401", 12) == 0,
          "a token of before is good");
    close(fd);
    change_token(NULL);
}

// A stream of a client with a token, and an idle client from another address, survive a flood of
// connections without a token.
static void ask_in_a_flood(const char *said)
{
    enum { FLOOD = HTTP_CLIENTS_MAX + 64 };
    static const char wish[] =
        "GET /numbers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer first\r\n\r\n";
    static const char other[] =
        "GET /now HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer first\r\n\r\n";
    static int flood[FLOOD];
    static char numbers[65536]; // so large that the server notices the reading
    char heard[64] = "";
    int stream = dial();
    say(stream, wish, strlen(wish));
    // Clients of the flood before may still be there: a running request goes first.
    bool goes_on = recv(stream, numbers, sizeof numbers, MSG_WAITALL) == sizeof numbers;
    int idle = dial_from(2);
    for (int i = 0; i < FLOOD; i++) {
        flood[i] = dial();
        say(flood[i], said, strlen(said));
        if (i % 16 == 0)
            goes_on &= recv(stream, numbers, sizeof numbers, MSG_WAITALL) == sizeof numbers;
    }
    for (int i = 0; i < 64; i++) // more than the sockets' buffers hold
        goes_on &= recv(stream, numbers, sizeof numbers, MSG_WAITALL) == sizeof numbers;
    CHECK(goes_on, "'%s': a stream with a token is pushed out", said);
    say(idle, other, strlen(other));
    CHECK(recv(idle, heard, 12, MSG_WAITALL) == 12 && strcmp(heard, "HTTP/1.1 200") == 0,
          "'%s': a client of another address is pushed out: %s", said, heard);
    for (int i = 0; i < FLOOD; i++)
        close(flood[i]);
    close(stream);
    close(idle);
}

static void ask_in_floods(void)
{
    change_token("first");
    ask_in_a_flood("");
    ask_in_a_flood("GET / HT");
    ask_in_a_flood("GET /kept HTTP/1.1\r\nHost: a\r\n\r\n");
    ask_in_a_flood("GET /now HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer wrong\r\n\r\n");
    change_token(NULL);
}

static void leave_one_open(void)
{
    int fd;
    fd = dial(); // left open: http_close() ends it
    say(fd, "GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n", 41);
    usleep(50000);
}

static void *ask_all(void *opaque)
{
    (void)opaque;
    ask_with_bodies();
    ask_for_parts();
    ask_for_answers_later();
    ask_by_half();
    ask_for_a_stream();
    ask_by_tokens();
    ask_in_floods();
    leave_one_open();
    uv_async_send(&rig.over);
    return NULL;
}

// --- the loop

static void take_too_long(uv_timer_t *timer)
{
    (void)timer;
    CHECK(false, "took longer than %d s", LIMIT_S);
    exit(1);
}

static void change(uv_async_t *async)
{
    (void)async;
    http_permit(rig.http, rig.token ? strdup(rig.token) : NULL,
                rig.read_token ? strdup(rig.read_token) : NULL, false);
    atomic_store(&rig.changing, false);
}

static void end(uv_async_t *async)
{
    (void)async;
    const int gone = atomic_load(&rig.gone);
    http_close(rig.http);
    CHECK(atomic_load(&rig.gone) == gone + 1, "http is closed, and a held exchange is not told");
    uv_close((uv_handle_t *)&rig.over, NULL);
    uv_close((uv_handle_t *)&rig.change, NULL);
    uv_close((uv_handle_t *)&rig.later, NULL);
    uv_close((uv_handle_t *)&rig.limit, NULL);
}

static void test_exchanges(void)
{
    const struct sink_address address = {.kind = SINK_TCP, .host = NULL};
    const struct http_options options = {.loop = &rig.loop,
                                         .address = &address,
                                         .routes = routes,
                                         .n_routes = sizeof routes / sizeof routes[0]};
    char why[256] = "";
    pthread_t thread;
    uv_loop_init(&rig.loop);
    uv_async_init(&rig.loop, &rig.over, end);
    uv_async_init(&rig.loop, &rig.change, change);
    uv_timer_init(&rig.loop, &rig.later);
    uv_timer_init(&rig.loop, &rig.limit);
    uv_timer_start(&rig.limit, take_too_long, 1000 * LIMIT_S, 0);
    CHECK(http_open(&rig.http, &options, why, sizeof why) == 0, "%s", why);
    pthread_create(&thread, NULL, ask_all, NULL);
    uv_run(&rig.loop, UV_RUN_DEFAULT);
    pthread_join(thread, NULL);
    CHECK(uv_loop_close(&rig.loop) == 0, "handles are left");
}

int main(void)
{
    TEST(test_exchanges());
    return test_end();
}
