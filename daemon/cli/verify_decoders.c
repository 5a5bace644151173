#include "daemon/cli/verify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/object.h"
#include "config/types.h"
#include "daemon/base/clock.h"
#include "daemon/base/process.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/hardware.h"
#include "daemon/codec/hardware_record.h"
#include "daemon/source/demux.h"
#include "kernels/backend.h"

enum verify_verdict {
    VERIFY_NOT_OPENED, // `why` has the reason, also for the next two
    VERIFY_REFUSED,    // it opens, but does not decode such streams
    VERIFY_FAILED,
    VERIFY_DIFFERS,
    VERIFY_EQUAL,
};

struct verify_result {
    enum verify_verdict verdict;
    int picture;      // VERIFY_DIFFERS: the first that differs, from 0
    double fps;       // pictures per second; 0: unknown
    char driver[128]; // the driver's own name; "": unknown
    char why[256];
};

enum { CHILD_MS = 10000 };
static const int64_t TIMED_NS = INT64_C(200000000);
static const _Atomic bool never; // only deadlines stop it

// --- a picture's digest

// Copies a row of Y, U or V as bytes: planar, with samples of 10 bits as little-endian words.
static void take_row(uint8_t *to, const struct image *image, int component, int y, int width)
{
    const bool deep = image->format == PIXEL_P010 || image->format == PIXEL_YUV420P10;
    const bool paired = image->format == PIXEL_P010 || image->format == PIXEL_NV12;
    const struct plane *plane = &image->plane[paired && component ? 1 : component];
    const int step = paired && component ? 2 : 1, first = paired && component == 2 ? 1 : 0;
    const uint8_t *row = plane->data + y * plane->stride;
    for (int x = 0; x < width; x++) {
        const int at = first + x * step;
        if (!deep) {
            to[x] = row[at];
            continue;
        }
        uint16_t sample = (uint16_t)(row[2 * at] | row[2 * at + 1] << 8);
        if (image->format == PIXEL_P010)
            sample >>= 6;
        to[2 * x] = (uint8_t)sample;
        to[2 * x + 1] = (uint8_t)(sample >> 8);
    }
}

static uint64_t digest_of(const struct image *image, uint8_t *row)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    const bool deep = image->format == PIXEL_P010 || image->format == PIXEL_YUV420P10;
    uint64_t ret = 0;
    SHA256_CTX sha;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    SHA256_Init(&sha);
    for (int component = 0; component < 3; component++) {
        const int width = component ? image->width / 2 : image->width;
        for (int y = 0; y < (component ? image->height / 2 : image->height); y++) {
            take_row(row, image, component, y, width);
            SHA256_Update(&sha, row, (size_t)width * (deep ? 2 : 1));
        }
    }
    SHA256_Final(digest, &sha);
#pragma GCC diagnostic pop
    for (int i = 0; i < 8; i++)
        ret = ret << 8 | digest[i];
    return ret;
}

// --- one pass over the clip

struct pass {
    const struct verify_clip *clip;
    struct camera_config camera;
    struct decode_device *nvdec;
    struct demux *demux;
    struct decoder *decoder;
    uint8_t *row;
    bool live;
    int pictures, differs; // pictures so far; the first that differs, or -1
    int64_t until_ns;      // the clip restarts at its end until then; 0: never
};

static int open_pass(struct pass *pass, const struct decoder_choice *choice, char *why, size_t size)
{
    const struct decode_options options = {.decode = *choice,
                                           .threads = 1,
                                           .low_delay = pass->live,
                                           .in_flight = 1,
                                           .pictures = PICTURES_ALL,
                                           .damaged = DAMAGED_FLAG};
    char path[64];
    const size_t bytes = (size_t)(pass->clip->end - pass->clip->begin);
    const int file = memfd_create("clip", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (file < 0 || write(file, pass->clip->begin, bytes) != (ssize_t)bytes ||
        object_init(&camera_table, &pass->camera) < 0 || !(pass->camera.url = strdup(path)) ||
        !(pass->row = malloc((size_t)pass->clip->width * 2)))
        return -ENOMEM;
    if (choice->by == DECODE_NVDEC && decode_device_open(&pass->nvdec, 0, 0) < 0)
        return -ENODEV;
    int rc = demux_open(&pass->demux, &pass->camera, NULL, &never, NULL, why, size);
    if (rc == 0)
        rc = decoder_open(&pass->decoder, pass->demux->parameters, &options);
    if (rc == 0)
        rc = decoder_join(pass->decoder, &(struct decode_target){&cpu_backend, NULL, pass->nvdec});
    return rc;
}

static int next_packet(struct pass *pass, struct packet *ret)
{
    int rc = demux_read(pass->demux, ret);
    if (rc == -ENODATA && monotonic_ns() < pass->until_ns && demux_rewind(pass->demux) == 0)
        rc = demux_read(pass->demux, ret);
    return rc;
}

// Compares the next picture with the clip's digests. Returns 0; -ENODATA at the end; or an errno.
static int next_picture(struct pass *pass)
{
    struct frame frame;
    struct packet packet;
    int rc;
    while ((rc = decoder_receive(pass->decoder, &frame)) == -EAGAIN) {
        rc = next_packet(pass, &packet);
        if (rc == 0 || rc == -ENODATA)
            rc = decoder_send(pass->decoder, rc == 0 ? &packet : NULL);
        if (rc < 0)
            return rc;
    }
    if (rc < 0)
        return rc;
    const int at = pass->pictures % VERIFY_PICTURES;
    if (pass->pictures < VERIFY_PICTURES && pass->differs < 0 &&
        (frame.lost || digest_of(&frame.image, pass->row) != pass->clip->digests[at]))
        pass->differs = at;
    pass->pictures++;
    frame_release(&frame);
    return 0;
}

// Measures the speed in a loop, after a first picture, for which a driver may open its decoder.
static void time_clip(struct pass *pass, struct verify_result *ret)
{
    if (demux_rewind(pass->demux) < 0)
        return;
    decoder_restart(pass->decoder);
    if (next_picture(pass) < 0)
        return;
    const int64_t begun_ns = monotonic_ns();
    const int before = pass->pictures;
    pass->until_ns = begun_ns + TIMED_NS;
    while (next_picture(pass) == 0)
        ;
    ret->fps = (double)(pass->pictures - before) * 1e9 / (double)(monotonic_ns() - begun_ns);
}

// Copies "vaapi cannot be opened (Permission denied): decoding on the cpu" without its end.
static void set_why(struct verify_result *ret, const char *text)
{
    snprintf(ret->why, sizeof ret->why, "%s", text);
    char *end = strstr(ret->why, ": decoding on the cpu");
    if (end)
        *end = 0;
}

static void judge(struct pass *pass, int rc, struct verify_result *ret)
{
    const char *notice = pass->decoder ? decoder_notice(pass->decoder) : NULL;
    const enum fallback fallback =
        pass->decoder ? decoder_last_fallback(pass->decoder) : FALLBACK_NONE;
    if (notice || !ret->why[0])
        set_why(ret, notice ? notice : strerror(-rc));
    if (fallback == FALLBACK_NOT_OPENED || (!pass->decoder && rc < 0))
        ret->verdict = VERIFY_NOT_OPENED;
    else if (fallback == FALLBACK_REFUSED)
        ret->verdict = VERIFY_REFUSED;
    else if (fallback == FALLBACK_FAILED || rc != -ENODATA)
        ret->verdict = VERIFY_FAILED;
    else if (pass->differs >= 0 || pass->pictures != VERIFY_PICTURES)
        ret->verdict = VERIFY_DIFFERS;
    else
        ret->verdict = VERIFY_EQUAL;
    ret->picture = pass->differs >= 0 ? pass->differs : pass->pictures;
}

static struct verify_result decode(const struct verify_clip *clip,
                                   const struct decoder_choice *choice, bool live)
{
    struct verify_result ret = {0};
    struct pass pass = {.clip = clip, .live = live, .differs = -1};
    int rc = open_pass(&pass, choice, ret.why, sizeof ret.why);
    while (rc == 0)
        rc = next_picture(&pass);
    judge(&pass, rc, &ret);
    if (ret.verdict == VERIFY_EQUAL && !live)
        time_clip(&pass, &ret);
    if (ret.verdict == VERIFY_EQUAL && decoder_last_fallback(pass.decoder) != FALLBACK_NONE)
        judge(&pass, rc, &ret); // it failed while being timed
    if (pass.decoder && decoder_hardware(pass.decoder))
        snprintf(ret.driver, sizeof ret.driver, "%s",
                 hardware_driver(decoder_hardware(pass.decoder)));
    return ret; // nothing is freed: the process ends
}

// --- a process of its own: drivers hang and crash

static void run_child(const struct verify_clip *clip, const struct decoder_choice *choice, int to)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0)
        dup2(nowhere, STDERR_FILENO); // drivers print messages
    struct verify_result result = decode(clip, choice, true);
    if (result.verdict == VERIFY_EQUAL)
        result = decode(clip, choice, false);
    const bool written = write(to, &result, sizeof result) == sizeof result;
    _exit(written ? 0 : 1); // skips the drivers' exit handlers, which may crash
}

// A child stuck in the kernel may outlive the signal.
static void end_child(pid_t child, struct verify_result *ret, bool answered)
{
    int status = 0;
    if (!answered)
        kill(child, SIGKILL);
    for (int i = 0; i < 100 && waitpid(child, &status, WNOHANG) == 0; i++)
        usleep(10000);
    if (!answered && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        snprintf(ret->why, sizeof ret->why, "it crashed (%s)", strsignal(WTERMSIG(status)));
}

// Decodes the clip as a live stream and as a file: both must be equal. Gives up after 10 s.
static struct verify_result verify_clip(const struct verify_clip *clip,
                                        const struct decoder_choice *choice)
{
    struct verify_result ret = {.verdict = VERIFY_FAILED};
    int ends[2];
    snprintf(ret.why, sizeof ret.why, "no answer for %d s", CHILD_MS / 1000);
    if (pipe2(ends, O_CLOEXEC) < 0) {
        snprintf(ret.why, sizeof ret.why, "%s", strerror(errno));
        return ret;
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(clip, choice, ends[1]);
    }
    close(ends[1]);
    struct pollfd answer = {.fd = ends[0], .events = POLLIN};
    struct verify_result got;
    bool answered = false;
    if (child > 0 && poll(&answer, 1, CHILD_MS) > 0)
        answered = read(ends[0], &got, sizeof got) == sizeof got;
    close(ends[0]);
    if (child > 0)
        end_child(child, &ret, answered);
    return answered ? got : ret;
}

struct candidates {
    struct decoder_choice list[VERIFY_DECODERS_MAX];
    int n;
};

// --- the candidates

static void add(struct candidates *candidates, enum decode by, const char *name, const char *device)
{
    if (candidates->n == VERIFY_DECODERS_MAX)
        return;
    struct decoder_choice *choice = &candidates->list[candidates->n++];
    *choice = (struct decoder_choice){.by = by};
    snprintf(choice->name, sizeof choice->name, "%s", name);
    snprintf(choice->device, sizeof choice->device, "%s", device);
}

static int is_render_node(const struct dirent *entry)
{
    return strncmp(entry->d_name, "renderD", strlen("renderD")) == 0;
}

// Adds each of several GPUs by its name, and a single one as libavutil's default.
static void add_vaapi(struct candidates *candidates)
{
    struct dirent **entries = NULL;
    const int n = scandir("/dev/dri", &entries, is_render_node, alphasort);
    for (int i = 0; i < n; i++) {
        char device[DECODER_DEVICE_MAX];
        snprintf(device, sizeof device, "/dev/dri/%.60s", entries[i]->d_name);
        if (n > 1)
            add(candidates, DECODE_HARDWARE, "vaapi", device);
        free(entries[i]);
    }
    free(entries);
    if (n <= 1)
        add(candidates, DECODE_HARDWARE, "vaapi", "");
}

static void add_all(struct candidates *candidates)
{
    add(candidates, DECODE_NVDEC, "nvdec", "");
    add_vaapi(candidates);
    for (const char *const *name = hardware_names(); *name; name++)
        if (strcmp(*name, "vaapi") != 0)
            add(candidates, DECODE_HARDWARE, *name, "");
}

// --- the report

static void print_box(void)
{
    char libraries[HARDWARE_LIBRARIES_MAX];
    printf("framed %s, %s\n", FRAMED_VERSION_TEXT, hardware_record_libraries(libraries));
}

static void print_result(const struct decoder_choice *choice, const struct verify_clip *clip,
                         const struct verify_result *result)
{
    char name[HARDWARE_NAME_MAX];
    hardware_name(choice, name);
    if (result->verdict == VERIFY_NOT_OPENED) {
        printf("%-12s does not open: %s\n", name, result->why);
        return;
    }
    printf("%-12s %-4s %2d bits %4dx%-4d  ", name, clip->codec, clip->bits, clip->width,
           clip->height);
    if (result->verdict == VERIFY_REFUSED)
        printf("not decoded: %s", result->why);
    else if (result->verdict == VERIFY_FAILED)
        printf("FAILS: %s", result->why);
    else if (result->verdict == VERIFY_DIFFERS)
        printf("DIFFERS from picture %d on", result->picture);
    else
        printf("equal  %7.1f frames/s", result->fps);
    printf("%s%s\n", result->driver[0] ? "  " : "", result->driver);
}

// --- the record

static void note_equal(struct hardware_record *record, const struct decoder_choice *choice,
                       const struct verify_clip *clip, const struct verify_result *verified)
{
    struct hardware_result result = {.decoder = *choice, .bits = clip->bits, .fps = verified->fps};
    result.codec = avcodec_descriptor_get_by_name(clip->codec)->id;
    snprintf(result.driver, sizeof result.driver, "%s", verified->driver);
    hardware_record_add(record, &result);
}

static void keep(const struct hardware_record *record)
{
    char text[512];
    char *folder = hardware_record_folder();
    const int rc = folder ? hardware_record_write(record, folder) : -ENOENT;
    if (rc == 0)
        printf("kept in %s for `decode: auto`\n", folder);
    else
        fprintf(stderr, "framed verify: not kept for `decode: auto`: %s: %s\n",
                folder ? folder : "no folder", strerror(-rc));
    free(folder);
    hardware_record_describe(record, text, sizeof text);
    if (rc == 0 && text[0])
        printf("without NVDEC it takes %s\n", text);
}

// --- all of it

// Returns false if the decoder opened and did not give the known pictures. A failed decoder gets no
// further clip.
static bool verify_one(const struct decoder_choice *choice, struct hardware_record *record)
{
    bool good = true;
    hardware_record_forget(record, choice);
    for (int i = 0; i < VERIFY_CLIPS; i++) {
        const struct verify_clip *clip = &verify_clips[i];
        const struct verify_result result = verify_clip(clip, choice);
        const bool decodes = result.verdict >= VERIFY_FAILED;
        print_result(choice, clip, &result);
        if (result.verdict == VERIFY_EQUAL && choice->by != DECODE_NVDEC)
            note_equal(record, choice, clip, &result);
        good &= !decodes || result.verdict == VERIFY_EQUAL;
        if (result.verdict == VERIFY_NOT_OPENED || result.verdict == VERIFY_FAILED) {
            hardware_record_forget(record, choice);
            break;
        }
    }
    return good;
}

int verify_decoders(const struct decoder_choice list[], int n)
{
    static const struct decoder_choice cpu = {.by = DECODE_CPU};
    struct candidates all = {0};
    struct hardware_record record = {0};
    if (n == 0)
        add_all(&all);
    else
        hardware_record_read(&record, NULL); // other decoders keep their results
    print_box();
    if (!verify_one(&cpu, &record)) {
        printf("the cpu's pictures are not the known ones: nothing else is compared\n");
        return EXIT_RUNTIME;
    }
    bool good = true;
    for (int i = 0; i < (n > 0 ? n : all.n); i++)
        good &= verify_one(n > 0 ? &list[i] : &all.list[i], &record);
    keep(&record);
    return good ? EXIT_OK : EXIT_RUNTIME;
}

int verify_decoders_again(void)
{
    struct hardware_record record;
    const int rc = hardware_record_read(&record, NULL);
    return rc == -ESTALE ? verify_decoders(NULL, 0) : EXIT_OK;
}
