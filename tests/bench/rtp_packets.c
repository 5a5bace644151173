#include "tests/bench/rtp_packets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PAYLOAD_TYPE = 96, H264_FU_A = 28, H265_FU = 49, FU_START = 128, FU_END = 64 };

void write_be16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

void write_be32(uint8_t *to, uint32_t value)
{
    write_be16(to, value >> 16);
    write_be16(to + 2, value);
}

static int count_payloads(const struct nal *nal, size_t head)
{
    const size_t room = RTP_PAYLOAD_MAX - RTP_FRAGMENT_HEAD;
    return nal->bytes <= RTP_PAYLOAD_MAX ? 1 : (int)((nal->bytes - head + room - 1) / room);
}

static void cut_nal(struct rtp_picture *picture, enum clip_codec codec, const struct nal *nal)
{
    const size_t head = codec == CLIP_H264 ? 1 : 2, room = RTP_PAYLOAD_MAX - RTP_FRAGMENT_HEAD;
    const uint8_t *first = nal->data;
    if (nal->bytes <= RTP_PAYLOAD_MAX) {
        picture->payloads[picture->n++] =
            (struct rtp_payload){.data = nal->data, .bytes = (uint16_t)nal->bytes};
        return;
    }
    for (size_t at = head; at < nal->bytes; at += room) {
        struct rtp_payload *payload = &picture->payloads[picture->n++];
        const size_t left = nal->bytes - at, bytes = left < room ? left : room;
        const int edges = (at == head ? FU_START : 0) | (bytes == left ? FU_END : 0);
        *payload = (struct rtp_payload){.data = nal->data + at, .bytes = (uint16_t)bytes};
        if (codec == CLIP_H264) {
            payload->head[payload->head_bytes++] = (uint8_t)((first[0] & 0xE0) | H264_FU_A);
            payload->head[payload->head_bytes++] = (uint8_t)(edges | (first[0] & 31));
        } else {
            payload->head[payload->head_bytes++] = (uint8_t)((first[0] & 0x81) | H265_FU << 1);
            payload->head[payload->head_bytes++] = first[1];
            payload->head[payload->head_bytes++] = (uint8_t)(edges | (first[0] >> 1 & 63));
        }
    }
}

static int cut_unit(struct rtp_picture *picture, enum clip_codec codec,
                    const struct access_unit *unit)
{
    size_t n = 0;
    for (int i = 0; i < unit->n; i++)
        n += (size_t)count_payloads(&unit->nals[i], codec == CLIP_H264 ? 1 : 2);
    picture->payloads = calloc(n, sizeof *picture->payloads);
    if (!picture->payloads)
        return -ENOMEM;
    for (int i = 0; i < unit->n; i++)
        cut_nal(picture, codec, &unit->nals[i]);
    return 0;
}

int rtp_clip_open(struct rtp_clip *rtp, const struct clip_units *clip)
{
    *rtp = (struct rtp_clip){.clip = clip};
    rtp->pictures = calloc((size_t)clip->n, sizeof *rtp->pictures);
    int rc = rtp->pictures ? 0 : -ENOMEM;
    for (int i = 0; rc == 0 && i < clip->n; i++)
        rc = cut_unit(&rtp->pictures[i], clip->codec, &clip->units[i]);
    if (rc < 0)
        rtp_clip_close(rtp);
    return rc;
}

void rtp_clip_close(struct rtp_clip *rtp)
{
    for (int i = 0; rtp->pictures && i < rtp->clip->n; i++)
        free(rtp->pictures[i].payloads);
    free(rtp->pictures);
    *rtp = (struct rtp_clip){0};
}

size_t rtp_packet_write(uint8_t *to, const struct rtp_payload *payload,
                        const struct rtp_numbers *numbers)
{
    to[0] = 0x80;
    to[1] = (uint8_t)(PAYLOAD_TYPE | (numbers->marker ? 128 : 0));
    write_be16(to + 2, numbers->sequence);
    write_be32(to + 4, numbers->timestamp);
    write_be32(to + 8, numbers->ssrc);
    memcpy(to + RTP_HEADER, payload->head, payload->head_bytes);
    memcpy(to + RTP_HEADER + payload->head_bytes, payload->data, payload->bytes);
    return RTP_HEADER + (size_t)payload->head_bytes + payload->bytes;
}
