#include "daemon/base/peer_text.h"

#include <string.h>

// Returns the character's bytes; 0: no UTF-8 begins at `p`. *code: the character.
static size_t decode_character(const unsigned char *p, unsigned *code)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t bytes = *p < 0x80                  ? 1
                         : *p >= 0xc2 && *p <= 0xdf ? 2
                         : *p >= 0xe0 && *p <= 0xef ? 3
                         : *p >= 0xf0 && *p <= 0xf4 ? 4
                                                    : 0;
    *code = bytes == 1 ? *p : bytes > 0 ? *p & (0x7fU >> bytes) : 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3f);
    }
    const bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return bytes > 0 && (*code < least[bytes] || *code > 0x10ffff || surrogate) ? 0 : bytes;
}

size_t peer_text_character(const char *text, bool *safe)
{
    static const struct {
        unsigned first, last;
    } unsafe[] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f},   {0x2028, 0x202e},
        {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
    };
    unsigned code;
    const size_t bytes = decode_character((const unsigned char *)text, &code);
    *safe = bytes > 0;
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        *safe &= code < unsafe[i].first || code > unsafe[i].last;
    return bytes > 0 ? bytes : 1;
}

void peer_text_clean(char *text)
{
    char *to = text;
    bool safe;
    for (size_t bytes; *text; text += bytes) {
        bytes = peer_text_character(text, &safe);
        memmove(to, safe ? text : "?", safe ? bytes : 1);
        to += safe ? bytes : 1;
    }
    *to = 0;
}
