#include "daemon/cli/password_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/process.h"

int password_file_read(const char *command, const char *path, char to[PASSWORD_MAX])
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!file)
        return command_line_refuse(command, "--password-file", strerror(errno));
    errno = 0;
    const bool any = fgets(to, PASSWORD_MAX, file);
    const char *wrong = any                     ? NULL
                        : ferror(file) && errno ? strerror(errno)
                                                : "names a file without a password";
    if (any && strncmp(to, "\xef\xbb\xbf", 3) == 0) // a byte order mark
        memmove(to, to + 3, strlen(to + 3) + 1);
    const size_t length = any ? strcspn(to, "\r\n") : 0;
    if (any && !to[length] && !feof(file))
        wrong = "names a file whose first line is longer than 4094 bytes";
    else if (any && length == 0)
        wrong = "names a file without a password";
    else if (any)
        to[length] = 0;
    if (file != stdin)
        fclose(file);
    return wrong ? command_line_refuse(command, "--password-file", wrong) : EXIT_OK;
}
