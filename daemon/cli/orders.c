// The commands that make one request to the running daemon.
#include <libavutil/base64.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/types.h"
#include "daemon/base/process.h"
#include "daemon/cli/commands.h"
#include "daemon/service/views.h"

enum {
    RELOAD_S = 60, // a new configuration is fully opened before the reply
    ANSWER_S = 10,
};

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"socket", required_argument, NULL, 's'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static void print_options(FILE *to)
{
    fputs("  -c, --config FILE   the configuration that the daemon runs with (" DEFAULT_CONFIG
          "):\n"
          "                      a daemon that runs with another file refuses\n"
          "  --socket PATH       its control socket, where that is not what FILE says\n",
          to);
}

// `opaque` begins with a struct ask.
static int take_option(void *opaque, int option, const char *text)
{
    struct ask *ask = opaque;
    *(option == 'c' ? &ask->config : &ask->socket) = text;
    return EXIT_OK;
}

// --- framed reload

static void reload_usage(FILE *to)
{
    fputs("usage: framed reload [OPTION]...\n"
          "Makes the running daemon read its configuration again.\n\n"
          "  -c, --config FILE   the configuration that it runs with (" DEFAULT_CONFIG "):\n"
          "                      a daemon that runs with another file refuses\n"
          "  --socket PATH       its control socket, where that is not what FILE says\n",
          to);
}

static int reload(struct ask *ask)
{
    char request[CONTROL_LINE_MAX];
    int code = ask_request(ask, ask->command, request);
    return code == EXIT_OK ? ask_order(ask, request, RELOAD_S, "nothing has changed") : code;
}

int reload_main(int argc, char **argv)
{
    static const struct command_line line = {"framed reload", ":c:h",      options,
                                             reload_usage,    take_option, NULL};
    struct ask ask = {.command = "reload"};
    bool help;
    int code = command_line_read(&line, argc, argv, &ask, &help);
    if (code != EXIT_OK || help)
        return code;
    code = ask_find(&ask);
    return code == EXIT_OK ? reload(&ask) : code;
}

// --- framed pause, framed resume

struct pause {
    struct ask ask;
    const char *camera;
};

static void pause_usage(FILE *to)
{
    fputs("usage: framed pause [OPTION]... CAMERA\n"
          "Makes the running daemon close the camera until `framed resume`, over restarts too.\n\n",
          to);
    print_options(to);
}

static void resume_usage(FILE *to)
{
    fputs("usage: framed resume [OPTION]... CAMERA\n"
          "Makes the running daemon open a camera again that `framed pause` has closed.\n\n",
          to);
    print_options(to);
}

static int take_pause_argument(void *opaque, const char *text)
{
    struct pause *pause = opaque;
    char name[32];
    snprintf(name, sizeof name, "framed %s", pause->ask.command);
    if (pause->camera)
        return command_line_refuse(name, text, "takes no further argument");
    if (!*text || strpbrk(text, " \t\n"))
        return command_line_refuse(name, text, "is no name of a camera");
    pause->camera = text;
    return EXIT_OK;
}

static int order_pause(const char *command, void (*usage)(FILE *), int argc, char **argv)
{
    char name[32], word[CONTROL_LINE_MAX], request[CONTROL_LINE_MAX];
    const struct command_line line = {name,  ":c:h",      options,
                                      usage, take_option, take_pause_argument};
    struct pause pause = {.ask.command = command};
    bool help;
    snprintf(name, sizeof name, "framed %s", command);
    int code = command_line_read(&line, argc, argv, &pause, &help);
    if (code != EXIT_OK || help)
        return code;
    if (!pause.camera)
        return command_line_refuse(name, "CAMERA", "is missing");
    code = ask_find(&pause.ask);
    snprintf(word, sizeof word, "%s %.64s", command, pause.camera);
    if (code == EXIT_OK)
        code = ask_request(&pause.ask, word, request);
    return code == EXIT_OK ? ask_order(&pause.ask, request, RELOAD_S, "nothing has changed") : code;
}

int pause_main(int argc, char **argv)
{
    return order_pause("pause", pause_usage, argc, argv);
}

int resume_main(int argc, char **argv)
{
    return order_pause("resume", resume_usage, argc, argv);
}

// --- framed record

struct record {
    struct ask ask;
    const char *camera;
    double seconds; // 0: not given
};

static void record_usage(FILE *to)
{
    fputs("usage: framed record [OPTION]... CAMERA DURATION\n"
          "Makes the outputs of the camera that have `before` (kernel: copy) write a clip: it\n"
          "begins so long ago, and ends DURATION (30s, 5m) from now.\n\n",
          to);
    print_options(to);
}

static int take_record_argument(void *opaque, const char *text)
{
    struct record *record = opaque;
    if (!record->camera) {
        if (!*text || strpbrk(text, " \t\n"))
            return command_line_refuse("framed record", text, "is no name of a camera");
        record->camera = text;
        return EXIT_OK;
    }
    if (record->seconds > 0)
        return command_line_refuse("framed record", text, "takes no further argument");
    const char *wrong = quantity_read(text, duration_units, &record->seconds);
    if (wrong || record->seconds * 1000 < RECORD_MS_MIN || record->seconds * 1000 > RECORD_MS_MAX)
        return command_line_refuse("framed record", text,
                                   "is no duration from 1s to 24h (30s, 5m, 1h)");
    return EXIT_OK;
}

static int record_clip(struct record *record)
{
    char word[CONTROL_LINE_MAX], request[CONTROL_LINE_MAX];
    snprintf(word, sizeof word, "record %.64s %.0f", record->camera, record->seconds * 1000);
    int code = ask_request(&record->ask, word, request);
    return code == EXIT_OK ? ask_order(&record->ask, request, ANSWER_S, "nothing is recorded")
                           : code;
}

int record_main(int argc, char **argv)
{
    static const struct command_line line = {"framed record", ":c:h",      options,
                                             record_usage,    take_option, take_record_argument};
    struct record record = {.ask.command = "record"};
    bool help;
    int code = command_line_read(&line, argc, argv, &record, &help);
    if (code != EXIT_OK || help)
        return code;
    if (record.seconds == 0)
        return command_line_refuse("framed record", record.camera ? "DURATION" : "CAMERA",
                                   "is missing");
    code = ask_find(&record.ask);
    return code == EXIT_OK ? record_clip(&record) : code;
}

// --- framed snap

enum { WIDTH = 640 };

struct snap {
    struct ask ask;
    const char *target;
    const char *width; // NULL: not given
};

static void snap_usage(FILE *to)
{
    fputs(
        "usage: framed snap [OPTION]... CAMERA[/OUTPUT[/PLANE]] > FILE.jpg\n"
        "Prints the camera's next picture as a JPEG; or what the output makes of it, as its\n"
        "network sees it: the levels before scale, mean and std, of all channels or of one (0, 1,\n"
        "2).\n\n"
        "  -w, --width PIXELS  of a camera's picture (640), from 64 to 1920; a smaller picture\n"
        "                      keeps its size, and an output's has its own\n"
        "  -c, --config FILE   the configuration that the daemon runs with (" DEFAULT_CONFIG "):\n"
        "                      a daemon that runs with another file refuses\n"
        "  --socket PATH       its control socket, where that is not what FILE says\n",
        to);
}

static int take_snap_option(void *opaque, int option, const char *text)
{
    struct snap *snap = opaque;
    *(option == 'c' ? &snap->ask.config : option == 'w' ? &snap->width : &snap->ask.socket) = text;
    return EXIT_OK;
}

static int take_snap_argument(void *opaque, const char *text)
{
    struct snap *snap = opaque;
    struct target target;
    if (snap->target)
        return command_line_refuse("framed snap", text, "takes no further argument");
    if (!target_read(&target, text))
        return command_line_refuse("framed snap", text,
                                   "is no CAMERA, CAMERA/OUTPUT or "
                                   "CAMERA/OUTPUT/PLANE");
    snap->target = text;
    return EXIT_OK;
}

static int read_width(const char *text, int *width)
{
    if (text && !target_read_width(width, text))
        return command_line_refuse("framed snap", text, "is no width from 64 to 1920");
    return EXIT_OK;
}

static int print_picture(const struct ask *ask, const char *text)
{
    const int room = (int)(strlen(text) / 4 * 3 + 3);
    uint8_t *file = malloc((size_t)room);
    const int size = file ? av_base64_decode(file, text, room) : -1;
    bool good = size > 0 && fwrite(file, (size_t)size, 1, stdout) == 1 && fflush(stdout) == 0;
    free(file);
    if (!good)
        fprintf(stderr, "framed %s: the picture cannot be written\n", ask->command);
    return good ? EXIT_OK : EXIT_RUNTIME;
}

static int print_snap(struct snap *snap, int width)
{
    char word[CONTROL_LINE_MAX], request[CONTROL_LINE_MAX];
    char *jpeg = NULL;
    snprintf(word, sizeof word, "snap %.99s %d", snap->target, width);
    int code = ask_request(&snap->ask, word, request);
    if (code == EXIT_OK)
        code = ask_text(&snap->ask, request, ANSWER_S, "jpeg", "there is no picture", &jpeg);
    if (code == EXIT_OK)
        code = print_picture(&snap->ask, jpeg);
    free(jpeg);
    return code;
}

int snap_main(int argc, char **argv)
{
    static const struct option snap_options[] = {
        {"config", required_argument, NULL, 'c'},
        {"width", required_argument, NULL, 'w'},
        {"socket", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    static const struct command_line line = {"framed snap", ":c:w:h",         snap_options,
                                             snap_usage,    take_snap_option, take_snap_argument};
    struct snap snap = {.ask.command = "snap"};
    bool help;
    int width = WIDTH, code = command_line_read(&line, argc, argv, &snap, &help);
    if (code != EXIT_OK || help)
        return code;
    if (!snap.target)
        return command_line_refuse("framed snap", "CAMERA", "is missing");
    if (isatty(STDOUT_FILENO))
        return command_line_refuse("framed snap", "standard output",
                                   "is a terminal: send the picture to a file (> gate.jpg)");
    code = read_width(snap.width, &width);
    if (code == EXIT_OK)
        code = ask_find(&snap.ask);
    return code == EXIT_OK ? print_snap(&snap, width) : code;
}
