// The bytes before a payload: every field of the wire, and the other protocols as read by numpy and
// ffprobe.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/output/protocol.h"
#include "daemon/scene/scene.h"
#include "daemon/wire.h"
#include "tests/test.h"

static uint8_t data[1 << 16];
static struct item item; // of each result
enum { HEADER_MAX = 512 };

static struct output_config config_of(const char *output, enum protocol protocol)
{
    return (struct output_config){.name = (char *)output, .protocol = protocol};
}

static struct result tensor(enum dtype dtype, enum layout layout, enum order order)
{
    static const size_t bytes[] = {
        [DTYPE_U8] = 1, [DTYPE_S8] = 1, [DTYPE_F16] = 2, [DTYPE_F32] = 4};
    const int width = 6, height = 4, channels = order == ORDER_GRAY ? 1 : 3;
    const bool planar = layout == LAYOUT_NCHW;
    struct result result = {.item = &item,
                            .n_items = 1,
                            .data = data,
                            .size = bytes[dtype] * width * height * channels};
    result.format =
        (struct result_format){.image = {.format = PIXEL_TENSOR, .width = width, .height = height},
                               .dtype = dtype,
                               .layout = layout,
                               .order = order};
    size_t row = bytes[dtype] * width * (planar ? 1 : channels);
    for (int i = 0; i < (planar ? channels : 1); i++)
        result.format.image.plane[i] = (struct plane){data + i * row * height, (ptrdiff_t)row};
    return result;
}

static struct result picture(enum pixel_format format, int width, int height)
{
    struct result result = {.item = &item, .n_items = 1, .data = data};
    result.format.image = (struct image){.format = format, .width = width, .height = height};
    result.size = image_lay_out(&result.format.image, data);
    return result;
}

static struct framed_header framed(const struct result *result, const char *camera,
                                   const char *output)
{
    struct framed_header header;
    char bytes[HEADER_MAX];
    const struct stream_position position = {.begun = true, .lost = 17};
    snprintf(item.camera, sizeof item.camera, "%s", camera);
    const struct output_config config = config_of(output, PROTOCOL_FRAMED);
    size_t n = protocol_header(&config, result, &position, false, bytes);
    CHECK(n == sizeof header, "%zu bytes", n);
    memcpy(&header, bytes, sizeof header);
    return header;
}

static void test_framed_numbers(void)
{
    struct result result = tensor(DTYPE_F32, LAYOUT_NCHW, ORDER_RGB);
    item.finished_ns = 5;
    item.sequence = 0x0102030405060708;
    item.ordinal = 99;
    item.frame = (struct frame_info){.pts_ns = -1,
                                     .capture_ns = 2,
                                     .received_ns = 3,
                                     .decoded_ns = 4,
                                     .epoch = 6,
                                     .flags = FRAMED_FLAG_KEYFRAME,
                                     .source_width = 1920,
                                     .source_height = 1080};
    for (int i = 0; i < 6; i++) {
        item.src_to_dst[i] = i + 0.5;
        item.dst_to_src[i] = -i - 0.25;
    }
    struct framed_header h = framed(&result, "gate", "detector");
    const uint8_t *byte = (const uint8_t *)&h;
    CHECK(memcmp(byte, "FRMD\x01\x00\x00\x01", 8) == 0, "magic, version, header bytes");
    CHECK(byte[16] == 8 && byte[23] == 1, "the sequence is not little-endian");
    CHECK(h.payload_bytes == 6 * 4 * 3 * 4 && h.lost == 17, "payload %d", (int)h.payload_bytes);
    CHECK(h.pts_ns == -1 && h.capture_ns == 2 && h.received_ns == 3 && h.decoded_ns == 4 &&
              h.finished_ns == 5,
          "times");
    CHECK(h.epoch == 6 && h.flags == 2 && h.batch_index == 0, "epoch, flags");
    CHECK(h.width == 6 && h.height == 4 && h.source_width == 1920 && h.source_height == 1080,
          "sizes");
    for (int i = 0; i < 6; i++)
        CHECK(h.src_to_dst[i] == i + 0.5f && h.dst_to_src[i] == -i - 0.25f, "matrix %d", i);
    CHECK(memcmp(h.camera, "gate\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24) == 0, "camera");
    CHECK(memcmp(h.output, "detector\0\0\0\0\0\0\0", 16) == 0, "output");
}

static void expect_shape(const struct result *result, const char *format, const char *dtype,
                         const char *layout, int planes, const int offset[], const int stride[])
{
    struct framed_header h = framed(result, "", "");
    char padded[16] = "";
    memcpy(padded, format, strlen(format));
    memcpy(padded + 8, dtype, strlen(dtype));
    memcpy(padded + 12, layout, strlen(layout));
    CHECK(memcmp(h.format, padded, 16) == 0, "%.8s %.4s %.4s instead of %s %s %s", h.format,
          h.dtype, h.layout, format, dtype, layout);
    CHECK(h.planes == (uint32_t)planes, "%s: %d planes", format, (int)h.planes);
    for (int i = 0; i < 4; i++) {
        CHECK(h.plane_offset[i] == (uint64_t)(i < planes ? offset[i] : 0), "%s offset %d: %d",
              format, i, (int)h.plane_offset[i]);
        CHECK(h.plane_stride[i] == (uint32_t)(i < planes ? stride[i] : 0), "%s stride %d: %d",
              format, i, (int)h.plane_stride[i]);
    }
}

static void test_framed_shapes(void)
{
    struct result result = tensor(DTYPE_F32, LAYOUT_NCHW, ORDER_RGB);
    expect_shape(&result, "rgb", "f32", "nchw", 3, (int[]){0, 96, 192}, (int[]){24, 24, 24});
    result = tensor(DTYPE_F16, LAYOUT_NHWC, ORDER_BGR);
    expect_shape(&result, "bgr", "f16", "nhwc", 1, (int[]){0}, (int[]){36});
    result = tensor(DTYPE_S8, LAYOUT_NCHW, ORDER_GRAY);
    expect_shape(&result, "gray", "s8", "nchw", 1, (int[]){0}, (int[]){6});
    result = picture(PIXEL_NV12, 5, 3);
    expect_shape(&result, "nv12", "u8", "", 2, (int[]){0, 15}, (int[]){5, 6});
    result = picture(PIXEL_YUV420P, 5, 3);
    expect_shape(&result, "yuv420p", "u8", "", 3, (int[]){0, 15, 21}, (int[]){5, 3, 3});
    result = picture(PIXEL_YUV444P, 5, 3);
    expect_shape(&result, "yuv444p", "u8", "", 3, (int[]){0, 15, 30}, (int[]){5, 5, 5});
    result = picture(PIXEL_YUV24, 5, 3);
    expect_shape(&result, "yuv24", "u8", "", 1, (int[]){0}, (int[]){15});
}

// Names are cut at a character boundary and always end in a zero.
static void test_framed_names(void)
{
    struct result result = tensor(DTYPE_U8, LAYOUT_NHWC, ORDER_GRAY);
    struct framed_header h = framed(&result, "abcdefghijklmnopqrstuvwxyz", "123456789012345");
    CHECK(strncmp(h.camera, "abcdefghijklmnopqrstuvw", 24) == 0, "%.24s", h.camera);
    CHECK(strncmp(h.output, "123456789012345", 16) == 0, "%.16s", h.output);
    h = framed(&result, "abcdefghijklmnopqrstu\xe2\x82\xac", "12345678901234\xc3\xa4");
    CHECK(strncmp(h.camera, "abcdefghijklmnopqrstu", 24) == 0, "%.24s", h.camera);
    CHECK(strncmp(h.output, "12345678901234", 16) == 0, "%.16s", h.output);
}

// --- other programs

static char path[] = "/tmp/framed-protocol.XXXXXX";

// Writes a file of `n` frames of each result; their bytes are 0, 1, 2...
static void write_stream(enum protocol protocol, const struct result results[], int count, int n)
{
    char header[HEADER_MAX];
    const struct stream_position position = {0};
    const struct output_config config = config_of("detector", protocol);
    strcpy(item.camera, "gate");
    FILE *file = fopen(path, "w");
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    for (int i = 0; i < count * n; i++) {
        const struct result *result = &results[i / n];
        size_t size = protocol_header(&config, result, &position, i == 0, header);
        CHECK(size <= sizeof header, "%zu bytes", size);
        fwrite(header, 1, size, file);
        fwrite(result->data, 1, result->size, file);
    }
    fclose(file);
}

static void expect_output(const char *command, const char *expected)
{
    char whole[1024], text[1024] = "";
    snprintf(whole, sizeof whole, command, path);
    FILE *pipe = popen(whole, "r");
    size_t n = fread(text, 1, sizeof text - 1, pipe);
    text[n] = '\0';
    CHECK(pclose(pipe) == 0 && strcmp(text, expected) == 0, "%s\n%s instead of\n%s", whole, text,
          expected);
}

static void test_npy(void)
{
    const struct result results[] = {
        tensor(DTYPE_F32, LAYOUT_NCHW, ORDER_RGB),
        tensor(DTYPE_F16, LAYOUT_NHWC, ORDER_BGR),
        tensor(DTYPE_U8, LAYOUT_NCHW, ORDER_GRAY),
        tensor(DTYPE_S8, LAYOUT_NHWC, ORDER_GRAY),
        picture(PIXEL_YUV24, 5, 3),
        picture(PIXEL_YUV444P, 5, 3),
        picture(PIXEL_YUV420P, 5, 3),
        picture(PIXEL_NV12, IMAGE_SIDE_MAX, 1),
    };
    write_stream(PROTOCOL_NPY, results, 8, 1);
    expect_output("/usr/bin/python3 -c \"\n"
                  "import numpy\n"
                  "file = open('%s', 'rb')\n"
                  "for i in range(8):\n"
                  "    start = file.tell()\n"
                  "    a = numpy.load(file)\n"
                  "    assert (file.tell() - start - a.nbytes) %% 64 == 0\n"
                  "    assert (a.ravel().view('u1') == numpy.arange(a.nbytes) %% 256).all()\n"
                  "    print(a.dtype.str, a.shape)\n"
                  "assert not file.read()\"",
                  "<f4 (3, 4, 6)\n<f2 (4, 6, 3)\n|u1 (1, 4, 6)\n|i1 (4, 6, 1)\n"
                  "|u1 (3, 5, 3)\n|u1 (3, 3, 5)\n|u1 (27,)\n|u1 (32768,)\n");
}

static void expect_y4m(struct result result, const char *expected)
{
    write_stream(PROTOCOL_Y4M, &result, 1, 3);
    expect_output("ffprobe -v error -count_frames -show_entries stream=codec_name,width,height,"
                  "pix_fmt,color_range,chroma_location,r_frame_rate,nb_read_frames -of csv=p=0 %s",
                  expected);
}

static void test_y4m(void)
{
    struct result result = picture(PIXEL_YUV420P, 5, 3);
    result.format.image.colour = (struct colour){MATRIX_BT709, RANGE_LIMITED, SITING_LEFT};
    expect_y4m(result, "rawvideo,5,3,yuv420p,tv,left,25/1,3\n");
    result.format.image.colour = (struct colour){MATRIX_BT709, RANGE_FULL, SITING_CENTER};
    result.format.rate_num = 30000;
    result.format.rate_den = 1001;
    expect_y4m(result, "rawvideo,5,3,yuv420p,pc,center,30000/1001,3\n");
    result.format.image.colour.siting = SITING_TOPLEFT;
    expect_y4m(result, "rawvideo,5,3,yuv420p,pc,topleft,30000/1001,3\n");
    result = picture(PIXEL_YUV444P, 5, 3);
    result.format.image.colour.range = RANGE_LIMITED;
    expect_y4m(result, "rawvideo,5,3,yuv444p,tv,unspecified,25/1,3\n");
    expect_y4m(tensor(DTYPE_U8, LAYOUT_NCHW, ORDER_GRAY),
               "rawvideo,6,4,gray,pc,unspecified,25/1,3\n");
}

static void test_y4m_interlacing(void)
{
    static const struct {
        enum field_order order;
        const char *letter, *ffprobe;
    } orders[] = {
        {FIELDS_NONE, " Ip ", "progressive\n"},
        {FIELDS_TOP_FIRST, " It ", "tt\n"},
        {FIELDS_BOTTOM_FIRST, " Ib ", "bb\n"},
        {FIELDS_UNKNOWN, " I? ", "unknown\n"},
    };
    const struct stream_position position = {0};
    struct result result = picture(PIXEL_YUV420P, 6, 4);
    struct result gray = tensor(DTYPE_U8, LAYOUT_NCHW, ORDER_GRAY);
    const struct output_config config = config_of("", PROTOCOL_Y4M);
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        char header[HEADER_MAX];
        result.format.field_order = gray.format.field_order = orders[i].order;
        protocol_header(&config, &result, &position, true, header);
        CHECK(strstr(header, orders[i].letter) != NULL, "%s", header);
        write_stream(PROTOCOL_Y4M, &result, 1, 1);
        expect_output("ffprobe -v error -show_entries stream=field_order -of csv=p=0 %s",
                      orders[i].ffprobe);
        protocol_header(&config, &gray, &position, true, header);
        CHECK(strstr(header, " Ip ") != NULL, "rows of a tensor are no fields: %s", header);
    }
}

// A consumer's count of missed frames, and the start of an epoch for it.
static void test_stream_position(void)
{
    static const struct {
        uint64_t ordinal, lost;
        uint32_t epoch;
        bool first;
    } frames[] = {
        {5, 0, 0, true}, {6, 0, 0, false}, {9, 2, 1, true}, {10, 2, 1, false}, {20, 11, 4, true}};
    struct result result = tensor(DTYPE_U8, LAYOUT_NCHW, ORDER_RGB);
    const struct output_config config = config_of("b", PROTOCOL_FRAMED);
    struct stream_position position = {0};
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        struct framed_header header;
        char bytes[HEADER_MAX];
        item.ordinal = frames[i].ordinal;
        item.frame.epoch = frames[i].epoch;
        stream_advance(&position, &result);
        protocol_header(&config, &result, &position, i == 0, bytes);
        memcpy(&header, bytes, sizeof header);
        bool first = le32toh(header.flags) & FRAMED_FLAG_FIRST_OF_EPOCH;
        CHECK(first == frames[i].first, "frame %zu: first of its epoch", i);
        CHECK(le64toh(header.lost) == frames[i].lost, "frame %zu: lost", i);
    }
}

// --- batches

enum { ITEMS = 256 }; // the most

static struct item items[ITEMS];

// Makes a batch of this shape. Items listed in `filled`, which ends in -1, are complete.
static struct result batch_of(struct result shape, int n, const int filled[])
{
    shape.item = items;
    shape.n_items = n;
    shape.size *= (size_t)n;
    shape.closed_by = CLOSED_FULL;
    memset(items, 0, sizeof items);
    for (int i = 0; filled[i] >= 0; i++)
        items[filled[i]].state = ITEM_COMPLETE;
    return shape;
}

static struct {
    struct framed_batch batch;
    struct framed_element_header element[ITEMS];
} written;

// Writes a batch's bytes, and checks that they have room.
static void write_batch(const struct result *result, enum batch_tail tail)
{
    const struct output_config config = {
        .name = "detector", .protocol = PROTOCOL_FRAMED, .tail = tail};
    const struct stream_position position = {.begun = true, .lost = 17};
    const size_t room = protocol_header_max(result);
    char *bytes = malloc(room);
    size_t n = protocol_header(&config, result, &position, false, bytes);
    memset(&written, 0xff, sizeof written);
    CHECK(n <= room && n <= sizeof written, "%zu bytes", n);
    memcpy(&written, bytes, n <= sizeof written ? n : 0);
    CHECK(n == sizeof written.batch + written.batch.count * sizeof written.element[0], "%zu", n);
    CHECK(written.batch.payload_bytes == protocol_payload_size(&config, result), "payload %d",
          (int)written.batch.payload_bytes);
    free(bytes);
}

static void test_batch_numbers(void)
{
    struct result result =
        batch_of(tensor(DTYPE_F32, LAYOUT_NCHW, ORDER_RGB), 4, (int[]){0, 2, -1});
    const struct framed_batch *b = &written.batch;
    result.opened_ns = 5;
    result.closed_ns = 6;
    result.batch_sequence = 0x0102030405060708;
    items[0].finished_ns = 9;
    items[1].finished_ns = 99; // of a frame before
    items[2].finished_ns = 8;
    items[3] = (struct item){.state = ITEM_COMPLETE, .status = -5, .finished_ns = 99};
    write_batch(&result, BATCH_CUT);
    CHECK(memcmp(b, "FRBT\x01\x00\x80\x00\x03\x00\x00\x00", 12) == 0, "magic, bytes, count");
    CHECK(b->capacity == 4 && b->elements == 2 && b->header_bytes == 320, "%d of %d elements",
          (int)b->elements, (int)b->capacity);
    CHECK(b->element_bytes == 288 && b->payload_bytes == 3 * 288, "sizes");
    CHECK(b->sequence == 0x0102030405060708 && b->lost == 17, "sequence, lost");
    CHECK(b->opened_ns == 5 && b->closed_ns == 6 && b->finished_ns == 9, "times");
    CHECK(b->slot == 0 && b->ticket == 0, "of no ring");
    write_batch(&result, BATCH_ZERO);
    CHECK(b->count == 4 && b->elements == 2 && b->payload_bytes == 4 * 288, "tail: zero");
    CHECK(written.element[3].header.flags == FRAMED_FLAG_EMPTY, "an element that failed");
}

static void test_batch_reasons(void)
{
    static const uint8_t wire[] = {
        [CLOSED_FULL] = FRAMED_CLOSED_FULL,         [CLOSED_ALL] = FRAMED_CLOSED_ALL,
        [CLOSED_WAIT] = FRAMED_CLOSED_WAIT,         [CLOSED_RELOAD] = FRAMED_CLOSED_RELOAD,
        [CLOSED_STOPPING] = FRAMED_CLOSED_STOPPING,
    };
    struct result result = batch_of(picture(PIXEL_NV12, 5, 3), 2, (int[]){0, 1, -1});
    for (enum batch_close reason = CLOSED_FULL; reason <= CLOSED_STOPPING; reason++) {
        result.closed_by = reason;
        write_batch(&result, BATCH_CUT);
        CHECK(written.batch.closed_by == wire[reason], "%d: %d", reason,
              (int)written.batch.closed_by);
    }
}

static void test_elements(void)
{
    struct result result = batch_of(picture(PIXEL_YUV420P, 5, 3), 3, (int[]){1, 2, -1});
    const struct framed_element_header *e = written.element;
    strcpy(items[0].camera, "before");
    strcpy(items[0].region, "before");
    items[0].sequence = 77;
    items[0].frame.flags = FRAMED_FLAG_KEYFRAME;
    strcpy(items[1].camera, "gate");
    strcpy(items[1].region, "abcdefghijklmnopqrstu\xe2\x82\xac"); // cut at a character boundary
    items[1].sequence = 5;
    items[1].parent_sequence = 6;
    items[1].object = 7;
    items[1].ordinal = 4;
    items[1].lost = 3;
    items[1].part = 1;
    items[1].parts = 6;
    items[1].frame.flags = FRAMED_FLAG_FIRST_OF_EPOCH | FRAMED_FLAG_DAMAGED;
    items[1].frame.epoch = 8;
    items[1].dst_to_src[5] = 2.5;
    items[0].frame.scene = items[1].frame.scene = (struct scene_facts){
        .known = true,
        .light = true,
        .alarms = 1u << ALARM_DARK | 1u << ALARM_MOVED,
        .fingerprint = 0x123456789abcdef0,
        .mean = 98.5f,
        .sharpness = 5.25f,
    };
    strcpy(items[2].camera, "yard");
    write_batch(&result, BATCH_CUT);
    for (uint32_t i = 0; i < 3; i++) {
        const struct framed_header *h = &e[i].header;
        CHECK(memcmp(h, "FRMD\x01\x00\x40\x01", 8) == 0 && h->batch_index == i &&
                  h->payload_bytes == 27 && h->width == 5 && h->height == 3 && h->planes == 3 &&
                  strcmp(h->format, "yuv420p") == 0 && strcmp(h->output, "detector") == 0,
              "shape of %d", (int)i);
        CHECK(h->plane_offset[0] == 27 * i && h->plane_offset[1] == 27 * i + 15 &&
                  h->plane_offset[2] == 27 * i + 21 && h->plane_stride[1] == 3,
              "planes of %d", (int)i);
    }
    CHECK(e[0].header.flags == FRAMED_FLAG_EMPTY && e[0].header.camera[0] == 0 &&
              e[0].header.sequence == 0 && e[0].region[0] == 0 && e[0].scene == 0 &&
              e[0].fingerprint == 0,
          "a hole shows what was there");
    CHECK(e[1].header.flags == (FRAMED_FLAG_FIRST_OF_EPOCH | FRAMED_FLAG_DAMAGED) &&
              e[1].header.sequence == 5 && e[1].header.lost == 3 && e[1].header.epoch == 8 &&
              e[1].header.dst_to_src[5] == 2.5f && strcmp(e[1].header.camera, "gate") == 0,
          "header");
    CHECK(e[1].parent_sequence == 6 && e[1].object == 7 && e[1].part == 1 && e[1].parts == 6 &&
              strncmp(e[1].region, "abcdefghijklmnopqrstu", 24) == 0,
          "region %.24s", e[1].region);
    CHECK(e[1].scene == (FRAMED_SCENE_KNOWN | FRAMED_SCENE_LIGHT | FRAMED_SCENE_DARK |
                         FRAMED_SCENE_MOVED) &&
              e[1].fingerprint == 0x123456789abcdef0 && e[1].luma_mean == 98.5f &&
              e[1].sharpness == 5.25f,
          "scene %x", (unsigned)e[1].scene);
    CHECK(strcmp(e[2].header.camera, "yard") == 0 && e[2].header.flags == 0 && e[2].scene == 0,
          "another camera");
}

static void test_largest_batch(void)
{
    struct result result = batch_of(picture(PIXEL_NV12, 2, 2), ITEMS, (int[]){ITEMS - 1, -1});
    write_batch(&result, BATCH_CUT);
    CHECK(written.batch.count == ITEMS && written.batch.elements == 1, "%d elements",
          (int)written.batch.count);
    CHECK(protocol_first_item(&result) == &items[ITEMS - 1], "the first item is another");
    result = batch_of(picture(PIXEL_NV12, 2, 2), 1, (int[]){0, -1});
    write_batch(&result, BATCH_CUT);
    CHECK(written.batch.count == 1 && written.batch.capacity == 1, "a batch of one");
}

// numpy finds N x C x H x W; raw is the payload alone.
static void test_batches_of_arrays(void)
{
    static const struct {
        enum dtype dtype;
        enum layout layout;
        const char *shape;
    } cases[] = {{DTYPE_F32, LAYOUT_NCHW, "(2, 3, 4, 6)"}, {DTYPE_U8, LAYOUT_NHWC, "(2, 4, 6, 3)"}};
    char header[HEADER_MAX + 3 * sizeof(struct framed_element_header)] = "";
    const struct stream_position position = {0};
    struct output_config config = config_of("", PROTOCOL_NPY);
    struct result result;
    for (int i = 0; i < 2; i++) {
        result = batch_of(tensor(cases[i].dtype, cases[i].layout, ORDER_RGB), 3, (int[]){1, -1});
        protocol_header(&config, &result, &position, true, header);
        CHECK(strstr(header + 10, cases[i].shape), "%s: %s", cases[i].shape, header + 10);
    }
    result = batch_of(picture(PIXEL_YUV420P, 5, 3), 3, (int[]){1, -1});
    protocol_header(&config, &result, &position, true, header);
    CHECK(strstr(header + 10, "(2, 27)}"), "%s", header + 10);
    config.protocol = PROTOCOL_RAW;
    CHECK(protocol_header(&config, &result, &position, true, header) == 0, "no header");
    CHECK(protocol_payload_size(&config, &result) == 54, "payload");
}

// Batches count by their own number, whatever frames they contain.
static void test_position_among_batches(void)
{
    static const uint64_t numbers[] = {5, 6, 9, 10}, lost[] = {0, 0, 2, 2};
    struct result result = batch_of(picture(PIXEL_NV12, 5, 3), 2, (int[]){1, -1});
    struct stream_position position = {0};
    for (int i = 0; i < 4; i++) {
        result.batch_sequence = numbers[i];
        items[1].ordinal += 100;
        stream_advance(&position, &result);
        CHECK(position.lost == lost[i], "%d lost", (int)position.lost);
    }
}

static void test_raw(void)
{
    char header[HEADER_MAX];
    struct result result = picture(PIXEL_NV12, 5, 3);
    const struct stream_position position = {0};
    const struct output_config config = config_of("", PROTOCOL_RAW);
    CHECK(protocol_header(&config, &result, &position, true, header) == 0, "no header");
}

static void test_continues(void)
{
    const enum protocol fixed[] = {PROTOCOL_Y4M, PROTOCOL_RAW};
    const struct result_format before = picture(PIXEL_YUV420P, 6, 4).format;
    for (int i = 0; i < 2; i++) {
        struct result_format now = before;
        now.image.plane[0].data += 4096; // another result of the pool
        CHECK(protocol_continues(fixed[i], &before, &now), "the next frame");
        now.image.width = 8;
        CHECK(!protocol_continues(fixed[i], &before, &now), "another width");
        now = picture(PIXEL_YUV420P, 6, 8).format;
        CHECK(!protocol_continues(fixed[i], &before, &now), "another height");
        now = picture(PIXEL_YUV444P, 6, 4).format;
        CHECK(!protocol_continues(fixed[i], &before, &now), "another format");
        now = before;
        now.image.colour.range = RANGE_FULL;
        CHECK(!protocol_continues(fixed[i], &before, &now), "another range");
    }
    struct result_format interlaced = before;
    interlaced.field_order = FIELDS_TOP_FIRST;
    CHECK(!protocol_continues(PROTOCOL_Y4M, &before, &interlaced), "y4m of another field order");
    CHECK(protocol_continues(PROTOCOL_RAW, &before, &interlaced), "raw of another field order");
    const struct result_format other = picture(PIXEL_NV12, 8, 8).format;
    CHECK(protocol_continues(PROTOCOL_FRAMED, &before, &other), "framed says what comes");
    CHECK(protocol_continues(PROTOCOL_NPY, &before, &other), "npy says what comes");
}

int main(void)
{
    int fd = mkstemp(path);
    CHECK(fd >= 0, "mkstemp");
    close(fd);
    TEST(test_framed_numbers());
    TEST(test_framed_shapes());
    TEST(test_framed_names());
    TEST(test_npy());
    TEST(test_y4m());
    TEST(test_y4m_interlacing());
    TEST(test_stream_position());
    TEST(test_raw());
    TEST(test_continues());
    TEST(test_batch_numbers());
    TEST(test_batch_reasons());
    TEST(test_elements());
    TEST(test_largest_batch());
    TEST(test_batches_of_arrays());
    TEST(test_position_among_batches());
    unlink(path);
    return test_end();
}
