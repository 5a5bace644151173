#include "tests/bench/clip_units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>

enum { UNITS_MAX = 100000 };

struct clip_reader {
    AVFormatContext *format;
    AVBSFContext *filter; // converts to start codes
    AVPacket *packet;
    int64_t *pts; // of each unit
};

// --- NAL units

static int nal_type(enum clip_codec codec, const struct nal *nal)
{
    return codec == CLIP_H264 ? nal->data[0] & 31 : nal->data[0] >> 1 & 63;
}

// Returns the next start code at or after `at`, or `end`.
static const uint8_t *find_start_code(const uint8_t *at, const uint8_t *end)
{
    for (; end - at >= 3; at++)
        if (at[0] == 0 && at[1] == 0 && at[2] == 1)
            return at;
    return end;
}

static int split_unit(struct access_unit *unit, const uint8_t *data, size_t bytes)
{
    const uint8_t *const end = data + bytes;
    const uint8_t *at = find_start_code(data, end);
    while (at < end) {
        const uint8_t *nal = at + 3, *next = find_start_code(nal, end), *last = next;
        while (last > nal && last[-1] == 0)
            last--;
        at = next;
        if (last - nal < 3)
            continue;
        struct nal *nals = realloc(unit->nals, ((size_t)unit->n + 1) * sizeof *nals);
        if (!nals)
            return -ENOMEM;
        unit->nals = nals;
        nals[unit->n++] = (struct nal){nal, (size_t)(last - nal)};
    }
    return unit->n > 0 ? 0 : -EBADMSG;
}

static void keep_parameter_sets(struct clip_units *clip, const struct access_unit *unit)
{
    const bool h264 = clip->codec == CLIP_H264;
    for (int i = 0; i < unit->n; i++) {
        const int type = nal_type(clip->codec, &unit->nals[i]);
        struct nal *to = type == (h264 ? 7 : 33)   ? &clip->sps
                         : type == (h264 ? 8 : 34) ? &clip->pps
                         : !h264 && type == 32     ? &clip->vps
                                                   : NULL;
        if (to && to->bytes == 0)
            *to = unit->nals[i];
    }
}

// --- reading

static int open_reader(struct clip_reader *reader, struct clip_units *clip, const char *path,
                       int *stream)
{
    int rc = avformat_open_input(&reader->format, path, NULL, NULL);
    if (rc >= 0)
        rc = avformat_find_stream_info(reader->format, NULL);
    if (rc >= 0)
        rc = *stream = av_find_best_stream(reader->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (rc < 0)
        return rc;
    const AVStream *video = reader->format->streams[*stream];
    const enum AVCodecID codec = video->codecpar->codec_id;
    const char *name = codec == AV_CODEC_ID_H264 ? "h264_mp4toannexb" : "hevc_mp4toannexb";
    if (codec != AV_CODEC_ID_H264 && codec != AV_CODEC_ID_HEVC)
        return AVERROR(ENOTSUP);
    clip->codec = codec == AV_CODEC_ID_H264 ? CLIP_H264 : CLIP_H265;
    clip->rate_num = video->avg_frame_rate.num;
    clip->rate_den = video->avg_frame_rate.den;
    if (clip->rate_num <= 0 || clip->rate_den <= 0)
        return AVERROR(EBADMSG);
    reader->packet = av_packet_alloc();
    rc = reader->packet ? av_bsf_alloc(av_bsf_get_by_name(name), &reader->filter) : AVERROR(ENOMEM);
    if (rc >= 0)
        rc = avcodec_parameters_copy(reader->filter->par_in, video->codecpar);
    if (rc >= 0)
        rc = av_bsf_init(reader->filter);
    return rc < 0 ? rc : 0;
}

static int keep_unit(struct clip_units *clip, struct clip_reader *reader)
{
    const AVPacket *packet = reader->packet;
    const size_t room = (size_t)clip->n + 1;
    const bool keyframe = packet->flags & AV_PKT_FLAG_KEY;
    if (clip->n == 0 && !keyframe)
        return 0;
    if (clip->n == UNITS_MAX)
        return -EFBIG;
    int64_t *pts = realloc(reader->pts, room * sizeof *pts);
    reader->pts = pts ? pts : reader->pts;
    struct access_unit *units = realloc(clip->units, room * sizeof *units);
    clip->units = units ? units : clip->units;
    uint8_t **memory = realloc(clip->memory, room * sizeof *memory);
    clip->memory = memory ? memory : clip->memory;
    uint8_t *data = malloc((size_t)packet->size);
    if (!pts || !units || !memory || !data) {
        free(data);
        return -ENOMEM;
    }
    memcpy(data, packet->data, (size_t)packet->size);
    memory[clip->n] = data;
    pts[clip->n] = packet->pts;
    units[clip->n] = (struct access_unit){.keyframe = keyframe};
    int rc = split_unit(&units[clip->n++], data, (size_t)packet->size);
    if (rc == 0)
        keep_parameter_sets(clip, &units[clip->n - 1]);
    return rc;
}

static int read_units(struct clip_units *clip, struct clip_reader *reader, int stream)
{
    int rc = 0;
    while (rc >= 0 && (rc = av_read_frame(reader->format, reader->packet)) >= 0) {
        if (reader->packet->stream_index != stream) {
            av_packet_unref(reader->packet);
            continue;
        }
        rc = av_bsf_send_packet(reader->filter, reader->packet);
        while (rc >= 0 && (rc = av_bsf_receive_packet(reader->filter, reader->packet)) >= 0) {
            rc = keep_unit(clip, reader);
            av_packet_unref(reader->packet);
        }
        rc = rc == AVERROR(EAGAIN) ? 0 : rc;
    }
    return rc == AVERROR_EOF ? 0 : rc;
}

// Sets each unit's display position by its pts, or by decoding order if any pts is missing.
static void order_units(struct clip_units *clip, const int64_t *pts)
{
    bool known = true;
    for (int i = 0; i < clip->n; i++)
        known &= pts[i] != AV_NOPTS_VALUE;
    for (int i = 0; i < clip->n; i++) {
        clip->units[i].shown = known ? 0 : i;
        for (int k = 0; known && k < clip->n; k++)
            clip->units[i].shown += pts[k] < pts[i];
    }
}

int clip_units_open(struct clip_units *clip, const char *path, char *why, size_t size)
{
    struct clip_reader reader = {0};
    int stream = -1;
    *clip = (struct clip_units){0};
    int rc = open_reader(&reader, clip, path, &stream);
    if (rc == 0)
        rc = read_units(clip, &reader, stream);
    if (rc == 0 && (clip->n == 0 || !clip->sps.bytes || !clip->pps.bytes))
        rc = -EBADMSG;
    if (rc == 0)
        order_units(clip, reader.pts);
    if (rc < 0) {
        snprintf(why, size, "%s: %s", path,
                 rc == AVERROR(ENOTSUP) ? "is neither H.264 nor H.265" : av_err2str(rc));
        rc = rc > -4096 ? rc : -EBADMSG; // libavformat's own errors are far below -4096
        clip_units_close(clip);
    }
    free(reader.pts);
    av_packet_free(&reader.packet);
    av_bsf_free(&reader.filter);
    avformat_close_input(&reader.format);
    return rc;
}

void clip_units_close(struct clip_units *clip)
{
    for (int i = 0; i < clip->n; i++) {
        free(clip->units[i].nals);
        free(clip->memory[i]);
    }
    free(clip->units);
    free(clip->memory);
    *clip = (struct clip_units){0};
}

int clip_units_keyframe(const struct clip_units *clip, int i)
{
    while (!clip->units[i % clip->n].keyframe)
        i++;
    return i % clip->n;
}

int64_t clip_units_ns(const struct clip_units *clip, int64_t pictures)
{
    return pictures * clip->rate_den * INT64_C(1000000000) / clip->rate_num;
}
