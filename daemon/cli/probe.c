// framed probe URL: what a camera sends, measured over some seconds, what decodes it here and at
// what cost, and the lines of a configuration for it.
#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/object.h"
#include "config/url.h"
#include "daemon/base/clock.h"
#include "daemon/base/command_line.h"
#include "daemon/base/exit_code.h"
#include "daemon/base/log.h"
#include "daemon/cli/commands.h"
#include "daemon/decode/decoder.h"
#include "daemon/device/devices.h"
#include "daemon/input/demux.h"
#include "daemon/input/libav_log.h"
#include "daemon/wire.h"

enum { SECONDS = 3, SECONDS_MAX = 3600, MANY_B_FRAMES = 16 };

struct probe_options {
    const char *url;
    double seconds;
};

struct probe {
    struct config config;
    struct camera_config camera;
    struct devices *devices;
    struct device_lease lease;
    struct demux *demux;
    struct decoder *decoder;
    // Measured:
    int64_t begun_ns;          // CLOCK_MONOTONIC: connecting began
    int64_t first_ns, last_ns; // CLOCK_MONOTONIC: packets came
    int64_t shown_ns;          // CLOCK_MONOTONIC: the first picture was decoded; 0: none
    int64_t spent_ns;          // of the thread's CPU time, in the decoder
    int64_t bytes, packets, pictures, damaged;
    int64_t keyframes, key_pts_ns, key_distance_ns; // distance: the longest
    int64_t highest_pts_ns;
    int behind, b_frames; // packets in a row that are shown before an earlier one; the most of them
    bool clock;           // a sender report came
    int width, height;
    int rate_num, rate_den;
};

static const _Atomic bool never; // only deadlines stop a probe

static int64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// --- measuring

static void measure_packet(struct probe *probe, const struct packet *packet)
{
    if (probe->packets++ == 0) {
        probe->first_ns = packet->arrived_ns;
        probe->highest_pts_ns = packet->pts_ns;
    }
    probe->last_ns = packet->arrived_ns;
    probe->bytes += packet->av->size;
    probe->clock |= packet->capture_clock;
    probe->behind = packet->pts_ns < probe->highest_pts_ns ? probe->behind + 1 : 0;
    if (probe->behind > probe->b_frames && probe->behind < MANY_B_FRAMES)
        probe->b_frames = probe->behind;
    if (packet->pts_ns > probe->highest_pts_ns)
        probe->highest_pts_ns = packet->pts_ns;
    if (!packet->keyframe)
        return;
    const int64_t distance_ns = packet->pts_ns - probe->key_pts_ns;
    if (probe->keyframes++ > 0 && distance_ns > probe->key_distance_ns)
        probe->key_distance_ns = distance_ns;
    probe->key_pts_ns = packet->pts_ns;
}

// All pictures that the decoder has ready. 0, or what ends the probe.
static int take_pictures(struct probe *probe)
{
    struct frame frame;
    int rc;
    while ((rc = decoder_receive(probe->decoder, &frame)) == 0) {
        probe->damaged += frame.lost || (frame.info.flags & FRAMED_FLAG_DAMAGED);
        if (!frame.lost) {
            probe->pictures++;
            probe->width = frame.image.width;
            probe->height = frame.image.height;
            if (!probe->shown_ns)
                probe->shown_ns = monotonic_ns();
        }
        frame_release(&frame);
    }
    return rc == -EAGAIN ? 0 : rc;
}

static int decode_packet(struct probe *probe, const struct packet *packet)
{
    const int64_t begun_ns = thread_ns();
    int rc = decoder_send(probe->decoder, packet);
    if (rc == 0)
        rc = take_pictures(probe);
    probe->spent_ns += thread_ns() - begun_ns;
    return rc;
}

// 0, also where the stream ends before.
static int measure(struct probe *probe, double seconds)
{
    struct packet packet;
    int rc = 0;
    while (rc == 0 &&
           (probe->packets == 0 || monotonic_ns() < probe->first_ns + (int64_t)(seconds * 1e9))) {
        rc = demux_read(probe->demux, &packet);
        if (rc == -EREMCHG) {
            decoder_restart(probe->decoder);
            rc = 0;
            continue;
        }
        if (rc < 0)
            break;
        measure_packet(probe, &packet);
        rc = decode_packet(probe, &packet);
    }
    demux_rate(probe->demux, &probe->rate_num, &probe->rate_den);
    if (rc == -ENODATA && probe->packets > 0)
        rc = decode_packet(probe, NULL);
    return rc == -ENODATA ? 0 : rc;
}

// --- opening

static int open_decoder(struct probe *probe)
{
    const struct decode_options options = {
        .decode = probe->camera.decode,
        .threads = probe->camera.threads,
        .low_delay = demux_is_live(probe->camera.url),
        .losses_known = demux_knows_losses(probe->demux),
        .in_flight = 1,
        .damaged = DAMAGED_FLAG,
    };
    int rc = device_acquire(probe->devices, &probe->camera, &probe->lease);
    if (rc == 0)
        rc = decoder_open(&probe->decoder, demux_parameters(probe->demux), &options);
    if (rc == 0)
        rc = decoder_join(
            probe->decoder,
            &(struct decode_target){probe->lease.driver, probe->lease.backend, probe->lease.nvdec});
    return rc;
}

static int open_probe(struct probe *probe, const char *url, char *why, size_t size)
{
    if (object_init(&root_table, &probe->config) < 0 ||
        object_init(&camera_table, &probe->camera) < 0 || !(probe->camera.url = strdup(url)))
        return -ENOMEM;
    probe->config.cuda.devices = (struct gpu_list){1, {0}}; // one will do
    int rc = devices_open(&probe->devices, &probe->config);
    if (rc < 0)
        return rc;
    probe->begun_ns = monotonic_ns();
    rc = demux_open(&probe->demux, &probe->camera, NULL, &never, NULL, why, size);
    return rc == 0 ? open_decoder(probe) : rc;
}

static void close_probe(struct probe *probe)
{
    demux_close(probe->demux);
    if (probe->decoder)
        decoder_leave(probe->decoder);
    decoder_close(probe->decoder);
    device_release(&probe->lease);
    devices_close(probe->devices);
    object_free(&camera_table, &probe->camera);
    object_free(&root_table, &probe->config);
}

// --- telling

static double seconds_measured(const struct probe *probe)
{
    return (double)(probe->last_ns - probe->first_ns) / 1e9;
}

static double rate_of(const struct probe *probe)
{
    const double seconds = seconds_measured(probe);
    if (probe->rate_den > 0)
        return (double)probe->rate_num / probe->rate_den;
    return seconds > 0 ? (double)(probe->packets - 1) / seconds : 0;
}

static void print_stream(const struct probe *probe)
{
    const AVCodecParameters *parameters = demux_parameters(probe->demux);
    const char *profile = avcodec_profile_name(parameters->codec_id, parameters->profile);
    const double seconds = seconds_measured(probe);
    printf("stream         %s%s%s\n", demux_describe(probe->demux), profile ? ", profile " : "",
           profile ? profile : "");
    printf("picture        %dx%d\n", probe->width, probe->height);
    if (seconds > 0)
        printf("bit rate       %.2f Mbit/s, %.4g pictures/s\n",
               (double)probe->bytes * 8 / 1e6 / seconds, rate_of(probe));
    if (probe->key_distance_ns > 0)
        printf("keyframes      every %.3g s\n", (double)probe->key_distance_ns / 1e9);
    else
        printf("keyframes      %s\n", probe->keyframes ? "one in this time" : "none in this time");
    if (probe->b_frames > 0)
        printf("B-frames       up to %d in a row\n", probe->b_frames);
    else
        puts("B-frames       none");
}

static void print_network(const struct probe *probe)
{
    struct demux_network network;
    demux_network(probe->demux, &network);
    if (network.transport) {
        printf("packets        %llu, %llu lost, %llu late, %llu foreign\n",
               (unsigned long long)network.packets, (unsigned long long)network.lost,
               (unsigned long long)network.late, (unsigned long long)network.foreign);
        printf("arrival        packets of a picture within %.1f ms; it ends by %s\n",
               (double)network.arrival_ns / 1e6, network.picture_end);
    }
    if (demux_is_live(probe->camera.url))
        printf("clock          %s\n", probe->clock ? "the camera's, by sender reports"
                                                   : "none came: time of arrival instead");
}

static void print_decoding(const struct probe *probe)
{
    const double each_ns = probe->pictures ? (double)probe->spent_ns / (double)probe->pictures : 0;
    printf("decoder        %s: %.2f ms of one core a picture, %.1f %% of a core at this rate\n",
           decoder_describe(probe->decoder), each_ns / 1e6, each_ns / 1e7 * rate_of(probe));
    printf("pictures       %lld, %lld damaged or lost; the first %.0f ms after connecting began\n",
           (long long)probe->pictures, (long long)probe->damaged,
           (double)(probe->shown_ns - probe->begun_ns) / 1e6);
}

// What a password is replaced by reads as a variable, which is where it belongs.
static void print_lines(const struct probe *probe)
{
    char url[1024];
    struct demux_network network;
    demux_network(probe->demux, &network);
    config_url_redacted(probe->camera.url, url, sizeof url);
    const char *hidden = strstr(url, "***");
    puts("\ncameras:\n  camera:");
    if (hidden)
        printf("    # both from the environment, or from credentials of the service\n"
               "    url: %.*s${CAMERA_USER}:${CAMERA_PASSWORD}%s\n",
               (int)(hidden - url), url, hidden + 3);
    else
        printf("    url: %s\n", url);
    if (network.transport && strcmp(network.transport, "tcp") != 0)
        printf("    transport: %s\n", network.transport);
    if (probe->width > 1920 || probe->height > 1080)
        printf("    picture: %dx%d\n", probe->width, probe->height);
    puts("    outputs:\n"
         "      detector:\n"
         "        size: 640x640\n"
         "        sink: unix:/run/framed/camera-detector.sock");
}

static int probe_url(const struct probe_options *options)
{
    struct probe *probe = calloc(1, sizeof *probe);
    char why[DEMUX_WHY_MAX] = "", redacted[512];
    if (!probe) {
        fprintf(stderr, "framed probe: %s\n", strerror(ENOMEM));
        return EXIT_RUNTIME;
    }
    int rc = open_probe(probe, options->url, why, sizeof why);
    if (rc == 0)
        rc = measure(probe, options->seconds);
    if (rc == 0 && probe->pictures == 0)
        rc = -ENODATA;
    if (rc == 0) {
        print_stream(probe);
        print_network(probe);
        print_decoding(probe);
        print_lines(probe);
    } else {
        const char *said = probe->demux ? demux_why(probe->demux) : why;
        if (*said)
            fprintf(stderr, "framed probe: %s\n", said);
        else
            fprintf(stderr, "framed probe: %s: %s\n",
                    config_url_redacted(options->url, redacted, sizeof redacted),
                    rc == -ENODATA   ? "it ends without a picture"
                    : rc == -ENOTSUP ? "no decoder for this stream"
                                     : strerror(-rc));
    }
    close_probe(probe);
    free(probe);
    return rc == 0 ? EXIT_OK : EXIT_RUNTIME;
}

// --- the command line

static void usage(FILE *to)
{
    fputs("usage: framed probe URL [OPTION]...\n"
          "Plays a camera or a file for some seconds, and prints what it sends, what decodes it\n"
          "here and at what cost, and the lines of a configuration for it.\n\n"
          "  --seconds N         how long to measure (3)\n",
          to);
}

static int take(void *opaque, int option, const char *text)
{
    struct probe_options *options = opaque;
    char *end;
    (void)option;
    options->seconds = strtod(text, &end);
    if (*end || end == text || !(options->seconds >= 0.1 && options->seconds <= SECONDS_MAX))
        return command_line_refuse("framed probe", "--seconds", "takes a number from 0.1 to 3600");
    return EXIT_OK;
}

static int take_url(void *opaque, const char *text)
{
    struct probe_options *options = opaque;
    if (options->url)
        return command_line_refuse("framed probe", text, "takes no further argument");
    options->url = text;
    return EXIT_OK;
}

int probe_main(int argc, char **argv)
{
    static const struct option known[] = {
        {"seconds", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    static const struct command_line line = {"framed probe", ":h", known, usage, take, take_url};
    struct probe_options options = {.seconds = SECONDS};
    bool help = false;
    const int code = command_line_read(&line, argc, argv, &options, &help);
    if (code != EXIT_OK || help)
        return code;
    if (!options.url || config_url_kind(options.url) == URL_NONE) {
        fputs("framed probe: names no input (rtsp://, rtsps://, tcp://, unix:, pipe: or a file)\n",
              stderr);
        return EXIT_USAGE;
    }
    log_open(LOG_LEVEL_WARNING);
    libav_log_open();
    return probe_url(&options);
}
