// What a camera says of its media: SDP (RFC 8866), read leniently, line by line. Pure.
#ifndef FRAMED_DAEMON_RTSP_SDP_H
#define FRAMED_DAEMON_RTSP_SDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SDP_MEDIA_MAX = 16, SDP_SETS_MAX = 2048 };

enum sdp_codec { SDP_OTHER, SDP_H264, SDP_H265, SDP_JPEG };

struct sdp_media {
    bool video;
    char kind[16], encoding[32]; // "video", "H264": for people
    enum sdp_codec codec;
    int payload_type;
    int clock_rate;    // 90000 for video, whatever the camera says; else 0 or less: unknown
    char control[512]; // "": none
    // Parameter sets of H.264 and H.265 with start codes before each, as a head start for the
    // decoder; those in the stream win. 0 bytes: none.
    uint8_t sets[SDP_SETS_MAX];
    int sets_bytes;
    bool donl;         // H.265: units carry decoding order numbers
    int width, height; // of x-dimensions or framesize; 0: unknown
    double rate;       // for display alone; 0: unknown
    bool pli, fir;     // rtcp-fb: nack pli, ccm fir
    char address[64];  // of its c= line, else the session's: for multicast; "": none
    int port, ttl;     // 0: unknown
};

struct sdp {
    char tool[64], control[512]; // "": none
    char address[64];            // for multicast; "": none
    int ttl;                     // 0: unknown
    struct sdp_media media[SDP_MEDIA_MAX];
    int n_media;
};

// `text` need not end in a line end. 0; -EINVAL: there is no media section in it.
int sdp_parse(struct sdp *ret, const char *text, size_t bytes);
// The first video track that is decoded here, as an index; -1: none.
int sdp_choose_video(const struct sdp *);

#endif
