// `bench-latency`: time from the last packet of a picture until a program has it, and from a
// connection to its first picture. framed, GStreamer and the ffmpeg program take turns at the same
// camera and deliver the same pixels. No program's own figures are used: only the server's times
// and this program's clock count, and each picture carries its number.
//
// The readers' work differs slightly. GStreamer's decoder shares a live picture among as many
// threads as there are processors; so does framed's, up to four, for a single camera. GStreamer's
// scaler uses two threads, framed's kernel all processors.
//
// The floor is libavcodec alone (decoding.h): it neither receives nor scales.
//
// A busy machine makes the figures worthless. `chrt -r 2` in front of the program gives it and its
// children priority over everything that is not real-time, as on an idle machine.
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/interrupt.h"
#include "tests/bench/latency/decoding.h"
#include "tests/bench/latency/trial.h"
#include "tests/bench/sample.h"

enum { ROUNDS_MAX = 32, KINDS = 5 };

static const struct camera_row {
    const char *clip, *what;
    int width, height;
    bool udp, socket; // socket: also measures framed's unix socket
    double slower;    // factor on --seconds: a slow camera gives few pictures
    double warm_up_s; // before the window: readers may learn a stream's order from its first groups
} rows[] = {
    {"h264-360p", "360p 15/s H.264", 640, 360, false, true, 1, 0.5},
    {"h264-360p", "360p 15/s H.264", 640, 360, true, false, 1, 0.5},
    {"h264-1080p", "1080p 25/s H.264", 1920, 1080, false, true, 1, 0.5},
    {"h264-1080p", "1080p 25/s H.264", 1920, 1080, true, false, 1, 0.5},
    {"h264-2160p", "2160p 5/s H.264", 3840, 2160, false, true, 2, 0.5},
    {"h264-2160p", "2160p 5/s H.264", 3840, 2160, true, false, 2, 0.5},
    {"h265-360p", "360p 15/s H.265", 640, 360, false, false, 1, 0.5},
    {"h265-360p", "360p 15/s H.265", 640, 360, true, false, 1, 0.5},
    {"h265-1080p", "1080p 25/s H.265", 1920, 1080, false, false, 1, 0.5},
    {"h265-1080p", "1080p 25/s H.265", 1920, 1080, true, false, 1, 0.5},
    {"h265-2160p", "2160p 5/s H.265", 3840, 2160, false, false, 2, 0.5},
    {"h265-2160p", "2160p 5/s H.265", 3840, 2160, true, false, 2, 0.5},
    {"h264-360p-b", "360p 25/s, 2 B-frames", 640, 360, false, false, 1, 2.5},
    {"h264-360p-claim", "360p 25/s, claims reorder", 640, 360, false, false, 1, 2.5},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct reader_kind *const kinds[KINDS] = {
    &reader_framed_ring, &reader_framed_socket, &reader_gstreamer, &reader_ffmpeg,
    &reader_framed_ring, // again, with --also's keys
};
enum { RING, SOCKET, GSTREAMER, FFMPEG, ALSO };

struct figures { // one reader on one row
    struct trial trial;
    double p50[ROUNDS_MAX], first_ms[ROUNDS_MAX]; // per round
    int rounds;
};

struct latency_bench {
    const char *clips, *framed, *gstreamer, *ffmpeg, *also, *only;
    bool decoded;
    double seconds, link;
    int rounds;
    char folder[64];
    struct figures figures[ROWS][KINDS];
    double latest_ms[ROWS]; // maximum delay of the server
    double floor_ms[ROWS];  // p50 of decoding alone; NAN: not measured
};

// --- measuring

static const char *program_of(const struct latency_bench *bench, int kind)
{
    return kind == GSTREAMER ? bench->gstreamer : kind == FFMPEG ? bench->ffmpeg : bench->framed;
}

static bool wanted(const struct latency_bench *bench, int row, int kind)
{
    char name[64];
    snprintf(name, sizeof name, "%s %s", rows[row].what, rows[row].udp ? "UDP" : "TCP");
    return (!bench->only || strstr(name, bench->only)) && (kind != SOCKET || rows[row].socket) &&
           (kind != ALSO || *bench->also) && *program_of(bench, kind);
}

static int measure_once(struct latency_bench *bench, int row, int kind,
                        const struct rtsp_server *server, const struct clip_units *clip)
{
    char url[64];
    struct figures *figures = &bench->figures[row][kind];
    const size_t before = figures->trial.n;
    rtsp_server_url(server, 0, url);
    const struct reader_want want = {.url = url,
                                     .codec = clip->codec,
                                     .udp = rows[row].udp,
                                     .decoded = bench->decoded,
                                     .width = rows[row].width,
                                     .height = rows[row].height,
                                     .keys = kind == ALSO ? bench->also : "",
                                     .program = program_of(bench, kind),
                                     .folder = bench->folder};
    const struct trial_plan plan = {.server = server,
                                    .pictures = clip->n,
                                    .warm_up_s = rows[row].warm_up_s,
                                    .seconds = bench->seconds * rows[row].slower};
    int rc = trial_run(&figures->trial, kinds[kind], &want, &plan);
    if (rc == -EINTR)
        return rc;
    if (rc < 0 || figures->trial.n == before)
        return 0; // already reported; continue with the others
    const size_t n = figures->trial.n - before;
    double *own = malloc(n * sizeof *own);
    if (!own)
        return -ENOMEM;
    memcpy(own, figures->trial.ms + before, n * sizeof *own);
    figures->p50[figures->rounds] = sample_median(own, n);
    figures->first_ms[figures->rounds++] = figures->trial.first_ms;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "%s %s, %s: p50 %.2f ms, first %.1f ms\n", rows[row].what,
                rows[row].udp ? "UDP" : "TCP", kinds[kind]->name, figures->p50[figures->rounds - 1],
                figures->trial.first_ms);
    free(own);
    return 0;
}

// Measures libavcodec alone, after the first second of the clip.
static int measure_floor(struct latency_bench *bench, int row, const struct clip_units *clip)
{
    const size_t second = (size_t)(1e9 / (double)clip_units_ns(clip, 1));
    const size_t n = second + (size_t)((double)second * bench->seconds * rows[row].slower);
    double *ms = malloc(n * sizeof *ms);
    const int rc = ms ? decoding_measure(ms, n, clip) : -ENOMEM;
    bench->floor_ms[row] = rc < 0 ? NAN : sample_median(ms + second, n - second);
    free(ms);
    return rc;
}

// Measures the floor, and all readers in turn, once per round.
static int measure_row(struct latency_bench *bench, int row)
{
    char path[4096], why[200];
    struct clip_units clip;
    struct rtsp_server *server = NULL;
    snprintf(path, sizeof path, "%s/%s.mp4", bench->clips, rows[row].clip);
    int rc = clip_units_open(&clip, path, why, sizeof why);
    if (rc < 0) {
        fprintf(stderr, "bench-latency: %s\n", why);
        return rc;
    }
    rc = measure_floor(bench, row, &clip);
    if (rc == 0)
        rc = rtsp_server_open(&server, &(struct rtsp_server_options){
                                           .clip = &clip, .cameras = 1, .link = bench->link});
    for (int round = 0; rc == 0 && round < bench->rounds; round++)
        for (int kind = 0; rc == 0 && kind < KINDS; kind++)
            if (wanted(bench, row, kind))
                rc = measure_once(bench, row, kind, server, &clip);
    if (server)
        bench->latest_ms[row] = rtsp_server_counts(server).latest_ms;
    rtsp_server_close(server);
    clip_units_close(&clip);
    return rc;
}

// --- tables

static const char *name_of(int kind)
{
    return kind == ALSO ? "framed, --also" : kinds[kind]->name;
}

static double percentile(struct figures *figures, double percent)
{
    return figures->rounds ? sample_percentile(figures->trial.ms, figures->trial.n, percent) : NAN;
}

static void print_row_name(int row)
{
    printf("%-27s %s", rows[row].what, rows[row].udp ? "UDP" : "TCP");
}

static void print_ratio(double value, double limit)
{
    if (isnan(value) || isnan(limit) || limit <= 0)
        printf(" %6s", "-");
    else
        printf(" %5.2fx", value / limit);
}

static bool measured(const struct latency_bench *bench, int kind)
{
    int rounds = 0;
    for (int row = 0; row < ROWS; row++)
        rounds += bench->figures[row][kind].rounds;
    return rounds > 0;
}

static void print_head(const struct latency_bench *bench, const char *title, const char *columns)
{
    printf("\n%s\n%-31s", title, "");
    for (int kind = 0; kind < KINDS; kind++)
        if (measured(bench, kind))
            printf(" | %-25s", name_of(kind));
    printf(" | %s\n", columns);
}

static void print_latencies(struct latency_bench *bench)
{
    print_head(
        bench,
        "sent to read, ms: p50 p99 (p50 of the best and the worst round); from 0.5 s after the "
        "first picture on, of 25/s at 360p from 2.5 s on",
        "framed / GStreamer p50 p99, / ffmpeg p50; floor p50, framed beyond 1.15 x that; server "
        "behind, ms");
    for (int row = 0; row < ROWS; row++) {
        struct figures *figures = bench->figures[row];
        if (!wanted(bench, row, RING))
            continue;
        print_row_name(row);
        for (int kind = 0; kind < KINDS; kind++) {
            struct figures *own = &figures[kind];
            if (own->rounds)
                printf(" | %6.2f %7.2f (%.1f-%.1f)%*s", percentile(own, 50), percentile(own, 99),
                       sample_percentile(own->p50, (size_t)own->rounds, 0),
                       sample_percentile(own->p50, (size_t)own->rounds, 100), 1, "");
            else if (measured(bench, kind))
                printf(" | %-25s", "-");
        }
        printf(" |");
        print_ratio(percentile(&figures[RING], 50), percentile(&figures[GSTREAMER], 50));
        print_ratio(percentile(&figures[RING], 99), percentile(&figures[GSTREAMER], 99));
        print_ratio(percentile(&figures[RING], 50), percentile(&figures[FFMPEG], 50));
        printf("  %6.2f %+6.2f", bench->floor_ms[row],
               percentile(&figures[RING], 50) - 1.15 * bench->floor_ms[row]);
        printf("  %.1f\n", bench->latest_ms[row]);
    }
}

static void print_firsts(struct latency_bench *bench)
{
    print_head(bench, "connection to first picture read, ms: median (least-most)",
               "framed / GStreamer, / ffmpeg");
    for (int row = 0; row < ROWS; row++) {
        double median[KINDS];
        if (!wanted(bench, row, RING))
            continue;
        print_row_name(row);
        for (int kind = 0; kind < KINDS; kind++) {
            struct figures *own = &bench->figures[row][kind];
            const size_t n = (size_t)own->rounds;
            median[kind] = n ? sample_median(own->first_ms, n) : NAN;
            if (n)
                printf(" | %7.1f (%.1f-%.1f)%*s", median[kind],
                       sample_percentile(own->first_ms, n, 0),
                       sample_percentile(own->first_ms, n, 100), 4, "");
            else if (measured(bench, kind))
                printf(" | %-25s", "-");
        }
        printf(" |");
        print_ratio(median[RING], median[GSTREAMER]);
        print_ratio(median[RING], median[FFMPEG]);
        printf("\n");
    }
}

// Prints conditions that make the figures doubtful.
static void print_doubts(const struct latency_bench *bench)
{
    for (int row = 0; row < ROWS; row++)
        for (int kind = 0; kind < KINDS; kind++) {
            const struct trial *trial = &bench->figures[row][kind].trial;
            if (trial->unknown || trial->missing || (trial->n && trial->first != 0))
                printf("%s %s, %s: %zu pictures measured, %d without a number, %d missing, "
                       "first number %d\n",
                       rows[row].what, rows[row].udp ? "UDP" : "TCP", name_of(kind), trial->n,
                       trial->unknown, trial->missing, trial->first);
        }
}

// --- the command line

static void usage(FILE *to)
{
    fputs(
        "usage: bench-latency --clips FOLDER --framed PROGRAM [OPTION...]\n\n"
        "  --clips FOLDER       of tests/bench/latency/clips\n"
        "  --framed PROGRAM     the daemon\n"
        "  --gstreamer PROGRAM  bench-gstreamer; without it there are no rows of GStreamer\n"
        "  --ffmpeg PROGRAM     the ffmpeg program; without it there are no rows of it\n"
        "  --also KEYS          framed once more, with these keys of its camera: 'demuxer: rtsp'\n"
        "  --only TEXT          only rows with this in their name: 'H.265 UDP', '1080p'\n"
        "  --seconds S          of each window (1.5; twice that at 2160p)\n"
        "  --rounds N           of all readers in turn (2)\n"
        "  --decoded            planes as they are decoded; else 640x640 RGB, stretched\n"
        "  --link BITS          bits/s of the camera's network port (100e6)\n",
        to);
}

static int parse(struct latency_bench *bench, int argc, char **argv)
{
    enum { CLIPS = 256, FRAMED, GST, FF, AND, ONLY, SECONDS, TIMES, DECODED, LINK };
    static const struct option options[] = {
        {"clips", required_argument, NULL, CLIPS},
        {"framed", required_argument, NULL, FRAMED},
        {"gstreamer", required_argument, NULL, GST},
        {"ffmpeg", required_argument, NULL, FF},
        {"also", required_argument, NULL, AND},
        {"only", required_argument, NULL, ONLY},
        {"seconds", required_argument, NULL, SECONDS},
        {"rounds", required_argument, NULL, TIMES},
        {"decoded", no_argument, NULL, DECODED},
        {"link", required_argument, NULL, LINK},
        {0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case CLIPS:
            bench->clips = optarg;
            break;
        case FRAMED:
            bench->framed = optarg;
            break;
        case GST:
            bench->gstreamer = optarg;
            break;
        case FF:
            bench->ffmpeg = optarg;
            break;
        case AND:
            bench->also = optarg;
            break;
        case ONLY:
            bench->only = optarg;
            break;
        case SECONDS:
            bench->seconds = atof(optarg);
            break;
        case TIMES:
            bench->rounds = atoi(optarg);
            break;
        case DECODED:
            bench->decoded = true;
            break;
        case LINK:
            bench->link = atof(optarg);
            break;
        default:
            return -EINVAL;
        }
    }
    const bool good = optind == argc && bench->clips && *bench->framed && bench->seconds > 0 &&
                      bench->rounds > 0 && bench->rounds <= ROUNDS_MAX && bench->link >= 0;
    return good ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
    struct latency_bench *bench = calloc(1, sizeof *bench);
    int rc = bench ? 0 : -ENOMEM;
    if (rc == 0) {
        *bench = (struct latency_bench){.framed = "",
                                        .gstreamer = "",
                                        .ffmpeg = "",
                                        .also = "",
                                        .seconds = 1.5,
                                        .rounds = 2,
                                        .folder = "/tmp/bench-latency-XXXXXX"};
        rc = parse(bench, argc, argv);
    }
    if (rc < 0) {
        usage(stderr);
        free(bench);
        return 2;
    }
    interrupt_block();
    rc = mkdtemp(bench->folder) ? 0 : -errno;
    for (int row = 0; rc == 0 && row < ROWS; row++)
        if (wanted(bench, row, RING))
            rc = measure_row(bench, row);
    print_latencies(bench);
    print_firsts(bench);
    print_doubts(bench);
    for (int i = 0; i < ROWS * KINDS; i++)
        free(bench->figures[i / KINDS][i % KINDS].trial.ms);
    rmdir(bench->folder);
    free(bench);
    return rc < 0;
}
