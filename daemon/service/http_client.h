// Between the files of HTTP. A client's connection belongs to http.c, which accepts and drops
// clients, and http_exchange.c, which reads and answers their requests. Loop thread only.
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

// libmicrohttpd gets a connection at its first byte, so that a request's begin is known.
struct http_client {
    struct http *http;
    unsigned char address[PEER_BYTES]; // of the peer; zeros for a unix socket
    int fd;                            // owned by http.c while idle, then by libmicrohttpd
    bool idle;                         // has not sent a byte
    bool is_known;                     // its request brought a token
    bool answered;                     // its request is whole
    bool asleep;          // libmicrohttpd does not watch its socket; http.c does, for a hangup
    bool dropped;         // no longer in the list; freed once libmicrohttpd has closed it
    bool streams;         // its response has no end
    bool takes_interim;   // accepts 1xx responses, as every HTTP/1.1 client does
    uint64_t deadline_ms; // of uv_now
    struct MHD_Connection *connection; // NULL while idle
    struct http_client *previous, *next;
};

// --- http.c

const struct http_options *http_options(const struct http *);
const char *http_token(const struct http *);      // NULL: none is required
const char *http_read_token(const struct http *); // NULL: none
gid_t http_admins(const struct http *);           // of admin_group
int *http_n_streams(struct http *);
// Drops the client unless called again within that time; 0: never.
void http_client_expect(struct http_client *, uint64_t ms);
void http_client_sleep(struct http_client *);
void http_client_wake(struct http_client *);

// --- http_exchange.c, for libmicrohttpd

enum MHD_Result http_exchange_read(void *http, struct MHD_Connection *, const char *path,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **exchange);
void http_exchange_end(void *http, struct MHD_Connection *, void **exchange,
                       enum MHD_RequestTerminationCode);

// --- http_guard.c permits or refuses requests. If a token is configured, requests must contain it.
// If not, Host must be a name that no other site can have made up (DNS rebinding). Requests other
// than GET and HEAD must have an Origin of this site and a body of JSON. Pure.

// A request's headers and kind; NULL: absent.
struct http_credentials {
    const char *authorization, *host, *origin, *content_type;
    bool looks;    // GET or HEAD
    bool open;     // the page needs no token
    bool writes;   // it changes the daemon's operation
    bool has_body; // of POST or PUT
};

// The server's requirements.
struct http_demands {
    const char *token;      // NULL: none
    const char *read_token; // sufficient for GET and HEAD; NULL: none
    bool unix_socket;       // its file's mode limits the clients
    const char *host;       // from the configuration
    bool may_write;
    bool admins_alone; // writes need an admin, and the peer of the unix socket is none
};

// The access that a request's token gives.
enum http_access {
    HTTP_ACCESS_OPEN, // no token is required
    HTTP_ACCESS_NONE, // no token, or a wrong one
    HTTP_ACCESS_READ,
    HTTP_ACCESS_FULL,
};
enum http_access http_access(const struct http_demands *, const struct http_credentials *);

// Returns the status of a refusal, with one sentence in *why; 0: permitted.
int http_guard(const struct http_demands *, const struct http_credentials *, const char **why);

#endif
