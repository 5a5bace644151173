// A connection of an HTTP client, between http.c, which accepts and drops clients, and
// http_exchange.c, which reads and answers their requests. Loop thread only.
#ifndef FRAMED_DAEMON_SERVICE_HTTP_CLIENT_H
#define FRAMED_DAEMON_SERVICE_HTTP_CLIENT_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct http;
struct http_options;

enum { PEER_BYTES = 16 };

// libmicrohttpd gets a connection with its first byte, so that the time of a request is known.
struct http_client {
    struct http *http;
    unsigned char address[PEER_BYTES]; // of the peer; zeros for a unix socket
    int fd;                            // http.c's while idle, then libmicrohttpd's
    bool idle;                         // has not sent a byte
    bool is_known;                     // its request brought a token
    bool answered;                     // its request is whole
    bool asleep;          // libmicrohttpd does not look at its socket, http.c whether it hangs up
    bool dropped;         // not in the list any more; freed once libmicrohttpd has closed it
    bool streams;         // its response has no end
    bool takes_interim;   // responses before the last one (1xx), as every client of HTTP/1.1
    uint64_t deadline_ms; // of uv_now
    struct MHD_Connection *connection; // NULL while idle
    struct http_client *previous, *next;
};

// --- of http.c

const struct http_options *http_options(const struct http *);
const char *http_token(const struct http *);      // NULL: none is needed
const char *http_read_token(const struct http *); // NULL: there is none
gid_t http_admins(const struct http *);           // of admin_group
int *http_n_streams(struct http *);
// It is dropped unless this is called again in so many ms; 0: never.
void http_client_expect(struct http_client *, uint64_t ms);
void http_client_sleep(struct http_client *);
void http_client_wake(struct http_client *);

// --- of http_exchange.c, for libmicrohttpd

enum MHD_Result http_exchange_read(void *http, struct MHD_Connection *, const char *path,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **exchange);
void http_exchange_end(void *http, struct MHD_Connection *, void **exchange,
                       enum MHD_RequestTerminationCode);

#endif
