// The kind of input behind a camera's URL, before anything is opened.
#ifndef FRAMED_DAEMON_INPUT_URL_H
#define FRAMED_DAEMON_INPUT_URL_H

#include "config/url.h"

struct url_input {
    enum url_kind kind;
    bool fifo;             // the file is a fifo
    bool live;             // it can come back: its end is an outage, unlike others'
    const char *whitelist; // libavformat's protocols that are allowed: a file that is really a
                           // playlist must not reach the network
    const char *name;      // for people: "over rtsp"
};

const struct url_input *url_input_of(const char *url); // NULL: framed does not support it

#endif
