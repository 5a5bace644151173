#include "daemon/codec/decoder.h"

#include <errno.h>
#include <libavformat/avformat.h>
#include <pthread.h>

#include "daemon/wire.h"
#include "tests/daemon/codec/decoding.h"

// --- every format: the same bytes as the ffmpeg program

static const struct clip {
    const char *encoder, *file, *format; // format: ffmpeg's output format for the comparison
    enum pixel_format ours;
    struct colour colour;
    bool converted;
} format_clips[] = {
    {"-c:v libx264 -pix_fmt yuv420p -bf 2 -color_range tv -colorspace bt709",
     "420.mp4",
     "yuv420p",
     PIXEL_YUV420P,
     {MATRIX_BT709, RANGE_LIMITED, SITING_LEFT},
     false},
    {"-c:v libx264 -pix_fmt yuvj420p",
     "j420.mp4",
     "yuvj420p",
     PIXEL_YUV420P,
     {MATRIX_UNSPECIFIED, RANGE_FULL, SITING_LEFT},
     false},
    {"-c:v mjpeg -pix_fmt yuvj420p",
     "mjpeg.avi",
     "yuvj420p",
     PIXEL_YUV420P,
     {MATRIX_BT601, RANGE_FULL, SITING_CENTER},
     false},
    {"-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p10le -colorspace bt2020nc",
     "10.mkv",
     "yuv420p10le",
     PIXEL_YUV420P10,
     {MATRIX_BT2020, RANGE_LIMITED, SITING_LEFT},
     false},
    {"-c:v rawvideo -pix_fmt bgra", "bgra.nut", "bgra", PIXEL_BGRA, {0}, false},
    {"-c:v rawvideo -pix_fmt rgba", "rgba.nut", "rgba", PIXEL_RGBA, {0}, false},
    {"-c:v rawvideo -pix_fmt bgr0", "bgr0.nut", "bgr0", PIXEL_BGRA, {0}, false},
    {"-c:v rawvideo -pix_fmt bgr24", "bgr24.nut", "bgr24", PIXEL_BGR24, {0}, false},
    {"-c:v rawvideo -pix_fmt rgb24", "rgb24.nut", "rgb24", PIXEL_RGB24, {0}, false},
    {"-c:v rawvideo -pix_fmt nv12", "nv12.nut", "nv12", PIXEL_NV12, {0}, false},
    {"-c:v libx264rgb -qp 0", "gbrp.mkv", "gbrp", PIXEL_GBRP, {0}, false},
    {"-c:v rawvideo -pix_fmt nv21", "nv21.nut", "nv21", PIXEL_NV21, {0}, false},
    {"-c:v libx264 -pix_fmt yuv422p", "422.mp4", "yuv422p", PIXEL_YUV422P, {0}, false},
    {"-c:v mjpeg -pix_fmt yuvj422p",
     "mjpeg422.avi",
     "yuvj422p",
     PIXEL_YUV422P,
     {MATRIX_BT601, RANGE_FULL, SITING_CENTER},
     false},
    {"-c:v mjpeg -pix_fmt yuvj444p",
     "mjpeg444.avi",
     "yuvj444p",
     PIXEL_YUV444P,
     {MATRIX_BT601, RANGE_FULL, SITING_CENTER},
     false},
    {"-c:v libx264 -pix_fmt yuv444p", "444.mp4", "yuv444p", PIXEL_YUV444P, {0}, false},
    {"-c:v ffv1 -pix_fmt yuv422p10le", "422-10.mkv", "yuv422p10le", PIXEL_YUV422P10, {0}, false},
    {"-c:v ffv1 -pix_fmt yuv444p10le", "444-10.mkv", "yuv444p10le", PIXEL_YUV444P10, {0}, false},
    {"-c:v rawvideo -pix_fmt yuyv422", "yuyv.nut", "yuyv422", PIXEL_YUYV422, {0}, false},
    {"-c:v rawvideo -pix_fmt uyvy422", "uyvy.nut", "uyvy422", PIXEL_UYVY422, {0}, false},
    {"-c:v ffv1 -pix_fmt gray", "gray.mkv", "gray", PIXEL_GRAY, {0}, false},
    {"-c:v ffv1 -pix_fmt yuv420p12le", "12.mkv", NULL, PIXEL_YUV420P10, {0}, true},
    {"-c:v rawvideo -pix_fmt argb", "argb.nut", "bgra", PIXEL_BGRA, {0}, true},
};

// Crops are exact on the left too, where they make the planes unaligned.
static void test_crop(void)
{
    struct run run;
    struct frame frame;
    size_t size, at = 0;
    clips_make("182x98", 5, "-c:v libx264", "uncropped.mp4");
    clips_run(FFMPEG "-i uncropped.mp4 -c copy -bsf:v "
                     "h264_metadata=crop_left=10:crop_top=6:crop_right=12:crop_bottom=16 crop.mp4");
    clips_run(FFMPEG "-i uncropped.mp4 -vf crop=170:90:10:6 -f rawvideo raw");
    unsigned char *raw = clips_read("raw", &size);
    if (run_open(&run, "crop.mp4", &on_cpu)) {
        for (; run_next(&run, &frame); frame_release(&frame)) {
            struct image tight = frame.image;
            size_t bytes = image_lay_out(&tight, NULL);
            CHECK(frame.image.width == 170 && at + bytes <= size &&
                      differing(&frame.image, raw + at) == 0,
                  "%dx%d", frame.image.width, frame.image.height);
            at += bytes;
        }
        CHECK(run.frames == 5 && at == size, "%d frames", run.frames);
        run_close(&run);
    }
    free(raw);
}

static bool same_colour(struct colour a, struct colour b)
{
    return a.matrix == b.matrix && a.range == b.range && a.siting == b.siting;
}

static void test_format(const struct clip *clip)
{
    struct run run;
    struct frame frame;
    size_t size, at = 0;
    clips_make("182x98", 12, clip->encoder, clip->file);
    clips_run(FFMPEG "-i %s -f rawvideo -pix_fmt %s raw", clip->file,
              clip->format ? clip->format : "yuv420p10le");
    unsigned char *raw = clips_read("raw", &size);
    if (run_open(&run, clip->file, &on_cpu)) {
        while (run_next(&run, &frame)) {
            struct image *image = &frame.image;
            CHECK(image->format == clip->ours && image->width == 182 && image->height == 98 &&
                      frame.info.source_width == 182 && frame.info.source_height == 98,
                  "%s: %s %dx%d", clip->file, pixel_format_name(image->format), image->width,
                  image->height);
            if (clip->colour.siting)
                CHECK(same_colour(image->colour, clip->colour), "%s: %d %d %d", clip->file,
                      image->colour.matrix, image->colour.range, image->colour.siting);
            struct image tight = *image;
            size_t bytes = image_lay_out(&tight, NULL);
            if (clip->format && at + bytes <= size)
                CHECK(differing(image, raw + at) == 0, "%s: %zu bytes differ in frame %d",
                      clip->file, differing(image, raw + at), run.frames);
            at += bytes;
            frame_release(&frame);
        }
        CHECK(run.frames == 12 && at == size, "%s: %d frames", clip->file, run.frames);
        CHECK(run.notices == clip->converted, "%s: %d notices", clip->file, run.notices);
        CHECK(run.damaged == 0 && run.lost == 0, "%s", clip->file);
        run_close(&run);
    }
    free(raw);
}

// Counts chroma samples that differ by more than 1 from 4:4:0's columns, halved by weights 1 2 1.
static int chroma_differs(const struct image *image, const unsigned char *u)
{
    int differ = 0;
    for (int i = 0; i < 32 * 24; i++) {
        const int y = i / 32, x = i % 32;
        const unsigned char *at = u + y * 64 + 2 * x;
        const int sum = at[x > 0 ? -1 : 0] + 2 * at[0] + at[1];
        differ += abs(image->plane[1].data[y * image->plane[1].stride + x] - (sum + 2) / 4) > 1;
    }
    return differ;
}

// Conversion by libswscale loses only chroma: luma keeps every level.
static void test_luma_kept(void)
{
    struct run run;
    struct frame frame;
    size_t size, differ = 0;
    int chroma_off = 0;
    clips_make("64x48", 3, "-c:v ffv1 -pix_fmt yuv440p", "440.mkv");
    clips_run(FFMPEG "-i 440.mkv -f rawvideo -pix_fmt yuv440p raw");
    unsigned char *raw = clips_read("raw", &size), *at = raw;
    if (run_open(&run, "440.mkv", &on_cpu)) {
        for (; run_next(&run, &frame); at += 64 * 48 * 2, frame_release(&frame)) {
            CHECK(frame.image.format == PIXEL_YUV420P, "%s", pixel_format_name(frame.image.format));
            for (int i = 0; i < 64 * 48; i++)
                differ +=
                    frame.image.plane[0].data[i / 64 * frame.image.plane[0].stride + i % 64] !=
                    at[i];
            chroma_off += chroma_differs(&frame.image, at + 64 * 48);
        }
        CHECK(differ == 0 && chroma_off == 0 && run.frames == 3 && run.notices == 1,
              "%zu luma levels and %d of chroma differ", differ, chroma_off);
        run_close(&run);
    }
    free(raw);
}

// --- times and order

// Each picture carries its own interlaced and HDR flags.
static void test_signal(const char *encoder, const char *file, uint32_t flags,
                        enum field_order order)
{
    const uint32_t both = FRAMED_FLAG_INTERLACED | FRAMED_FLAG_HDR;
    struct run run;
    struct frame frame;
    clips_make("128x96", 6, encoder, file);
    if (!run_open(&run, file, &on_cpu))
        return;
    for (; run_next(&run, &frame); frame_release(&frame))
        CHECK((frame.info.flags & both) == flags && frame.info.field_order == order,
              "%s: flags %d, order %d", file, (int)frame.info.flags, frame.info.field_order);
    CHECK(run.frames == 6, "%s: %d frames", file, run.frames);
    run_close(&run);
}

static void test_times(const char *file, const struct decode_options *options)
{
    char command[256];
    struct run run;
    struct frame frame;
    double expected;
    snprintf(command, sizeof(command),
             "ffprobe -v error -select_streams v -show_entries frame=best_effort_timestamp_time "
             "-of csv=p=0 %s | grep -o '^[0-9.]*'",
             file);
    FILE *probe = popen(command, "r");
    if (!run_open(&run, file, options))
        return;
    int64_t received = 0, capture = 0;
    while (run_next(&run, &frame)) {
        char line[64];
        CHECK(fgets(line, sizeof(line), probe) && sscanf(line, "%lf", &expected) == 1, "%s", file);
        CHECK(llabs(frame.info.pts_ns - (int64_t)(expected * 1e9)) < 2000, "%s: %lld, not %s", file,
              (long long)frame.info.pts_ns, line);
        CHECK(frame.info.received_ns > 0 && frame.info.received_ns <= frame.info.decoded_ns, "%s",
              file);
        // Each picture has its own packet's times, in the order of the packets.
        CHECK(frame.info.received_ns != received && frame.info.capture_ns != capture, "%s", file);
        received = frame.info.received_ns;
        capture = frame.info.capture_ns;
        frame_release(&frame);
    }
    CHECK(run.frames > 0 && fgetc(probe) == EOF, "%s: %d frames", file, run.frames);
    pclose(probe);
    run_close(&run);
}

// --- damage

// Flips bits of the coded pictures, not of the file's header, at places selected by the seed.
static void damage(const char *from, const char *to, int one_in, uint64_t seed)
{
    size_t size;
    unsigned char *bytes = clips_read(from, &size);
    for (size_t i = 6000; i < size; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        if (seed % (uint64_t)one_in == 0)
            bytes[i] ^= (unsigned char)(1 << (seed >> 32) % 8);
    }
    FILE *out = fopen(to, "wb");
    CHECK(out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0, "%s", to);
    free(bytes);
}

static void test_damage(void)
{
    struct decode_options options = on_cpu;
    clips_make("320x180", 100, "-c:v libx264 -bf 0 -g 25 -b:v 1M", "whole.h264");
    struct run whole = run_through("whole.h264", &options, &no_device);
    CHECK(whole.frames == 100 && whole.damaged == 0 && whole.keyframes == 4, "%d %d %d",
          whole.frames, whole.damaged, whole.keyframes);
    options.damaged = DAMAGED_HOLD;
    whole = run_through("whole.h264", &options, &no_device);
    CHECK(whole.frames == 100 && whole.lost == 0, "%d %d", whole.frames, whole.lost);

    damage("whole.h264", "damaged.h264", 20000, 0x9e3779b97f4a7c15);
    options.damaged = DAMAGED_FLAG;
    struct run flag = run_through("damaged.h264", &options, &no_device);
    CHECK(flag.frames > 90 && flag.damaged > 0 && flag.damaged < 95, "%d, %d damaged", flag.frames,
          flag.damaged);
    options.damaged = DAMAGED_DROP;
    struct run drop = run_through("damaged.h264", &options, &no_device);
    CHECK(drop.lost > flag.lost && drop.damaged < flag.damaged &&
              drop.frames - drop.damaged == flag.frames - flag.damaged &&
              drop.frames + drop.lost == flag.frames + flag.lost,
          "%d, %d damaged, %d withheld", drop.frames, drop.damaged, drop.lost);
    options.damaged = DAMAGED_HOLD;
    struct run hold = run_through("damaged.h264", &options, &no_device);
    CHECK(hold.damaged == 0 && hold.frames == flag.frames - flag.damaged && hold.frames > 0 &&
              hold.frames + hold.lost == flag.frames + flag.lost,
          "%d, %d withheld", hold.frames, hold.lost);
}

// The decoder ends without a crash for any bytes.
static void test_ruins(void)
{
    static const char *const clips_to_ruin[][2] = {
        {"-c:v libx264 -bf 2 -g 10", "ruin.ts"},
        {"-c:v libx265 -x265-params log-level=none", "ruin.mkv"},
        {"-c:v mjpeg", "ruin.avi"},
        {"-c:v mpeg4", "ruin.mpg"},
        {"-c:v libvpx-vp9 -deadline realtime -cpu-used 8", "ruin.webm"},
    };
    for (size_t i = 0; i < sizeof(clips_to_ruin) / sizeof(*clips_to_ruin); i++) {
        const char *file = clips_to_ruin[i][1];
        char ruined[32];
        clips_make("160x120", 30, clips_to_ruin[i][0], file);
        for (int seed = 1; seed <= 4; seed++) {
            snprintf(ruined, sizeof(ruined), "%d-%s", seed, file);
            damage(file, ruined, seed * 400, (uint64_t)seed * 0x9e3779b97f4a7c15);
            run_through(ruined, &on_cpu, &no_device);
        }
        clips_run("head -c $(($(stat -c %%s %s) * 6 / 10)) %s > cut-%s", file, file, file);
        snprintf(ruined, sizeof(ruined), "cut-%s", file);
        struct run cut = run_through(ruined, &on_cpu, &no_device);
        CHECK(cut.frames > 5 && cut.frames < 30, "%s: %d frames", ruined, cut.frames);
    }
}

// A stream joined between keyframes shows nothing until the first keyframe.
static void test_joined_late(void)
{
    clips_make("160x120", 60, "-c:v libx264 -bf 0 -g 20 -x264-params repeat-headers=1", "late.ts");
    clips_run(FFMPEG "-i late.ts -c copy -bsf:v noise=drop='lt(n\\,5)' late.h264");
    struct run run = run_through("late.h264", &on_cpu, &no_device);
    CHECK(run.frames == 40 && run.damaged == 0 && run.lost == 15,
          "%d frames, %d damaged, %d withheld", run.frames, run.damaged, run.lost);
}

// Pictures after a lost keyframe are flagged up to the next keyframe, although the decoder takes
// the first of them, which reveal the loss, for late ones and keeps them.
static void test_keyframe_lost(void)
{
    clips_make("160x96", 60, "-c:v libx264 -threads 1 -bf 0 -g 20", "keyed.h264");
    clips_run(FFMPEG "-i keyed.h264 -c copy -bsf:v noise=drop='eq(n\\,20)' unkeyed.h264");
    struct run run = run_through("unkeyed.h264", &on_cpu, &no_device);
    CHECK(run.frames > 55 && run.frames < 59 && run.damaged == run.frames - 40,
          "%d frames, %d damaged", run.frames, run.damaged);
}

// --- lifetimes of decoders and frames

static void *release(void *frame)
{
    frame_release(frame);
    return NULL;
}

static void test_frames_outlive(void)
{
    struct run run;
    struct frame frames[6];
    pthread_t threads[6];
    size_t size;
    if (!run_open(&run, "420.mp4", &on_cpu))
        return;
    clips_run(FFMPEG "-i 420.mp4 -f rawvideo raw");
    unsigned char *raw = clips_read("raw", &size);
    for (int i = 0; i < 6; i++)
        CHECK(run_next(&run, &frames[i]), "%d", i);
    run_close(&run);
    for (int i = 0; i < 6; i++)
        CHECK(differing(&frames[i].image, raw + i * (182 * 98 * 3 / 2)) == 0, "frame %d", i);
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, release, &frames[i]);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    CHECK(frames[0].owner == NULL && frames[0].image.width == 0, "emptied");
    free(raw);
}

static void test_restart(void)
{
    struct run run;
    struct frame frame;
    if (!run_open(&run, "420.mp4", &on_cpu))
        return;
    for (int pass = 1; pass <= 3; pass++) {
        while (run_next(&run, &frame))
            frame_release(&frame);
        CHECK(run.frames == 12 * pass, "%d after pass %d", run.frames, pass);
        CHECK(demux_rewind(run.demux) == 0, "rewind");
        decoder_restart(run.decoder);
    }
    run_close(&run);
}

static void test_geometry_changes(void)
{
    struct run run;
    struct frame frame;
    int sizes[2] = {0};
    clips_make("128x96", 10, "-c:v libx264 -bf 0", "small.h264");
    clips_make("190x110", 10, "-c:v libx264 -bf 0", "large.h264");
    clips_run("cat small.h264 large.h264 > both.h264");
    if (!run_open(&run, "both.h264", &on_cpu))
        return;
    for (; run_next(&run, &frame); frame_release(&frame)) {
        sizes[0] += frame.image.width == 128 && frame.image.height == 96;
        sizes[1] += frame.image.width == 190 && frame.image.height == 110;
    }
    CHECK(sizes[0] == 10 && sizes[1] == 10, "%d and %d", sizes[0], sizes[1]);
    run_close(&run);
}

// A live decoder returns each picture with its packet, with any number of threads.
static void test_low_delay(const char *encoder, const char *file, int threads)
{
    const struct decode_options live = {
        .decode.by = DECODE_CPU, .threads = threads, .low_delay = true, .in_flight = 4};
    struct run run;
    struct frame frame;
    clips_make("320x180", 12, encoder, file);
    if (!run_open(&run, file, &live))
        return;
    for (int i = 0; i < 6; i++) {
        send_next(&run);
        int rc = decoder_receive(run.decoder, &frame);
        CHECK(rc == 0 && !frame.lost, "%s, %d threads, after packet %d: %s", file, threads, i,
              strerror(-rc));
        if (rc == 0)
            frame_release(&frame);
    }
    run_close(&run);
}

// Damages every eighth packet in its middle. Returns the number of flagged pictures.
static int count_damaged(const char *file, int threads, bool check_hashes)
{
    const struct decode_options live = {
        .decode.by = DECODE_CPU,
        .threads = threads,
        .low_delay = true,
        .in_flight = 4,
        .check_hashes = check_hashes,
    };
    struct run run;
    struct frame frame;
    struct packet packet;
    int damaged = 0;
    if (!run_open(&run, file, &live))
        return -1;
    for (int i = 0; demux_read(run.demux, &packet) == 0; i++) {
        const int middle = packet.av->size / 2;
        if (i % 8 == 5 && av_packet_make_writable(packet.av) == 0)
            memset(packet.av->data + middle, 0xa5, (size_t)(packet.av->size - middle) / 2);
        int rc = decoder_send(run.decoder, &packet);
        CHECK(rc == 0, "packet %d: %s", i, strerror(-rc));
        for (; decoder_receive(run.decoder, &frame) == 0; frame_release(&frame))
            damaged += frame.lost || (frame.info.flags & FRAMED_FLAG_DAMAGED);
    }
    run_close(&run);
    return damaged;
}

// The number of threads does not change the flagged pictures. H.265 needs hashes for that, H.264
// has none.
static void test_live_damage(const char *encoder, const char *file, bool has_hashes)
{
    clips_make("320x180", 40, encoder, file);
    const int one = count_damaged(file, 1, true), four = count_damaged(file, 4, true);
    const int without = count_damaged(file, 1, false);
    CHECK(one >= 5 && four == one, "%s: %d pictures by one thread, %d by four", file, one, four);
    CHECK(has_hashes ? without < one : without == one, "%s: %d pictures, %d without hashes", file,
          one, without);
}

static void test_nvdec_missing(void)
{
    struct run run;
    struct decoder *decoder;
    struct decode_options options = {.decode.by = DECODE_NVDEC};
    if (!run_open(&run, "420.mp4", &on_cpu))
        return;
    int rc = decoder_open(&decoder, run.demux->parameters, &options);
    CHECK(rc == 0, "%s", strerror(-rc));
    rc = decoder_join(decoder, &no_device);
    CHECK(rc == -ENODEV, "%s", strerror(-rc));
    decoder_close(decoder);
    CHECK(!strcmp(decoder_describe(run.decoder), "cpu h264"), "%s", decoder_describe(run.decoder));
    run_close(&run);
}

static void send_garbage(struct run *run)
{
    struct packet packet;
    struct frame frame;
    CHECK(demux_read(run->demux, &packet) == 0, "no packet");
    CHECK(av_packet_make_writable(packet.av) == 0, "no memory");
    memset(packet.av->data, 0xa5, (size_t)packet.av->size);
    CHECK(decoder_send(run->decoder, &packet) == 0, "a lost picture is no error");
    CHECK(decoder_receive(run->decoder, &frame) == -EAGAIN, "a picture of garbage");
}

// A decoder can be kept for the same stream, if it could decode all of it.
static void test_accepts(void)
{
    struct run same, other;
    const struct decode_options one_thread = {
        .decode.by = DECODE_CPU, .threads = 1, .in_flight = 4};
    if (!run_open(&same, "420.mp4", &one_thread) || !run_open(&other, "j420.mp4", &one_thread))
        return;
    CHECK(decoder_accepts(same.decoder, same.demux->parameters), "itself");
    CHECK(!decoder_accepts(same.decoder, other.demux->parameters), "another format");
    AVCodecParameters *changed = avcodec_parameters_alloc();
    avcodec_parameters_copy(changed, same.demux->parameters);
    changed->extradata[changed->extradata_size - 1] ^= 1;
    CHECK(!decoder_accepts(same.decoder, changed), "other headers");
    changed->extradata[changed->extradata_size - 1] ^= 1;
    CHECK(decoder_accepts(same.decoder, changed), "a copy");
    changed->width += 2;
    CHECK(!decoder_accepts(same.decoder, changed), "another size");
    avcodec_parameters_free(&changed);
    send_garbage(&same);
    CHECK(!decoder_accepts(same.decoder, same.demux->parameters), "harmed");
    run_close(&same);
    run_close(&other);
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    for (size_t i = 0; i < sizeof(format_clips) / sizeof(*format_clips); i++)
        TEST(test_format(&format_clips[i]));
    TEST(test_crop());
    TEST(test_luma_kept());
    TEST(test_signal("-c:v libx264", "progressive.mp4", 0, FIELDS_NONE));
    TEST(test_signal("-c:v libx264 -flags +ildct+ilme -top 1", "top.mp4", FRAMED_FLAG_INTERLACED,
                     FIELDS_TOP_FIRST));
    TEST(test_signal("-c:v libx264 -x264-params bff=1", "bottom.mp4", FRAMED_FLAG_INTERLACED,
                     FIELDS_BOTTOM_FIRST));
    TEST(test_signal("-c:v libx265 -x265-params log-level=none:interlace=tff", "fields.mp4",
                     FRAMED_FLAG_INTERLACED, FIELDS_UNKNOWN));
    TEST(test_signal("-vf setparams=color_trc=smpte2084 -c:v ffv1", "pq.mkv", FRAMED_FLAG_HDR,
                     FIELDS_NONE));
    TEST(test_signal("-vf setparams=color_trc=arib-std-b67 -c:v libx264", "hlg.mp4",
                     FRAMED_FLAG_HDR, FIELDS_NONE));
    clips_make("320x180", 50, "-c:v libx264 -bf 3 -g 12", "order.mp4");
    TEST(test_times("order.mp4", &on_cpu));
    TEST(test_times("order.mp4", &(struct decode_options){.decode.by = DECODE_CPU, .threads = 4}));
    TEST(test_damage());
    TEST(test_ruins());
    TEST(test_joined_late());
    TEST(test_keyframe_lost());
    TEST(test_frames_outlive());
    TEST(test_restart());
    TEST(test_geometry_changes());
    TEST(test_live_damage("-c:v libx264 -bf 0 -slices 4", "slices.h264", false));
    TEST(test_live_damage("-c:v libx265 -x265-params log-level=none:bframes=0:slices=4:hash=1",
                          "slices.hevc", true));
    for (int threads = 0; threads <= 4; threads += threads ? threads : 1) {
        TEST(test_low_delay("-c:v libx264 -bf 0", "live.h264", threads));
        TEST(test_low_delay("-c:v libx265 -x265-params log-level=none:bframes=0", "live.hevc",
                            threads));
        TEST(test_low_delay("-c:v libvpx -deadline realtime -lag-in-frames 0", "live8.webm",
                            threads));
        TEST(test_low_delay("-c:v libvpx-vp9 -deadline realtime -lag-in-frames 0 -cpu-used 8",
                            "live9.webm", threads));
        TEST(test_low_delay("-c:v libaom-av1 -usage realtime -lag-in-frames 0 -cpu-used 8",
                            "live.mkv", threads));
        TEST(test_low_delay("-c:v mpeg4 -bf 0", "live4.mkv", threads));
    }
    TEST(test_nvdec_missing());
    TEST(test_accepts());
    clips_close();
    return test_end();
}
