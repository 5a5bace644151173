// HTTP clients that send anything: they receive complete responses with a known status, no page
// without a required token, and the next client is served.
#include "daemon/service/http.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/dialogue.h"
#include "tests/fuzz/turns.h"

#define TOKEN   "Zorngiebel-0123456789"
#define OPEN    "open\n" // before the script: no token is required
#define REQUEST "GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " TOKEN "\r\n\r\n"

enum { LARGE = 300000 }; // more than a socket takes at a time

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void serve(void *opaque, struct http_exchange *exchange)
{
    static const struct {
        const char *path;
        int status;
        size_t size;
    } pages[] = {
        {"/healthz", 200, 3}, {"/metrics", 200, LARGE}, {"/readyz", 503, 3}, {"/nothing", 200, 0}};
    size_t i = 0;
    (void)opaque;
    while (strcmp(http_path(exchange), pages[i].path) != 0)
        i++;
    struct http_page page = {
        .status = pages[i].status, .type = "text/plain", .size = pages[i].size};
    if (page.size > 0) { // else acts as if memory were short
        page.body = malloc(page.size);
        memset(page.body, 'x', page.size);
    }
    http_answer(exchange, &page);
}

static void serve_echo(void *opaque, struct http_exchange *exchange)
{
    struct http_page page = {.status = 200, .type = "text/plain"};
    const char *body = http_body(exchange, &page.size);
    (void)opaque;
    page.body = malloc(page.size + 1);
    memcpy(page.body, body, page.size);
    http_answer(exchange, &page);
}

static struct http_exchange *held;

static void gone(void *opaque)
{
    (void)opaque;
    held = NULL;
}

// Holds the first exchange until the second arrives.
static void serve_held(void *opaque, struct http_exchange *exchange)
{
    (void)opaque;
    if (held)
        http_refuse(held, 503, "another came");
    held = exchange;
    http_hold(exchange, gone, NULL);
}

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/healthz", .serve = serve},
    {.method = "GET", .pattern = "/metrics", .serve = serve},
    {.method = "GET", .pattern = "/readyz", .serve = serve},
    {.method = "GET", .pattern = "/nothing", .serve = serve},
    {.method = "POST", .pattern = "/echo", .serve = serve_echo},
    {.method = "PUT", .pattern = "/write", .serve = serve_echo, .writes = true},
    {.method = "GET", .pattern = "/held/*", .serve = serve_held},
};

// --- responses

static bool has_token(const char *line)
{
    const char *scheme = strcasestr(line, "bearer");
    const char *token = scheme ? strstr(scheme, TOKEN) : NULL;
    return token && memchr("\r\n \t", token[strlen(TOKEN)], 5);
}

// A zero byte in the client's text ends a line for C's functions.
static bool brought_token(const struct speaker *speaker)
{
    const char *at = speaker->said.at, *end = at + speaker->said.n;
    for (; at < end; at += strlen(at) + 1)
        if (has_token(at))
            return true;
    return false;
}

static bool is_known(long status, bool welcome)
{
    static const int pages[] = {200, 404, 405, 503};
    static const int others[] = {100, 400, 401, 403, 408, 411, 413,
                                 414, 415, 417, 431, 500, 501, 505};
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (status == pages[i])
            return welcome;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (status == others[i])
            return true;
    return false;
}

// Returns the body's size; [at, end) is the head. A HEAD response has a length, but no body.
static size_t body_length(const char *at, const char *end, size_t left)
{
    const char *header = strcasestr(at, "\r\nContent-Length: ");
    if (!header || header > end)
        return 0;
    if (left == 0 || strncmp(end, "HTTP/1.", left < 7 ? left : 7) == 0)
        return 0;
    return strtoul(header + strlen("\r\nContent-Length: "), NULL, 10);
}

// Checks the response at `at`. Returns its length, or 0 if it is cut off.
static size_t check_response(const char *at, size_t left, bool welcome)
{
    char *behind;
    const char *end = strstr(at, "\r\n\r\n");
    if (!end)
        return 0;
    MUST(strncmp(at, "HTTP/1.", 7) == 0 && (at[7] == '0' || at[7] == '1') && at[8] == ' ');
    long status = strtol(at + 9, &behind, 10);
    MUST(behind == at + 12 && is_known(status, welcome));
    end += 4;
    size_t head = (size_t)(end - at), body = body_length(at, end, left - head);
    return body > left - head ? 0 : head + body;
}

static void check(const struct speaker *speaker, bool demanded)
{
    bool welcome = !demanded || brought_token(speaker);
    size_t done = 0, n;
    while (done < speaker->heard.n) {
        n = check_response(speaker->heard.at + done, speaker->heard.n - done, welcome);
        MUST(n > 0 || speaker->ended || speaker->fd < 0);
        if (n == 0)
            return;
        done += n;
    }
}

static bool is_served(const struct speaker *speaker)
{
    static const char first[] = "HTTP/1.1 200 OK\r\n", last[] = "\r\n\r\nxxx";
    return strncmp(speaker->heard.at, first, strlen(first)) == 0 &&
           strcmp(speaker->heard.at + speaker->heard.n - strlen(last), last) == 0;
}

static void check_all(const struct dialogue *dialogue, bool demanded)
{
    int clients = 0;
    for (int i = 0; i < dialogue->n; i++)
        clients += dialogue->speaker[i].fd >= 0 && !dialogue->speaker[i].ended;
    for (int i = 0; i < dialogue->n; i++) {
        const struct speaker *speaker = &dialogue->speaker[i];
        check(speaker, demanded);
        if (clients <= HTTP_CLIENTS_MAX && speaker->fd >= 0 &&
            strcmp(speaker->said.at, REQUEST) == 0 && !speaker->silent)
            MUST(is_served(speaker));
    }
}

static void check_next(struct dialogue *dialogue)
{
    dialogue_hang_up(dialogue);
    MUST(is_served(dialogue_ask(dialogue, REQUEST, strlen(REQUEST))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *script = (const char *)data;
    struct http *http = NULL;
    struct dialogue dialogue;
    const struct sink_address address = {.kind = SINK_UNIX, .path = dialogue.path};
    struct http_options options = {
        .loop = &dialogue.loop,
        .address = &address,
        .token = TOKEN,
        .routes = routes,
        .n_routes = sizeof routes / sizeof routes[0],
    };
    char why[256] = "";
    if (size >= strlen(OPEN) && memcmp(script, OPEN, strlen(OPEN)) == 0) {
        options.token = NULL;
        script += strlen(OPEN);
        size -= strlen(OPEN);
    }
    dialogue_open(&dialogue);
    MUST(http_open(&http, &options, why, sizeof why) == 0);
    dialogue_run(&dialogue, script, size);
    check_all(&dialogue, options.token != NULL);
    check_next(&dialogue);
    http_close(http);
    dialogue_close(&dialogue);
    return 0;
}
