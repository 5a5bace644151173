#include "tests/bench/latency/decoding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libavcodec/avcodec.h>

#include "daemon/base/clock.h"
#include "tests/bench/interrupt.h"

static const uint8_t START_CODE[] = {0, 0, 0, 1};

static int append_nal(AVPacket *packet, const struct nal *nal)
{
    const int at = packet->size;
    const int rc = av_grow_packet(packet, (int)(sizeof START_CODE + nal->bytes));
    if (rc < 0)
        return rc;
    memcpy(packet->data + at, START_CODE, sizeof START_CODE);
    memcpy(packet->data + at + sizeof START_CODE, nal->data, nal->bytes);
    return 0;
}

// Makes a packet with start codes of unit i; of the first one with the parameter sets.
static int fill_packet(AVPacket *packet, const struct clip_units *clip, int i)
{
    const struct access_unit *unit = &clip->units[i];
    const struct nal *const sets[] = {&clip->vps, &clip->sps, &clip->pps};
    int rc = 0;
    av_packet_unref(packet);
    for (int set = 0; rc == 0 && i == 0 && set < 3; set++)
        if (sets[set]->bytes)
            rc = append_nal(packet, sets[set]);
    for (int nal = 0; rc == 0 && nal < unit->n; nal++)
        rc = append_nal(packet, &unit->nals[nal]);
    return rc;
}

static int decode_packet(AVCodecContext *context, const AVPacket *packet, AVFrame *frame)
{
    int rc = avcodec_send_packet(context, packet);
    while (rc >= 0 && (rc = avcodec_receive_frame(context, frame)) >= 0)
        av_frame_unref(frame);
    return rc == AVERROR(EAGAIN) ? 0 : rc;
}

static int open_decoder(AVCodecContext **ret, enum clip_codec codec)
{
    const AVCodec *decoder =
        avcodec_find_decoder(codec == CLIP_H264 ? AV_CODEC_ID_H264 : AV_CODEC_ID_HEVC);
    AVCodecContext *context = *ret = decoder ? avcodec_alloc_context3(decoder) : NULL;
    if (!context)
        return AVERROR(ENOMEM);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    context->thread_type = FF_THREAD_SLICE;
    context->thread_count = codec == CLIP_H264 ? 1 : processors < 4 ? (int)processors : 4;
    return avcodec_open2(context, decoder, NULL);
}

int decoding_measure(double *ms, size_t n, const struct clip_units *clip)
{
    AVCodecContext *context = NULL;
    AVPacket *packet = av_packet_alloc();
    AVFrame *frame = av_frame_alloc();
    int rc = packet && frame ? open_decoder(&context, clip->codec) : AVERROR(ENOMEM);
    int64_t due_ns = monotonic_ns();
    for (size_t i = 0; rc >= 0 && i < n; i++) {
        const struct timespec due = {due_ns / 1000000000, due_ns % 1000000000};
        rc = fill_packet(packet, clip, (int)(i % (size_t)clip->n));
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        const int64_t start_ns = monotonic_ns();
        if (rc >= 0)
            rc = interrupted() ? AVERROR(EINTR) : decode_packet(context, packet, frame);
        ms[i] = (double)(monotonic_ns() - start_ns) / 1e6;
        due_ns += clip_units_ns(clip, 1);
    }
    av_packet_free(&packet);
    av_frame_free(&frame);
    avcodec_free_context(&context);
    return rc;
}
