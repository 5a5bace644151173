// Detection for programs: a box of each head, batches, torn frames, extra columns of a box, tiles.
// The kernels' tests check every rule of detection; these check the library's use of it.
#include <math.h>

#include "client/framed.h"
#include "tests/client/fake_daemon.h"
#include "tests/test.h"

// Frames of the fake daemon are 8 x 6, of a picture of twice that size.
enum { ANCHORS = 4, CLASSES = 3 };

static struct framed_model model_of(uint32_t head)
{
    struct framed_model model;
    framed_model_init(&model, head);
    model.width = FAKE_WIDTH;
    model.height = FAKE_HEIGHT;
    model.anchors = ANCHORS;
    model.classes = CLASSES;
    return model;
}

static struct framed_detector *open_detector(const struct framed_model *model)
{
    const char *why = NULL;
    struct framed_detector *detector = framed_detector_open(model, &why);
    CHECK(detector, "%s: %s", strerror(errno), why);
    return detector;
}

static bool is_box(const struct framed_detection *box, float x1, float y1, float x2, float y2)
{
    return fabsf(box->x1 - x1) < 1e-4f && fabsf(box->y1 - y1) < 1e-4f &&
           fabsf(box->x2 - x2) < 1e-4f && fabsf(box->y2 - y2) < 1e-4f;
}

// --- one frame

struct frame {
    struct fake_daemon daemon;
    struct framed_reader *reader;
    struct framed_view view;
};

static void frame_open(struct frame *frame)
{
    fake_open(&frame->daemon, "ring");
    frame->reader = framed_open(frame->daemon.name, 0);
    CHECK(framed_next(frame->reader, &frame->view, 0) == 0 && fake_accept(&frame->daemon) &&
              fake_say_hello(&frame->daemon, 0) && fake_say_frame(&frame->daemon, 1, 9, 0) &&
              framed_next(frame->reader, &frame->view, 0) == 1,
          "%s", framed_error(frame->reader));
}

static void frame_close(struct frame *frame)
{
    framed_close(frame->reader);
    fake_close(&frame->daemon);
}

// Two anchors see the box (1, 1) to (5, 4) of class 2, with scores of 0.75 and 0.5, one of them off
// by a quarter of a pixel; a third has nothing.
static const float with_objectness[ANCHORS * 8] = {
    3,     2.5f, 4, 3, 1, 0, 0.125f, 0.5f,  //
    0,     0,    1, 1, 1, 0, 0,      0,     //
    2.75f, 2.5f, 4, 3, 1, 0, 0,      0.75f, //
    0,     0,    1, 1, 0, 1, 1,      1,
};

static void without_objectness(float to[ANCHORS * 7], bool planes)
{
    for (int i = 0; i < ANCHORS; i++)
        for (int column = 0; column < 7; column++) {
            const float *row = with_objectness + 8 * i;
            const float value = column < 4 ? row[column] : row[4] * row[column + 1];
            to[planes ? column * ANCHORS + i : 7 * i + column] = value;
        }
}

static void test_yolo(void)
{
    struct frame frame;
    float output[ANCHORS * 8];
    struct framed_detection found[ANCHORS];
    frame_open(&frame);
    for (uint32_t head = FRAMED_HEAD_YOLOV8; head <= FRAMED_HEAD_YOLOX; head++)
        for (int planes = 0; planes <= (head == FRAMED_HEAD_YOLOV8); planes++) {
            struct framed_model model = model_of(head);
            model.planes = (uint8_t)planes;
            memcpy(output, with_objectness, sizeof with_objectness);
            if (head == FRAMED_HEAD_YOLOV8)
                without_objectness(output, planes);
            struct framed_detector *detector = open_detector(&model);
            int n = framed_detect(detector, output, &frame.view, found, ANCHORS);
            CHECK(n == 1 && is_box(found, 1.5f, 2, 9.5f, 8), "head %u: %d boxes, the first %g %g",
                  head, n, (double)found[0].x1, (double)found[0].y1);
            CHECK(found[0].score == 0.75f && found[0].class_id == 2 && found[0].track == 0,
                  "head %u: score %g of class %u", head, (double)found[0].score, found[0].class_id);
            framed_detector_close(detector);
            model.suppression = FRAMED_KEEP;
            detector = open_detector(&model);
            n = framed_detect(detector, output, &frame.view, found, ANCHORS);
            CHECK(n == 2 && is_box(&found[1], 2, 2, 10, 8), "head %u: %d boxes", head, n);
            CHECK(framed_detect(detector, output, &frame.view, found, 1) == 1, "more than asked");
            CHECK(framed_detect(detector, output, &frame.view, found, -1) == 0, "less than none");
            framed_detector_close(detector);
        }
    frame_close(&frame);
}

// YOLOX before its grid is applied: strides of 2 make 4 x 3 cells.
static void test_cells(void)
{
    struct frame frame;
    struct framed_detection found[1];
    float output[12 * 8] = {0};
    struct framed_model model = model_of(FRAMED_HEAD_YOLOX);
    model.anchors = 12;
    model.strides[0] = 2;
    const float row[8] = {0.5f, 0.5f, 0, 0, 1, 0.5f, 0, 0}; // in the cell (2, 1)
    memcpy(output + 8 * 6, row, sizeof row);
    frame_open(&frame);
    struct framed_detector *detector = open_detector(&model);
    CHECK(framed_detect(detector, output, &frame.view, found, 1) == 1 && is_box(found, 8, 4, 12, 8),
          "%g %g %g %g", (double)found[0].x1, (double)found[0].y1, (double)found[0].x2,
          (double)found[0].y2);
    framed_detector_close(detector);
    frame_close(&frame);
}

static void check_list(const struct framed_found *list, const char *head)
{
    CHECK(list->count == 2 && list->candidates == 2 && list->dropped == 0 && list->flags == 0,
          "%s: %u boxes of %u candidates", head, list->count, list->candidates);
    CHECK(is_box(list->detections, 2, 2, 10, 8) && list->detections[0].class_id == 2 &&
              list->detections[0].score == 0.75f && list->anchors[0] == 1,
          "%s: anchor %u: %g of class %u", head, list->anchors[0], (double)list->detections->score,
          list->detections->class_id);
    CHECK(!list->angles && !list->quads && !list->keypoints && !list->coefficients,
          "%s: what was not asked for", head);
}

// Heads that suppress no duplicates and keep both boxes; the second row is the best.
static void test_finished(void)
{
    static const float end2end[ANCHORS * 6] = {1, 1, 5, 4, 0.5f, 2, 1, 1, 5, 4, 0.75f, 2};
    static const float centres[ANCHORS * 4] = {0.375f, 0.4166666666f, 0.5f, 0.5f,
                                               0.375f, 0.4166666666f, 0.5f, 0.5f};
    static const float plain[ANCHORS * CLASSES] = {0, 0, 0.5f, 0, 0.5f, 0.75f};
    static const float corners[ANCHORS * 4] = {1, 1, 5, 4, 1, 1, 5, 4};
    static const float turned[ANCHORS * 4] = {0.1666666666f, 0.125f, 0.6666666666f, 0.625f,
                                              0.1666666666f, 0.125f, 0.6666666666f, 0.625f};
    static const float scores[ANCHORS] = {0.5f, 0.75f, 1, 1}, labels[ANCHORS] = {2, 2, 2, 2};
    static const int32_t whole[ANCHORS] = {2, 2, 2, 2}, two = 2;
    static const float count = 2;
    const struct {
        const char *name;
        uint32_t head;
        struct framed_output output;
    } cases[] = {
        {"end2end", FRAMED_HEAD_END2END, {.tensor = {end2end}}},
        {"detr", FRAMED_HEAD_DETR, {.tensor = {centres, plain}}},
        {"efficientnms", FRAMED_HEAD_EFFICIENTNMS, {.tensor = {corners, scores, whole, &two}}},
        {"tflite", FRAMED_HEAD_TFLITE, {.tensor = {turned, scores, labels, &count}}},
    };
    struct frame frame;
    frame_open(&frame);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct framed_model model = model_of(cases[i].head);
        struct framed_found list;
        struct framed_detection found[1];
        model.activation = FRAMED_PLAIN; // detr's scores are not logits here
        struct framed_detector *detector = open_detector(&model);
        CHECK(framed_detect_view(detector, &cases[i].output, &frame.view, &list, 1) == 1, "%s",
              framed_detector_error(detector));
        check_list(&list, cases[i].name);
        if (cases[i].output.tensor[FRAMED_SCORES])
            CHECK(framed_detect(detector, corners, &frame.view, found, 1) == -1 && errno == EINVAL,
                  "%s of one tensor", cases[i].name);
        framed_detector_close(detector);
    }
    frame_close(&frame);
}

// A box rotated by a quarter turn, with a keypoint of three columns and two coefficients.
static void test_extras(void)
{
    static const float output[2 * 11] = {
        4, 3, 4, 2, 0.5f,  1,   2, 0.25f, 7, 8, 1.57079637f, //
        4, 3, 4, 2, 0.75f, NAN, 2, 0.25f, 7, 8, NAN,
    };
    struct frame frame;
    struct framed_found list;
    struct framed_model model = model_of(FRAMED_HEAD_YOLOV8);
    model.anchors = 2;
    model.classes = model.keypoints = 1;
    model.keypoint_columns = 3;
    model.coefficients = 2;
    model.rotated = model.quads = 1;
    frame_open(&frame);
    struct framed_detector *detector = open_detector(&model);
    const struct framed_output at = {.tensor = {output}};
    CHECK(framed_detect_view(detector, &at, &frame.view, &list, 1) == 1, "%s",
          framed_detector_error(detector));
    CHECK(list.count == 1 && list.dropped == 1 && list.candidates == 2 && list.anchors[0] == 0,
          "%u boxes, %u dropped", list.count, list.dropped);
    const struct framed_detection *box = list.detections;
    CHECK(fabsf(box->x1 - 6) < 1e-5f && fabsf(box->y1 - 2) < 1e-5f && fabsf(box->x2 - 10) < 1e-5f &&
              fabsf(box->y2 - 10) < 1e-5f,
          "%g %g %g %g", (double)box->x1, (double)box->y1, (double)box->x2, (double)box->y2);
    CHECK(list.angles && fabsf(list.angles[0] - 1.57079637f) < 1e-6f, "angle");
    CHECK(list.quads && fabsf(list.quads[0] - 6) < 1e-5f && fabsf(list.quads[1] - 10) < 1e-5f,
          "%g %g", (double)list.quads[0], (double)list.quads[1]);
    CHECK(list.extra_stride == 5 && list.keypoints[0] == 2 && list.keypoints[1] == 4 &&
              list.keypoints[2] == 0.25f,
          "keypoint %g %g", (double)list.keypoints[0], (double)list.keypoints[1]);
    CHECK(list.coefficients[0] == 7 && list.coefficients[1] == 8, "coefficients");
    framed_detector_close(detector);
    model.candidates = 1;
    detector = open_detector(&model);
    framed_detect_view(detector, &at, &frame.view, &list, 1);
    CHECK(list.flags == FRAMED_FOUND_CUT && list.count == 0, "flags %u", list.flags);
    framed_detector_close(detector);
    frame_close(&frame);
}

// Thresholds and class lists are read when a detector is opened; narrow number types work.
static void test_choice(void)
{
    float class_conf[CLASSES] = {0, 0, 0.75f};
    uint8_t class_list[CLASSES] = {1, 1, 0};
    int8_t output[ANCHORS * 7] = {6, 5, 8, 6, 0, 0, 1};
    struct frame frame;
    struct framed_detection found[1];
    frame_open(&frame);
    for (int i = 0; i < 3; i++) {
        struct framed_model model = model_of(FRAMED_HEAD_YOLOV8);
        model.format[FRAMED_BOXES] = (struct framed_format){FRAMED_S8, 0.5f, 0};
        model.class_conf = i == 1 ? class_conf : NULL;
        model.class_list = i == 2 ? class_list : NULL;
        struct framed_detector *detector = open_detector(&model);
        CHECK(framed_detect(detector, output, &frame.view, found, 1) == (i == 0), "choice %d", i);
        framed_detector_close(detector);
    }
    CHECK(is_box(found, 2, 2, 10, 8) && found[0].score == 0.5f, "s8: %g", (double)found[0].x1);
    frame_close(&frame);
}

// --- batches

static void say_batch(const struct fake_daemon *daemon)
{
    const struct framed_batch batch = fake_batch(0, 70, FAKE_BATCH);
    for (uint32_t i = 0; i < FAKE_BATCH; i++) {
        struct framed_element_header element = fake_element(70, i);
        element.header.dst_to_src[2] += (float)(100 * i);
        element.header.source_width = 1000;
        fake_headers(daemon, 0)[i] = element;
    }
    fake_headers(daemon, 0)[1].header.flags = FRAMED_FLAG_EMPTY;
    *fake_state(daemon, 0) = 70;
    fake_send(daemon, &batch, sizeof batch);
}

// One call, each element with its own matrix; the element without a picture has an empty list,
// whatever the network computed for it.
static void test_batch(void)
{
    struct frame frame;
    float output[FAKE_BATCH][ANCHORS * 7];
    struct framed_found lists[FAKE_BATCH];
    struct framed_detection found[1];
    struct framed_model model = model_of(FRAMED_HEAD_YOLOV8);
    for (int i = 0; i < FAKE_BATCH; i++) {
        without_objectness(output[i], false);
        output[i][2 * 7 + 6] += (float)i / 16;
    }
    const struct framed_output at = {.tensor = {output}};
    fake_open(&frame.daemon, "ring");
    frame.reader = framed_open(frame.daemon.name, 0);
    CHECK(framed_next(frame.reader, &frame.view, 0) == 0 && fake_accept(&frame.daemon) &&
              fake_say_hello(&frame.daemon, FAKE_BATCH),
          "no connection");
    say_batch(&frame.daemon);
    CHECK(framed_next(frame.reader, &frame.view, 0) == 1, "%s", framed_error(frame.reader));
    struct framed_detector *detector = open_detector(&model);
    CHECK(framed_detect_view(detector, &at, &frame.view, lists, FAKE_BATCH) == -1 &&
              errno == EINVAL && strstr(framed_detector_error(detector), "pictures"),
          "%s", framed_detector_error(detector));
    framed_detector_close(detector);
    model.pictures = FAKE_BATCH;
    detector = open_detector(&model);
    CHECK(framed_detect_view(detector, &at, &frame.view, lists, 2) == -1 && errno == EINVAL,
          "more elements than lists");
    CHECK(framed_detect(detector, output, &frame.view, found, 1) == -1 && errno == EINVAL,
          "a batch as a frame");
    for (int again = 0; again < 2; again++) {
        CHECK(framed_detect_view(detector, &at, &frame.view, lists, FAKE_BATCH) == FAKE_BATCH, "%s",
              framed_detector_error(detector));
        CHECK(lists[0].count == 1 && is_box(lists[0].detections, 1.5f, 2, 9.5f, 8), "element 0");
        CHECK(lists[1].count == 0 && lists[1].candidates == 0, "the empty element");
        CHECK(lists[2].count == 1 && is_box(lists[2].detections, 201.5f, 2, 209.5f, 8) &&
                  lists[2].detections[0].score == 0.875f,
              "element 2: %g", (double)lists[2].detections[0].x1);
    }
    CHECK(framed_detect_headers(detector, &at, &frame.view.elements[2].header, 0, lists, 1) == 1 &&
              is_box(lists[0].detections, 201.5f, 2, 209.5f, 8),
          "the header of element 2 alone");
    *fake_state(&frame.daemon, 0) = 71;
    CHECK(framed_detect_view(detector, &at, &frame.view, lists, FAKE_BATCH) == -1 &&
              errno == ESTALE,
          "a torn batch");
    framed_detector_close(detector);
    frame_close(&frame);
}

// --- refused calls

static void test_torn(void)
{
    struct frame frame;
    float output[ANCHORS * 7];
    struct framed_detection found[ANCHORS];
    struct framed_model model = model_of(FRAMED_HEAD_YOLOV8);
    without_objectness(output, false);
    frame_open(&frame);
    struct framed_detector *detector = open_detector(&model);
    CHECK(framed_detect(detector, output, &frame.view, found, ANCHORS) == 1, "a whole frame");
    *fake_state(&frame.daemon, 1) = 10;
    CHECK(framed_detect(detector, output, &frame.view, found, ANCHORS) == -1 && errno == ESTALE,
          "a torn frame");
    CHECK(framed_release(frame.reader, &frame.view, found, -1) == -1 && errno == ESTALE, "%s",
          strerror(errno));
    CHECK(framed_detect(detector, output, &frame.view, found, ANCHORS) == -1 && errno == EINVAL,
          "a view that was given back");
    framed_detector_close(detector);
    frame_close(&frame);
}

static void test_refusals(void)
{
    struct frame frame;
    float output[ANCHORS * 7 + 1];
    struct framed_detection found[ANCHORS];
    const char *why;
    struct framed_model model = model_of(FRAMED_HEAD_YOLOV8);
    frame_open(&frame);
    model.width = 640;
    struct framed_detector *detector = open_detector(&model);
    CHECK(framed_detect(detector, output, &frame.view, found, ANCHORS) == -1 && errno == EINVAL &&
              strstr(framed_detector_error(detector), "8 x 6 pixels, the model's input 640 x 6"),
          "%s", framed_detector_error(detector));
    framed_detector_close(detector);
    model.width = FAKE_WIDTH;
    detector = open_detector(&model);
    CHECK(framed_detect(detector, NULL, &frame.view, found, ANCHORS) == -1 && errno == EINVAL,
          "no output");
    CHECK(framed_detect(detector, (char *)output + 2, &frame.view, found, ANCHORS) == -1 &&
              errno == EINVAL,
          "an output between two floats");
    framed_detector_close(detector);
    frame_close(&frame);
    for (int i = 0; i < 8; i++) {
        model = model_of(i == 7 ? 7 : FRAMED_HEAD_YOLOV8);
        model.bytes -= i == 0;
        model.reserved[15] = i == 1;
        model.agnostic = i == 2 ? 2 : 0;
        model.classes = i == 3 ? 0 : model.classes;
        model.memory = i == 4 ? 5 : 0;
        model.pictures = i == 5 ? 5000 : 0;
        model.suppression = i == 6 ? 4 : 0;
        CHECK(!framed_detector_open(&model, &why) && errno == EINVAL && why, "refusal %d", i);
        CHECK(!framed_detector_open(&model, NULL), "refusal %d", i);
    }
    framed_detector_close(NULL);
}

// --- tiles

static void test_merge(void)
{
    const struct framed_detection from[] = {
        {0, 0, 10, 10, 0.5f, 1, 0, 11},
        {4, 0, 12, 10, 0.75f, 1, 0, 12},
        {0, 0, 12, 10, 0.25f, 2, 0, 13},
        {NAN, 0, 12, 10, 1, 1, 0, 14},
    };
    struct framed_detection to[4];
    int32_t source[4];
    int n = framed_merge(to, source, from, 4, 0.5, FRAMED_MERGE_IOS);
    CHECK(n == 2 && source[0] == 1 && source[1] == 2 && to[0].track == 12 &&
              is_box(to, 4, 0, 12, 10),
          "%d are left", n);
    n = framed_merge(to, NULL, from, 4, 0.5, FRAMED_MERGE_IOS | FRAMED_MERGE_ABSORB);
    CHECK(n == 2 && is_box(to, 0, 0, 12, 10) && to[0].score == 0.75f, "%d, absorbed", n);
    n = framed_merge(to, source, from, 4, 0.5, FRAMED_MERGE_IOS | FRAMED_MERGE_AGNOSTIC);
    CHECK(n == 1, "%d of whatever class", n);
    CHECK(framed_merge(to, source, from, 4, 0.75, 0) == 3, "by the union's area");
    CHECK(framed_merge(to, source, from, 0, 0.5, 0) == 0, "nothing");
    CHECK(framed_merge(to, source, from, 4, NAN, 0) == -1 && errno == EINVAL, "no threshold");
    CHECK(framed_merge(to, source, from, 4, 0.5, 8) == -1 && errno == EINVAL, "an unknown flag");
    CHECK(framed_merge(to, source, from, -1, 0.5, 0) == -1 && errno == EINVAL, "less than none");
}

// --- allocation calls, redirected here by the linker

static int allocations;
void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_aligned_alloc(size_t, size_t);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __real_aligned_alloc(alignment, size);
}

static void test_allocations(void)
{
    struct frame frame;
    float output[ANCHORS * 7];
    struct framed_detection found[ANCHORS];
    struct framed_found list;
    struct framed_model model = model_of(FRAMED_HEAD_YOLOV8);
    const struct framed_output at = {.tensor = {output}};
    without_objectness(output, false);
    frame_open(&frame);
    struct framed_detector *detector = open_detector(&model);
    CHECK(allocations > 0, "nobody counts");
    const int before = allocations;
    for (int i = 0; i < 10; i++) {
        framed_detect(detector, output, &frame.view, found, ANCHORS);
        framed_detect_view(detector, &at, &frame.view, &list, 1);
    }
    CHECK(allocations == before, "%d allocations", allocations - before);
    framed_detector_close(detector);
    frame_close(&frame);
}

int main(void)
{
    TEST(test_yolo());
    TEST(test_cells());
    TEST(test_finished());
    TEST(test_extras());
    TEST(test_choice());
    TEST(test_batch());
    TEST(test_torn());
    TEST(test_refusals());
    TEST(test_merge());
    TEST(test_allocations());
    return test_end();
}
