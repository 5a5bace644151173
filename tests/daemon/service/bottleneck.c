// The bottleneck of a machine in each situation, and the number of cameras that it can add.
#include "daemon/service/bottleneck.h"

#include <string.h>

#include "tests/test.h"

// Ten cameras on four processors with much spare capacity.
static const struct bottleneck_facts easy = {
    .processors = 4,
    .used = 1,
    .busy = 1.2,
    .device = {{-1, -1, -1, -1, -1}},
    .n_devices = 1,
    .running = 10,
    .running_mean = 10,
    .decode = 0.1,
    .submit = 0.02,
    .offered = 250,
};

static void expect(const struct bottleneck_facts *facts, const char *leg, double share)
{
    struct bottleneck bottleneck = bottleneck_judge(facts);
    CHECK(strcmp(bottleneck_stage_name(bottleneck.stage), leg) == 0, "%s, not %s",
          bottleneck_stage_name(bottleneck.stage), leg);
    CHECK(bottleneck.share > share - 1e-9 && bottleneck.share < share + 1e-9, "%s: %g, not %g", leg,
          bottleneck.share, share);
}

static void test_legs(void)
{
    struct bottleneck_facts facts = easy;
    expect(&facts, "network", 0);
    facts.decode = 0.95; // one camera's thread, with processors to spare
    expect(&facts, "decoder", 0.95);
    facts.overflow = 25;
    expect(&facts, "client", 0.1);
    facts.submit = 0.5;
    expect(&facts, "kernel", 0.5);
    facts.waits = true;
    expect(&facts, "client", 0.5);
    facts.device[0].nvdec = 0.92;
    expect(&facts, "decoder", 0.92);
    facts.busy = 3.8; // other programs' work counts too
    expect(&facts, "cpu", 0.95);
    facts.busy = 0; // if the system does not report it
    facts.used = 4.4;
    expect(&facts, "cpu", 1);
    facts.running = 0;
    expect(&facts, "unknown", 0);
}

// On a GPU, the busiest of its stages is the one that cameras wait for.
static void test_device(void)
{
    struct bottleneck_facts facts = easy;
    facts.device[0].upload = facts.device[0].kernel = facts.device[0].download = 0;
    expect(&facts, "network", 0);
    facts.submit = 0.5;
    expect(&facts, "kernel", 0.5); // nothing was measured yet
    facts.device[0].upload = 0.3;
    expect(&facts, "upload", 0.5);
    facts.device[0].download = 0.4;
    expect(&facts, "download", 0.5);
    facts.device[0].kernel = 0.7;
    expect(&facts, "kernel", 0.5);
    facts.waits = true;
    expect(&facts, "client", 0.5);
    facts.device[0].upload = 0.95; // clients would get no more if they took more
    expect(&facts, "upload", 0.95);
    facts.submit = 0; // it may be saturated although the cameras' threads do not wait
    facts.device[0].download = 1;
    expect(&facts, "download", 1);
    facts.device[0].nvdec = 0.92;
    expect(&facts, "decoder", 0.92);
}

// The busiest of several is the bottleneck, and all of them have room for more cameras.
static void test_two_devices(void)
{
    struct bottleneck_facts facts = easy;
    facts.device[0] = (struct device_shares){3, 0.5, 0.2, 0.1, 0.3};
    facts.device[1] = (struct device_shares){1, 0.93, 0.1, 0.4, 0.2};
    facts.device[2] = (struct device_shares){-1, -1, -1, -1, -1};
    facts.n_devices = 3;
    const struct device_shares most = bottleneck_busiest_shares(&facts);
    CHECK(most.nvdec == 0.93 && most.upload == 0.2 && most.kernel == 0.4 && most.download == 0.3,
          "%g %g %g %g", most.nvdec, most.upload, most.kernel, most.download);
    struct bottleneck found = bottleneck_judge(&facts);
    CHECK(found.stage == BOTTLENECK_DECODER && found.device == 1, "device %d", found.device);
    CHECK(found.more == 2, "%d more", found.more); // 0.0715 each, 0.185 free on average
    facts.device[1].nvdec = 0.6;
    facts.device[0].upload = 0.95;
    found = bottleneck_judge(&facts);
    CHECK(found.stage == BOTTLENECK_UPLOAD && found.device == 3, "device %d", found.device);
    facts.used = facts.busy = 3.9;
    CHECK(bottleneck_judge(&facts).device == -1, "the processors are no device");
}

static void expect_more(const struct bottleneck_facts *facts, int more, const char *end)
{
    struct bottleneck bottleneck = bottleneck_judge(facts);
    CHECK(bottleneck.more == more, "%d more, not %d", bottleneck.more, more);
    CHECK(end ? bottleneck.ends_first && strcmp(bottleneck.ends_first, end) == 0
              : !bottleneck.ends_first,
          "by %s", bottleneck.ends_first);
}

static void test_room(void)
{
    struct bottleneck_facts facts = easy;
    expect_more(&facts, 24, "cpu"); // 0.1 of a processor each, 2.4 free
    facts.device[0].nvdec = 0.6;
    expect_more(&facts, 5, "nvdec");
    facts.running_mean = 5; // the others have only just come
    expect_more(&facts, 2, "nvdec");
    facts.device[0].nvdec = 0.99;
    expect_more(&facts, 0, "nvdec");
    facts.busy = 4;
    expect_more(&facts, 0, "cpu");
    facts = easy;
    facts.device[0].upload = 0.5;
    expect_more(&facts, 8, "upload");
    facts.device[0].kernel = 0.6;
    expect_more(&facts, 5, "kernel");
    facts.device[0].download = 0.8;
    expect_more(&facts, 1, "download");
    facts.device[0].download = 1;
    expect_more(&facts, 0, "download");
    facts = easy;
    facts.device[0].upload = facts.device[0].kernel = facts.device[0].download = 0; // idle
    expect_more(&facts, 24, "cpu");
    facts = easy;
    facts.running = 0;
    expect_more(&facts, -1, NULL);
}

// A tiny load shows only that as much fits as with a load of a hundredth.
static void test_too_little(void)
{
    struct bottleneck_facts facts = easy;
    facts.used = facts.busy = 0.039; // of four
    expect_more(&facts, -1, NULL);
    facts.used = facts.busy = 0.041;
    expect_more(&facts, 868, "cpu");
    facts.device[0].kernel = 0.001; // for 899 cameras at least
    expect_more(&facts, 868, "cpu");
    facts.used = facts.busy = 0.04; // 890, by the same measure
    facts.device[0].kernel = 0.02;
    expect_more(&facts, 440, "kernel");
    facts.running = 1;
    facts.running_mean = 1;
    facts.device[0].kernel = -1;
    facts.used = facts.busy = 0.1;
    expect_more(&facts, 35, "cpu");
    facts.device[0].upload = 0.009; // for 89 at least
    expect_more(&facts, 35, "cpu");
    facts.device[0].upload = 0.5;
    facts.used = facts.busy = 0.001;
    expect_more(&facts, 0, "upload");
    facts.device[0].upload = -1;
    facts.used = 0; // nothing was measured yet
    expect_more(&facts, -1, NULL);
    facts.device[0].nvdec = 0.2; // the share of places does not show the load of NVDEC's engines
    facts.used = facts.busy = 0.4;
    expect_more(&facts, -1, NULL);
    facts.busy = 4; // nothing has room beside this
    expect_more(&facts, 0, "cpu");
    facts.busy = 0.4;
    facts.device[0].nvdec = 0; // all cameras are decoded elsewhere
    expect_more(&facts, 8, "cpu");
}

static void test_memory(void)
{
    const double mib = 1 << 20;
    struct bottleneck_facts facts = easy;
    facts.memory_need = 75 * mib;
    facts.memory_left = 24.9 * 75 * mib;
    expect_more(&facts, 24, "cpu");
    facts.memory_left = 10.5 * 75 * mib;
    expect_more(&facts, 10, "memory");
    facts.device_need = 100 * mib;
    facts.device_left = 950 * mib;
    expect_more(&facts, 9, "device_memory");
    facts.device_left = -1;
    expect_more(&facts, 0, "device_memory");
}

// One live 1080p camera on an H200 with 16 processors: 25 of 5,020 pictures/s, 1.45 ms each in one
// of 48 places. NVDEC's limit is 200 cameras, which no measured value shows.
static void test_h200(void)
{
    const double mib = 1 << 20;
    struct bottleneck_facts facts = {
        .processors = 16,
        .used = 0.01,
        .busy = 0.1,
        .device = {{0, 25 * 1.45e-3 / 48, 0, 25 * 20e-6, 25 * 25e-6}},
        .n_devices = 1,
        .running = 1,
        .running_mean = 1,
        .offered = 25,
        .memory_need = 10 * mib,
        .memory_left = 100 * 1024 * mib,
        .device_need = 130 * mib,
        .device_left = 132 * 1024 * mib,
    };
    expect(&facts, "network", 0);
    expect_more(&facts, -1, NULL);
    facts.device_left = 100 * mib; // another program has the rest
    expect_more(&facts, 0, "device_memory");
    facts = (struct bottleneck_facts){.processors = 16, .used = 1.6, .busy = 1.7};
    facts.running = 165;
    facts.running_mean = 165;
    facts.device[0] = (struct device_shares){0, 0.75, 0, 0.1, 0.1};
    facts.n_devices = 1;
    expect_more(&facts, 33, "nvdec");
}

// A stalled camera uses nothing: the others' use is no measure of it.
static void test_stuck(void)
{
    struct bottleneck_facts facts = easy;
    facts.submit = 1;
    facts.waits = true;
    expect(&facts, "client", 1);
    expect_more(&facts, -1, NULL);
    facts.submit = 0.5; // slow, but it moves
    expect_more(&facts, 24, "cpu");
}

int main(void)
{
    TEST(test_legs());
    TEST(test_device());
    TEST(test_two_devices());
    TEST(test_room());
    TEST(test_too_little());
    TEST(test_memory());
    TEST(test_h200());
    TEST(test_stuck());
    return test_end();
}
