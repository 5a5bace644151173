#include "daemon/rtsp/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/rtsp/name_lookup.h"

static const int64_t SECOND_TRY_NS = 1500000000;
enum {
    ADDRESSES_MAX = 4,    // of one name
    QUEUE_MAX = 64 << 10, // bytes waiting to be sent
    FINGERPRINT_TEXT = 3 * 32,
    CONTEXTS_MAX = 16,
};

enum connection_phase { LOOKING_UP, CONNECTING, SHAKING_HANDS, CONNECTED };

struct rtsp_connection {
    enum connection_phase phase;
    struct name_lookup *lookup;
    const struct addrinfo *addresses; // owned by `lookup`
    int n_addresses, n_begun;         // connects; the i-th one is to address i % n_addresses
    int half_open[2];                 // sockets; -1: none
    int64_t begun_ns;                 // when the last connect began
    int fd;                           // -1 until it is connected
    const struct tls_config *tls;     // NULL: plain TCP
    SSL *ssl;     // reads from `fd`; its records for the network are in `records`
    BIO *records; // owned by `ssl`
    char host[256];
    uint8_t *queue; // bytes for the network
    size_t queued;
};

// --- TLS

// The contexts of all cameras. The many certificates of the system are read once, and again when
// their file changes.
static struct shared_context {
    SSL_CTX *context; // NULL: the place is free
    char *key;        // all that it depends on
} contexts[CONTEXTS_MAX];
static int oldest_context;
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

// Returns the file of the authorities that verify the certificate; NULL: none do.
static const char *authorities_of(const struct tls_config *config)
{
    const char *named = getenv(X509_get_default_cert_file_env());
    if (config->fingerprint.set || !config->verify)
        return NULL;
    return config->ca ? config->ca : named ? named : X509_get_default_cert_file();
}

// Returns a text that the caller frees; NULL: no memory.
static char *key_of(const struct tls_config *config)
{
    const char *file = authorities_of(config);
    struct stat at = {0};
    char *key;
    if (file && stat(file, &at) < 0)
        at = (struct stat){0};
    const int n = asprintf(&key, "%d %s %ju %ju %jd %jd.%ld", config->legacy, file ? file : "",
                           (uintmax_t)at.st_dev, (uintmax_t)at.st_ino, (intmax_t)at.st_size,
                           (intmax_t)at.st_mtim.tv_sec, at.st_mtim.tv_nsec);
    return n < 0 ? NULL : key;
}

// `legacy` allows RSA key exchange, the only one that the oldest cameras support: a camera's key,
// if it leaks later, decrypts recorded traffic.
static bool set_strength(SSL_CTX *context, bool legacy)
{
    if (legacy)
        SSL_CTX_set_options(context, SSL_OP_LEGACY_SERVER_CONNECT);
    return SSL_CTX_set_min_proto_version(context, legacy ? TLS1_VERSION : TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(context, legacy ? "DEFAULT:@SECLEVEL=0" : "DEFAULT:!kRSA") == 1;
}

static int load_context(SSL_CTX **ret, const struct tls_config *config)
{
    int rc = 0;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context || !set_strength(context, config->legacy))
        rc = -ENOMEM;
    else if (!authorities_of(config))
        rc = 0;
    else if ((config->ca ? SSL_CTX_load_verify_file(context, config->ca)
                         : SSL_CTX_set_default_verify_paths(context)) != 1)
        rc = -EINVAL;
    if (rc < 0) {
        SSL_CTX_free(context);
        return rc;
    }
    // The certificate is checked after the handshake, when an error can name it. A camera that is
    // cut off sends no close_notify.
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    *ret = context;
    return 0;
}

// Returns the context of this configuration, which the caller does not own. Called with the lock.
static int find_context(SSL_CTX **ret, const struct tls_config *config)
{
    char *key = key_of(config);
    if (!key)
        return -ENOMEM;
    for (int i = 0; i < CONTEXTS_MAX; i++)
        if (contexts[i].context && strcmp(contexts[i].key, key) == 0) {
            *ret = contexts[i].context;
            free(key);
            return 0;
        }
    int rc = load_context(ret, config);
    if (rc < 0) {
        free(key);
        return rc;
    }
    SSL_CTX_free(contexts[oldest_context].context);
    free(contexts[oldest_context].key);
    contexts[oldest_context] = (struct shared_context){*ret, key};
    oldest_context = (oldest_context + 1) % CONTEXTS_MAX;
    return 0;
}

// Sets the name or address that the certificate must be for.
static bool set_host(SSL *ssl, const char *host)
{
    struct in6_addr address;
    if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

// Returns 0; -EINVAL: `ca` cannot be read; -ENOMEM.
static int open_tls(struct rtsp_connection *c, char *why, size_t size)
{
    SSL_CTX *context;
    ERR_clear_error();
    pthread_mutex_lock(&contexts_lock);
    int rc = find_context(&context, c->tls);
    if (rc == 0)
        c->ssl = SSL_new(context); // takes a reference to the context
    pthread_mutex_unlock(&contexts_lock);
    if (rc == -EINVAL)
        snprintf(why, size, "tls.ca: %s: no certificates can be read from it",
                 c->tls->ca ? c->tls->ca : "the system's");
    if (rc < 0)
        return rc;
    BIO *in = BIO_new_socket(c->fd, BIO_NOCLOSE), *out = BIO_new(BIO_s_mem());
    if (!c->ssl || !set_host(c->ssl, c->host) || !in || !out) {
        BIO_free(in);
        BIO_free(out);
        return -ENOMEM;
    }
    c->records = out;
    SSL_set_bio(c->ssl, in, out);
    SSL_set_read_ahead(c->ssl, 1);
    SSL_set_connect_state(c->ssl);
    return 0;
}

// Queues the records of TLS and sends them. The socket's own BIO would raise SIGPIPE.
static int send_records(struct rtsp_connection *c)
{
    const int n = BIO_read(c->records, c->queue + c->queued, (int)(QUEUE_MAX - c->queued));
    c->queued += n > 0 ? (size_t)n : 0;
    return rtsp_connection_flush(c);
}

static void print_fingerprint(char to[FINGERPRINT_TEXT], const uint8_t sha256[32])
{
    for (int i = 0; i < 32; i++)
        snprintf(to + (size_t)3 * i, 4, "%02x%s", sha256[i], i < 31 ? ":" : "");
}

static int check_certificate(const struct rtsp_connection *c, char *why, size_t size)
{
    uint8_t sha256[32];
    char text[FINGERPRINT_TEXT];
    unsigned length = sizeof sha256;
    const struct fingerprint *expected = &c->tls->fingerprint;
    const long result = SSL_get_verify_result(c->ssl);
    X509 *certificate = SSL_get0_peer_certificate(c->ssl);
    if (!certificate || X509_digest(certificate, EVP_sha256(), sha256, &length) != 1) {
        snprintf(why, size, "has no certificate");
        return -EKEYREJECTED;
    }
    print_fingerprint(text, sha256);
    if (expected->set && memcmp(expected->sha256, sha256, sizeof sha256) != 0) {
        snprintf(why, size, "has another certificate than tls.fingerprint says: its is %s", text);
        return -EKEYREJECTED;
    }
    if (!expected->set && c->tls->verify && result != X509_V_OK) {
        snprintf(why, size,
                 "has a certificate that is not to be trusted: %s (if it is the camera's own, "
                 "tls: {fingerprint: \"%s\"} accepts it)",
                 X509_verify_cert_error_string(result), text);
        return -EKEYREJECTED;
    }
    return 0;
}

static int shake_hands(struct rtsp_connection *c, char *why, size_t size)
{
    int trusted, rc = c->ssl ? 0 : open_tls(c, why, size);
    if (rc < 0)
        return rc;
    ERR_clear_error();
    errno = 0;
    const int done = SSL_do_handshake(c->ssl);
    const int error = SSL_get_error(c->ssl, done), number = errno;
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    rc = send_records(c); // including an alert, which gives the server the reason
    switch (error) {
    case SSL_ERROR_NONE:
        trusted = check_certificate(c, why, size);
        if (trusted == 0 && rc == 0)
            c->phase = CONNECTED;
        return trusted < 0 ? trusted : rc;
    case SSL_ERROR_WANT_READ:
        return rc < 0 ? rc : -EAGAIN;
    case SSL_ERROR_SSL:
        snprintf(why, size, "speaks no TLS that framed accepts: %s",
                 reason ? reason : "it hung up");
        return -EPROTO;
    default:
        if (error == SSL_ERROR_SYSCALL && number)
            return -number;
        snprintf(why, size, "hung up during the TLS handshake");
        return -ECONNRESET;
    }
}

// --- the connection

int rtsp_connection_open(struct rtsp_connection **ret, const char *host, int port,
                         const struct tls_config *tls, int64_t now_ns)
{
    struct rtsp_connection *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->fd = c->half_open[0] = c->half_open[1] = -1;
    c->tls = tls;
    c->begun_ns = now_ns;
    snprintf(c->host, sizeof c->host, "%s", host);
    int rc = (c->queue = malloc(QUEUE_MAX)) ? name_lookup_open(&c->lookup, host, port) : -ENOMEM;
    if (rc < 0)
        rtsp_connection_close(c);
    else
        *ret = c;
    return rc;
}

static void close_descriptor(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void rtsp_connection_close(struct rtsp_connection *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    close_descriptor(&c->half_open[0]);
    close_descriptor(&c->half_open[1]);
    close_descriptor(&c->fd);
    name_lookup_close(c->lookup);
    free(c->queue);
    free(c);
}

static bool may_double(const struct rtsp_connection *c)
{
    return c->n_begun <= c->n_addresses && (c->half_open[0] < 0 || c->half_open[1] < 0);
}

int rtsp_connection_poll(const struct rtsp_connection *c, struct pollfd *fds, int64_t *due_ns)
{
    int n = 0;
    *due_ns = INT64_MAX;
    if (c->phase == LOOKING_UP) {
        if (name_lookup_fd(c->lookup) >= 0)
            fds[n++] = (struct pollfd){.fd = name_lookup_fd(c->lookup), .events = POLLIN};
        else
            *due_ns = c->begun_ns;
        return n;
    }
    for (int i = 0; i < 2; i++)
        if (c->half_open[i] >= 0)
            fds[n++] = (struct pollfd){.fd = c->half_open[i], .events = POLLOUT};
    if (c->phase == CONNECTING && may_double(c))
        *due_ns = c->begun_ns + SECOND_TRY_NS;
    if (c->fd >= 0)
        fds[n++] = (struct pollfd){.fd = c->fd, .events = POLLIN | (c->queued ? POLLOUT : 0)};
    return n;
}

// --- connecting

// Maps EACCES and EPERM, which come from a firewall here: elsewhere they mean a camera's refusal.
static int connect_errno(int error)
{
    return error == EACCES || error == EPERM ? -EHOSTUNREACH : -error;
}

static int begin_connect(struct rtsp_connection *c, int64_t now_ns)
{
    int *slot = c->half_open[0] < 0 ? &c->half_open[0] : &c->half_open[1];
    const struct addrinfo *address = c->addresses;
    for (int i = c->n_begun % c->n_addresses; i > 0; i--)
        address = address->ai_next;
    c->n_begun++;
    c->begun_ns = now_ns;
    *slot = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*slot < 0)
        return -errno;
    if (connect(*slot, address->ai_addr, address->ai_addrlen) == 0 || errno == EINPROGRESS)
        return 0;
    int rc = connect_errno(errno);
    close_descriptor(slot);
    return rc;
}

static void begin_handshake(struct rtsp_connection *c, int *winner)
{
    const int one = 1;
    c->fd = *winner;
    *winner = -1;
    close_descriptor(&c->half_open[0]);
    close_descriptor(&c->half_open[1]);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->phase = c->tls ? SHAKING_HANDS : CONNECTED;
}

// Returns 0 if a half-open socket is connected, -EAGAIN, or the error of the last one that failed.
static int await_connect(struct rtsp_connection *c, int64_t now_ns)
{
    int rc = c->n_begun ? -EAGAIN : -ENOTCONN;
    for (int i = 0; i < 2; i++) {
        int error = 0;
        struct pollfd ready = {.fd = c->half_open[i], .events = POLLOUT};
        if (c->half_open[i] < 0 || poll(&ready, 1, 0) <= 0)
            continue;
        getsockopt(c->half_open[i], SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error});
        if (error == 0) {
            begin_handshake(c, &c->half_open[i]);
            return 0;
        }
        close_descriptor(&c->half_open[i]);
        rc = connect_errno(error);
    }
    // At first, and after a refusal, try the next address without waiting.
    while (rc != -EAGAIN && c->n_begun < c->n_addresses)
        if ((rc = begin_connect(c, now_ns)) == 0)
            rc = -EAGAIN;
    if (may_double(c) && now_ns >= c->begun_ns + SECOND_TRY_NS)
        begin_connect(c, now_ns); // beside the first, which may still answer
    return c->half_open[0] >= 0 || c->half_open[1] >= 0 ? -EAGAIN : rc;
}

static const char *connect_error(int rc)
{
    switch (rc) {
    case -ECONNREFUSED:
        return "refused the connection";
    case -ENETUNREACH:
    case -EHOSTUNREACH:
        return "cannot be reached from here";
    case -ETIMEDOUT:
        return "did not answer";
    default:
        return strerror(-rc);
    }
}

static int look_up_addresses(struct rtsp_connection *c, char *why, size_t size)
{
    char reason[128];
    int rc = name_lookup_read(c->lookup, &c->addresses, reason, sizeof reason);
    if (rc == -ENXIO)
        snprintf(why, size, "is a name that was not found: %s", reason);
    if (rc < 0)
        return rc;
    for (const struct addrinfo *a = c->addresses; a && c->n_addresses < ADDRESSES_MAX;
         a = a->ai_next)
        c->n_addresses++;
    c->phase = CONNECTING;
    return 0;
}

int rtsp_connection_connect(struct rtsp_connection *c, int64_t now_ns, char *why, size_t size)
{
    int rc = 0;
    why[0] = 0;
    if (c->phase == LOOKING_UP)
        rc = look_up_addresses(c, why, size);
    if (rc == 0 && c->phase == CONNECTING)
        rc = await_connect(c, now_ns);
    if (rc == 0 && c->phase == SHAKING_HANDS)
        rc = shake_hands(c, why, size);
    if (rc < 0 && rc != -EAGAIN && !why[0])
        snprintf(why, size, "%s", connect_error(rc));
    return rc;
}

// --- bytes

ssize_t rtsp_connection_read(struct rtsp_connection *c, uint8_t *to, size_t room)
{
    if (!c->tls) {
        const ssize_t n = recv(c->fd, to, room, MSG_DONTWAIT);
        return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
    }
    ERR_clear_error();
    errno = 0;
    const int n = SSL_read(c->ssl, to, room < INT_MAX ? (int)room : INT_MAX);
    const int error = SSL_get_error(c->ssl, n), number = errno;
    const int rc = send_records(c); // a renewed key
    switch (error) {
    case SSL_ERROR_NONE:
        return n;
    case SSL_ERROR_WANT_READ:
        return rc < 0 ? rc : -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        return error == SSL_ERROR_SYSCALL && number ? -number : -EPROTO;
    }
}

int rtsp_connection_flush(struct rtsp_connection *c)
{
    size_t sent = 0;
    int rc = 0;
    while (rc == 0 && sent < c->queued) {
        ssize_t n = send(c->fd, c->queue + sent, c->queued - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0)
            sent += (size_t)n;
        else if (errno == EPIPE) // the server has hung up: its last bytes are still to be read
            sent = c->queued;
        else if (errno != EINTR)
            rc = -errno;
    }
    c->queued -= sent;
    if (sent)
        memmove(c->queue, c->queue + sent, c->queued);
    return rc == -EAGAIN ? 0 : rc;
}

int rtsp_connection_write(struct rtsp_connection *c, const void *data, size_t bytes)
{
    const size_t overhead = c->tls ? 1024 : 0; // of TLS records
    if (c->phase != CONNECTED)
        return -ENOTCONN;
    if (bytes + overhead > QUEUE_MAX - c->queued)
        return -ENOBUFS;
    if (c->tls) {
        ERR_clear_error();
        const bool written = SSL_write(c->ssl, data, (int)bytes) == (int)bytes;
        return written ? send_records(c) : -EPROTO;
    }
    memcpy(c->queue + c->queued, data, bytes);
    c->queued += bytes;
    return rtsp_connection_flush(c);
}

bool rtsp_connection_is_sending(const struct rtsp_connection *c)
{
    return c->queued > 0;
}

int rtsp_connection_fd(const struct rtsp_connection *c)
{
    return c->fd;
}
