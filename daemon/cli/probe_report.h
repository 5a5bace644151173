// Prints the results of a probe, for people and as JSON.
#ifndef FRAMED_DAEMON_CLI_PROBE_REPORT_H
#define FRAMED_DAEMON_CLI_PROBE_REPORT_H

#include "daemon/cli/probe_cost.h"
#include "daemon/cli/stream_probe.h"

void probe_report_print(const struct stream_probe *, const struct probe_cost *, const char *lines,
                        FILE *to);
// Prints one object, which includes the keys that presets set. Returns 0 or -ENOMEM.
int probe_report_print_json(const struct stream_probe *, const struct probe_cost *,
                            const char *lines, FILE *to);
// Prints {"error": ...}; `login`: the camera refused or requires a password. Returns 0 or -ENOMEM.
int probe_report_print_error(const char *sentence, bool login, FILE *to);

#endif
