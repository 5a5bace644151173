#include "daemon/service/mistakes_json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/service/status.h"

// Finds ":LINE:COLUMN: KEY: " after a file's name, which may contain colons. False: not found.
static bool find_place(char *line, int *at_line, int *at_column, char **key, char **text)
{
    for (char *c = strchr(line, ':'); c; c = strchr(c + 1, ':')) {
        int used = 0;
        if (sscanf(c, ":%9d:%9d: %n", at_line, at_column, &used) != 2 || used == 0)
            continue;
        *key = c + used;
        *text = strstr(*key, ": ");
        if (!*text)
            return false;
        *c = 0;
        **text = 0;
        *text += 2;
        return true;
    }
    return false;
}

static json_t *mistake_json(char *line)
{
    int at_line, at_column;
    char *key, *text;
    if (!find_place(line, &at_line, &at_column, &key, &text))
        return json_pack("{s:o}", "text", status_string(line));
    return json_pack("{s:o, s:i, s:i, s:o, s:o}", "file", status_string(line), "line", at_line,
                     "column", at_column, "key", status_string(key), "text", status_string(text));
}

json_t *mistakes_json(const char *lines)
{
    json_t *list = json_array();
    for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
        n = strcspn(lines, "\n");
        char *line = strndup(lines, n);
        if (line && n > 0)
            json_array_append_new(list, mistake_json(line));
        free(line);
    }
    return list;
}
