#include "tests/bench/bench.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/process.h"
#include "daemon/cli/commands.h"
#include "daemon/source/libav_log.h"
#include "tests/bench/alone.h"

static const double ALONE_S = 5;

// --- the machine

static void describe_cpu(struct box *box, int workers)
{
    char line[256], model[160] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %159[^\n]", model) == 1)
            break;
    if (file)
        fclose(file);
    snprintf(box->cpu, sizeof box->cpu, "%s, %d processor%s", model, workers,
             workers == 1 ? "" : "s");
}

// Reads the version of the NVIDIA kernel module, or "".
static void read_driver_version(char version[64])
{
    char line[256];
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    *version = '\0';
    if (file && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, "Module");
        if (at)
            sscanf(at, "Module%*[ forx86_4-]%63s", version);
    }
    if (file)
        fclose(file);
}

static void describe_gpu(struct box *box, const struct bench *bench)
{
    char version[64] = "";
    if (bench->device)
        read_driver_version(version);
    snprintf(box->gpu, sizeof box->gpu, "%.250s%s%s",
             bench->device ? bench->driver->describe(bench->device) : "none, or none used",
             *version ? ", kernel module " : "", version);
}

// --- opening

static int open_device(struct bench *bench)
{
    int rc = -ENODEV;
    if (bench->options.backend == BACKEND_CPU)
        return 0;
#ifdef FRAMED_CUDA
    bench->cuda = &cuda_backend;
    bench->driver = &cuda_measure;
    rc = bench->driver->open(&bench->device, 0);
#endif
    if (rc < 0 && bench->options.backend == BACKEND_CUDA) {
        fprintf(stderr, "framed-bench: --backend cuda: %s\n", strerror(-rc));
        return rc;
    }
    return 0;
}

// Opens before any measurement, without emptying: the old drawing stays until there is a new one.
static int open_drawing(struct bench *bench)
{
    const char *path = bench->options.svg;
    if (path && !(bench->drawing = fopen(path, "ae"))) {
        fprintf(stderr, "framed-bench: --svg: %s: %s\n", path, strerror(errno));
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

static int open_bench(struct bench *bench)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    bench->workers = processors > 0 ? (int)processors : 1;
    bench->cpu = bench->options.backend != BACKEND_CUDA;
    int rc = open_drawing(bench);
    if (rc != EXIT_OK)
        return rc;
    rc = open_device(bench);
    if (rc < 0)
        return EXIT_NO_DEVICE;
    rc = footage_open(&bench->footage, bench->options.clip);
    if (rc < 0)
        fprintf(stderr, "framed-bench: %s\n", bench->footage.describe);
    return rc < 0 ? EXIT_RUNTIME : EXIT_OK;
}

static void close_bench(struct bench *bench)
{
    footage_close(&bench->footage);
    report_close(&bench->report);
    if (bench->drawing)
        fclose(bench->drawing);
    if (bench->driver)
        bench->driver->close(bench->device);
}

// --- running

static const struct {
    const char *name;
    bench_group *run;
} groups[ROWS] = {
    [ROWS_COPIES] = {"copies", bench_copies}, [ROWS_YUV] = {"yuv", bench_yuv},
    [ROWS_WARP] = {"warp", bench_warp},       [ROWS_TILES] = {"tiles", bench_tiles},
    [ROWS_READY] = {"ready", bench_ready},    [ROWS_CAMERAS] = {"cameras", bench_cameras},
    [ROWS_LIVE] = {"live", bench_live},       [ROWS_TRY] = {"try", bench_try},
    [ROWS_FFMPEG] = {"ffmpeg", bench_ffmpeg},
};

// Runs the copies rows, hidden, for the device limits that the yuv and warp rows need.
static bool wanted(const struct bench *bench, int i)
{
    return bench->options.rows[i] ||
           (i == ROWS_COPIES && bench->device &&
            (bench->options.rows[ROWS_YUV] || bench->options.rows[ROWS_WARP]));
}

static int run_groups(struct bench *bench)
{
    int code = EXIT_OK;
    for (int i = 0; i < ROWS; i++) {
        int rc = wanted(bench, i) ? groups[i].run(bench) : 0;
        if (rc < 0) {
            report_note(&bench->report, "%s: %s", groups[i].name,
                        rc == -EINTR ? "stopped by a signal" : strerror(-rc));
            code = EXIT_RUNTIME;
        }
        if (rc == -EINTR)
            break;
    }
    return code;
}

static int draw(struct bench *bench)
{
    if (!bench->drawing)
        return EXIT_OK;
    int rc = -ENODATA;
    if (bench->curve.n > 0) {
        (void)!ftruncate(fileno(bench->drawing), 0); // fails on a pipe, which has no length
        rc = curve_write(bench->drawing, &bench->curve);
    }
    if (rc < 0)
        report_note(&bench->report, "%s: %s", bench->options.svg, strerror(-rc));
    return rc < 0 ? EXIT_RUNTIME : EXIT_OK;
}

static int run(struct bench *bench)
{
    struct box box;
    describe_cpu(&box, bench->workers);
    describe_gpu(&box, bench);
    snprintf(box.data, sizeof box.data, "%s", bench->footage.describe);
    report_open(&bench->report, stdout, bench->options.json);
    report_head(&bench->report, &box);
    if (!bench->device)
        report_note(&bench->report, "no GPU: these are the rows of the CPU");
    int code = run_groups(bench);
    const int drawn = draw(bench);
    report_end(&bench->report, &box);
    return code == EXIT_OK ? drawn : code;
}

static int measure(int argc, char **argv)
{
    struct bench bench = {0};
    bool help;
    int code = bench_options_parse(&bench.options, argc, argv, &help);
    if (code != EXIT_OK || help)
        return code;
    code = try_check(&bench.options);
    if (code == EXIT_OK)
        code = check_cpu("framed-bench");
    if (code != EXIT_OK)
        return code;
    interrupt_block();
    const double seconds = bench.options.seconds;
    if (bench.options.decode_alone)
        return alone_run(bench.options.decode_alone, seconds > 0 ? seconds : ALONE_S);
    log_open(LOG_LEVEL_ERROR);
    libav_log_open();
    code = open_bench(&bench);
    if (code == EXIT_OK)
        code = run(&bench);
    close_bench(&bench);
    return code;
}

int main(int argc, char **argv)
{
    descriptors_record();
    descriptors_fill_standard();
    return command_line_finish("framed-bench", measure(argc, argv));
}
