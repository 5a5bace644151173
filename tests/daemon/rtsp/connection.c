// Connecting: by name, to a port that does not answer, with TLS.
#include "daemon/rtsp/connection.h"

#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>

#include "daemon/rtsp/session.h"
#include "tests/daemon/clips.h"
#include "tests/daemon/rtsp/scripted_camera.h"

// Connects for `ms` at most; returns rtsp_connection_connect's last result.
static int connect_for(struct rtsp_connection *c, int ms, int64_t skew_ns, char *why, size_t size)
{
    const int64_t end = monotonic_ns() + ms * MS;
    int rc;
    while ((rc = rtsp_connection_connect(c, monotonic_ns() + skew_ns, why, size)) == -EAGAIN &&
           monotonic_ns() < end) {
        struct pollfd fds[RTSP_CONNECTION_POLL_MAX];
        int64_t due_ns;
        const int n = rtsp_connection_poll(c, fds, &due_ns);
        poll(fds, (nfds_t)n, 10);
    }
    return rc;
}

static void test_names(void)
{
    struct rtsp_connection *c;
    char why[256];
    int port, listener = listen_somewhere(&port);
    CHECK(rtsp_connection_open(&c, "localhost", port, NULL, monotonic_ns()) == 0, "open");
    int rc = connect_for(c, 5000, 0, why, sizeof why);
    CHECK(rc == 0, "%d: %s", rc, why); // over the second address, if ::1 is the first
    rtsp_connection_close(c);
    CHECK(rtsp_connection_open(&c, "no-such-name.invalid", port, NULL, monotonic_ns()) == 0,
          "open");
    rc = connect_for(c, 30000, 0, why, sizeof why);
    CHECK(rc == -ENXIO && strstr(why, "is a name that was not found: "), "%d: %s", rc, why);
    rtsp_connection_close(c);
    CHECK(rtsp_connection_open(&c, "no-such-name.invalid", port, NULL, monotonic_ns()) == 0,
          "open");
    rtsp_connection_close(c); // during the name lookup
    close(listener);
    CHECK(rtsp_connection_open(&c, "127.0.0.1", port, NULL, monotonic_ns()) == 0, "open");
    rc = connect_for(c, 1000, 0, why, sizeof why);
    CHECK(rc == -ECONNREFUSED && !strcmp(why, "refused the connection"), "%d: %s", rc, why);
    rtsp_connection_close(c);
}

// A listener with a full queue drops connection attempts. After the first connect, which the kernel
// repeats after 1 s and 3 s, the second one finds room at 1.5 s.
static void test_half_open(void)
{
    struct rtsp_connection *c;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fillers[4], port, listener = listen_somewhere(&port);
    char why[256];
    at.sin_port = htons((uint16_t)port);
    listen(listener, 0);
    for (int i = 0; i < 4; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(fillers[i], (struct sockaddr *)&at, sizeof at);
    }
    usleep(20000);
    const int64_t begin = monotonic_ns();
    rtsp_connection_open(&c, "127.0.0.1", port, NULL, begin);
    int rc = connect_for(c, 1300, 0, why, sizeof why);
    CHECK(rc == -EAGAIN, "the queue has room: %d", rc);
    for (int i = 0; i < 4; i++) {
        close(fillers[i]);
        int fd = accept(listener, NULL, NULL);
        if (fd >= 0)
            close(fd);
    }
    rc = connect_for(c, 5000, 0, why, sizeof why);
    CHECK(rc == 0 && monotonic_ns() - begin < 2500 * MS, "%d after %d ms", rc,
          (int)((monotonic_ns() - begin) / MS));
    rtsp_connection_close(c);
    close(listener);
}

static void test_full_queue(void)
{
    static uint8_t data[20 << 10];
    struct rtsp_connection *c;
    char why[256];
    int port, listener = listen_somewhere(&port), rc = 0, n = 0;
    rtsp_connection_open(&c, "127.0.0.1", port, NULL, monotonic_ns());
    CHECK(rtsp_connection_write(c, data, 1) == -ENOTCONN, "before it is connected");
    CHECK(connect_for(c, 1000, 0, why, sizeof why) == 0, "%s", why);
    while ((rc = rtsp_connection_write(c, data, sizeof data)) == 0 && n < 10000)
        n++;
    CHECK(rc == -ENOBUFS && rtsp_connection_is_sending(c), "%d after %d writes", rc, n);
    int fd = accept(listener, NULL, NULL);
    size_t got = 0;
    const size_t all = (size_t)n * sizeof data;
    for (ssize_t m; got < all && (m = recv(fd, data, sizeof data, 0)) > 0; got += (size_t)m)
        rtsp_connection_flush(c);
    CHECK(got == all && !rtsp_connection_is_sending(c), "%zu of %zu bytes", got, all);
    close(fd);
    rtsp_connection_close(c);
    close(listener);
}

// A server hangs up without reading: a request that cannot be sent any more hides none of its
// bytes.
static void test_last_bytes(void)
{
    struct rtsp_connection *c;
    uint8_t got[16];
    char why[256];
    int port, listener = listen_somewhere(&port);
    rtsp_connection_open(&c, "127.0.0.1", port, NULL, monotonic_ns());
    CHECK(connect_for(c, 1000, 0, why, sizeof why) == 0, "%s", why);
    int fd = accept(listener, NULL, NULL);
    CHECK(send(fd, "last", 4, 0) == 4, "send");
    close(fd);
    for (int i = 0; i < 3; i++) {
        const int rc = rtsp_connection_write(c, "OPTIONS", 7);
        CHECK(rc == 0 && (i == 0 || !rtsp_connection_is_sending(c)), "write %d: %d", i, rc);
        usleep(20000);
    }
    CHECK(rtsp_connection_read(c, got, sizeof got) == 4, "the last bytes");
    CHECK(rtsp_connection_read(c, got, sizeof got) == 0, "the end");
    rtsp_connection_close(c);
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

// Connects to `host` with that configuration; once connected, checks the echo of "ping" and the
// end. Returns rtsp_connection_connect's result.
static int try_tls(SSL_CTX *context, const char *host, const struct tls_config *config, char *why,
                   size_t size)
{
    struct rtsp_connection *c;
    struct pollfd fds[RTSP_CONNECTION_POLL_MAX];
    int64_t due_ns;
    uint8_t text[64];
    int port, listener = listen_somewhere(&port), fd = -1, rc = -EAGAIN;
    bool asked = false;
    ssize_t n = -EAGAIN;
    SSL *ssl = SSL_new(context);
    CHECK(rtsp_connection_open(&c, host, port, config, monotonic_ns()) == 0, "open");
    const int64_t end = monotonic_ns() + 5 * S;
    while ((rc == -EAGAIN || (rc == 0 && n == -EAGAIN)) && monotonic_ns() < end) {
        poll(fds, (nfds_t)rtsp_connection_poll(c, fds, &due_ns), 5);
        if (fd < 0 && (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
            SSL_set_fd(ssl, fd);
        if (rc == -EAGAIN)
            rc = rtsp_connection_connect(c, monotonic_ns(), why, size);
        if (rc == 0 && !asked)
            asked = rtsp_connection_write(c, "ping", 4) == 0;
        if (fd >= 0 && (SSL_is_init_finished(ssl) || SSL_accept(ssl) == 1) &&
            (n = SSL_read(ssl, text, sizeof text)) > 0)
            SSL_write(ssl, text, (int)n);
        n = rc == 0 ? rtsp_connection_read(c, text, sizeof text) : -EAGAIN;
    }
    CHECK(rc || (n == 4 && !memcmp(text, "ping", 4)), "no answer: %zd", n);
    SSL_free(ssl);
    close(fd);
    if (rc == 0) // a hang-up without goodbye is the end, not an error
        while ((n = rtsp_connection_read(c, text, sizeof text)) == -EAGAIN && monotonic_ns() < end)
            usleep(1000);
    CHECK(rc || n == 0, "the end: %zd", n);
    close(listener);
    rtsp_connection_close(c);
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
    CHECK(p.rc == -EPROTO && strstr(rtsp_session_why(p.session), "speaks no TLS"), "%d: %s", p.rc,
          rtsp_session_why(p.session));
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
    CHECK(c.accepted == 1, "%d: %s", p.rc, rtsp_session_why(p.session));
    player_close(&p);
    player_open(&p, "rtsps://%s:322/a", host);
    play_on(&c, &p, 500, 1);
    CHECK(p.rc == -ECONNREFUSED && c.accepted == 1, "%d, although a port is named", p.rc);
    player_close(&p);
    camera_close(&c);
    player_open(&p, "rtsps://%s/a", host); // neither port
    play_on(&c, &p, 500, 1);
    CHECK(p.rc == -ECONNREFUSED &&
              strstr(rtsp_session_why(p.session), ":7441 refused the connection (port 322, which"),
          "%d: %s", p.rc, rtsp_session_why(p.session));
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
