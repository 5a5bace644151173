// Prints the status for people.
#ifndef FRAMED_DAEMON_CLI_STATUS_VIEW_H
#define FRAMED_DAEMON_CLI_STATUS_VIEW_H

#include <stdio.h>

struct json_t;

void status_view(const struct json_t *status, FILE *to);

#endif
