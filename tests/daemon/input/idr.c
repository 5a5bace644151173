// IDR pictures are found in either form of a packet, and nothing is read behind its end.
#include "daemon/input/idr.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

// On a copy of just that size, so that a sanitizer sees the first byte too many.
static bool begins(const void *bytes, size_t size, int length_bytes)
{
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    bool idr = idr_begins(copy, size, length_bytes);
    free(copy);
    return idr;
}

#define BEGINS(text, length_bytes) begins(text, sizeof(text) - 1, length_bytes)

int main(void)
{
    CHECK(BEGINS("\0\0\1\x65"
                 "abc",
                 0),
          "alone");
    CHECK(BEGINS("\0\0\0\1\x09\x10\0\0\0\1\x67"
                 "abc\0\0\1\x68"
                 "d\0\0\1\x65"
                 "e",
                 0),
          "headers");
    CHECK(!BEGINS("\0\0\1\x67"
                  "abc\0\0\1\x68"
                  "d\0\0\1\x41"
                  "e\0\0\1\x65"
                  "f",
                  0),
          "another first");
    CHECK(!BEGINS("\0\0\1\x67"
                  "abc",
                  0),
          "headers alone");
    CHECK(BEGINS("\0\0\0\2\x65"
                 "a",
                 4) &&
              BEGINS("\0\2\x65"
                     "a",
                     2),
          "measured");
    CHECK(BEGINS("\0\0\0\2\x06"
                 "a\0\0\0\2\x65"
                 "b",
                 4),
          "measured, behind another");
    CHECK(!BEGINS("\0\0\0\2\x41"
                  "a\0\0\0\2\x65"
                  "b",
                  4),
          "measured, another first");
    CHECK(!BEGINS("\xff\xff\xff\xff\x06"
                  "a\0\0\0\2\x65"
                  "b",
                  4),
          "longer than the packet");
    static const char bytes[] = "\0\0\0\2\x06"
                                "a\0\0\1\x67\0\0\0\0\0\0\1";
    for (size_t size = 0; size < sizeof(bytes); size++)
        for (int length_bytes = 0; length_bytes <= 4; length_bytes++)
            CHECK(!begins(bytes, size, length_bytes), "%zu, %d", size, length_bytes);
    CHECK(idr_length_bytes((const uint8_t *)"\1\x64\0\x1e\xff", 5) == 4, "avcC");
    CHECK(idr_length_bytes((const uint8_t *)"\0\0\0\1\x67", 5) == 0, "start codes");
    CHECK(idr_length_bytes(NULL, 0) == 0, "none");
    return test_end();
}
