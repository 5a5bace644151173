// What a server has not confirmed is never taken for confirmed, at whatever moment its connection
// breaks.
#include "daemon/output/nats_session.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"

enum { ROUNDS = 600, LINES = 10, LINE_BYTES = 2000, LOGIN_BYTES = 4096, PAUSES_US = 60 };

// Lets a client log in, and resets the connection a moment after it publishes.
static void serve_client(int fd, int pause_us)
{
    static const char info[] =
        "INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"max_payload\":1048576,"
        "\"headers\":true,\"proto\":1}\r\n";
    const struct linger reset = {.l_onoff = 1};
    char text[LOGIN_BYTES + 1] = "";
    ssize_t n = send(fd, info, strlen(info), MSG_NOSIGNAL);
    for (size_t used = 0; n > 0 && used < LOGIN_BYTES && !strstr(text, "PING\r\n");) {
        n = read(fd, text + used, LOGIN_BYTES - used);
        used += n > 0 ? (size_t)n : 0;
        text[used] = 0;
    }
    send(fd, "PONG\r\n", 6, MSG_NOSIGNAL);
    recv(fd, text, 1, MSG_PEEK);
    usleep((useconds_t)pause_us);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
}

static void *serve(void *opaque)
{
    const int listener = *(const int *)opaque;
    for (int i = 0; i < ROUNDS; i++) {
        const int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            break;
        serve_client(fd, i % PAUSES_US);
    }
    return NULL;
}

static int publish_and_flush(const struct nats_session_options *options)
{
    static char line[LINE_BYTES];
    char why[NATS_WHY_MAX];
    struct nats_session *session = NULL;
    int rc = nats_session_open(&session, options, why, sizeof why);
    memset(line, 'x', sizeof line);
    CHECK(rc == 0, "open: %s", why);
    for (int i = 0; rc == 0 && i < LINES; i++)
        rc = nats_session_publish(session, "a", 0, NULL, line, sizeof line, why, sizeof why);
    if (rc == 0)
        rc = nats_session_flush(session, why, sizeof why);
    nats_session_close(session);
    return rc;
}

static void test_flush_without_answer(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), confirmed = 0;
    char servers[32];
    pthread_t thread;
    const struct nats_config config = {0};
    const struct nats_session_options options = {.servers = servers, .config = &config};
    CHECK(bind(listener, (struct sockaddr *)&address, bytes) == 0 && listen(listener, 16) == 0 &&
              getsockname(listener, (struct sockaddr *)&address, &bytes) == 0,
          "no listener");
    snprintf(servers, sizeof servers, "127.0.0.1:%d", ntohs(address.sin_port));
    CHECK(pthread_create(&thread, NULL, serve, &listener) == 0, "no thread");
    for (int i = 0; i < ROUNDS; i++)
        confirmed += publish_and_flush(&options) == 0;
    CHECK(confirmed == 0, "%d of %d flushes went well without an answer", confirmed, ROUNDS);
    pthread_join(thread, NULL);
    close(listener);
}

int main(void)
{
    TEST(test_flush_without_answer());
    return test_end();
}
