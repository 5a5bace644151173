#include <string.h>

#include "config/types.h"
#include "daemon/base/process.h"
#include "daemon/cli/ask.h"
#include "daemon/cli/commands.h"

enum { TIMEOUT_S = 10 };

struct record {
    struct ask ask;
    const char *camera;
    double seconds; // 0: not given
};

static void usage(FILE *to)
{
    fputs("usage: framed record [OPTION]... CAMERA DURATION\n"
          "Makes the outputs of the camera that have `before` (kernel: copy) write a clip: it\n"
          "begins so long ago, and ends DURATION (30s, 5m) from now.\n\n"
          "  -c, --config FILE   the configuration that the daemon runs with (" DEFAULT_CONFIG
          "):\n"
          "                      a daemon that runs with another file refuses\n"
          "  --socket PATH       its control socket, where that is not what FILE says\n",
          to);
}

static int take(void *opaque, int option, const char *text)
{
    struct record *record = opaque;
    *(option == 'c' ? &record->ask.config : &record->ask.socket) = text;
    return EXIT_OK;
}

static int take_argument(void *opaque, const char *text)
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
    return code == EXIT_OK ? ask_order(&record->ask, request, TIMEOUT_S, "nothing is recorded")
                           : code;
}

int record_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"socket", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    static const struct command_line line = {"framed record", ":c:h", options,
                                             usage,           take,   take_argument};
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
