// NAL units and a picture's hash are found in both packet forms, and no byte after the end is read.
#include "daemon/bitstream/nal.h"

#include <string.h>

#include "daemon/codec/packet.h"
#include "tests/kernels/picture.h"
#include "tests/test.h"

// Counts in a copy of exact size, so that a sanitizer finds a read past the end.
static int count(const void *bytes, size_t size, int length_bytes, struct nal *last)
{
    static uint8_t *copy;
    free(copy);
    copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    struct nal_reader reader = {.data = copy, .size = size, .length_bytes = length_bytes};
    int n = 0;
    while (nal_next(&reader, last))
        n++;
    return n;
}

#define COUNT(text, length_bytes, last) count(text, sizeof(text) - 1, length_bytes, last)

static void test_units(void)
{
    struct nal last;
    CHECK(COUNT("\0\0\0\1\x40\1a\0\0\0\1\x42\1b\0\0\1\x26\1cd", 0, &last) == 3, "start codes");
    CHECK(last.size == 4 && hevc_unit_type(&last) == 19, "%zu bytes", last.size);
    CHECK(COUNT("\0\0\1\x26\1c\0\0\0", 0, &last) == 1 && last.size == 3, "zeros behind");
    CHECK(COUNT("\0\3\x40\1a\0\3\x26\1b", 2, &last) == 2 && last.size == 3, "lengths");
    CHECK(COUNT("\0\3\x40\1a\0\x9\x26\1b", 2, &last) == 2 && last.size == 3, "a length too large");
    CHECK(COUNT("\0\0\0", 0, &last) == 0 && COUNT("\0\0\1", 0, &last) == 1, "cut off");
    CHECK(COUNT("", 4, &last) == 0 && COUNT("\0\0\0\1", 4, &last) == 0, "empty");
    CHECK(COUNT("\0\0\1\x27\1c", 0, &last) == 1 && hevc_unit_type(&last) == -1, "another layer");
    CHECK(COUNT("\0\0\1\x26", 0, &last) == 1 && hevc_unit_type(&last) == -1, "half a header");
}

static void test_bits(void)
{
    static const uint8_t bytes[] = {0x26, 1, 0, 0, 3, 1, 0, 0, 3, 0, 0, 3, 3, 5};
    static const uint8_t expected[] = {0x26, 1, 0, 0, 1, 0, 0, 0, 0, 3, 5};
    struct nal_bits bits = {.data = bytes, .size = sizeof bytes};
    for (size_t i = 0; i < sizeof expected; i++)
        CHECK(nal_u(&bits, 8) == expected[i], "byte %zu", i);
    CHECK(!nal_ended(&bits) && nal_u(&bits, 1) == 0 && nal_ended(&bits), "the end");
}

static void test_length_bytes(void)
{
    uint8_t record[23] = {1};
    record[21] = 0xff;
    CHECK(hevc_length_bytes(record, sizeof record) == 4, "a record");
    CHECK(hevc_length_bytes(record, sizeof record - 1) == 0 && hevc_length_bytes(NULL, 0) == 0,
          "none");
    CHECK(hevc_length_bytes((const uint8_t *)"\0\0\0\1\x40", 5) == 0, "start codes");
}

static struct picture_hash hash_of(const uint8_t *data, size_t size, int length_bytes)
{
    struct picture_hash hash = {0};
    struct nal_reader reader = {.data = data, .size = size, .length_bytes = length_bytes};
    for (struct nal unit; nal_next(&reader, &unit);)
        if (hevc_unit_type(&unit) == HEVC_UNIT_SUFFIX_SEI)
            picture_hash_read(&hash, &unit);
    return hash;
}

// A user's message before the hash, in one suffix SEI.
static void test_hash(void)
{
    static const char packet[] = "\0\0\1\x26\1slice\0\0\1\x50\1\5\2ab\x84\7\1\1\2\3\4\5\6\x80";
    struct picture_hash hash = hash_of((const uint8_t *)packet, sizeof packet - 1, 0);
    CHECK(hash.method == HASH_CRC && memcmp(hash.digest[2], "\5\6", 2) == 0, "%d", hash.method);
    hash = hash_of((const uint8_t *)packet, sizeof packet - 4, 0);
    CHECK(hash.method == HASH_NONE, "cut off");
    uint8_t *cut = memcpy(malloc(9), "\0\0\1\x50\1\0\0\3\x84", 9);
    hash = hash_of(cut, 9, 0);
    CHECK(hash.method == HASH_NONE, "cut off before its size");
    free(cut);
}

static void test_noise(void)
{
    struct random random = {1};
    for (int i = 0; i < 20000; i++) {
        const size_t size = random_next(&random) % 80;
        uint8_t *noise = malloc(size ? size : 1);
        for (size_t at = 0; at < size; at++)
            noise[at] = (uint8_t)(random_next(&random) % 3 ? random_in(&random, 0, 2) : 0x50);
        struct picture_hash hash = hash_of(noise, size, i % 5);
        CHECK(hash.method <= HASH_CHECKSUM, "%d", hash.method);
        free(noise);
    }
}

// Runs on a copy of exact size, so that a sanitizer finds a read past the end.
static bool begins_idr(const void *bytes, size_t size, int length_bytes)
{
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    struct nal_reader reader = {.data = copy, .size = size, .length_bytes = length_bytes};
    int type = -1;
    for (struct nal unit; type < H264_UNIT_SLICE || type > H264_UNIT_IDR;)
        if (nal_next(&reader, &unit))
            type = h264_unit_type(&unit);
        else
            break;
    free(copy);
    return type == H264_UNIT_IDR;
}

#define BEGINS_IDR(text, length_bytes) begins_idr(text, sizeof(text) - 1, length_bytes)

static void test_idr(void)
{
    CHECK(BEGINS_IDR("\0\0\1\x65"
                     "abc",
                     0),
          "alone");
    CHECK(BEGINS_IDR("\0\0\0\1\x09\x10\0\0\0\1\x67"
                     "abc\0\0\1\x68"
                     "d\0\0\1\x65"
                     "e",
                     0),
          "headers");
    CHECK(!BEGINS_IDR("\0\0\1\x67"
                      "abc\0\0\1\x68"
                      "d\0\0\1\x41"
                      "e\0\0\1\x65"
                      "f",
                      0),
          "another first");
    CHECK(!BEGINS_IDR("\0\0\1\x67"
                      "abc",
                      0),
          "headers alone");
    CHECK(BEGINS_IDR("\0\0\0\2\x65"
                     "a",
                     4) &&
              BEGINS_IDR("\0\2\x65"
                         "a",
                         2),
          "measured");
    CHECK(BEGINS_IDR("\0\0\0\2\x06"
                     "a\0\0\0\2\x65"
                     "b",
                     4),
          "measured, behind another");
    CHECK(!BEGINS_IDR("\0\0\0\2\x41"
                      "a\0\0\0\2\x65"
                      "b",
                      4),
          "measured, another first");
    CHECK(!BEGINS_IDR("\xff\xff\xff\xff\x06"
                      "a\0\0\0\2\x65"
                      "b",
                      4),
          "longer than the packet");
    static const char bytes[] = "\0\0\0\2\x06"
                                "a\0\0\1\x67\0\0\0\0\0\0\1";
    for (size_t size = 0; size < sizeof(bytes); size++)
        for (int length_bytes = 0; length_bytes <= 4; length_bytes++)
            CHECK(!begins_idr(bytes, size, length_bytes), "%zu, %d", size, length_bytes);
    CHECK(h264_length_bytes((const uint8_t *)"\1\x64\0\x1e\xff", 5) == 4, "avcC");
    CHECK(h264_length_bytes((const uint8_t *)"\0\0\0\1\x67", 5) == 0, "start codes");
    CHECK(h264_length_bytes(NULL, 0) == 0, "none");
}

int main(void)
{
    TEST(test_units());
    TEST(test_bits());
    TEST(test_length_bytes());
    TEST(test_hash());
    TEST(test_noise());
    TEST(test_idr());
    return test_end();
}
