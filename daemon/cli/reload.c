#include "daemon/base/process.h"
#include "daemon/cli/ask.h"
#include "daemon/cli/commands.h"

enum { TIMEOUT_S = 60 }; // the new configuration is fully opened before the reply

static void usage(FILE *to)
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
    return code == EXIT_OK ? ask_order(ask, request, TIMEOUT_S, "nothing has changed") : code;
}

static int take(void *opaque, int option, const char *text)
{
    struct ask *ask = opaque;
    *(option == 'c' ? &ask->config : &ask->socket) = text;
    return EXIT_OK;
}

int reload_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"socket", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    static const struct command_line line = {"framed reload", ":c:h", options, usage, take, NULL};
    struct ask ask = {.command = "reload"};
    bool help;
    int code = command_line_read(&line, argc, argv, &ask, &help);
    if (code != EXIT_OK || help)
        return code;
    code = ask_find(&ask);
    return code == EXIT_OK ? reload(&ask) : code;
}
