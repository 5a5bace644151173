// framed verify: checks that the decoders of this machine give the cpu's pictures.
#ifndef FRAMED_DAEMON_CLI_VERIFY_DECODERS_H
#define FRAMED_DAEMON_CLI_VERIFY_DECODERS_H

#include "config/types.h"

enum { VERIFY_DECODERS_MAX = 16 };

// Prints a report of these decoders, or if n is 0 of all that libavcodec has, and keeps it for
// `decode: auto`. Returns EXIT_OK if the cpu and every decoder that opened gave the known pictures
// of the built-in clips; otherwise EXIT_RUNTIME.
int verify_decoders(const struct decoder_choice list[], int n);
// The same if decoders were verified on this machine with other libraries, otherwise nothing.
int verify_decoders_again(void);

#endif
