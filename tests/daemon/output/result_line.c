// Lines of JSON: every number and name in its form, and the longest line.
#include "daemon/output/lines.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/types.h"
#include "tests/test.h"

static char line[LINE_BYTES_MAX + 1];

static const char *line_of(const struct found *found, const struct line_labels *labels)
{
    const size_t bytes = result_line(line, found, labels);
    CHECK(bytes <= LINE_BYTES_MAX && line[bytes - 1] == '\n', "%zu bytes", bytes);
    line[bytes - 1] = 0;
    return line;
}

static struct found plain(void)
{
    return (struct found){.camera = "gate",
                          .object = -1,
                          .output = "detector",
                          .region = "",
                          .parts = 1,
                          .frame = {.pts_ns = 1640000000,
                                    .capture_ns = INT64_C(1760000000123456789),
                                    .received_ns = 5000000,
                                    .source_width = 1920,
                                    .source_height = 1080},
                          .sequence = 41,
                          .result_ns = 28150000};
}

static void check_line(const struct found *found, const struct line_labels *labels,
                       const char *expected)
{
    const char *got = line_of(found, labels);
    CHECK(strcmp(got, expected) == 0, "%s\ninstead of %s", got, expected);
}

static void test_empty(void)
{
    const struct found found = plain();
    check_line(&found, &(struct line_labels){0},
               "{\"camera\":\"gate\",\"output\":\"detector\",\"seq\":41,\"epoch\":0,\"time\":"
               "1760000000.123456,\"pts\":1.64,\"latency_ms\":23.1,\"width\":1920,\"height\":1080,"
               "\"objects\":[]}");
}

static void test_all_keys(void)
{
    const char *const text[] = {"person", "a \"b\"\\\x01"};
    const char *wrong;
    struct labels labels;
    struct line_labels of;
    CHECK(labels_parse(&labels, text, 2, &wrong) == 0 && line_labels_open(&of, &labels) == 0,
          "labels");
    const struct framed_detection list[] = {
        {.x1 = 0, .y1 = 12.5f, .x2 = 1919.996f, .y2 = 0.004f, .score = 0.91f, .class_id = 1},
        {.x1 = 1, .y1 = 2, .x2 = 3.05f, .y2 = 4, .score = 1, .track = INT64_MIN},
        {.score = -0.5f, .class_id = 2, .track = 7}};
    struct found found = plain();
    found.camera = "t\xc3\xbcr \xff";
    found.region = "door";
    found.part = 2;
    found.parts = 3;
    found.parent_sequence = 12;
    found.object = 0;
    found.frame.pts_ns = -1500000000;
    found.frame.epoch = UINT32_MAX;
    found.sequence = UINT64_MAX;
    found.model = 4;
    found.late = true;
    found.list = list;
    found.index = (const uint16_t[]){0, 1, 299};
    found.n = 3;
    check_line(
        &found, &of,
        "{\"camera\":\"t\xc3\xbcr ?\",\"output\":\"detector\",\"region\":\"door\",\"part\":2,"
        "\"parts\":3,\"parent_seq\":12,\"object\":0,\"seq\":18446744073709551615,\"epoch\":"
        "4294967295,\"time\":"
        "1760000000.123456,\"pts\":-1.5,\"latency_ms\":23.1,\"width\":1920,\"height\":1080,"
        "\"model\":4,\"late\":true,\"objects\":["
        "{\"box\":[0,12.5,1920,0],\"score\":0.91,\"class\":1,\"label\":"
        "\"a \\\"b\\\"\\\\\\u0001\"},"
        "{\"box\":[1,2,3.05,4],\"score\":1,\"class\":0,\"label\":\"person\",\"track\":"
        "-9223372036854775808},"
        "{\"box\":[0,0,0,0],\"score\":-0.5,\"class\":2,\"track\":7,\"index\":299}]}");
    line_labels_close(&of);
    text_list_free(&labels.list);
}

// Any score of a detector becomes a JSON number.
static void test_scores(void)
{
    const float scores[] = {0,         1e-9f, 0.12345f, -0.12349f, -3.5f,
                            123456.5f, 1e9f,  FLT_MAX,  -FLT_MAX,  FLT_MIN};
    for (size_t i = 0; i < sizeof scores / sizeof scores[0]; i++) {
        const struct framed_detection object = {.score = scores[i]};
        struct found found = plain();
        found.list = &object;
        found.index = &(const uint16_t){0};
        found.n = 1;
        const char *at = strstr(line_of(&found, &(struct line_labels){0}), "\"score\":");
        char *end;
        const double got = strtod(at + 8, &end), is = (double)scores[i],
                     off = got > is ? got - is : is - got;
        CHECK(*end == ',' && (at[8] == '-' || (at[8] >= '0' && at[8] <= '9')), "%s", at);
        CHECK(off <= 6e-5 || off <= 1e-6 * (is < 0 ? -is : is), "%g is written as %g", is, got);
    }
}

// No line can be longer.
static void test_longest(void)
{
    char label[LABEL_MAX + 1], camera[25];
    const char *const text[] = {label}, *wrong;
    memset(label, 1, LABEL_MAX);
    label[LABEL_MAX] = 0;
    memset(camera, 1, sizeof camera - 1);
    camera[24] = 0;
    struct labels labels;
    struct line_labels of;
    CHECK(labels_parse(&labels, text, 1, &wrong) == 0 && line_labels_open(&of, &labels) == 0,
          "labels");
    struct framed_detection list[FRAMED_DETECTIONS_MAX];
    uint16_t index[FRAMED_DETECTIONS_MAX];
    for (int i = 0; i < FRAMED_DETECTIONS_MAX; i++) {
        index[i] = UINT16_MAX;
        list[i] = (struct framed_detection){.x1 = 16383.99f,
                                            .y1 = 16383.99f,
                                            .x2 = 16383.99f,
                                            .y2 = 16383.99f,
                                            .score = -0.9999e9f,
                                            .track = INT64_MIN};
    }
    struct found found = plain();
    found.camera = found.output = found.region = camera;
    found.part = found.parts = INT32_MAX;
    found.frame.capture_ns = found.frame.pts_ns = INT64_MIN + 1;
    found.frame.epoch = found.model = UINT32_MAX;
    found.parent_sequence = UINT64_MAX;
    found.object = INT32_MAX;
    found.frame.received_ns = 1;
    found.result_ns = INT64_MAX;
    found.sequence = UINT64_MAX;
    found.late = true;
    found.list = list;
    found.index = index;
    found.n = FRAMED_DETECTIONS_MAX;
    line_of(&found, &of);
    line_labels_close(&of);
    text_list_free(&labels.list);
}

int main(void)
{
    TEST(test_empty());
    TEST(test_all_keys());
    TEST(test_scores());
    TEST(test_longest());
    return test_end();
}
