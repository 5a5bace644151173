// What systemd gives the service that runs a configuration: the names of its credentials, whose
// values the service alone can see. Read from the unit's files and drop-ins, so that neither root
// nor a running systemd is needed.
#ifndef FRAMED_CONFIG_UNIT_H
#define FRAMED_CONFIG_UNIT_H

#include <stdbool.h>
#include <stdio.h>

struct unit;

// The unit of the configuration at `path`, by its file's name: framed.yaml is framed.service's, and
// NAME.yaml is framed@NAME.service's. Folders are those of systemd, or of SYSTEMD_UNIT_PATH. A unit
// that is not installed has no credentials. 0 or -ENOMEM.
int unit_open(struct unit **ret, const char *path);
// Whether the unit has that credential; if so it counts as used. NULL has none.
bool unit_has_credential(struct unit *, const char *name);
// One line that names the credentials that were used; nothing where there are none.
void unit_print_used(const struct unit *, FILE *);
void unit_close(struct unit *); // accepts NULL

#endif
