// What is known of a camera and survives its sessions; the owner keeps it, zeroed at first. The
// session reads and writes it.
#ifndef FRAMED_DAEMON_RTSP_RTSP_MEMORY_H
#define FRAMED_DAEMON_RTSP_RTSP_MEMORY_H

#include "daemon/rtsp/picture_end.h"

struct rtsp_memory {
    struct picture_end_verdict verdict;
    uint64_t sdp_hash;      // of the track that the verdict is of
    int payload_type;       // that the camera sends, of several formats; 0: unknown
    int keep_alive;         // so many methods did not keep a session alive (rtsp_keep_alive.c)
    bool keep_alive_proven; // the next method did, for several timeouts
    int session_s;          // how long the camera keeps a session without a request, as it named
                            // it last; 0: it has named nothing
    bool source_change_logged, complaint_logged;
    bool udp_fails;       // media came over TCP alone: ask for TCP
    bool tcp_fails;       // it refused TCP in place of a silent UDP: wait on
    int64_t patience_ns;  // how long its owner lets it send nothing; 0: it is not known to be slow
    bool first_challenge; // after -EACCES: the best challenge was refused, and there is another,
                          // which the next session takes: it may be opened without a pause
    bool digest_offered;  // its password never goes out in clear from then on
};

#endif
