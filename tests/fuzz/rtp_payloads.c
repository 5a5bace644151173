#include "tests/fuzz/rtp_payloads.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rtsp/depacketizer.h"
#include "daemon/rtsp/rtp_receiver.h"
#include "tests/fuzz/turns.h"

static const int64_t MS = 1000000;

struct sender {
    struct depacketizer *depacketizer;
    enum sdp_codec codec;
    int64_t now_ns;
    uint32_t timestamp;
    uint64_t missing, told;
};

static void check_unit(struct sender *s, const struct access_unit *u)
{
    const char *start = s->codec == SDP_JPEG ? "\xff\xd8" : "\0\0\0\1";
    const size_t start_bytes = s->codec == SDP_JPEG ? 2 : 4;
    unsigned sum = 0;
    MUST(u->bytes >= start_bytes);
    // A unit that a payload split off keeps the start code found there.
    MUST(memcmp(u->data, start, start_bytes) == 0 || memcmp(u->data, "\0\0\1", 3) == 0);
    for (size_t i = 0; i < u->bytes; i++)
        sum += u->data[i];
    MUST(sum <= 255 * u->bytes);
    MUST(u->arrived_ns >= u->received_ns && u->arrived_ns <= s->now_ns);
    MUST(u->lost == 0 || u->damaged || u->reference_lost);
    s->told += u->lost;
    MUST(s->told <= s->missing);
}

static void take_units(struct sender *s)
{
    struct access_unit unit;
    while (depacketizer_get(s->depacketizer, s->now_ns, &unit) == 0)
        check_unit(s, &unit);
    MUST(depacketizer_due_ns(s->depacketizer) > s->now_ns);
}

// Uses copies of exact size, for sanitizers.
static void send_packet(struct sender *s, uint8_t flags, const uint8_t *data, size_t bytes,
                        size_t extension_bytes)
{
    uint8_t *payload = malloc(bytes ? bytes : 1);
    uint8_t *extension = malloc(extension_bytes ? extension_bytes : 1);
    MUST(payload && extension);
    memcpy(payload, data, bytes);
    memcpy(extension, data + bytes, extension_bytes);
    s->timestamp += flags & RTP_STAMP ? 3600 : 0;
    s->now_ns += flags & RTP_PAUSE ? 30 * MS : MS / 4;
    s->missing += flags & RTP_HOLE ? 2 : 0;
    const struct rtp_packet packet = {
        .payload = payload,
        .bytes = bytes,
        .timestamp = s->timestamp,
        .marker = flags & RTP_MARKER,
        .received_ns = s->now_ns,
        .lost = flags & RTP_HOLE ? 2 : 0,
        .restarted = flags & RTP_RESTART,
        .extension = flags & RTP_EXTENSION ? extension : NULL,
        .extension_bytes = extension_bytes,
        .extension_profile = flags & RTP_LATER ? 0xffff : 0xffd8,
    };
    depacketizer_put(s->depacketizer, &packet);
    free(payload);
    free(extension);
    take_units(s);
}

void rtp_payloads_try(enum sdp_codec codec, uint8_t options, const uint8_t *data, size_t size)
{
    static struct sdp_media media;
    struct picture_end_verdict verdict = {0};
    struct sender s = {.codec = codec, .now_ns = 1000 * MS};
    media.codec = codec;
    media.donl = options & 1;
    media.width = options & 2 ? 4096 : 0;
    media.height = options & 2 ? 2160 : 0;
    media.sets_bytes = 0;
    if (options & 4) {
        media.sets_bytes = size < SDP_SETS_MAX ? (int)size : SDP_SETS_MAX;
        memcpy(media.sets, data, (size_t)media.sets_bytes);
    }
    MUST(depacketizer_open(&s.depacketizer, &media, &verdict) == 0);
    while (size >= 2) {
        const uint8_t flags = data[0];
        size_t bytes = data[1], extension = 0, head = 2;
        if (flags & RTP_EXTENSION && size >= 3)
            extension = data[head++];
        data += head;
        size -= head;
        bytes = bytes < size ? bytes : size;
        extension = extension < size - bytes ? extension : size - bytes;
        if (flags & RTP_FLUSH) {
            depacketizer_flush(s.depacketizer);
            take_units(&s);
        }
        send_packet(&s, flags, data, bytes, extension);
        data += bytes + extension;
        size -= bytes + extension;
    }
    const size_t sets = s.depacketizer->sets_bytes;
    MUST(sets == 0 || (sets > 4 && memcmp(s.depacketizer->sets, "\0\0\0\1", 4) == 0));
    depacketizer_flush(s.depacketizer);
    take_units(&s);
    MUST(depacketizer_due_ns(s.depacketizer) == INT64_MAX);
    depacketizer_close(s.depacketizer);
}
