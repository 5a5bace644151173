// A dropped picture is detected at the next one, in streams of every kind; nothing else is
// reported. Noise is not taken for a keyframe, and no input does harm.
#include "daemon/codec/packet.h"
#include "tests/daemon/clips.h"

enum { PICTURES = 60 };

// Takes the headers and the picture of a packet.
static bool lost_before(struct h264_loss *loss, const uint8_t *data, size_t size)
{
    struct nal_reader units = {.data = data, .size = size};
    for (struct nal unit; nal_next(&units, &unit);) {
        const int type = h264_unit_type(&unit);
        const bool lost = h264_loss_unit(loss, &unit);
        if (type >= H264_UNIT_SLICE && type <= H264_UNIT_IDR)
            return lost;
    }
    return false;
}

struct unit { // a picture with the headers before it
    const uint8_t *data;
    size_t size;
    bool idr, reference;
};

static bool is_slice(const uint8_t *nal)
{
    return (nal[3] & 31) == 1 || (nal[3] & 31) == 5;
}

// Splits a stream with one slice per picture.
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

static bool gap_at(struct h264_loss *loss, const struct unit *unit)
{
    return lost_before(loss, unit->data, unit->size);
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
        struct h264_loss gaps = {0};
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

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint64_t random_next(void)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed;
}

// Copies `unit`, with noise after the first two bytes of each NAL unit.
static void make_noise(uint8_t *to, const struct unit *unit)
{
    size_t head = 0;
    memcpy(to, unit->data, unit->size);
    for (size_t at = 0; at < unit->size; at++) {
        bool start = at + 2 < unit->size && !to[at] && !to[at + 1] && to[at + 2] == 1;
        if (start || (at + 3 < unit->size && !to[at] && !to[at + 1] && !to[at + 2]))
            head = at + 5;
        if (at >= head)
            to[at] = (uint8_t)(random_next() >> 20 | 2); // never a start code
    }
}

static void test_noisy_idr(const char *coder, const char *file)
{
    enum { TURNS = 200 };
    struct unit units[PICTURES];
    size_t size;
    clips_make("160x96", PICTURES, coder, file);
    unsigned char *bytes = clips_read(file, &size), *noisy = malloc(size);
    int n = split(bytes, size, units, PICTURES), told = 0, idrs = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        struct h264_loss gaps = {0};
        for (int i = 0; i < n; i++) {
            if (i == 0 || !units[i].idr) {
                gap_at(&gaps, &units[i]);
                continue;
            }
            make_noise(noisy, &units[i]);
            idrs++;
            told += lost_before(&gaps, noisy, units[i].size);
        }
    }
    CHECK(idrs >= 2 * TURNS, "%s: %d IDR pictures", file, idrs);
    CHECK(told * 1000 >= idrs * 995, "%s: %d of %d told from noise", file, told, idrs);
    free(noisy);
    free(bytes);
}

// An IDR picture with 4-bit numbers.
static bool idr_numbered(struct h264_loss *loss, int number, int order)
{
    const uint8_t slice[] = {0,
                             0,
                             1,
                             0x65,
                             0x88,
                             (uint8_t)(0x84 | number << 3 | order >> 2),
                             (uint8_t)((order & 3) << 6 | 0x20)};
    return lost_before(loss, slice, sizeof slice);
}

// The parameters of a stream that may, or may not, leave out numbers.
static void take_sequence(struct h264_loss *loss, bool gaps)
{
    const uint8_t sps[] = {0, 0, 1, 0x67, 66, 0, 30, (uint8_t)(0xf4 | gaps), 0xf8, 0};
    lost_before(loss, sps, sizeof sps);
}

// Gaps become allowed, which would end the detection: once may be noise, twice is a real change.
static void test_gaps(void)
{
    struct h264_loss without = {0}, with = {0};
    take_sequence(&without, false);
    CHECK(!idr_numbered(&without, 0, 0), "the first parameters");
    take_sequence(&without, true);
    CHECK(idr_numbered(&without, 0, 0), "numbers may be left out now");
    take_sequence(&without, true);
    CHECK(!idr_numbered(&without, 0, 0), "and again");
    take_sequence(&with, true);
    CHECK(!idr_numbered(&with, 0, 0), "from the first ones on");
}

// An encoder that counts on over its IDR pictures is tolerated: at once if it does so from its
// first one on, else from the ninth in a row.
static void test_own_way(void)
{
    static const uint8_t strange[] = {0, 0, 1, 0x68, 0x93, 0xff};
    static const uint8_t joined[] = {0, 0, 1, 0x41, 0x88, 0x9c, 0x20}; // between two IDR pictures
    struct h264_loss own = {.sequence[0] = {.frame_num_bits = 4, .poc_lsb_bits = 4}}, other = own;
    int told = 0;
    CHECK(!lost_before(&own, joined, sizeof joined) && own.begun, "a picture to join at");
    for (int i = 1; i < 20; i++)
        CHECK(!idr_numbered(&own, i % 15 + 1, 0), "IDR picture %d of one that never keeps to 0", i);
    CHECK(!idr_numbered(&other, 0, 0), "a picture by the rule");
    for (int i = 1; i < 20; i++)
        told += idr_numbered(&other, i % 2 ? i % 15 + 1 : 0, i % 2 ? 0 : 3);
    CHECK(told == 8, "%d of 20 told", told);
    idr_numbered(&other, 0, 0);
    CHECK(idr_numbered(&other, 0, 8), "one more behind a picture by the rule");
    idr_numbered(&other, 0, 0);
    CHECK(!lost_before(&other, strange, sizeof strange) && idr_numbered(&other, 0, 8),
          "one more behind parameters of a sequence that never came");
}

// Pictures follow their own sequence's parameters, whatever others come with them.
static void test_two_sequences(void)
{
    struct unit own[PICTURES], other[PICTURES];
    size_t size;
    clips_make("160x96", PICTURES, "-c:v libx264 -threads 1 -bf 0 -g 60", "own.h264");
    clips_make("160x96", PICTURES,
               "-c:v libx264 -threads 1 -g 60 -x264-params sps-id=1:ref=16:bframes=8",
               "other.h264");
    unsigned char *bytes = clips_read("own.h264", &size);
    int n = split(bytes, size, own, PICTURES), told = 0;
    unsigned char *other_bytes = clips_read("other.h264", &size);
    int others = split(other_bytes, size, other, PICTURES);
    CHECK(n == PICTURES && others == PICTURES, "%d and %d pictures", n, others);
    struct h264_loss gaps = {0};
    told += gap_at(&gaps, &own[0]) + gap_at(&gaps, &other[0]);
    CHECK(gaps.sequence[0].frame_num_bits != gaps.sequence[1].frame_num_bits, "both have %d bits",
          gaps.sequence[0].frame_num_bits);
    for (int i = 1; i < n; i++)
        told += gap_at(&gaps, &own[i]);
    for (int i = 0; i < others; i++)
        told += gap_at(&gaps, &other[i]);
    CHECK(told == 0, "%d told beside other parameters", told);
    free(bytes);
    free(other_bytes);
}

// A camera with unusual levels changes to another one: a level that comes once counts as noise.
static void test_own_form(void)
{
    struct h264_loss gaps = {0};
    const uint8_t levels[] = {25, 25, 40, 70, 70, 70, 25, 99, 70, 255};
    const bool wrong[] = {0, 0, 0, 1, 0, 0, 0, 1, 1, 1};
    for (size_t i = 0; i < sizeof levels; i++) {
        const uint8_t unit[] = {0, 0, 1, 0x67, 66, 0, levels[i], 0xf8, 0, 0, 1, 0x65, 0xb8};
        CHECK(lost_before(&gaps, unit, sizeof unit) == wrong[i], "level %d, the %zuth", levels[i],
              i);
    }
}

// Noise replaces parameters that are not repeated, as from a camera that sends them only before the
// stream. The decoder may have refused the noise, so it does not count forever.
static void test_parameters_that_stay(void)
{
    static const uint8_t noise[] = {0, 0, 1, 0x67, 66, 3, 255, 0xf8, 0, 0, 1, 0x65, 0xb8};
    struct h264_loss gaps = {.form = 31, .sequence[0].frame_num_bits = 4};
    int told = lost_before(&gaps, noise, sizeof noise);
    for (int i = 1; i < 20; i++) {
        bool wrong = idr_numbered(&gaps, 0, 0);
        CHECK(wrong == (i < 8), "IDR picture %d", i);
        told += wrong;
    }
    CHECK(told == 8, "%d told", told);
}

static void test_noise(void)
{
    for (int run = 0; run < 20000; run++) {
        size_t size = run % 40;
        uint8_t *noise = malloc(size + 1); // exact size, for sanitizers
        for (size_t i = 0; i < size; i++) {
            uint64_t chance = random_next();
            noise[i] = chance >> 40 & 3 ? (uint8_t)(chance >> 20) : (uint8_t)(i % 5 == 2);
        }
        struct h264_loss gaps = {.sequence[0].frame_num_bits = 4 + run % 13, .begun = run & 1};
        uint8_t start[] = {0, 0, 1, run & 2 ? 0x67 : run & 4 ? 0x68 : 0x41};
        memcpy(noise, start, size < 4 ? size : 4);
        lost_before(&gaps, noise, size);
        int wrong = 0;
        for (int i = 0; i < H264_SPS_MAX; i++)
            wrong += gaps.sequence[i].frame_num_bits > 16 && !gaps.sequence[i].gaps;
        for (int i = 0; i < H264_PPS_MAX; i++)
            wrong += gaps.sequence_of[i] >= H264_SPS_MAX;
        CHECK(wrong == 0, "%d parameters beyond what may be", wrong);
        free(noise);
    }
}

int main(void)
{
    clips_open();
    TEST(test_stream("-c:v libx264 -threads 1 -bf 0 -g 20", "plain.h264"));
    TEST(test_stream("-c:v libx264 -threads 1 -bf 2 -g 30 -x264-params cqm=jvt:ref=8", "b.h264"));
    TEST(test_stream("-c:v libx264 -threads 1 -bf 0 -g 30 -profile:v high444 -pix_fmt yuv444p",
                     "444.h264"));
    TEST(test_stream("-c:v libx264 -threads 1 -bf 0 -g 30 -profile:v baseline", "base.h264"));
    TEST(test_noisy_idr("-c:v libx264 -threads 1 -bf 0 -g 10", "noisy.h264"));
    TEST(test_gaps());
    TEST(test_own_way());
    TEST(test_two_sequences());
    TEST(test_own_form());
    TEST(test_parameters_that_stay());
    TEST(test_noise());
    clips_close();
    return test_end();
}
