// Cleans text from cameras, servers and other peers before people see it: a terminal obeys control
// characters, and direction marks reorder text. Pure.
#ifndef FRAMED_DAEMON_BASE_PEER_TEXT_H
#define FRAMED_DAEMON_BASE_PEER_TEXT_H

#include <stdbool.h>
#include <stddef.h>

// Returns the bytes of the character at `text`, which is not at its end. *safe is false for C0,
// DEL, C1, separators, direction marks, characters of width 0, and bytes that are not UTF-8.
size_t peer_text_character(const char *text, bool *safe);
// Replaces each unsafe character with '?'.
void peer_text_clean(char *text);

#endif
