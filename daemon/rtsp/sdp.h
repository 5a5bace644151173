// Parses SDP (RFC 8866), the description of a camera's media, leniently, line by line. Pure.
#ifndef FRAMED_DAEMON_RTSP_SDP_H
#define FRAMED_DAEMON_RTSP_SDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SDP_MEDIA_MAX = 32, SDP_SETS_MAX = 2048, SDP_CONTROL_MAX = 4096, SDP_NAME_MAX = 64 };

enum sdp_codec { SDP_OTHER, SDP_H264, SDP_H265, SDP_JPEG };

struct sdp_media { // one payload type of an m= line
    int section;   // m= line, from 0; entries with the same one are formats of one track
    bool video;
    char kind[16], encoding[32]; // "video", "H264": for people
    enum sdp_codec codec;
    int payload_type;
    int clock_rate;                // ticks/s as announced, perhaps wrong; 90000: unknown
    char control[SDP_CONTROL_MAX]; // "": none
    // Parameter sets of H.264 and H.265 in any order and with start codes, perhaps among other NAL
    // units, as a head start for the decoder; those in the stream replace them. 0 bytes: none.
    uint8_t sets[SDP_SETS_MAX];
    int sets_bytes;
    bool donl;         // H.265: units carry decoding order numbers
    int width, height; // of x-dimensions, framesize and others; 0: unknown
    double rate;       // only for display
    bool pli, fir;     // rtcp-fb: nack pli, ccm fir
    char address[64];  // of its c= line, else the session's, for multicast; "": none
    int port, ttl;     // 0: unknown
};

struct sdp {
    char control[SDP_CONTROL_MAX]; // "": none
    struct sdp_media media[SDP_MEDIA_MAX];
    int n_media;
};

// `text` need not end in a line end. Returns 0; -EINVAL: there is no media section.
int sdp_parse(struct sdp *ret, const char *text, size_t bytes);
// Returns the index of the video to receive; -1: none can be decoded. Chooses the first entry that
// can, or in its section the one with `payload_type`, if any (-1: no preference).
int sdp_choose_video(const struct sdp *, int payload_type);
// For people: "H264 1920x1080".
void sdp_media_name(const struct sdp_media *, char ret[SDP_NAME_MAX]);
// Lists the media but one (`except` -1: all), as far as they fit: with their kinds, or only videos.
// Returns how many there are.
int sdp_list(const struct sdp *, bool videos, int except, char *ret, size_t size);

#endif
