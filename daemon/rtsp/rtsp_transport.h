// The Transport header of SETUP's reply, as cameras write it. Pure.
#ifndef FRAMED_DAEMON_RTSP_RTSP_TRANSPORT_H
#define FRAMED_DAEMON_RTSP_RTSP_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

struct rtsp_transport {
    bool tcp; // TCP or interleaved channels are named
    bool multicast;
    int channels[2];                  // -1: not named
    int server_ports[2];              // for unicast; 0: not named or impossible
    int ports[2], ttl;                // for multicast; 0: not named
    uint32_t ssrc;                    // a hint; 0: not named
    char source[64], destination[64]; // "": not named
};

void rtsp_transport_parse(struct rtsp_transport *ret, const char *value); // `value` may be NULL

#endif
