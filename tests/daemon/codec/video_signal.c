// Signal facts of a stream, from its pictures one after another.
#include "daemon/codec/frame.h"

#include <string.h>

#include "daemon/wire.h"
#include "tests/test.h"

static void expect(struct video_signal *signal, bool begins, enum field_order picture,
                   enum field_order stream)
{
    struct frame_info info = {.field_order = picture};
    video_signal_follow(signal, &info, begins);
    CHECK(signal->field_order == stream && info.field_order == stream, "%d of a picture of %d",
          info.field_order, picture);
}

static void test_field_order(void)
{
    struct video_signal signal = {0};
    expect(&signal, true, FIELDS_NONE, FIELDS_NONE);
    expect(&signal, false, FIELDS_TOP_FIRST, FIELDS_TOP_FIRST);
    expect(&signal, false, FIELDS_NONE, FIELDS_TOP_FIRST);
    expect(&signal, false, FIELDS_TOP_FIRST, FIELDS_TOP_FIRST);
    expect(&signal, false, FIELDS_BOTTOM_FIRST, FIELDS_UNKNOWN);
    expect(&signal, false, FIELDS_BOTTOM_FIRST, FIELDS_UNKNOWN);
    expect(&signal, false, FIELDS_NONE, FIELDS_UNKNOWN);
    expect(&signal, true, FIELDS_BOTTOM_FIRST, FIELDS_BOTTOM_FIRST);
    expect(&signal, true, FIELDS_NONE, FIELDS_NONE);
    expect(&signal, false, FIELDS_UNKNOWN, FIELDS_UNKNOWN);
}

static void test_hdr(void)
{
    struct video_signal signal = {0};
    for (int i = 0; i < 4; i++) {
        struct frame_info info = {.flags = i % 2 ? FRAMED_FLAG_HDR : FRAMED_FLAG_KEYFRAME};
        video_signal_follow(&signal, &info, i == 0);
        CHECK(signal.hdr == i % 2, "picture %d", i);
        CHECK(!strstr(video_signal_explain_hdr(&signal), "tone-map") == !signal.hdr, "text %d", i);
    }
}

static void test_explanations(void)
{
    for (int order = FIELDS_NONE; order <= FIELDS_UNKNOWN; order++) {
        const struct video_signal signal = {.field_order = (enum field_order)order};
        const char *text = video_signal_explain_fields(&signal);
        CHECK((strstr(text, "deinterlace") != NULL) == (order != FIELDS_NONE), "%s", text);
    }
}

int main(void)
{
    TEST(test_field_order());
    TEST(test_hdr());
    TEST(test_explanations());
    return test_end();
}
