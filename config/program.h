// A command of the configuration: a program and its arguments, or a line for the shell.
#ifndef FRAMED_CONFIG_PROGRAM_H
#define FRAMED_CONFIG_PROGRAM_H

#include "config/types.h"

// One text is a line for /bin/sh, several are a program and its arguments. Returns 0 with a copy
// for text_list_free; -EINVAL with *wrong set; or -ENOMEM.
int program_parse(struct program *ret, const char *const text[], int n, const char **wrong);
// Fills in argv with pointers into the command, and a final NULL.
void program_arguments(const struct program *, char *argv[PROGRAM_MAX + 3]);

#endif
