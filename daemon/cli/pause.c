#include <string.h>

#include "daemon/base/process.h"
#include "daemon/cli/ask.h"
#include "daemon/cli/commands.h"

enum { TIMEOUT_S = 60 }; // as for a reload

struct pause {
    struct ask ask;
    const char *camera;
};

static void print_options(FILE *to)
{
    fputs("  -c, --config FILE   the configuration that the daemon runs with (" DEFAULT_CONFIG
          "):\n"
          "                      a daemon that runs with another file refuses\n"
          "  --socket PATH       its control socket, where that is not what FILE says\n",
          to);
}

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

static int take(void *opaque, int option, const char *text)
{
    struct pause *pause = opaque;
    *(option == 'c' ? &pause->ask.config : &pause->ask.socket) = text;
    return EXIT_OK;
}

static int take_argument(void *opaque, const char *text)
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

static int order(const char *command, void (*usage)(FILE *), int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"socket", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    char name[32], word[CONTROL_LINE_MAX], request[CONTROL_LINE_MAX];
    const struct command_line line = {name, ":c:h", options, usage, take, take_argument};
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
    return code == EXIT_OK ? ask_order(&pause.ask, request, TIMEOUT_S, "nothing has changed")
                           : code;
}

int pause_main(int argc, char **argv)
{
    return order("pause", pause_usage, argc, argv);
}

int resume_main(int argc, char **argv)
{
    return order("resume", resume_usage, argc, argv);
}
