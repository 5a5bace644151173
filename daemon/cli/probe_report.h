// What a probe found, for people and as JSON.
#ifndef FRAMED_DAEMON_CLI_PROBE_REPORT_H
#define FRAMED_DAEMON_CLI_PROBE_REPORT_H

#include "daemon/cli/probe_cost.h"
#include "daemon/cli/stream_probe.h"

void probe_report_print(const struct stream_probe *, const struct probe_cost *, const char *lines,
                        FILE *to);
// One object, with what presets stand for. 0 or -ENOMEM.
int probe_report_print_json(const struct stream_probe *, const struct probe_cost *,
                            const char *lines, FILE *to);
// {"error": ...}; `login`: the camera refused the password, or wants one. 0 or -ENOMEM.
int probe_report_print_error(const char *sentence, bool login, FILE *to);

#endif
