// A picture that is left out is missed at the next one, in streams of every kind; nothing else is,
// and no bytes do harm.
#include "daemon/camera/gaps.h"

#include "tests/daemon/camera/clips.h"

enum { PICTURES = 60 };

struct unit { // a picture with the headers ahead of it
    const uint8_t *data;
    size_t size;
    bool idr, reference;
};

static bool is_slice(const uint8_t *nal)
{
    return (nal[3] & 31) == 1 || (nal[3] & 31) == 5;
}

// Of a stream with one slice a picture.
static int split(const uint8_t *bytes, size_t size, struct unit units[], int max)
{
    size_t begin = 0;
    int n = 0;
    bool slice = false;
    for (size_t i = 0; i + 4 < size && n < max; i++) {
        if (bytes[i] || bytes[i + 1] || bytes[i + 2] != 1)
            continue;
        if (slice) {
            units[n - 1].size = (size_t)(bytes + i - units[n - 1].data);
            begin = i;
        }
        slice = is_slice(bytes + i);
        if (slice)
            units[n++] = (struct unit){bytes + begin, size - begin, (bytes[i + 3] & 31) == 5,
                                       bytes[i + 3] & 0x60};
    }
    return n;
}

static bool gap_at(struct gaps *gaps, const struct unit *unit)
{
    return gaps_before(gaps, unit->data, unit->size);
}

static void test_stream(const char *coder, const char *file)
{
    struct unit units[PICTURES];
    size_t size;
    clips_make("160x96", PICTURES, coder, file);
    unsigned char *bytes = clips_read(file, &size);
    int n = split(bytes, size, units, PICTURES), references = 0;
    CHECK(n == PICTURES, "%s: %d pictures", file, n);
    for (int left_out = -1; left_out < n - 1; left_out++) {
        struct gaps gaps = {0};
        int gap = -1, found = 0;
        for (int i = 0; i < n; i++) {
            if (i == left_out || !gap_at(&gaps, &units[i]))
                continue;
            gap = gap < 0 ? i : gap;
            found++;
        }
        bool missed = left_out > 0 && units[left_out].reference && !units[left_out + 1].idr;
        CHECK(missed ? gap == left_out + 1 : left_out == 0 || found == 0,
              "%s without %d: %d gaps from %d on", file, left_out, found, gap);
        references += missed;
    }
    CHECK(references >= 10, "%s: %d pictures that others need", file, references);
    free(bytes);
}

static void test_noise(void)
{
    uint64_t seed = 0x9e3779b97f4a7c15;
    for (int run = 0; run < 20000; run++) {
        size_t size = run % 40;
        uint8_t *noise = malloc(size + 1); // so that a sanitizer sees the first byte too many
        for (size_t i = 0; i < size; i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            noise[i] = seed >> 40 & 3 ? (uint8_t)(seed >> 20) : (uint8_t)(i % 5 == 2);
        }
        struct gaps gaps = {.number_bits = 4 + run % 13, .begun = run & 1};
        uint8_t start[] = {0, 0, 1, run & 2 ? 0x67 : 0x41};
        memcpy(noise, start, size < 4 ? size : 4);
        gaps_before(&gaps, noise, size);
        CHECK(gaps.number_bits >= 0 && gaps.number_bits <= 16, "%d", gaps.number_bits);
        free(noise);
    }
}

int main(void)
{
    clips_open();
    test_stream("-c:v libx264 -threads 1 -bf 0 -g 20", "plain.h264");
    test_stream("-c:v libx264 -threads 1 -bf 2 -g 30 -x264-params cqm=jvt:ref=8", "b.h264");
    test_stream("-c:v libx264 -threads 1 -bf 0 -g 30 -profile:v high444 -pix_fmt yuv444p",
                "444.h264");
    test_stream("-c:v libx264 -threads 1 -bf 0 -g 30 -profile:v baseline", "base.h264");
    test_noise();
    clips_close();
    return test_end("gaps");
}
