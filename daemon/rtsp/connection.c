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

#include "daemon/base/clock.h"
#include "daemon/base/number.h"

static const int64_t WAIT_NS = 50000000, // how long a wait may overlook *stop
    FIRST_TRY_NS = 1500000000;           // for the answer to a connect
enum {
    THREADS_MAX = 16,  // that look up names
    ADDRESSES_MAX = 4, // of one name; more are left out
    FINGERPRINT_TEXT = 3 * 32,
    CONTEXTS_MAX = 16,
};

void rtsp_wait(struct pollfd *fds, int n, int64_t until_ns)
{
    const int64_t ns = bounds_max(bounds_min(until_ns - monotonic_ns(), WAIT_NS), 0);
    ppoll(fds, (nfds_t)n, &(struct timespec){0, ns}, NULL);
}

// Returns 0 once the socket is ready, -EAGAIN at the limit or -ECANCELED.
static int await_socket(const struct rtsp_connection *c, short events,
                        const struct rtsp_server *server, int64_t until_ns)
{
    struct pollfd socket = {.fd = c->fd, .events = events};
    while (!socket.revents) {
        if (atomic_load(server->stop))
            return -ECANCELED;
        if (monotonic_ns() >= until_ns)
            return -EAGAIN;
        rtsp_wait(&socket, 1, until_ns);
    }
    return 0;
}

// --- the look-up of names, on threads: the system's blocks as long as its servers take

struct name_lookup {
    struct name_lookup *next; // next one without an answer
    int owners;               // callers, and the thread
    char host[256];
    int port;
    bool done;
    int rc; // of getaddrinfo
    int n;
    struct sockaddr_storage addresses[ADDRESSES_MAX];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; // one is done
    struct name_lookup *first;
    int threads;
} lookups = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void look_up(struct name_lookup *lookup, int flags)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char port[8];
    snprintf(port, sizeof port, "%d", lookup->port);
    lookup->rc = getaddrinfo(lookup->host, port, &hints, &list);
    if (lookup->rc != 0)
        return;
    for (const struct addrinfo *a = list; a && lookup->n < ADDRESSES_MAX; a = a->ai_next)
        memcpy(&lookup->addresses[lookup->n++], a->ai_addr, a->ai_addrlen);
    freeaddrinfo(list);
}

// Called with the lock. Accepts NULL.
static void release_lookup(struct name_lookup *lookup)
{
    if (lookup && --lookup->owners == 0)
        free(lookup);
}

static void *lookup_thread(void *opaque)
{
    struct name_lookup *lookup = opaque, **link = &lookups.first;
    pthread_setname_np(pthread_self(), "resolver");
    look_up(lookup, 0);
    pthread_mutex_lock(&lookups.lock);
    while (*link != lookup)
        link = &(*link)->next;
    *link = lookup->next;
    lookup->done = true;
    lookups.threads--;
    pthread_cond_broadcast(&lookups.changed);
    release_lookup(lookup);
    pthread_mutex_unlock(&lookups.lock);
    return NULL;
}

// Joins the look-up of the same host, or begins one. Returns NULL while all threads are busy. The
// caller releases it. Called with the lock.
static struct name_lookup *join_lookup(const struct name_lookup *like)
{
    pthread_t thread;
    struct name_lookup *lookup = lookups.first;
    while (lookup && (strcmp(lookup->host, like->host) != 0 || lookup->port != like->port))
        lookup = lookup->next;
    if (lookup) {
        lookup->owners++;
        return lookup;
    }
    if (lookups.threads == THREADS_MAX || !(lookup = malloc(sizeof *lookup)))
        return NULL;
    *lookup = *like;
    lookup->owners = 2;
    lookup->next = lookups.first;
    if (pthread_create(&thread, NULL, lookup_thread, lookup) != 0) {
        free(lookup);
        return NULL;
    }
    pthread_detach(thread);
    lookups.threads++;
    lookups.first = lookup;
    return lookup;
}

// Waits on a thread's answer and copies it to `lookup`. Called with the lock.
static int await_lookup(struct name_lookup *lookup, const struct rtsp_server *server)
{
    struct name_lookup *shared = NULL;
    int rc = 0;
    while (rc == 0 && !(shared && shared->done)) {
        const int64_t now_ns = monotonic_ns(),
                      wake_ns = bounds_min(now_ns + WAIT_NS, server->until_ns);
        const struct timespec wake = {wake_ns / 1000000000, wake_ns % 1000000000};
        rc = atomic_load(server->stop) ? -ECANCELED : now_ns >= server->until_ns ? -EAGAIN : 0;
        if (rc == 0 && !shared)
            shared = join_lookup(lookup);
        if (rc == 0)
            pthread_cond_clockwait(&lookups.changed, &lookups.lock, CLOCK_MONOTONIC, &wake);
    }
    if (rc == 0)
        *lookup = *shared;
    release_lookup(shared);
    return rc;
}

// Fills in a host's addresses and returns how many. Resolves a numeric address without a thread.
// The thread may outlive the call.
static int find_addresses(struct sockaddr_storage ret[ADDRESSES_MAX],
                          const struct rtsp_server *server, char *why, size_t size)
{
    struct name_lookup lookup = {.port = server->port};
    int rc = 0;
    snprintf(lookup.host, sizeof lookup.host, "%s", server->host);
    look_up(&lookup, AI_NUMERICHOST);
    if (lookup.rc) {
        pthread_mutex_lock(&lookups.lock);
        rc = await_lookup(&lookup, server);
        pthread_mutex_unlock(&lookups.lock);
    }
    if (rc < 0)
        return rc;
    if (lookup.rc)
        snprintf(why, size, "is a name that was not found: %s", gai_strerror(lookup.rc));
    memcpy(ret, lookup.addresses, sizeof lookup.addresses);
    return lookup.rc ? -ENXIO : lookup.n;
}

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
static int open_tls(struct rtsp_connection *c, const struct rtsp_server *server, char *why,
                    size_t size)
{
    SSL_CTX *context;
    ERR_clear_error();
    pthread_mutex_lock(&contexts_lock);
    int rc = find_context(&context, server->tls);
    if (rc == 0)
        c->ssl = SSL_new(context); // takes a reference to the context
    pthread_mutex_unlock(&contexts_lock);
    if (rc == -EINVAL)
        snprintf(why, size, "tls.ca: %s: no certificates can be read from it",
                 server->tls->ca ? server->tls->ca : "the system's");
    if (rc < 0)
        return rc;
    BIO *in = BIO_new_socket(c->fd, BIO_NOCLOSE), *out = BIO_new(BIO_s_mem());
    if (!c->ssl || !set_host(c->ssl, server->host) || !in || !out) {
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

// Sends queued bytes. Returns 0 or a negative errno.
static int flush(struct rtsp_connection *c)
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

// Queues the records of TLS and sends them. The socket's own BIO would raise SIGPIPE.
static int send_records(struct rtsp_connection *c)
{
    const int n = BIO_read(c->records, c->queue + c->queued, (int)(RTSP_QUEUE_MAX - c->queued));
    c->queued += n > 0 ? (size_t)n : 0;
    return flush(c);
}

static void print_fingerprint(char to[FINGERPRINT_TEXT], const uint8_t sha256[32])
{
    for (int i = 0; i < 32; i++)
        snprintf(to + (size_t)3 * i, 4, "%02x%s", sha256[i], i < 31 ? ":" : "");
}

static int check_certificate(const SSL *ssl, const struct tls_config *tls, char *why, size_t size)
{
    uint8_t sha256[32];
    char text[FINGERPRINT_TEXT];
    unsigned length = sizeof sha256;
    const struct fingerprint *expected = &tls->fingerprint;
    const long result = SSL_get_verify_result(ssl);
    X509 *certificate = SSL_get0_peer_certificate(ssl);
    if (!certificate || X509_digest(certificate, EVP_sha256(), sha256, &length) != 1) {
        snprintf(why, size, "has no certificate");
        return -EKEYREJECTED;
    }
    print_fingerprint(text, sha256);
    if (expected->set && memcmp(expected->sha256, sha256, sizeof sha256) != 0) {
        snprintf(why, size, "has another certificate than tls.fingerprint says: its is %s", text);
        return -EKEYREJECTED;
    }
    if (!expected->set && tls->verify && result != X509_V_OK) {
        snprintf(why, size,
                 "has a certificate that is not to be trusted: %s (if it is the camera's own, "
                 "tls: {fingerprint: \"%s\"} accepts it)",
                 X509_verify_cert_error_string(result), text);
        return -EKEYREJECTED;
    }
    return 0;
}

// Returns 0, -EAGAIN: it waits for the server's part, or a negative errno.
static int continue_handshake(struct rtsp_connection *c, char *why, size_t size)
{
    ERR_clear_error();
    errno = 0;
    const int done = SSL_do_handshake(c->ssl);
    const int error = SSL_get_error(c->ssl, done), number = errno;
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    const int rc = send_records(c); // including an alert, which gives the server the reason
    switch (error) {
    case SSL_ERROR_NONE:
        return rc;
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

static int shake_hands(struct rtsp_connection *c, const struct rtsp_server *server, char *why,
                       size_t size)
{
    const int64_t until_ns = bounds_min(monotonic_ns() + server->answer_ns, server->until_ns);
    int rc = open_tls(c, server, why, size);
    while (rc == 0 && (rc = continue_handshake(c, why, size)) == -EAGAIN)
        rc = await_socket(c, POLLIN, server, until_ns);
    return rc < 0 ? rc : check_certificate(c->ssl, server->tls, why, size);
}

// --- connecting

// Maps EACCES and EPERM, which come from a firewall here: elsewhere they mean a camera's refusal.
static int connect_errno(int error)
{
    return error == EACCES || error == EPERM ? -EHOSTUNREACH : -error;
}

static int connect_to(struct rtsp_connection *c, const struct sockaddr_storage *address,
                      const struct rtsp_server *server, int64_t until_ns)
{
    const int one = 1;
    const socklen_t bytes =
        address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int error = 0;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        return -errno;
    if (connect(c->fd, (const struct sockaddr *)address, bytes) < 0) {
        if (errno != EINPROGRESS)
            return connect_errno(errno);
        const int rc = await_socket(c, POLLOUT, server, until_ns);
        if (rc < 0)
            return rc;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error});
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return error ? connect_errno(error) : 0;
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

// Tries the addresses in turn. Each connect that is not answered gives the next one twice the time.
// Returns the last error once all have refused in a row.
static int connect_to_one(struct rtsp_connection *c, const struct rtsp_server *server,
                          const struct sockaddr_storage *addresses, int n)
{
    int rc = -EAGAIN, refused = 0;
    for (int64_t try_ns = FIRST_TRY_NS, now_ns = monotonic_ns();
         refused < n && now_ns < server->until_ns; now_ns = monotonic_ns()) {
        rc = connect_to(c, &addresses[*server->address % (unsigned)n], server,
                        bounds_min(now_ns + try_ns, server->until_ns));
        if (rc == 0 || rc == -ECANCELED)
            break;
        try_ns *= rc == -EAGAIN ? 2 : 1;
        refused = rc == -EAGAIN ? 0 : refused + 1;
        ++*server->address;
    }
    return rc;
}

static int connect_to_host(struct rtsp_connection *c, const struct rtsp_server *server, char *why,
                           size_t size)
{
    struct sockaddr_storage addresses[ADDRESSES_MAX];
    const int n = find_addresses(addresses, server, why, size);
    return n < 0 ? n : connect_to_one(c, server, addresses, n);
}

int rtsp_connection_open(struct rtsp_connection *c, const struct rtsp_server *server, char *why,
                         size_t size)
{
    c->fd = -1;
    c->ssl = NULL;
    c->queued = 0;
    why[0] = 0;
    int rc = atomic_load(server->stop) ? -ECANCELED : connect_to_host(c, server, why, size);
    if (rc == 0 && server->tls)
        rc = shake_hands(c, server, why, size);
    if (rc < 0 && !why[0])
        snprintf(why, size, "%s", connect_error(rc));
    if (rc < 0)
        rtsp_connection_close(c);
    return rc;
}

void rtsp_connection_close(struct rtsp_connection *c)
{
    SSL_free(c->ssl);
    if (c->fd >= 0)
        close(c->fd);
    c->ssl = NULL;
    c->fd = -1;
}

// --- bytes

ssize_t rtsp_connection_read(struct rtsp_connection *c, uint8_t *to, size_t room)
{
    if (!c->ssl) {
        const int rc = flush(c);
        if (rc < 0)
            return rc;
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

int rtsp_connection_write(struct rtsp_connection *c, const void *data, size_t bytes)
{
    const size_t overhead = c->ssl ? 1024 : 0; // of TLS records
    if (bytes + overhead > RTSP_QUEUE_MAX - c->queued)
        return -ENOBUFS;
    if (c->ssl) {
        ERR_clear_error();
        const bool written = SSL_write(c->ssl, data, (int)bytes) == (int)bytes;
        return written ? send_records(c) : -EPROTO;
    }
    memcpy(c->queue + c->queued, data, bytes);
    c->queued += bytes;
    return flush(c);
}
