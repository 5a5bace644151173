// Names of the credentials that systemd passes to the service of a configuration; only the service
// can read their values. The names come from the unit's files and drop-ins, which needs neither
// root nor a running systemd.
#ifndef FRAMED_CONFIG_UNIT_H
#define FRAMED_CONFIG_UNIT_H

#include <stdbool.h>
#include <stdio.h>

struct unit;

// Opens the unit of the configuration at `path`: framed.yaml belongs to framed.service, NAME.yaml
// to framed@NAME.service. Searches systemd's folders, or those of SYSTEMD_UNIT_PATH. A unit that is
// not installed has no credentials. Returns 0 or -ENOMEM.
int unit_open(struct unit **ret, const char *path);
// Returns true if the unit has that credential, which then counts as used. NULL: no unit, so false.
bool unit_has_credential(struct unit *, const char *name);
// Prints one line with the names of the used credentials, or nothing if none was used.
void unit_print_used(const struct unit *, FILE *);
void unit_close(struct unit *); // accepts NULL

#endif
