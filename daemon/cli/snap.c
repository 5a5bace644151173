#include <libavutil/base64.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/process.h"
#include "daemon/cli/ask.h"
#include "daemon/cli/commands.h"
#include "daemon/service/views.h"

enum { TIMEOUT_S = 10, WIDTH = 640 };

struct snap {
    struct ask ask;
    const char *target;
    const char *width; // NULL: not given
};

static void usage(FILE *to)
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

static int take(void *opaque, int option, const char *text)
{
    struct snap *snap = opaque;
    *(option == 'c' ? &snap->ask.config : option == 'w' ? &snap->width : &snap->ask.socket) = text;
    return EXIT_OK;
}

static int take_argument(void *opaque, const char *text)
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

static int print_file(const struct ask *ask, const char *text)
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
        code = ask_text(&snap->ask, request, TIMEOUT_S, "jpeg", "there is no picture", &jpeg);
    if (code == EXIT_OK)
        code = print_file(&snap->ask, jpeg);
    free(jpeg);
    return code;
}

int snap_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"width", required_argument, NULL, 'w'},
        {"socket", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    static const struct command_line line = {"framed snap", ":c:w:h", options,
                                             usage,         take,     take_argument};
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
