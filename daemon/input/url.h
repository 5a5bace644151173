// What a camera's URL leads to, before anything is opened.
#ifndef FRAMED_DAEMON_INPUT_URL_H
#define FRAMED_DAEMON_INPUT_URL_H

#include "config/url.h"

struct url_input {
    enum url_kind kind;
    bool fifo;             // a file that is one
    bool live;             // it can come back: its end is an outage, that of others is none
    const char *whitelist; // of libavformat's protocols: a file that turns out to be a playlist
                           // must not reach the network
    const char *name;      // for people: "over rtsp"
};

const struct url_input *url_input_of(const char *url); // NULL: no input that framed takes

#endif
