// Another decoder takes over a stream that does not signal its reordering depth.
#include <libavutil/log.h>

#include "tests/daemon/codec/fake_device.h"

// --- H.264 sequence parameters without the part that would signal it

struct bits {
    unsigned char *byte;
    size_t at;
};

static unsigned take(struct bits *bits, int n)
{
    unsigned value = 0;
    for (; n > 0; n--, bits->at++)
        value = value << 1 | (bits->byte[bits->at / 8] >> (7 - bits->at % 8) & 1);
    return value;
}

// Exp-Golomb.
static unsigned take_ue(struct bits *bits)
{
    int zeros = 0;
    while (take(bits, 1) == 0)
        zeros++;
    return (1u << zeros) - 1 + take(bits, zeros);
}

// Skips to vui_parameters_present_flag, as libx264 writes these clips.
static void skip_to_vui(struct bits *bits)
{
    take(bits, 8 + 24); // NAL header, profile, constraints, level
    take_ue(bits);      // id
    take_ue(bits);      // log2 of max_frame_num
    if (take_ue(bits) == 0)
        take_ue(bits);
    take_ue(bits); // reference frames
    take(bits, 1);
    take_ue(bits), take_ue(bits); // size
    take(bits, 2);                // frames only, direct_8x8
    CHECK(take(bits, 1) == 0, "cropped");
}

// Ends the parameters before the VUI; the rest becomes zeros, which may trail every unit.
static void strip_unit(unsigned char *unit, size_t size)
{
    struct bits bits = {unit, 0};
    skip_to_vui(&bits);
    size_t last = bits.at / 8;
    CHECK(take(&bits, 1) == 1 && bits.at % 8 != 0, "nowhere to put the end");
    unit[last] &= (unsigned char)~(0xff >> (bits.at % 8 - 1)); // the flag and everything after it
    unit[last] |= (unsigned char)(0x80 >> (bits.at % 8));      // the end
    memset(unit + last + 1, 0, size - last - 1);
}

static void strip(const char *from, const char *to)
{
    size_t size;
    unsigned char *bytes = clips_read(from, &size);
    for (size_t i = 3; i < size; i++) {
        size_t end = i;
        if (memcmp(bytes + i - 3, "\0\0\1", 3) != 0 || (bytes[i] & 31) != 7)
            continue;
        while (end + 3 < size && memcmp(bytes + end, "\0\0\1", 3) != 0)
            end++;
        strip_unit(bytes + i, end - i);
    }
    FILE *out = fopen(to, "wb");
    CHECK(out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0, "%s", to);
    free(bytes);
}

// --- the change

static void test_change(int n, const struct decode_target *from, const struct decode_target *to)
{
    struct run run;
    char what[32];
    got.n = 0;
    if (!run_join(&run, "late.h264", &anywhere, from))
        return;
    decode_some(&run, n);
    change(&run, to);
    decode_some(&run, PICTURES_MAX);
    snprintf(what, sizeof(what), "after %d pictures", n);
    same(&got, &whole, 0, 0, what);
    run_close(&run);
}

// The first pictures are in order, so probing the input reveals nothing about later ones.
int main(void)
{
    static const char encoder[] = "-c:v libx264 -profile:v main -g 12 -x264-params "
                                  "scenecut=0:repeat-headers=1:b-adapt=0:bframes=";
    char options[128];
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    fake_open();
    snprintf(options, sizeof(options), "%s0", encoder);
    clips_make("128x96", 36, options, "flat.h264");
    snprintf(options, sizeof(options), "%s3", encoder);
    clips_make("128x96", 84, options, "deep.h264");
    strip("flat.h264", "1.h264");
    strip("deep.h264", "2.h264");
    clips_run("cat 1.h264 2.h264 > late.h264");
    decode_all(&whole, "late.h264");
    CHECK(whole.n >= 118, "%d pictures", whole.n); // one shows the decoder that it waits too little
    for (int n = 60; n < 100; n += 7) {
        TEST(test_change(n, &no_device, &with_device));
        TEST(test_change(n, &with_device, &no_device));
    }
    fake_close();
    clips_close();
    return test_end();
}
