// The choice of a camera's GPU: each rule, and its precedence over the rules after it.
#include "daemon/device/budget.h"

#include <string.h>

#include "tests/test.h"

static const struct gpu_choice any = {.by = GPU_AUTO};

// The GPU of a camera of 30 bytes: GPUs have 100 bytes, except as the rows set.
static const struct {
    const char *what;
    int expected;
    struct placement_gpu gpu[3];
} cases[] = {
    {"all are equal", 0, {{0}, {0}, {0}}},
    {"no others", 2, {{.limit = 1}, {.limit = 1}, {0}}},
    {"fewer cameras",
     1,
     {{.taken = {.cameras = 2}}, {.taken = {.cameras = 1}}, {.taken = {.cameras = 1}}}},
    {"less of its memory", 2, {{.taken = {40}}, {.taken = {40}}, {.taken = {50}, .limit = 200}}},
    {"memory before cameras", 1, {{.taken = {2}}, {.taken = {1, 0, 9}}, {.taken = {3}}}},
    {"NVDEC before memory", 2, {{.taken = {0, 8}}, {.taken = {0, 7}}, {.taken = {70, 6}}}},
    {"room before NVDEC", 0, {{.taken = {70, 9}}, {.taken = {71}}, {.taken = {101}}}},
    {"of those without room", 2, {{.taken = {71, 3}}, {.taken = {99, 2}}, {.taken = {500, 1}}}},
};

static void test_rules(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct placement_gpu gpus[3];
        memcpy(gpus, cases[i].gpu, sizeof gpus);
        for (int g = 0; g < 3; g++) {
            gpus[g].usable = true;
            gpus[g].limit = gpus[g].limit ? gpus[g].limit : 100;
        }
        int got = placement_choose(gpus, 3, &any, 30);
        CHECK(got == cases[i].expected, "%s: %d", cases[i].what, got);
        gpus[cases[i].expected].usable = false;
        got = placement_choose(gpus, 3, &any, 30);
        CHECK(got >= 0 && got != cases[i].expected, "%s: %d is not usable", cases[i].what, got);
    }
    CHECK(placement_choose(cases[0].gpu, 3, &any, 30) == -1, "none is usable");
    CHECK(placement_choose(NULL, 0, &any, 30) == -1, "there is none");
}

static void test_choice(void)
{
    struct placement_gpu gpus[] = {
        {.number = 7, .usable = true, .limit = 100, .uuid = {1, 2, 3, [15] = 4}},
        {.number = 5, .usable = true, .limit = 100, .uuid = {1, 2, 3, [15] = 5}},
        {.number = 6, .usable = true, .limit = 100, .taken = {1}}};
    struct gpu_choice by_number = {.by = GPU_BY_NUMBER, .number = 6}, by_uuid = {.by = GPU_BY_UUID};
    memcpy(by_uuid.uuid, gpus[1].uuid, 16);
    CHECK(placement_choose(gpus, 3, &by_number, 200) == 2, "it has no room, and is chosen");
    CHECK(placement_choose(gpus, 3, &by_uuid, 0) == 1, "by UUID");
    gpus[1].usable = gpus[2].usable = false;
    CHECK(placement_choose(gpus, 3, &by_number, 0) == 0, "another, while it is not usable");
    CHECK(placement_choose(gpus, 3, &by_uuid, 0) == 0, "another, while it is not usable");
    CHECK(placement_is_chosen(&gpus[2], &by_number) && placement_is_chosen(&gpus[1], &by_uuid),
          "usable or not");
    CHECK(!placement_is_chosen(&gpus[2], &by_uuid), "its UUID is not known");
}

int main(void)
{
    TEST(test_rules());
    TEST(test_choice());
    return test_end();
}
