// Pictures in pinned memory: the pinned ranges, their owners and lifetimes.
#include "daemon/codec/buffers.h"

#include <libavcodec/avcodec.h>
#include <libavutil/frame.h>
#include <libavutil/log.h>
#include <pthread.h>

#include "daemon/base/machine.h"
#include "daemon/codec/picture.h"
#include "tests/daemon/codec/decoding.h"

// --- a backend that records pinned memory

enum { PINS_MAX = 256 };

static struct {
    pthread_mutex_t mutex;
    struct {
        uint8_t *memory;
        size_t bytes;
    } pin[PINS_MAX];
    int now, made, unknown;
    int fails_after; // one pin fails after this many; 0: none fails
    bool fails;
} pins = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct backend *const backend = (struct backend *)&pins;

static int pin(struct backend *of, void *memory, size_t bytes)
{
    if (pins.fails || (pins.fails_after > 0 && --pins.fails_after == 0))
        return -EIO;
    pthread_mutex_lock(&pins.mutex);
    pins.unknown += of != backend || (uintptr_t)memory % 4096 != 0 || bytes % 4096 != 0;
    if (pins.now < PINS_MAX) {
        pins.pin[pins.now].memory = memory;
        pins.pin[pins.now++].bytes = bytes;
    }
    pins.made++;
    pthread_mutex_unlock(&pins.mutex);
    return 0;
}

static void unpin(struct backend *of, void *memory)
{
    CHECK(of == backend, "another backend");
    pthread_mutex_lock(&pins.mutex);
    int i = 0;
    while (i < pins.now && pins.pin[i].memory != memory)
        i++;
    if (i < pins.now)
        pins.pin[i] = pins.pin[--pins.now];
    else
        pins.unknown++;
    pthread_mutex_unlock(&pins.mutex);
}

static const struct backend_driver pinning = {.name = "pinning", .pin = pin, .unpin = unpin};
static const struct decode_target pinned = {.driver = &pinning, .backend = (void *)&pins};

// Returns true if every byte of the image is pinned.
static bool is_pinned(const struct image *image)
{
    int inside = 0, planes = pixel_format_planes(image->format);
    for (int p = 0; p < planes; p++) {
        const struct plane *plane = &image->plane[p];
        const uint8_t *end = plane->data +
                             plane->stride * (plane_rows(image->format, p, image->height) - 1) +
                             plane_row_bytes(image->format, p, image->width);
        for (int i = 0; i < pins.now; i++)
            inside +=
                plane->data >= pins.pin[i].memory && end <= pins.pin[i].memory + pins.pin[i].bytes;
    }
    return inside == planes;
}

// --- decoders

static const struct clip {
    const char *encoder, *file;
    int threads;
    bool pinned;
} pictures_of[] = {
    {"-c:v libx264 -bf 2", "b.mp4", 1, true},
    {"-c:v libx264 -bf 2", "threads.mp4", 4, true},
    {"-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p10le", "10.mkv", 1, true},
    {"-c:v mjpeg", "mjpeg.avi", 1, true},
    {"-c:v libx264 -pix_fmt yuv422p", "422.mp4", 1, true},
    {"-c:v ffv1 -pix_fmt yuv422p12le", "422-12.mkv", 1, true}, // by libswscale
    {"-c:v rawvideo -pix_fmt nv12", "raw.nut", 1, false},      // the packet's own memory
    {"-c:v libvpx-vp9 -deadline realtime -cpu-used 8", "vp9.mkv", 2, true},
};

static void test_decoder(const struct clip *clip)
{
    struct decode_options options = {.threads = clip->threads, .in_flight = 4};
    struct run run;
    struct frame frame;
    size_t size, at = 0;
    int made = 0;
    clips_make("182x98", 60, clip->encoder, clip->file);
    clips_run(FFMPEG "-i %s -f rawvideo raw", clip->file);
    unsigned char *raw = clips_read("raw", &size);
    pins.made = 0;
    if (run_join(&run, clip->file, &options, &pinned)) {
        while (run_next(&run, &frame)) {
            struct image tight = frame.image;
            size_t bytes = image_lay_out(&tight, NULL);
            bool left = run.frames > 20 && run.frames <= 40;
            bool expected = clip->pinned && !left;
            CHECK(frame.image.memory == (expected ? MEMORY_PINNED : MEMORY_HOST) &&
                      is_pinned(&frame.image) == expected,
                  "%s: picture %d in memory %d", clip->file, run.frames, frame.image.memory);
            if (strcmp(clip->file, "422-12.mkv") != 0)
                CHECK(at + bytes <= size && differing(&frame.image, raw + at) == 0,
                      "%s: picture %d", clip->file, run.frames);
            at += bytes;
            frame_release(&frame);
            if (run.frames == 10)
                made = pins.made;
            if (run.frames == 20) {
                CHECK(!clip->pinned || (pins.made > 0 && pins.made <= made + 1),
                      "%s: %d buffers, then %d", clip->file, made, pins.made);
                decoder_leave(run.decoder);
                CHECK(pins.now == 0, "%s: %d left pinned", clip->file, pins.now);
                pins.fails = true;
                CHECK(decoder_join(run.decoder, &pinned) == 0, "%s", clip->file);
            }
            if (run.frames == 40) {
                pins.fails = false;
                decoder_leave(run.decoder);
                CHECK(decoder_join(run.decoder, &pinned) == 0, "%s", clip->file);
            }
        }
        CHECK(run.frames == 60, "%d", run.frames);
        decoder_leave(run.decoder);
        CHECK(pins.now == 0 && pins.unknown == 0, "%s: %d left pinned", clip->file, pins.now);
        run_close(&run);
    }
    free(raw);
}

static void *release(void *frame)
{
    frame_release(frame);
    return NULL;
}

// Frames outlive their decoder; the last of them unpins its memory.
static void test_outlive(void)
{
    struct run run;
    struct frame frame[4];
    pthread_t thread[4];
    if (!run_join(&run, "b.mp4", &on_cpu, &pinned))
        return;
    for (int i = 0; i < 4; i++)
        CHECK(run_next(&run, &frame[i]), "%d", i);
    run_close(&run);
    for (int i = 0; i < 4; i++)
        CHECK(is_pinned(&frame[i].image), "frame %d", i);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, release, &frame[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    CHECK(pins.now == 0 && pins.unknown == 0, "%d left pinned", pins.now);
}

static void test_geometry(void)
{
    struct run run;
    struct frame frame;
    int count = 0;
    clips_make("128x96", 10, "-c:v libx264 -bf 0", "small.h264");
    clips_make("190x110", 10, "-c:v libx264 -bf 0", "large.h264");
    clips_run("cat small.h264 large.h264 > both.h264");
    if (!run_join(&run, "both.h264", &on_cpu, &pinned))
        return;
    for (; run_next(&run, &frame); frame_release(&frame))
        count += is_pinned(&frame.image) && frame.image.memory == MEMORY_PINNED;
    CHECK(count == 20, "%d", count);
    for (int i = 0; i < pins.now; i++)
        CHECK(pins.pin[i].bytes >= 190 * 110 * 3 / 2, "a small one is left");
    decoder_leave(run.decoder);
    CHECK(pins.now == 0, "%d left pinned", pins.now);
    run_close(&run);
}

// A plan is made for one kind of memory: pictures do not alternate between two.
static void test_one_fails(void)
{
    struct run run;
    struct frame frame;
    int changes = 0;
    enum memory memory = MEMORY_PINNED;
    pins.fails_after = 3;
    if (run_join(&run, "b.mp4", &on_cpu, &pinned)) {
        for (; run_next(&run, &frame); frame_release(&frame)) {
            changes += frame.image.memory != memory;
            memory = frame.image.memory;
        }
        CHECK(memory == MEMORY_HOST && changes == 1, "%d changes", changes);
        decoder_leave(run.decoder);
        run_close(&run);
    }
    CHECK(pins.fails_after == 0 && pins.now == 0, "%d left pinned", pins.now);
    pins.fails_after = 0;
}

// --- frames on a device

static void count_free(void *counter, uint8_t *data)
{
    (void)data;
    ++*(int *)counter;
}

// Released frames return to the device together, on the decoder's thread; without a decoder, the
// last user returns each.
static void test_reaping(void)
{
    struct buffers *buffers;
    struct pictures *pictures;
    struct picture *picture[3];
    int freed = 0;
    CHECK(buffers_open(&buffers, NULL) == 0 && pictures_open(&pictures, buffers) == 0, "no memory");
    for (int i = 0; i < 3; i++) {
        picture[i] = picture_take(pictures);
        AVFrame *frame = picture_frame(picture[i]);
        frame->buf[0] = av_buffer_create(NULL, 0, count_free, &freed, 0);
        CHECK(!picture_on_device(picture[i]), "not yet");
        frame->hw_frames_ctx = av_buffer_alloc(1);
        CHECK(picture_on_device(picture[i]), "on the device");
    }
    picture_release(picture[0]);
    picture_release(picture[1]);
    CHECK(freed == 0, "%d given back by others", freed);
    pictures_reap(pictures);
    CHECK(freed == 2, "%d given back", freed);
    pictures_close(pictures);
    picture_release(picture[2]);
    CHECK(freed == 3, "%d given back", freed);
    buffers_close(buffers);
}

// Two keyframes, a second apart. Pictures that do not fit are lost, with one notice; once there is
// room, pictures are shown from the next keyframe on.
static void test_limit(const char *encoder, const char *file)
{
    struct memory_reserve reserve = {0};
    struct decode_options options = on_cpu;
    struct frame frame;
    struct run run;
    int refused = 0, notices = 0, shown = 0, rc;
    memory_reserve_plan(&reserve, 3 << 20, 2 << 20);
    options.memory = &reserve;
    options.planned = 1 << 20;
    options.threads = 1;
    clips_make("640x360", 50, encoder, file);
    if (!run_open(&run, file, &options))
        return;
    while ((rc = decoder_receive(run.decoder, &frame)) != -ENODATA && (rc == 0 || rc == -EAGAIN)) {
        const char *notice = decoder_notice(run.decoder);
        CHECK(!notice || strstr(notice, "pictures of 640x360 need"), "%s", notice);
        notices += notice != NULL;
        if (rc == -EAGAIN && send_next(&run) < 0)
            break;
        if (rc < 0)
            continue;
        CHECK(frame.lost == frame.refused, "lost for another reason");
        CHECK(decoder_waits(run.decoder) == frame.refused, "another connection would not help");
        refused += frame.refused;
        shown += !frame.lost;
        frame_release(&frame);
        if (refused == 20)
            memory_reserve_plan(&reserve, 100 << 20, 2 << 20);
    }
    CHECK(rc == -ENODATA, "%s", strerror(-rc));
    CHECK(refused == 25 && shown == 25 && notices == 1, "%d refused, %d shown, %d notices", refused,
          shown, notices);
    CHECK(reserve.taken > 1 << 20, "%zu bytes beyond the plan", reserve.taken);
    run_close(&run);
    CHECK(reserve.taken == 0, "%zu bytes are not given back", reserve.taken);
}

// A decoder on the device releases the memory that the CPU's took.
static void test_trim(void)
{
    struct memory_reserve reserve = {0};
    struct buffers *buffers;
    const struct memory_share share = {&reserve, 0, 1, 4};
    AVCodecContext *context = avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_H264));
    AVFrame *frame = av_frame_alloc();
    memory_reserve_plan(&reserve, 64 << 20, 0);
    CHECK(context && frame && buffers_open(&buffers, &share) == 0, "no memory");
    buffers_serve(buffers, context, NULL);
    frame->width = context->width = 640;
    frame->height = context->height = 368;
    frame->format = context->pix_fmt = AV_PIX_FMT_YUV420P;
    CHECK(context->get_buffer2(context, frame, 0) == 0 && reserve.taken > 0, "nothing taken");
    const size_t taken = reserve.taken;
    av_frame_unref(frame);
    buffers_trim(buffers);
    CHECK(reserve.taken == 0, "%zu of %zu bytes are not given back", reserve.taken, taken);
    frame->width = 640;
    frame->height = 368;
    frame->format = AV_PIX_FMT_YUV420P;
    CHECK(context->get_buffer2(context, frame, 0) == 0 && reserve.taken == taken,
          "not taken again");
    av_frame_unref(frame);
    memory_reserve_plan(&reserve, 1 << 20, 0);
    context->width = 1280;
    CHECK(context->get_buffer2(context, frame, 0) < 0 && buffers_refused(buffers), "too large");
    buffers_trim(buffers);
    CHECK(reserve.taken == 0 && !buffers_refused(buffers), "still refused on the device");
    buffers_close(buffers);
    av_frame_free(&frame);
    avcodec_free_context(&context);
}

// Pictures copied here from another decoder, each in a frame of its own.
static void test_kept(void)
{
    enum { FRAMES = 5, FIT = 3, BYTES = 640 * 368 * 3 / 2 };
    struct memory_reserve reserve = {0};
    struct buffers *buffers;
    const struct memory_share share = {&reserve, 0, 1, 4};
    AVFrame *frame[FRAMES];
    int kept = 0;
    memory_reserve_plan(&reserve, FIT * BYTES + BYTES / 2, 0);
    CHECK(buffers_open(&buffers, &share) == 0, "no memory");
    for (int i = 0; i < FRAMES; i++) {
        frame[i] = av_frame_alloc();
        kept += buffers_keep(buffers, frame[i], AV_PIX_FMT_YUV420P, 640, 368) == 0;
        CHECK(kept == (i < FIT ? i + 1 : FIT), "picture %d", i);
        CHECK(i >= FIT || reserve.taken >= (size_t)kept * BYTES, "%zu bytes", reserve.taken);
    }
    CHECK(buffers_refused(buffers), "not refused");
    for (int i = 0; i < FRAMES; i++)
        av_frame_free(&frame[i]);
    buffers_close(buffers);
    CHECK(reserve.taken == 0, "%zu bytes are not given back", reserve.taken);
}

int main(void)
{
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    for (size_t i = 0; i < sizeof(pictures_of) / sizeof(*pictures_of); i++)
        TEST(test_decoder(&pictures_of[i]));
    TEST(test_outlive());
    TEST(test_geometry());
    TEST(test_one_fails());
    TEST(test_reaping());
    TEST(test_limit("-c:v libx264 -bf 0 -g 25", "limit.mp4"));
    TEST(test_limit("-c:v libx265 -x265-params log-level=none:bframes=0:keyint=25:scenecut=0",
                    "limit5.mp4"));
    TEST(test_trim());
    TEST(test_kept());
    clips_close();
    return test_end();
}
