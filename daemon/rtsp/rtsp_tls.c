#include "daemon/rtsp/rtsp_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINGERPRINT_TEXT = 3 * 32 };

struct rtsp_tls {
    const struct tls_config *config;
    SSL_CTX *context;
    SSL *ssl;
    BIO *from_network, *to_network; // of ssl
};

// The oldest cameras know no key exchange but RSA's, which gives recorded traffic away to whoever
// gets the camera's key later.
static bool set_strength(SSL_CTX *context, bool legacy)
{
    if (legacy)
        SSL_CTX_set_options(context, SSL_OP_LEGACY_SERVER_CONNECT);
    return SSL_CTX_set_min_proto_version(context, legacy ? TLS1_VERSION : TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(context, legacy ? "DEFAULT:@SECLEVEL=0" : "DEFAULT:!kRSA") == 1;
}

// Nothing is read where nothing of it would decide: the system's certificates are many.
static bool load_authorities(struct rtsp_tls *tls)
{
    const struct tls_config *config = tls->config;
    if (config->fingerprint.set || !config->verify)
        return true;
    return config->ca ? SSL_CTX_load_verify_file(tls->context, config->ca) == 1
                      : SSL_CTX_set_default_verify_paths(tls->context) == 1;
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
    int rc = -ENOMEM;
    struct rtsp_tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return rc;
    tls->config = config;
    ERR_clear_error();
    if (!(tls->context = SSL_CTX_new(TLS_client_method())) ||
        !set_strength(tls->context, config->legacy))
        goto failed;
    // The certificate is judged after the handshake, when it can be named; a camera that is cut off
    // does not say goodbye.
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_options(tls->context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (!load_authorities(tls)) {
        snprintf(why, size, "tls.ca: %s: no certificates can be read from it",
                 config->ca ? config->ca : "the system's");
        rc = -EINVAL;
        goto failed;
    }
    if (!(tls->ssl = SSL_new(tls->context)) || !set_host(tls, host))
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
    SSL_CTX_free(tls->context);
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
