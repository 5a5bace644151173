// Streams with only one IDR picture, joined after it: pictures are whole from a recovery point or
// an intra picture on. A lost picture flags later ones up to the next such point.
#include <libavcodec/avcodec.h>
#include <libavutil/mem.h>

#include "tests/daemon/codec/decoding.h"

enum { PICTURES = 170, JOINED = 7, LOST = 100 };

static const struct clip {
    const char *name, *encoder;
    int first, last; // bounds of the first whole picture
    // Inserted before each packet with an SPS: x265 writes no recovery points.
    const char *sei;
} clip_list[] = {
    {"refresh.h264",
     "-c:v libx264 -bf 0 -x264-params scenecut=0:intra-refresh=1:keyint=30:ref=1 -threads 1", 40,
     60, NULL},
    {"refresh.hevc",
     "-c:v libx265 -x265-params "
     "log-level=none:keyint=30:intra-refresh=1:bframes=0:constrained-intra"
     "=1:no-deblock=1:no-sao=1:no-temporal-mvp=1:ref=1:no-strong-intra-smoothing=1:repeat-headers=1"
     ":pools=1:frame-threads=1 -preset ultrafast",
     70, 70, "\0\0\0\1\x4e\1\6\2\x02\x85\x80"}, // recovery_poc_cnt 40
    {"one-reference.h264",
     "-vf \"negate=enable='mod(floor(t),2)'\" -c:v libx264 -bf 0 -x264-params "
     "keyint=1000:min-keyint=500:scenecut=80:ref=1",
     25, 25, NULL},
    {"references.h264",
     "-vf \"negate=enable='mod(floor(t),2)'\" -c:v libx264 -bf 0 -x264-params "
     "keyint=1000:min-keyint=500:scenecut=80:ref=3",
     50, 50, NULL},
    {"leading.h264",
     "-c:v libx264 -bf 2 -x264-params scenecut=0:open-gop=1:keyint=30:min-keyint=30:ref=3 "
     "-bsf:v filter_units=remove_types=6",
     60, 60, NULL},
};

struct shown {
    bool came, damaged;
    uint64_t digest;
};

static void take(struct decoder *decoder, struct shown shown[PICTURES])
{
    struct frame frame;
    while (decoder_receive(decoder, &frame) == 0) {
        const int64_t number = frame.info.received_ns - 1;
        if (!frame.lost && number >= 0 && number < PICTURES)
            shown[number] = (struct shown){true, frame.info.flags & FRAMED_FLAG_DAMAGED,
                                           image_digest(&frame.image)};
        frame_release(&frame);
    }
}

static void prepend(AVPacket *packet, const char *sei)
{
    const uint8_t *data = packet->data;
    enum { SEI_BYTES = 11 };
    bool has_sps = false;
    for (int i = 0; i + 4 < packet->size && i < 100; i++)
        has_sps |= data[i] == 0 && data[i + 1] == 0 && data[i + 2] == 1 && data[i + 3] == 0x42;
    if (!has_sps)
        return;
    AVPacket *longer = av_packet_alloc();
    if (av_new_packet(longer, packet->size + SEI_BYTES) < 0)
        abort();
    memcpy(longer->data, sei, SEI_BYTES);
    memcpy(longer->data + SEI_BYTES, data, (size_t)packet->size);
    longer->pts = packet->pts;
    longer->dts = packet->dts;
    av_packet_unref(packet);
    av_packet_move_ref(packet, longer);
    av_packet_free(&longer);
}

// Decodes all packets but one from `joined` on, as an RTSP camera's.
static void decode(const struct clip *clip, enum damaged policy, int joined, int lost,
                   struct shown shown[PICTURES])
{
    const struct decode_options options = {.decode.by = DECODE_CPU,
                                           .in_flight = 4,
                                           .low_delay = true,
                                           .losses_known = true,
                                           .damaged = policy};
    struct run run;
    struct packet packet;
    bool missing = false;
    memset(shown, 0, PICTURES * sizeof *shown);
    if (!run_open(&run, clip->name, &options))
        return;
    for (int i = 0; demux_read(run.demux, &packet) == 0; i++) {
        if (i < joined || i == lost) {
            missing = true;
            continue;
        }
        if (clip->sei && i > 0)
            prepend(packet.av, clip->sei);
        packet.keyframe = i == 0; // RTSP would set it at recovery points too
        packet.av->flags = packet.keyframe ? AV_PKT_FLAG_KEY : 0;
        packet.received_ns = i + 1;
        packet.reference_lost = missing;
        missing = false;
        CHECK(decoder_send(run.decoder, &packet) == 0, "%s, packet %d", clip->name, i);
        take(run.decoder, shown);
    }
    decoder_send(run.decoder, NULL);
    take(run.decoder, shown);
    run_close(&run);
}

static void test_joined(const struct clip *clip, enum damaged policy)
{
    static struct shown whole[PICTURES], joined[PICTURES];
    int whole_count = 0, first = PICTURES, wrong = 0, flagged = 0, again = 0;
    decode(clip, DAMAGED_FLAG, 0, -1, whole);
    decode(clip, policy, JOINED, LOST, joined);
    for (int i = PICTURES - 1; i >= 0; i--) {
        const bool clean = joined[i].came && !joined[i].damaged;
        whole_count += whole[i].came && !whole[i].damaged;
        first = clean ? i : first;
        wrong += clean && joined[i].digest != whole[i].digest;
        flagged += i >= clip->last + 3 && i < LOST - 6 && !clean;
        again += clean && i > LOST;
    }
    CHECK(whole_count == PICTURES, "%s: %d whole pictures", clip->name, whole_count);
    CHECK(first >= clip->first && first <= clip->last, "%s: whole from picture %d on", clip->name,
          first);
    CHECK(wrong == 0, "%s: %d wrong pictures are not flagged", clip->name, wrong);
    CHECK(flagged == 0, "%s: %d whole pictures are flagged or withheld", clip->name, flagged);
    CHECK(again > 0 && joined[PICTURES - 5].came && !joined[PICTURES - 5].damaged,
          "%s: %d whole pictures behind a loss", clip->name, again);
}

int main(void)
{
    clips_open();
    for (size_t i = 0; i < sizeof clip_list / sizeof *clip_list; i++) {
        clips_run(FFMPEG "-f lavfi -i testsrc2=size=320x192:rate=25 -frames:v %d %s %s", PICTURES,
                  clip_list[i].encoder, clip_list[i].name);
        TEST(test_joined(&clip_list[i], DAMAGED_FLAG));
        TEST(test_joined(&clip_list[i], DAMAGED_HOLD));
    }
    clips_close();
    return test_end();
}
