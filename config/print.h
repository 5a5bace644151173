// Prints the tables of keys: the daemon's own documentation of its configuration.
#ifndef FRAMED_CONFIG_PRINT_H
#define FRAMED_CONFIG_PRINT_H

#include <stdio.h>

void config_print_defaults(FILE *); // a commented, loadable configuration with every key
void config_print_schema(FILE *);   // JSON Schema, draft-07
void config_print_keys(FILE *);     // a Markdown table of every key

#endif
