#include "daemon/rtsp/rtsp_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FINGERPRINT_TEXT = 3 * 32, CONTEXTS_MAX = 16 };

struct rtsp_tls {
    const struct tls_config *config;
    SSL *ssl;
    BIO *from_network, *to_network; // owned by ssl
};

// `legacy` allows RSA key exchange, the only one that the oldest cameras support: a camera's key,
// if it leaks later, decrypts recorded traffic.
static bool set_strength(SSL_CTX *context, bool legacy)
{
    if (legacy)
        SSL_CTX_set_options(context, SSL_OP_LEGACY_SERVER_CONNECT);
    return SSL_CTX_set_min_proto_version(context, legacy ? TLS1_VERSION : TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(context, legacy ? "DEFAULT:@SECLEVEL=0" : "DEFAULT:!kRSA") == 1;
}

// The contexts of all cameras. The many certificates of the system are read once, and again when
// their file changes.
static struct shared_context {
    SSL_CTX *context; // NULL: the place is free
    char *file;       // of its authorities; NULL: none
    struct stat state;
    bool legacy;
} contexts[CONTEXTS_MAX];
static int oldest_context;
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

// Returns NULL if the certificate is not verified by authorities.
static const char *authorities_of(const struct tls_config *config)
{
    const char *named = getenv(X509_get_default_cert_file_env());
    if (config->fingerprint.set || !config->verify)
        return NULL;
    return config->ca ? config->ca : named ? named : X509_get_default_cert_file();
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int load_context(SSL_CTX **ret, const struct tls_config *config)
{
    int rc = -ENOMEM;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context || !set_strength(context, config->legacy))
        goto out;
    // The certificate is checked after the handshake, when an error can name it. A camera that is
    // cut off sends no close_notify.
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (!authorities_of(config))
        rc = 0;
    else if (config->ca)
        rc = SSL_CTX_load_verify_file(context, config->ca) == 1 ? 0 : -EINVAL;
    else
        rc = SSL_CTX_set_default_verify_paths(context) == 1 ? 0 : -EINVAL;
out:
    if (rc < 0)
        SSL_CTX_free(context);
    else
        *ret = context;
    return rc;
}

static bool is_context_of(const struct shared_context *shared, const char *file,
                          const struct stat *state, bool legacy)
{
    const bool same = file ? shared->file && strcmp(shared->file, file) == 0 : !shared->file;
    return shared->context && same && shared->legacy == legacy &&
           is_same_file(&shared->state, state);
}

static void free_context(struct shared_context *shared)
{
    SSL_CTX_free(shared->context);
    free(shared->file);
    *shared = (struct shared_context){0};
}

// The caller holds the lock.
static int add_context(struct shared_context **ret, const struct tls_config *config,
                       const char *file, const struct stat *state)
{
    struct shared_context *shared = &contexts[oldest_context];
    free_context(shared);
    if (file && !(shared->file = strdup(file)))
        return -ENOMEM;
    shared->state = *state;
    shared->legacy = config->legacy;
    int rc = load_context(&shared->context, config);
    if (rc < 0)
        free_context(shared);
    else
        oldest_context = (oldest_context + 1) % CONTEXTS_MAX;
    *ret = shared;
    return rc;
}

static int open_ssl(SSL **ret, const struct tls_config *config)
{
    const char *file = authorities_of(config);
    struct shared_context *shared = NULL;
    struct stat state = {0};
    int rc = 0;
    if (file && stat(file, &state) < 0)
        state = (struct stat){0};
    pthread_mutex_lock(&contexts_lock);
    for (int i = 0; i < CONTEXTS_MAX && !shared; i++)
        if (is_context_of(&contexts[i], file, &state, config->legacy))
            shared = &contexts[i];
    if (!shared)
        rc = add_context(&shared, config, file, &state);
    if (rc == 0 && !(*ret = SSL_new(shared->context))) // takes a reference to the context
        rc = -ENOMEM;
    pthread_mutex_unlock(&contexts_lock);
    return rc;
}

static bool set_host(struct rtsp_tls *tls, const char *host)
{
    struct in6_addr address;
    if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), host) == 1;
    return SSL_set1_host(tls->ssl, host) == 1 && SSL_set_tlsext_host_name(tls->ssl, host) == 1;
}

int rtsp_tls_open(struct rtsp_tls **ret, const struct tls_config *config, const char *host,
                  char *why, size_t size)
{
    struct rtsp_tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return -ENOMEM;
    tls->config = config;
    ERR_clear_error();
    int rc = open_ssl(&tls->ssl, config);
    if (rc == -EINVAL)
        snprintf(why, size, "tls.ca: %s: no certificates can be read from it",
                 config->ca ? config->ca : "the system's");
    if (rc < 0)
        goto failed;
    rc = -ENOMEM;
    if (!set_host(tls, host))
        goto failed;
    tls->from_network = BIO_new(BIO_s_mem());
    tls->to_network = BIO_new(BIO_s_mem());
    if (!tls->from_network || !tls->to_network) {
        BIO_free(tls->from_network);
        BIO_free(tls->to_network);
        goto failed;
    }
    SSL_set_bio(tls->ssl, tls->from_network, tls->to_network);
    SSL_set_connect_state(tls->ssl);
    *ret = tls;
    return 0;
failed:
    rtsp_tls_close(tls);
    return rc;
}

void rtsp_tls_close(struct rtsp_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    free(tls);
}

int rtsp_tls_put(struct rtsp_tls *tls, const uint8_t *data, size_t bytes)
{
    return BIO_write(tls->from_network, data, (int)bytes) == (int)bytes ? 0 : -ENOMEM;
}

size_t rtsp_tls_take(struct rtsp_tls *tls, uint8_t *to, size_t room)
{
    int n = BIO_read(tls->to_network, to, room < INT_MAX ? (int)room : INT_MAX);
    return n > 0 ? (size_t)n : 0;
}

static void print_fingerprint(char to[FINGERPRINT_TEXT], const uint8_t sha256[32])
{
    for (int i = 0; i < 32; i++)
        snprintf(to + (size_t)3 * i, 4, "%02x%s", sha256[i], i < 31 ? ":" : "");
}

static int judge_certificate(struct rtsp_tls *tls, char *why, size_t size)
{
    uint8_t sha256[32];
    char text[FINGERPRINT_TEXT];
    unsigned length = sizeof sha256;
    const struct fingerprint *expected = &tls->config->fingerprint;
    const long result = SSL_get_verify_result(tls->ssl);
    X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
    if (!certificate || X509_digest(certificate, EVP_sha256(), sha256, &length) != 1) {
        snprintf(why, size, "has no certificate");
        return -EKEYREJECTED;
    }
    print_fingerprint(text, sha256);
    if (expected->set && memcmp(expected->sha256, sha256, sizeof sha256) != 0) {
        snprintf(why, size, "has another certificate than tls.fingerprint says: its is %s", text);
        return -EKEYREJECTED;
    }
    if (!expected->set && tls->config->verify && result != X509_V_OK) {
        snprintf(why, size,
                 "has a certificate that is not to be trusted: %s (if it is the camera's own, "
                 "tls: {fingerprint: \"%s\"} accepts it)",
                 X509_verify_cert_error_string(result), text);
        return -EKEYREJECTED;
    }
    return 0;
}

int rtsp_tls_handshake(struct rtsp_tls *tls, char *why, size_t size)
{
    ERR_clear_error();
    const int rc = SSL_do_handshake(tls->ssl);
    if (rc == 1)
        return judge_certificate(tls, why, size);
    if (SSL_get_error(tls->ssl, rc) == SSL_ERROR_WANT_READ)
        return -EAGAIN;
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    snprintf(why, size, "speaks no TLS that framed accepts: %s", reason ? reason : "it hung up");
    return -EPROTO;
}

ssize_t rtsp_tls_read(struct rtsp_tls *tls, uint8_t *to, size_t room)
{
    ERR_clear_error();
    const int n = SSL_read(tls->ssl, to, room < INT_MAX ? (int)room : INT_MAX);
    if (n > 0)
        return n;
    switch (SSL_get_error(tls->ssl, n)) {
    case SSL_ERROR_WANT_READ:
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        return -EPROTO;
    }
}

int rtsp_tls_write(struct rtsp_tls *tls, const void *data, size_t bytes)
{
    ERR_clear_error();
    return SSL_write(tls->ssl, data, (int)bytes) == (int)bytes ? 0 : -EPROTO;
}
