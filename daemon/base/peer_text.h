// Text from cameras, servers and other peers, before people see it: a terminal obeys control
// characters, and marks of direction turn text around. Pure.
#ifndef FRAMED_DAEMON_BASE_PEER_TEXT_H
#define FRAMED_DAEMON_BASE_PEER_TEXT_H

#include <stdbool.h>
#include <stddef.h>

// Bytes of the character at `text`, which is not at its end. *safe is false for C0, DEL, C1, for
// separators and marks of direction and width 0, and for a byte that is no UTF-8.
size_t peer_text_character(const char *text, bool *safe);
// Replaces each character that is not safe by '?'.
void peer_text_clean(char *text);

#endif
