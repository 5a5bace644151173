#include <jansson.h>
#include <stdlib.h>

#include "daemon/base/command_line.h"
#include "daemon/base/exit_code.h"
#include "daemon/cli/ask.h"
#include "daemon/cli/commands.h"

enum { TIMEOUT_S = 60 }; // everything of the new configuration is opened before the reply

static void usage(FILE *to)
{
    fputs("usage: framed reload [OPTION]...\n"
          "Makes the running daemon read its configuration again.\n\n"
          "  -c, --config FILE   the configuration that it runs with (" DEFAULT_CONFIG "):\n"
          "                      a daemon that runs with another file refuses\n"
          "  --socket PATH       its control socket, where that is not what FILE says\n",
          to);
}

// "ok" with what was done in "done", or "exit_code" and "errors".
static int print_reply(const json_t *reply)
{
    const json_t *error;
    const char *done = json_string_value(json_object_get(reply, "done"));
    int code = (int)json_integer_value(json_object_get(reply, "exit_code"));
    size_t i;
    if (json_is_true(json_object_get(reply, "ok"))) {
        printf("%s\n", done ? done : "reloaded");
        return EXIT_OK;
    }
    json_array_foreach((json_t *)json_object_get(reply, "errors"), i, error)
    {
        fprintf(stderr, "%s\n", json_string_value(error));
    }
    fputs("framed reload: nothing has changed\n", stderr);
    return code == EXIT_OK ? EXIT_RUNTIME : code;
}

static int reload(struct ask *ask)
{
    char *text, why[256], request[CONTROL_LINE_MAX];
    int code = ask_request(ask, ask->command, request);
    if (code != EXIT_OK)
        return code;
    if (ask_for(ask, request, TIMEOUT_S, &text, why, sizeof why) < 0) {
        fprintf(stderr, "framed reload: %s\n", why);
        return EXIT_RUNTIME;
    }
    json_t *reply = json_loads(text, 0, NULL);
    code = EXIT_RUNTIME;
    if (json_object_get(reply, "ok"))
        code = print_reply(reply);
    else
        fprintf(stderr, "framed reload: %s is not framed's control socket\n", ask->path);
    json_decref(reply);
    free(text);
    return code;
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
    static const struct command_line line = {"framed reload", ":c:h", options, usage, take};
    struct ask ask = {.command = "reload"};
    bool help;
    int code = command_line_read(&line, argc, argv, &ask, &help);
    if (code != EXIT_OK || help)
        return code;
    code = ask_find(&ask);
    return code == EXIT_OK ? reload(&ask) : code;
}
