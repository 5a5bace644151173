// The index of a file of any length has a limited size, and covers the whole file.
#include "daemon/output/muxer.h"

#include "tests/test.h"

static void check_length(int64_t keyframes)
{
    static struct mp4_index index;
    index = (struct mp4_index){0};
    for (int64_t i = 0; i < keyframes; i++)
        mp4_index_add(&index, 3 * i, 7 * i);
    CHECK(index.n < MP4_INDEX_MAX && (keyframes < MP4_INDEX_MAX || index.n >= MP4_INDEX_MAX / 2),
          "%d entries of %lld keyframes", index.n, (long long)keyframes);
    const int64_t step = INT64_C(1) << index.skips;
    for (int i = 0; i < index.n; i++)
        CHECK(index.keyframe[i].pts == 3 * i * step && index.keyframe[i].offset == 7 * i * step,
              "%lld keyframes: entry %d is %lld", (long long)keyframes, i,
              (long long)index.keyframe[i].pts / 3);
    CHECK(keyframes - index.n * step <= step, "%lld keyframes: the end is missing",
          (long long)keyframes);
}

int main(void)
{
    TEST(check_length(1));
    TEST(check_length(MP4_INDEX_MAX - 1));
    TEST(check_length(MP4_INDEX_MAX));
    TEST(check_length(MP4_INDEX_MAX + 1));
    TEST(check_length(10 * MP4_INDEX_MAX + 3));
    return test_end();
}
