// The URLs of RTSP: a camera's own, and what cameras write into their replies. Pure.
#ifndef FRAMED_DAEMON_RTSP_RTSP_URL_H
#define FRAMED_DAEMON_RTSP_RTSP_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "config/url.h"

enum { RTSP_URL_MAX = 2 * URL_TEXT_MAX }; // with a control of the camera's behind it

struct rtsp_url {
    char text[RTSP_URL_MAX]; // as it stands in a request line: without user and password
    char host[256];          // without brackets
    int port;                // the scheme's own where the URL names none
    bool port_named;         // by the URL
    bool port_changed;       // by rtsp_url_take_other_port
    bool tls;                // rtsps
    // Percent-decoded; "": none.
    char user[URL_LOGIN_MAX], password[URL_LOGIN_MAX];
};

// 0; -EINVAL: no URL of RTSP, or too long.
int rtsp_url_parse(struct rtsp_url *ret, const char *url);
// Goes over to the second port of rtsps, which cameras of UniFi have, where the URL names no port.
// False, and nothing changes: there is none, or this is it.
bool rtsp_url_take_other_port(struct rtsp_url *);
// The base for the tracks' URLs, from DESCRIBE's reply: `content_base`, else `content_location`,
// else `asked` (any may be NULL but `asked`), repaired where cameras write it wrongly. It goes into
// request lines alone: nobody connects to it. 0 or -EINVAL.
int rtsp_url_base(char ret[RTSP_URL_MAX], const char *content_base, const char *content_location,
                  const char *asked);
// A track's URL: `control` appended to the base, as cameras want it; with `merged`, resolved as RFC
// 3986 says. `control` NULL, "" or "*": the base. 0 or -EINVAL (too long).
int rtsp_url_of_track(char ret[RTSP_URL_MAX], const char *base, const char *control, bool merged);

#endif
