// Connecting: by name, to a port that does not answer, with TLS.
#include "daemon/rtsp/connection.h"

#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>

#include "daemon/rtsp/session.h"
#include "tests/daemon/clips.h"
#include "tests/daemon/rtsp/scripted_camera.h"

static _Atomic bool never;

// Connects for `ms` at most.
static int connect_for(struct rtsp_connection *ret, const char *host, int port, int ms, char *why,
                       size_t size)
{
    unsigned address = 0;
    return rtsp_connection_open(ret,
                                &(struct rtsp_server){.host = host,
                                                      .port = port,
                                                      .address = &address,
                                                      .stop = &never,
                                                      .until_ns = monotonic_ns() + ms * MS},
                                why, size);
}

static void test_names(void)
{
    static struct rtsp_connection c;
    char why[256];
    int port, listener = listen_somewhere(&port);
    int rc = connect_for(&c, "localhost", port, 5000, why, sizeof why);
    CHECK(rc == 0, "%d: %s", rc, why); // over the second address, if ::1 is the first
    if (rc == 0)
        rtsp_connection_close(&c);
    rc = connect_for(&c, "no-such-name.invalid", port, 30000, why, sizeof why);
    CHECK(rc == -ENXIO && strstr(why, "is a name that was not found: "), "%d: %s", rc, why);
    close(listener);
    rc = connect_for(&c, "127.0.0.1", port, 1000, why, sizeof why);
    CHECK(rc == -ECONNREFUSED && !strcmp(why, "refused the connection"), "%d: %s", rc, why);
}

// A listener with a full queue drops connection attempts. After the first connect, which the kernel
// repeats after 1 s and after 2 or 3 s, the second one finds room at 1.5 s.
static struct {
    int fillers[4], listener;
    int64_t begun_ns;
    bool has_room;
} full;

static void make_room(void)
{
    if (full.has_room || monotonic_ns() < full.begun_ns + 1300 * MS)
        return;
    full.has_room = true;
    for (int i = 0; i < 4; i++) {
        close(full.fillers[i]);
        int fd = accept(full.listener, NULL, NULL);
        if (fd >= 0)
            close(fd);
    }
}

static void test_half_open(void)
{
    static struct rtsp_connection c;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int port;
    char why[256];
    full.listener = listen_somewhere(&port);
    at.sin_port = htons((uint16_t)port);
    listen(full.listener, 0);
    for (int i = 0; i < 4; i++) {
        full.fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(full.fillers[i], (struct sockaddr *)&at, sizeof at);
    }
    usleep(20000);
    full.begun_ns = monotonic_ns();
    on_wait = make_room;
    int rc = connect_for(&c, "127.0.0.1", port, 6000, why, sizeof why);
    on_wait = NULL;
    const int ms = (int)((monotonic_ns() - full.begun_ns) / MS);
    CHECK(rc == 0 && ms > 1300 && ms < 1950, "%d after %d ms", rc, ms);
    if (rc == 0)
        rtsp_connection_close(&c);
    close(full.listener);
}

static void test_full_queue(void)
{
    static uint8_t data[20 << 10];
    static struct rtsp_connection c;
    char why[256];
    int port, listener = listen_somewhere(&port), rc = 0, n = 0;
    CHECK(connect_for(&c, "127.0.0.1", port, 1000, why, sizeof why) == 0, "%s", why);
    while ((rc = rtsp_connection_write(&c, data, sizeof data)) == 0 && n < 10000)
        n++;
    CHECK(rc == -ENOBUFS && c.queued > 0, "%d after %d writes", rc, n);
    int fd = accept(listener, NULL, NULL);
    size_t got = 0;
    const size_t all = (size_t)n * sizeof data;
    for (ssize_t m; got < all && (m = recv(fd, data, sizeof data, 0)) > 0; got += (size_t)m)
        CHECK(rtsp_connection_read(&c, data, sizeof data) == -EAGAIN, "read");
    CHECK(got == all && !c.queued, "%zu of %zu bytes", got, all);
    close(fd);
    rtsp_connection_close(&c);
    close(listener);
}

// A server hangs up without reading: a request that cannot be sent any more hides none of its
// bytes.
static void test_last_bytes(void)
{
    static struct rtsp_connection c;
    uint8_t got[16];
    char why[256];
    int port, listener = listen_somewhere(&port);
    CHECK(connect_for(&c, "127.0.0.1", port, 1000, why, sizeof why) == 0, "%s", why);
    int fd = accept(listener, NULL, NULL);
    CHECK(send(fd, "last", 4, 0) == 4, "send");
    close(fd);
    for (int i = 0; i < 3; i++) {
        const int rc = rtsp_connection_write(&c, "OPTIONS", 7);
        CHECK(rc == 0 && (i == 0 || !c.queued), "write %d: %d", i, rc);
        usleep(20000);
    }
    CHECK(rtsp_connection_read(&c, got, sizeof got) == 4, "the last bytes");
    CHECK(rtsp_connection_read(&c, got, sizeof got) == 0, "the end");
    rtsp_connection_close(&c);
    close(listener);
}

// --- TLS: a server in the same thread, which echoes a line and hangs up

static SSL_CTX *server_context(const char *certificate, const char *key)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    CHECK(SSL_CTX_use_certificate_file(context, certificate, SSL_FILETYPE_PEM) == 1 &&
              SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1,
          "%s", certificate);
    return context;
}

static struct {
    SSL *ssl;
    int listener, fd;
} server = {.fd = -1};

static void serve(void)
{
    char text[64];
    int n;
    if (server.fd < 0 && (server.fd = accept4(server.listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
        SSL_set_fd(server.ssl, server.fd);
    if (server.fd >= 0 && (SSL_is_init_finished(server.ssl) || SSL_accept(server.ssl) == 1) &&
        (n = SSL_read(server.ssl, text, sizeof text)) > 0)
        SSL_write(server.ssl, text, n);
}

// Reads for 5 s at most. Returns rtsp_connection_read's result.
static ssize_t read_echo(struct rtsp_connection *c, void *to, size_t room, bool is_open)
{
    const int64_t end = monotonic_ns() + 5 * S;
    ssize_t n;
    while ((n = rtsp_connection_read(c, to, room)) == -EAGAIN && monotonic_ns() < end) {
        if (is_open)
            serve();
        usleep(1000);
    }
    return n;
}

// Connects to `host` with that configuration; once connected, checks the echo of "ping" and the
// end. Returns rtsp_connection_open's result.
static int try_tls(SSL_CTX *context, const char *host, const struct tls_config *config, char *why,
                   size_t size)
{
    static struct rtsp_connection c;
    uint8_t text[64];
    unsigned address = 0;
    struct rtsp_server to = {.host = host,
                             .tls = config,
                             .address = &address,
                             .stop = &never,
                             .until_ns = monotonic_ns() + 5 * S,
                             .answer_ns = 5 * S};
    server.listener = listen_somewhere(&to.port);
    server.ssl = SSL_new(context);
    on_wait = serve;
    const int rc = rtsp_connection_open(&c, &to, why, size);
    on_wait = NULL;
    if (rc == 0) {
        CHECK(rtsp_connection_write(&c, "ping", 4) == 0, "write");
        const ssize_t n = read_echo(&c, text, sizeof text, true);
        CHECK(n == 4 && !memcmp(text, "ping", 4), "no answer: %zd", n);
    }
    SSL_free(server.ssl);
    close(server.fd);
    server.fd = -1;
    if (rc == 0) { // a hang-up without goodbye is the end, not an error
        const ssize_t n = read_echo(&c, text, sizeof text, false);
        CHECK(n == 0, "the end: %zd", n);
        rtsp_connection_close(&c);
    }
    close(server.listener);
    return rc;
}

static void read_fingerprint(const char *certificate, struct fingerprint *ret)
{
    char text[256];
    clips_run("openssl x509 -in %s -noout -fingerprint -sha256 > fingerprint", certificate);
    FILE *f = fopen("fingerprint", "r");
    CHECK(f && fgets(text, sizeof text, f), "no fingerprint");
    fclose(f);
    const char *at = strchr(text, '=') + 1;
    for (int i = 0; i < 32; i++, at += 3)
        ret->sha256[i] = (uint8_t)strtoul(at, NULL, 16);
    ret->set = true;
}

static void test_tls(void)
{
    char why[512];
    clips_open();
    clips_run("openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
              "-subj /CN=camera -addext subjectAltName=DNS:localhost 2>/dev/null");
    SSL_CTX *context = server_context("cert.pem", "key.pem");
    struct tls_config config = {.verify = true};
    int rc = try_tls(context, "localhost", &config, why, sizeof why);
    CHECK(rc == -EKEYREJECTED && strstr(why, "not to be trusted: self") &&
              strstr(why, "tls: {fingerprint: \""),
          "%d: %s", rc, why);
    config.ca = "cert.pem";
    rc = try_tls(context, "localhost", &config, why, sizeof why);
    CHECK(rc == 0, "%d: %s", rc, why);
    rc = try_tls(context, "127.0.0.1", &config, why, sizeof why); // the name differs
    CHECK(rc == -EKEYREJECTED && strstr(why, "IP address mismatch"), "%d: %s", rc, why);
    config = (struct tls_config){.verify = false};
    rc = try_tls(context, "127.0.0.1", &config, why, sizeof why);
    CHECK(rc == 0, "%d: %s", rc, why);
    config.verify = true;
    read_fingerprint("cert.pem", &config.fingerprint);
    rc = try_tls(context, "127.0.0.1", &config, why, sizeof why);
    CHECK(rc == 0, "%d: %s", rc, why);
    config.fingerprint.sha256[31] ^= 1;
    config.verify = false; // the fingerprint alone decides
    rc = try_tls(context, "localhost", &config, why, sizeof why);
    CHECK(rc == -EKEYREJECTED && strstr(why, "another certificate than tls.fingerprint says"),
          "%d: %s", rc, why);
    config = (struct tls_config){.ca = "key.pem", .verify = true};
    rc = try_tls(context, "localhost", &config, why, sizeof why);
    CHECK(rc == -EINVAL && strstr(why, "tls.ca: key.pem: "), "%d: %s", rc, why);

    // The authorities are read once, and again when their file has changed.
    clips_run("cp cert.pem ca.pem && cp -p ca.pem kept.pem");
    config.ca = "ca.pem";
    rc = try_tls(context, "localhost", &config, why, sizeof why);
    CHECK(rc == 0, "%d: %s", rc, why);
    clips_run("tr A-Za-z x < kept.pem > garbled.pem && cat garbled.pem > ca.pem && "
              "touch -r kept.pem ca.pem"); // looks unchanged
    for (int i = 0; i < 2; i++) {
        config.legacy = i == 1; // shares nothing with the first
        rc = try_tls(context, "localhost", &config, why, sizeof why);
        CHECK(rc == (i == 0 ? 0 : -EINVAL), "%d: %d: %s", i, rc, why);
    }
    config.legacy = false;
    clips_run("touch ca.pem");
    rc = try_tls(context, "localhost", &config, why, sizeof why);
    CHECK(rc == -EINVAL && strstr(why, "tls.ca: ca.pem: "), "changed: %d: %s", rc, why);
    clips_run("cat kept.pem > ca.pem");
    for (int i = 0; i < 40; i++) { // more files than are kept
        char name[32];
        snprintf(name, sizeof name, "ca%d.pem", i % 20);
        if (i < 20)
            clips_run("cp cert.pem %s", name);
        config.ca = name;
        rc = try_tls(context, "localhost", &config, why, sizeof why);
        CHECK(rc == 0, "%s: %d: %s", name, rc, why);
    }
    SSL_CTX_free(context);
}

// An old camera: TLS 1.2 with RSA key exchange only.
static void test_old_tls(void)
{
    char why[512];
    struct tls_config config = {.verify = false};
    SSL_CTX *context = server_context("cert.pem", "key.pem");
    SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_cipher_list(context, "AES128-SHA");
    int rc = try_tls(context, "localhost", &config, why, sizeof why);
    CHECK(rc == -EPROTO && strstr(why, "speaks no TLS that framed accepts"), "%d: %s", rc, why);
    config.legacy = true;
    rc = try_tls(context, "localhost", &config, why, sizeof why);
    CHECK(rc == 0, "%d: %s", rc, why);
    SSL_CTX_free(context);
}

// A server without TLS, through a session.
static void test_no_tls(void)
{
    struct camera c;
    struct player p = {.config.tls.verify = true};
    camera_open(&c);
    c.mute = true;
    player_open(&p, "rtsps://127.0.0.1:%d/a", c.port);
    for (int i = 0; i < 100 && !c.accepted; i++)
        play_on(&c, &p, 20, 1);
    camera_send(&c, "RTSP/1.0 400 Bad Request\r\n\r\n", 28);
    play_on(&c, &p, 1000, 1);
    CHECK(p.rc == -EPROTO && strstr(p.session->why, "speaks no TLS"), "%d: %s", p.rc,
          p.session->why);
    player_close(&p);
    camera_close(&c);
}

// The ports of rtsps: 322, which is closed at this address, and the other one.
static void test_ports_of_rtsps(void)
{
    struct camera c;
    struct player p = {.config.tls.verify = true};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7441)};
    char host[32];
    camera_open(&c);
    c.mute = true;
    close(c.listener);
    snprintf(host, sizeof host, "127.1.%d.%d", getpid() >> 8 & 127, getpid() & 255);
    inet_pton(AF_INET, host, &at.sin_addr);
    c.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(bind(c.listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(c.listener, 8) == 0,
          "%s:7441", host);
    player_open(&p, "rtsps://%s/a", host);
    for (int i = 0; i < 50 && !c.accepted && !p.rc; i++)
        play_on(&c, &p, 20, 1);
    CHECK(c.accepted == 1, "%d: %s", p.rc, p.session->why);
    player_close(&p);
    player_open(&p, "rtsps://%s:322/a", host);
    play_on(&c, &p, 500, 1);
    CHECK(p.rc == -ECONNREFUSED && c.accepted == 1, "%d, although a port is named", p.rc);
    player_close(&p);
    camera_close(&c);
    player_open(&p, "rtsps://%s/a", host); // neither port
    play_on(&c, &p, 500, 1);
    CHECK(p.rc == -ECONNREFUSED &&
              strstr(p.session->why, ":7441 refused the connection (port 322, which"),
          "%d: %s", p.rc, p.session->why);
    player_close(&p);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); // from the server's writes
    TEST(test_names());
    TEST(test_half_open());
    TEST(test_full_queue());
    TEST(test_last_bytes());
    TEST(test_tls());
    TEST(test_old_tls());
    TEST(test_no_tls());
    TEST(test_ports_of_rtsps());
    clips_close();
    return test_end();
}
