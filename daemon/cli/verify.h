// Parts of `framed verify`.
#ifndef FRAMED_DAEMON_CLI_VERIFY_H
#define FRAMED_DAEMON_CLI_VERIFY_H

#include <stdint.h>

#include "config/types.h"
#include "kernels/ops.h"

// --- vectors
// The results of the presets' frameworks for fixed pictures (scripts/verify_vectors).

enum { VERIFY_ROWS = 12, VERIFY_COLUMNS = 96 };

struct verify_vector {
    const char *preset, *key, *value; // key: set to `value` besides the preset; NULL: none
    int largest;                      // allowed difference of levels,
    double mean;                      // and of the means over all vectors with this preset and key
    int source_width, source_height, width, height; // pixels; the last two: of the tensor
    struct rect at; // the pixels of the tensor that the picture fills; the others are padding
    // Some rows of the tensor, two hex digits per level, pixel by pixel in its order of channels.
    const char *levels[VERIFY_ROWS];
};

extern const struct verify_vector verify_vectors[];
extern const int verify_vectors_n;

// --- clips
// The clips that `framed verify` decodes, with digests of their pictures (scripts/verify_clips).

enum { VERIFY_CLIPS = 4, VERIFY_PICTURES = 16 };

struct verify_clip {
    const char *codec; // libavcodec's name
    int bits, width, height;
    const char *begin, *end; // an MP4 file
    // For each picture the first 8 bytes of SHA-256 over its planes Y, U and V, with samples of 10
    // bits as little-endian words.
    uint64_t digests[VERIFY_PICTURES];
};

extern const struct verify_clip verify_clips[VERIFY_CLIPS];

// Embeds a file of daemon/cli/clips in the program.
#define VERIFY_CLIP(label, name)                                                                   \
    __asm__(".pushsection .rodata\n"                                                               \
            ".hidden verify_" #label "\n.global verify_" #label "\nverify_" #label ":\n"           \
            ".incbin \"daemon/cli/clips/" name "\"\n"                                              \
            ".hidden verify_" #label "_end\n.global verify_" #label "_end\nverify_" #label         \
            "_end:\n.popsection\n");                                                               \
    extern const char verify_##label[], verify_##label##_end[];

// --- decoders

enum { VERIFY_DECODERS_MAX = 16 };

// Checks that the decoders of this machine give the cpu's pictures. Prints a report of these
// decoders, or if n is 0 of all that libavcodec has, and keeps it for `decode: auto`. Returns
// EXIT_OK if the cpu and every decoder that opened gave the known pictures of the built-in clips;
// otherwise EXIT_RUNTIME.
int verify_decoders(const struct decoder_choice list[], int n);
// The same if decoders were verified on this machine with other libraries, otherwise nothing.
int verify_decoders_again(void);

#endif
