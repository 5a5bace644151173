#include "tests/bench/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/schema.h"
#include "daemon/base/process.h"

enum { CAMERAS_MOST = 1024 };
static const double SECONDS_MOST = 3600;

static const char *const rows_names[ROWS] = {
    [ROWS_COPIES] = "copies", [ROWS_YUV] = "yuv",     [ROWS_WARP] = "warp",
    [ROWS_TILES] = "tiles",   [ROWS_READY] = "ready", [ROWS_CAMERAS] = "cameras",
    [ROWS_LIVE] = "live",     [ROWS_TRY] = "try",     [ROWS_FFMPEG] = "ffmpeg",
};

static void usage(FILE *to)
{
    fputs(
        "usage: framed-bench [OPTION...]\n\n"
        "Measures this box. Every row has the value, a limit measured in the same run and the "
        "ratio.\n\n"
        "  --json              print JSON instead of the table\n"
        "  --svg FILE          draw the time of an 8K frame against the number of streams\n"
        "  --clip FILE         real pictures for every row, and the clip of the camera rows\n"
        "  --cameras N[,N...]  the whole daemon with N cameras at full speed, and decoding alone\n"
        "  --dtype TYPE[,...]  elements of the cameras' tensors: u8 (default), s8, f16, f32\n"
        "  --live              N cameras at the clip's own pace\n"
        "  --rtsp WAY          live and --try: the cameras come over RTSP, by tcp or udp, from a "
        "server\n"
        "                      in this program\n"
        "  --withhold N        with --rtsp: the server keeps back one of N packets\n"
        "  --join M            live: and again, with M of them starting while the others run\n"
        "  --decoders N        threads inside NVDEC at once, as cuda.decoders\n"
        "  --seconds S         length of each window (5 at full speed, 60 live; --try: 5, 10 "
        "live)\n"
        "  --settle S          live: wait so long when all have delivered, before the window (0)\n"
        "  --try KEY=V[,V...]  compare values of a key of the configuration: the cameras with "
        "every\n"
        "                      combination, side by side (--try cuda.streams=auto,4 --try "
        "slots=4,8);\n"
        "                      copy=off,on: with their packets recorded to files, too\n"
        "  --runs N            runs of each combination (5)\n"
        "  --ffmpeg PATH       the ffmpeg program at the cameras' job\n"
        "  --rows NAME[,...]   only these: copies, yuv, warp, tiles, ready, cameras, live, try,\n"
        "                      ffmpeg\n"
        "  --backend WHICH     auto (default): both where there is a GPU; cpu; cuda\n"
        "  --framed PATH       the framed of the camera rows (the one beside framed-bench)\n"
        "  --decode-alone FILE decode the cameras of a configuration and do nothing with them:\n"
        "                      what the camera rows compare the daemon with\n",
        to);
}

static int refuse(const char *option, const char *what)
{
    return command_line_refuse("framed-bench", option, what);
}

// Calls `take` with each word of a comma-separated list. Returns false if it refuses a word, or if
// one is empty or too long.
typedef bool take_fn(struct bench_options *, const char *word);

static bool each_word(struct bench_options *options, const char *list, take_fn *take)
{
    char word[32];
    for (;;) {
        const size_t n = strcspn(list, ",");
        if (n == 0 || n >= sizeof word)
            return false;
        memcpy(word, list, n);
        word[n] = '\0';
        if (!take(options, word))
            return false;
        if (list[n] == '\0')
            return true;
        list += n + 1;
    }
}

static bool number(const char *text, double low, double high, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return end != text && *end == '\0' && *ret >= low && *ret <= high;
}

static bool count(const char *text, int *ret)
{
    double value;
    if (!number(text, 1, CAMERAS_MOST, &value) || value != (int)value)
        return false;
    *ret = (int)value;
    return true;
}

static bool take_cameras(struct bench_options *options, const char *word)
{
    return options->n_cameras < COUNTS_MAX && count(word, &options->cameras[options->n_cameras++]);
}

static bool take_dtype(struct bench_options *options, const char *word)
{
    static const char *const names[] = {"u8", "s8", "f16", "f32"};
    for (int i = 0; i < 4 && options->n_dtypes < COUNTS_MAX; i++)
        if (strcmp(word, names[i]) == 0) {
            options->dtypes[options->n_dtypes++] = (enum dtype)i;
            return true;
        }
    return false;
}

static bool take_rows(struct bench_options *options, const char *word)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(word, rows_names[i]) == 0)
            return options->rows[i] = true;
    return false;
}

// A key of cameras or outputs without a section becomes a default.
static bool take_key(struct try *try, const char *text, size_t length)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";
    char first[sizeof try->key];
    if (length == 0 || length > 40 || strspn(text, allowed) < length || text[length - 1] == '.')
        return false;
    snprintf(first, sizeof first, "%.*s", (int)strcspn(text, ".="), text);
    const bool is_default = !table_find(&root_table, first) &&
                            (table_find(&camera_table, first) || table_find(&output_table, first));
    snprintf(try->key, sizeof try->key, "%s%.*s", is_default ? "defaults." : "", (int)length, text);
    return true;
}

static bool take_value(struct bench_options *options, const char *word)
{
    struct try *try = &options->tries[options->n_tries];
    if (try->n == TRY_VALUES_MAX)
        return false;
    if (strcmp(try->key, "copy") == 0 && strcmp(word, "off") != 0 && strcmp(word, "on") != 0)
        return false;
    snprintf(try->value[try->n++], sizeof try->value[0], "%s", word);
    return true;
}

static int take_try(struct bench_options *options, const char *text)
{
    static const char form[] = "KEY=VALUE[,VALUE...], as cuda.streams=auto,4 or decode_threads=1,2";
    const size_t length = strcspn(text, "=");
    struct try *try = &options->tries[options->n_tries];
    int combinations = 1;
    if (options->n_tries == TRIES_MAX)
        return refuse("--try", "up to 8 keys");
    if (text[length] != '=' || !take_key(try, text, length) ||
        !each_word(options, text + length + 1, take_value))
        return refuse("--try", form);
    for (int i = 0; i < options->n_tries; i++)
        if (strcmp(options->tries[i].key, try->key) == 0)
            return refuse("--try", "each key once");
    options->n_tries++;
    for (int i = 0; i < options->n_tries; i++)
        combinations *= options->tries[i].n;
    return combinations <= TRY_COMBINATIONS_MAX ? EXIT_OK
                                                : refuse("--try", "up to 64 combinations in all");
}

static bool take_rtsp(struct bench_options *options, const char *word)
{
    options->udp = strcmp(word, "udp") == 0;
    options->rtsp = options->udp || strcmp(word, "tcp") == 0;
    return options->rtsp;
}

static bool take_backend(struct bench_options *options, const char *word)
{
    static const char *const names[] = {"auto", "cpu", "cuda"};
    for (int i = 0; i < 3; i++)
        if (strcmp(word, names[i]) == 0) {
            options->backend = (enum backend_kind)i;
            return true;
        }
    return false;
}

enum {
    JSON = 256,
    SVG,
    CLIP,
    CAMERAS,
    DTYPE,
    LIVE,
    RTSP,
    WITHHOLD,
    JOIN,
    DECODERS,
    SECONDS,
    SETTLE,
    FFMPEG,
    LIST,
    BACKEND,
    FRAMED,
    TRY,
    RUNS,
    ALONE
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"json", no_argument, NULL, JSON},
    {"svg", required_argument, NULL, SVG},
    {"clip", required_argument, NULL, CLIP},
    {"cameras", required_argument, NULL, CAMERAS},
    {"dtype", required_argument, NULL, DTYPE},
    {"live", no_argument, NULL, LIVE},
    {"rtsp", required_argument, NULL, RTSP},
    {"withhold", required_argument, NULL, WITHHOLD},
    {"join", required_argument, NULL, JOIN},
    {"decoders", required_argument, NULL, DECODERS},
    {"seconds", required_argument, NULL, SECONDS},
    {"settle", required_argument, NULL, SETTLE},
    {"ffmpeg", required_argument, NULL, FFMPEG},
    {"rows", required_argument, NULL, LIST},
    {"backend", required_argument, NULL, BACKEND},
    {"framed", required_argument, NULL, FRAMED},
    {"try", required_argument, NULL, TRY},
    {"runs", required_argument, NULL, RUNS},
    {"decode-alone", required_argument, NULL, ALONE},
    {0},
};

static int take(void *opaque, int option, const char *text)
{
    struct bench_options *options = opaque;
    switch (option) {
    case JSON:
        options->json = true;
        return EXIT_OK;
    case SVG:
        options->svg = text;
        return EXIT_OK;
    case CLIP:
        options->clip = text;
        return EXIT_OK;
    case FFMPEG:
        options->ffmpeg = text;
        return EXIT_OK;
    case FRAMED:
        snprintf(options->framed, sizeof options->framed, "%s", text);
        return EXIT_OK;
    case ALONE:
        options->decode_alone = text;
        return EXIT_OK;
    case LIVE:
        options->live = true;
        return EXIT_OK;
    case CAMERAS:
        return each_word(options, text, take_cameras)
                   ? EXIT_OK
                   : refuse("--cameras", "up to 16 numbers of 1 to 1024, separated by commas");
    case DTYPE:
        return each_word(options, text, take_dtype) ? EXIT_OK
                                                    : refuse("--dtype", "u8, s8, f16 or f32");
    case RTSP:
        return take_rtsp(options, text) ? EXIT_OK : refuse("--rtsp", "tcp or udp");
    case WITHHOLD:
        return count(text, &options->withhold) && options->withhold > 1
                   ? EXIT_OK
                   : refuse("--withhold", "a number of 2 to 1024");
    case JOIN:
        return count(text, &options->join) ? EXIT_OK : refuse("--join", "a number of 1 to 1024");
    case DECODERS:
        return count(text, &options->decoders) && options->decoders <= 64
                   ? EXIT_OK
                   : refuse("--decoders", "a number of 1 to 64");
    case SECONDS:
        return number(text, 0.1, SECONDS_MOST, &options->seconds)
                   ? EXIT_OK
                   : refuse("--seconds", "0.1 to 3600");
    case SETTLE:
        return number(text, 0, SECONDS_MOST, &options->settle) ? EXIT_OK
                                                               : refuse("--settle", "0 to 3600");
    case TRY:
        return take_try(options, text);
    case RUNS:
        return count(text, &options->runs) && options->runs <= TRY_RUNS_MAX
                   ? EXIT_OK
                   : refuse("--runs", "a number of 1 to 32");
    case LIST:
        return each_word(options, text, take_rows)
                   ? EXIT_OK
                   : refuse("--rows",
                            "copies, yuv, warp, tiles, ready, cameras, live, try or ffmpeg");
    case BACKEND:
        return take_backend(options, text) ? EXIT_OK : refuse("--backend", "auto, cpu or cuda");
    default:
        return refuse("usage", "bad option");
    }
}

// Checks options that depend on each other, and the files to read.
static int judge(const struct bench_options *options)
{
    const bool *rows = options->rows;
    const bool cameras = rows[ROWS_CAMERAS] || rows[ROWS_LIVE] || rows[ROWS_TRY];
    if (cameras && !options->n_cameras)
        return refuse("--cameras", "is wanted by the cameras, live and try rows");
    if ((cameras || rows[ROWS_FFMPEG]) && !options->clip)
        return refuse("--clip", "is wanted by --cameras, --live, --try and --ffmpeg");
    if (rows[ROWS_FFMPEG] && !options->ffmpeg)
        return refuse("--ffmpeg", "is wanted by the ffmpeg rows");
    if (rows[ROWS_TRY] != (options->n_tries > 0))
        return refuse("--try",
                      rows[ROWS_TRY] ? "is wanted by the try rows" : "is left out by --rows");
    if (options->join && !rows[ROWS_LIVE])
        return refuse("--join", "is for --live");
    if (options->settle > 0 && !rows[ROWS_LIVE])
        return refuse("--settle", "is for --live");
    if (options->rtsp && !rows[ROWS_LIVE] && !rows[ROWS_TRY])
        return refuse("--rtsp", "is for --live and --try");
    if (options->rtsp && options->join)
        return refuse("--rtsp", "goes without --join");
    if (options->withhold && !options->rtsp)
        return refuse("--withhold", "is for --rtsp");
    for (int i = 0; i < options->n_cameras; i++)
        if (options->join >= options->cameras[i])
            return refuse("--join", "must be less than --cameras");
    if (options->svg && !options->rows[ROWS_YUV])
        return refuse("--svg", "draws the yuv rows: --rows leaves them out");
    if (options->clip && access(options->clip, R_OK) != 0)
        return refuse("--clip", "cannot be read");
    if (options->ffmpeg && access(options->ffmpeg, X_OK) != 0)
        return refuse("--ffmpeg", "is no program");
    if (cameras && access(options->framed, X_OK) != 0)
        return refuse("--framed", "is no program; the camera rows want one");
    return EXIT_OK;
}

// Without --rows: chooses the rows that need nothing and those the options request.
static void choose_rows(struct bench_options *options)
{
    for (int i = 0; i < ROWS; i++)
        if (options->rows[i])
            return;
    const bool tries = options->n_tries > 0;
    options->rows[ROWS_COPIES] = options->rows[ROWS_YUV] = options->rows[ROWS_WARP] = !tries;
    options->rows[ROWS_TILES] = options->rows[ROWS_READY] = !tries;
    options->rows[ROWS_CAMERAS] = options->n_cameras && !options->live && !tries;
    options->rows[ROWS_LIVE] = options->live && !tries;
    options->rows[ROWS_TRY] = tries;
    options->rows[ROWS_FFMPEG] = options->ffmpeg != NULL;
}

// Finds the framed next to this program.
static void find_framed(char *path, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", path, size - 1);
    path[n > 0 ? n : 0] = '\0';
    char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    snprintf(name, size - (size_t)(name - path), "framed");
}

static const struct command_line command_line = {
    .command = "framed-bench",
    .letters = ":h",
    .options = long_options,
    .usage = usage,
    .take = take,
};

int bench_options_parse(struct bench_options *options, int argc, char **argv, bool *help)
{
    *options = (struct bench_options){.runs = 5};
    find_framed(options->framed, sizeof options->framed);
    int code = command_line_read(&command_line, argc, argv, options, help);
    if (!options->n_dtypes)
        options->dtypes[options->n_dtypes++] = DTYPE_U8;
    choose_rows(options);
    return code == EXIT_OK && !*help ? judge(options) : code;
}
