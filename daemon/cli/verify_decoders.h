// framed verify: whether the decoders of this box give the cpu's pictures.
#ifndef FRAMED_DAEMON_CLI_VERIFY_DECODERS_H
#define FRAMED_DAEMON_CLI_VERIFY_DECODERS_H

#include "config/types.h"

enum { VERIFY_DECODERS_MAX = 16 };

// Prints a report of these decoders, or of all that libavcodec knows where n is 0, and keeps it for
// `decode: auto`. Returns EXIT_OK where all that opened gave the known pictures of the built-in
// clips, and the cpu did; else EXIT_RUNTIME.
int verify_decoders(const struct decoder_choice list[], int n);
// The same where decoders were verified on this box with other libraries than now, else nothing.
int verify_decoders_again(void);

#endif
