#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/process.h"
#include "daemon/cli/ask.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/status_view.h"

enum { TIMEOUT_S = 5, WATCH_S = 1, WHY_MAX = 2 * PATH_MAX + 128 };

// Cuts lines off at the edge of the terminal instead of wrapping them, and hides the cursor.
#define SCREEN_BEGIN "\033[?1049h\033[?25l\033[?7l"
#define SCREEN_END   "\033[?7h\033[?25h\033[?1049l"
#define SCREEN_HOME  "\033[H"
#define LINE_END     "\033[K\n"
#define REST_CLEAR   "\033[J"

static void usage(FILE *to)
{
    fputs("usage: framed status [OPTION]...\n"
          "Prints what the running daemon does now.\n\n"
          "  -c, --config FILE   the configuration that it runs with (" DEFAULT_CONFIG "):\n"
          "                      a daemon that runs with another file refuses\n"
          "  --socket PATH       its control socket, where that is not what FILE says\n"
          "  --json              print everything, for programs\n"
          "  --watch             print it anew each second, until Ctrl-C\n",
          to);
}

struct choice {
    struct ask ask;
    char request[CONTROL_LINE_MAX];
    bool json, watches;
};

// Returns true if the reply is an error, with the reason in `why`.
static bool is_refused(const json_t *reply, char *why, size_t size)
{
    const char *error = json_string_value(json_object_get(reply, "error"));
    const char *first = json_string_value(json_array_get(json_object_get(reply, "errors"), 0));
    if (error || first)
        snprintf(why, size, "%s", error ? error : first);
    return error || first;
}

static json_t *get(struct choice *choice, char *why, size_t size)
{
    struct ask *ask = &choice->ask;
    char *reply;
    json_t *status = NULL;
    json_error_t error;
    if (ask_for(ask, choice->request, TIMEOUT_S, &reply, why, size) == 0) {
        status = json_loads(reply, 0, &error);
        if (!status)
            snprintf(why, size, "%s is not framed's control socket", ask->shown);
    }
    if (is_refused(status, why, size)) {
        json_decref(status);
        status = NULL;
    }
    free(reply);
    return status;
}

static int print_once(struct choice *choice)
{
    char why[WHY_MAX];
    json_t *status = get(choice, why, sizeof why);
    if (!status) {
        fprintf(stderr, "framed status: %s\n", why);
        return EXIT_RUNTIME;
    }
    if (choice->json) {
        json_dumpf(status, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else {
        status_view(status, stdout);
    }
    json_decref(status);
    return fflush(stdout) == 0 ? EXIT_OK : EXIT_RUNTIME;
}

// --- watching

static char *render(struct choice *choice)
{
    char why[WHY_MAX], *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    json_t *status = get(choice, why, sizeof why);
    if (status)
        status_view(status, to);
    else
        fprintf(to, "%s\n", why);
    json_decref(status);
    fclose(to);
    return text;
}

static int terminal_rows(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

// Omits lines that do not fit, at the bottom.
static void draw(const char *text)
{
    fputs(SCREEN_HOME, stdout);
    for (int left = terminal_rows() - 1; left > 0 && *text; left--) {
        int n = (int)strcspn(text, "\n");
        printf("%.*s" LINE_END, n, text);
        text += n + (text[n] == '\n');
    }
    fputs(REST_CLEAR, stdout);
}

static sigset_t set_of(const int signals[], int n)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < n; i++)
        sigaddset(&set, signals[i]);
    return set;
}

// Lets a blocked signal act: stops the process until it is continued, or ends it.
static void let_act(int number)
{
    const sigset_t set = set_of(&number, 1);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

// Redraws until one of the signals arrives, which is returned; 0: the reader is gone.
static int redraw(struct choice *choice, bool terminal, const sigset_t *signals)
{
    const struct timespec pause = {.tv_sec = WATCH_S};
    int number = -1;
    while (number < 0) {
        char *text = render(choice);
        if (terminal)
            draw(text);
        else
            puts(text);
        free(text);
        number = fflush(stdout) == 0 ? sigtimedwait(signals, NULL, &pause) : 0;
    }
    return number;
}

// Waits for the signals, so that the screen is complete when one arrives, and is restored before
// the signal acts.
static int watch(struct choice *choice)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
    const sigset_t signals = set_of(ends, sizeof ends / sizeof ends[0]);
    const bool terminal = isatty(STDOUT_FILENO);
    int number;
    sigprocmask(SIG_BLOCK, &signals, NULL);
    do {
        fputs(terminal ? SCREEN_BEGIN : "", stdout);
        number = redraw(choice, terminal, &signals);
        fputs(terminal ? SCREEN_END : "", stdout);
        fflush(stdout);
        if (number == SIGQUIT || number == SIGTSTP)
            let_act(number);
    } while (number == SIGTSTP);
    return EXIT_OK;
}

// --- the command

static int take(void *opaque, int option, const char *text)
{
    struct choice *choice = opaque;
    switch (option) {
    case 'c':
        choice->ask.config = text;
        break;
    case 's':
        choice->ask.socket = text;
        break;
    case 'j':
        choice->json = true;
        break;
    case 'w':
        choice->watches = true;
        break;
    }
    return EXIT_OK;
}

int status_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"socket", required_argument, NULL, 's'},
        {"json", no_argument, NULL, 'j'},         {"watch", no_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    static const struct command_line line = {"framed status", ":c:h", options, usage, take, NULL};
    struct choice choice = {.ask.command = "status"};
    struct ask *ask = &choice.ask;
    bool help;
    int code = command_line_read(&line, argc, argv, &choice, &help);
    if (code != EXIT_OK || help)
        return code;
    if (choice.json && choice.watches)
        return command_line_refuse(line.command, "--watch", "is not for --json");
    code = ask_find(ask);
    if (code == EXIT_OK)
        code = ask_request(ask, "status", choice.request);
    if (code != EXIT_OK)
        return code;
    return choice.watches ? watch(&choice) : print_once(&choice);
}
