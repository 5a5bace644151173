// The clips that `framed verify` decodes, with digests of their pictures (scripts/verify_clips).
#ifndef FRAMED_DAEMON_CLI_VERIFY_CLIPS_H
#define FRAMED_DAEMON_CLI_VERIFY_CLIPS_H

#include <stdint.h>

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

#endif
