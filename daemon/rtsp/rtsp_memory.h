// The facts about a camera that survive its sessions. The owner keeps them, zeroed at first; the
// session reads and writes them.
#ifndef FRAMED_DAEMON_RTSP_RTSP_MEMORY_H
#define FRAMED_DAEMON_RTSP_RTSP_MEMORY_H

#include "daemon/rtsp/assembly.h"

struct rtsp_memory {
    struct picture_end_verdict verdict;
    uint64_t sdp_hash;      // of the verdict's track
    int payload_type;       // sent by the camera, if it offers several; 0: unknown
    int keep_alive;         // number of methods that kept no session alive (rtsp_keep_alive.c)
    bool keep_alive_proven; // the next method kept one alive for several timeouts
    int session_s;          // the camera's session timeout without a request, as named last; 0:
                            // never named
    bool source_change_logged, complaint_logged;
    bool udp_fails;       // media came only over TCP: request TCP
    bool tcp_fails;       // TCP failed after a silent UDP: keep waiting for UDP
    int64_t patience_ns;  // silence that the owner allows; 0: not known to be slow
    bool first_challenge; // after -EACCES: the best challenge was refused; the next session uses
                          // another one, and may be opened without a pause
    bool digest_offered;  // the password is never sent in clear from then on
};

#endif
