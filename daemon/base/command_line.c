#include "daemon/base/command_line.h"

#include <errno.h>
#include <string.h>

#include "config/url.h"
#include "daemon/base/exit_code.h"

int command_line_refuse(const char *command, const char *option, const char *what)
{
    char shown[256]; // a misplaced argument may be a URL
    fprintf(stderr, "%s: %s: %s (%s --help lists the options)\n", command,
            config_url_shown(option, shown, sizeof shown), what, command);
    return EXIT_USAGE;
}

int command_line_read(const struct command_line *line, int argc, char **argv, void *opaque,
                      bool *help)
{
    int option, code = EXIT_OK;
    *help = false;
    opterr = 0; // we print errors ourselves, in one line; the leading colon reports a missing value
    while (code == EXIT_OK &&
           (option = getopt_long(argc, argv, line->letters, line->options, NULL)) != -1) {
        if (option == 'h') {
            if (line->usage)
                line->usage(stdout);
            *help = true;
            return EXIT_OK;
        }
        if (option == '?')
            code = command_line_refuse(line->command, argv[optind - 1], "bad option");
        else if (option == ':')
            code = command_line_refuse(line->command, argv[optind - 1], "wants a value");
        else
            code = line->take(opaque, option, optarg);
    }
    for (; code == EXIT_OK && optind != argc; optind++)
        code = line->take_argument
                   ? line->take_argument(opaque, argv[optind])
                   : command_line_refuse(line->command, argv[optind], "takes no further argument");
    return code;
}

int command_line_finish(const char *command, int code)
{
    const bool failed = ferror(stdout);
    if (fflush(stdout) == 0 && !failed)
        return code;
    fprintf(stderr, "%s: cannot write to standard output: %s\n", command,
            strerror(errno ? errno : EIO));
    return code == EXIT_OK ? EXIT_RUNTIME : code;
}
