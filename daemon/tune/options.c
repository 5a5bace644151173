#include "daemon/tune/options.h"
#include "daemon/cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/url.h"
#include "daemon/base/command_line.h"
#include "daemon/daemon.h"

static const double SECONDS_LEAST = 0.2, SECONDS_MOST = 600;

static void usage(FILE *to)
{
    fputs("usage: framed tune [-c FILE] [OPTION...]\n\n"
          "Runs the cameras of a configuration on this box with one setting after another changed, "
          "and\nprints what is better than what the file has. Frames go nowhere but to framed tune "
          "itself.\n\n"
          "  -c, --config FILE   the configuration (" DEFAULT_CONFIG ")\n"
          "  --clip FILE         what every camera plays, over and over at full speed: the aim is "
          "frames/s\n"
          "  --live              the clip at its own pace: the aim is the least CPU without a "
          "loss,\n"
          "                      as of live cameras\n"
          "  --seconds S         length of each trial (3 at full speed, 10 live)\n"
          "  --write             put the result into the file, whose old text becomes FILE.bak\n"
          "  --json              print JSON instead of YAML\n"
          "  --grid              instead, hold the file against the best of a grid of "
          "combinations\n"
          "  --rehearsal FOLDER  run the configuration with rings in FOLDER for sinks: one trial\n",
          to);
}

static int refuse(const char *option, const char *what)
{
    return command_line_refuse("tune", option, what);
}

static int take_seconds(struct tune_options *options, const char *text)
{
    char *end;
    options->seconds = strtod(text, &end);
    if (end == text || *end || !(options->seconds >= SECONDS_LEAST) ||
        options->seconds > SECONDS_MOST)
        return refuse("--seconds", "0.2 to 600");
    return EXIT_OK;
}

enum { CLIP = 256, LIVE, SECONDS, WRITE, JSON, GRID, REHEARSAL };

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"config", required_argument, NULL, 'c'},
    {"clip", required_argument, NULL, CLIP},
    {"live", no_argument, NULL, LIVE},
    {"seconds", required_argument, NULL, SECONDS},
    {"write", no_argument, NULL, WRITE},
    {"json", no_argument, NULL, JSON},
    {"grid", no_argument, NULL, GRID},
    {"rehearsal", required_argument, NULL, REHEARSAL},
    {0},
};

static int take(void *opaque, int option, const char *text)
{
    struct tune_options *options = opaque;
    switch (option) {
    case 'c':
        options->config = text;
        break;
    case CLIP:
        options->clip = text;
        break;
    case LIVE:
        options->live = true;
        break;
    case SECONDS:
        return take_seconds(options, text);
    case WRITE:
        options->write = true;
        break;
    case JSON:
        options->json = true;
        break;
    case GRID:
        options->grid = true;
        break;
    case REHEARSAL:
        options->rehearsal = text;
        break;
    }
    return EXIT_OK;
}

static int refuse_clip(const char *clip, int error)
{
    char shown[200], what[300];
    snprintf(what, sizeof what, "%s: %s", config_url_redacted(clip, shown, sizeof shown),
             strerror(error));
    return refuse("--clip", what);
}

static int judge(const struct tune_options *options)
{
    if (strcmp(options->config, "-") == 0)
        return refuse("--config", "wants a file, which is read for every trial");
    if (options->grid && options->write)
        return refuse("--grid", "finds nothing to --write");
    if (options->live && !options->clip)
        return refuse("--live", "is for --clip");
    if (options->clip && access(options->clip, R_OK) != 0)
        return refuse_clip(options->clip, errno);
    return EXIT_OK;
}

static const struct command_line command_line = {
    .command = "tune",
    .letters = ":hc:",
    .options = long_options,
    .usage = usage,
    .take = take,
};

int tune_options_parse(struct tune_options *options, int argc, char **argv, bool *help)
{
    *options = (struct tune_options){.config = DEFAULT_CONFIG};
    int code = command_line_read(&command_line, argc, argv, options, help);
    return code == EXIT_OK && !*help ? judge(options) : code;
}
