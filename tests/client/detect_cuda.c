// Detection on a network's output in GPU memory gives the same bytes as on the CPU. Needs a GPU.
#include <stdlib.h>

#include "client/framed.h"
#include "tests/client/cuda_driver.h"
#include "tests/client/fake_daemon.h"
#include "tests/test.h"

enum { PICTURES = 5, ANCHORS = 2100, CLASSES = 80, COLUMNS_MAX = 4 + CLASSES + 3 * 17 + 32 + 1 };

static uint32_t state = 1;

static uint32_t next(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// Fills in scores of few levels, so that many are equal, and boxes that overlap.
static void fill(uint16_t *to, const struct framed_model *model, int columns)
{
    for (int i = 0; i < PICTURES * ANCHORS * columns; i++) {
        const int column = model->planes ? i / ANCHORS % columns : i % columns;
        const bool is_score = column >= 4 && column < 4 + CLASSES;
        const uint16_t level = (uint16_t)(next() % 5000 == 0 ? 0x3800 + (next() % 8 << 6) : 0x2000);
        const uint16_t side = (uint16_t)(0x5000 + next() % 0x600);
        to[i] = is_score ? level : next() % 20000 == 0 ? 0x7e00 : side;
    }
}

static struct framed_model model_of(int number)
{
    struct framed_model model;
    framed_model_init(&model, FRAMED_HEAD_YOLOV8);
    model.width = model.height = 320;
    model.anchors = ANCHORS;
    model.classes = CLASSES;
    model.pictures = PICTURES;
    model.format[FRAMED_BOXES].dtype = FRAMED_F16;
    model.candidates = 8192; // the GPU's limit, so that both cut at the same number
    model.planes = number != 1;
    model.quads = number == 1;
    model.multi_label = number == 2;
    if (number == 1) {
        model.keypoints = 17;
        model.keypoint_columns = 3;
        model.coefficients = 32;
    }
    model.rotated = number == 3;
    return model;
}

static bool are_equal(const void *one, const void *other, size_t bytes)
{
    return (!one && !other) || (one && other && memcmp(one, other, bytes) == 0);
}

static void compare(const struct framed_found *found, const struct framed_found *wanted, int number)
{
    const size_t n = wanted->count, extra = n * wanted->extra_stride * sizeof(float);
    CHECK(found->count == n && found->candidates == wanted->candidates &&
              found->dropped == wanted->dropped && found->flags == wanted->flags,
          "model %d: %u boxes of %u candidates, not %u of %u", number, found->count,
          found->candidates, wanted->count, wanted->candidates);
    if (found->count != n)
        return;
    CHECK(are_equal(found->detections, wanted->detections, n * sizeof *found->detections),
          "model %d: other boxes", number);
    CHECK(are_equal(found->anchors, wanted->anchors, n * sizeof *found->anchors), "%d: anchors",
          number);
    CHECK(are_equal(found->angles, wanted->angles, n * sizeof(float)), "%d: angles", number);
    CHECK(are_equal(found->quads, wanted->quads, 8 * n * sizeof(float)), "%d: quads", number);
    CHECK(are_equal(found->keypoints, wanted->keypoints, extra), "%d: keypoints", number);
}

static void test_same(const struct driver *driver, int number)
{
    static uint16_t output[PICTURES * ANCHORS * COLUMNS_MAX];
    struct framed_model model = model_of(number);
    struct framed_header headers[PICTURES];
    struct framed_found found[PICTURES], wanted[PICTURES];
    const char *why = NULL;
    uint64_t address = 0;
    const int columns =
        4 + CLASSES + 3 * model.keypoints + model.coefficients + (model.rotated ? 1 : 0);
    uint32_t boxes = 0;
    fill(output, &model, columns);
    for (int i = 0; i < PICTURES; i++) {
        headers[i] = fake_header((uint64_t)i);
        headers[i].flags = i == 2 ? FRAMED_FLAG_EMPTY : 0;
        headers[i].dst_to_src[2] = (float)(10 * i);
        headers[i].source_width = headers[i].source_height = 700;
    }
    CHECK(driver->allocate(&address, sizeof output) == 0 &&
              driver->copy_up(address, output, sizeof output) == 0,
          "device memory");
    struct framed_detector *host = framed_detector_open(&model, &why);
    model.memory = FRAMED_RING_CUDA;
    struct framed_detector *gpu = framed_detector_open(&model, &why);
    CHECK(host && gpu, "%s: %s", strerror(errno), why);
    if (!host || !gpu)
        return;
    const struct framed_output on_gpu = {.tensor = {(const void *)(uintptr_t)address}};
    const struct framed_output on_host = {.tensor = {output}};
    for (int again = 0; again < 3; again++) {
        const int n = PICTURES - again; // also fewer than the capacity
        CHECK(framed_detect_headers(gpu, &on_gpu, headers, sizeof headers[0], found, n) == n, "%s",
              framed_detector_error(gpu));
        CHECK(framed_detect_headers(host, &on_host, headers, sizeof headers[0], wanted, n) == n,
              "%s", framed_detector_error(host));
        for (int i = 0; i < n; i++) {
            compare(&found[i], &wanted[i], number);
            boxes += wanted[i].count;
        }
    }
    CHECK(boxes > 100, "%u boxes are too few to tell", boxes);
    framed_detector_close(gpu);
    framed_detector_close(host);
}

static void test_no_device(void)
{
    struct framed_model model = model_of(0);
    const char *why = NULL;
    model.memory = FRAMED_RING_CUDA;
    model.device = 1000;
    CHECK(!framed_detector_open(&model, &why) && errno == ENODEV && why, "%s", strerror(errno));
}

int main(void)
{
    struct framed_model model = model_of(0);
    struct driver driver;
    const char *why = NULL;
    model.memory = FRAMED_RING_CUDA;
    struct framed_detector *detector = framed_detector_open(&model, &why);
    const int error = errno;
    framed_detector_close(detector);
    CHECK(detector || why, "no reason");
    if (detector && driver_load(&driver)) {
        for (int number = 0; number < 4; number++)
            TEST(test_same(&driver, number));
        TEST(test_no_device());
    } else {
        CHECK(error == ENOTSUP || error == ENODEV, "%s: %s", strerror(error), why);
        SKIP("%s", why);
    }
    return test_end();
}
