// Finds where a stream of H.264 or H.265 is whole again without an IDR picture: after a recovery
// point, whose count spans a periodic intra refresh, or at intra pictures of streams that have
// nothing else. One thread uses it; zeroed except `parameters`, it is ready.
#ifndef FRAMED_DAEMON_DECODE_RECOVERY_H
#define FRAMED_DAEMON_DECODE_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

struct AVCodecParameters;
struct AVPacket;
struct picture_place;
struct picture_place_reader;

enum { RECOVERY_POINTS = 8 };

struct recovery {
    const struct AVCodecParameters *parameters; // owned by the caller
    struct picture_place_reader *reader;        // NULL: not open
    bool unreadable;                            // neither codec, or no memory for a reader
    struct recovery_point {
        int64_t serial; // of its first packet
        int64_t end;    // H.265: POC; H.264: fields of reference pictures still to come
    } pending[RECOVERY_POINTS];
    int n;
    struct recovery_whole {
        int64_t from; // packet of a point whose count has ended; 0: none
        int64_t poc;  // output order is whole from here on; INT64_MAX: unknown
    } newest, before; // `before` is for pictures shown ahead of the newest point
    bool marked;      // the stream has IDR or IRAP pictures or recovery points
    int intras;       // intra pictures of a stream without them
};

void recovery_begin(struct recovery *); // a new stream, or another place in it
void recovery_finish(struct recovery *);
// Takes the next packet in decoding order. Returns a packet's serial number or 0. If nothing is
// missing from that packet on, this picture and all after it in output order are whole.
int64_t recovery_packet(struct recovery *, const struct AVPacket *, int64_t serial);
// Returns true if intra pictures have to serve as recovery points.
bool recovery_by_intra(const struct recovery *);

#endif
