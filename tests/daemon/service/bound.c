// Which leg bounds a box in the situations that there are, and how many cameras more it bears.
#include "daemon/service/bound.h"

#include <string.h>

#include "tests/test.h"

// Ten cameras on four processors that have much to spare.
static const struct bound_facts easy = {
    .processors = 4,
    .used = 1,
    .busy = 1.2,
    .nvdec = -1,
    .upload = -1,
    .kernel = -1,
    .download = -1,
    .running = 10,
    .decode = 0.1,
    .submit = 0.02,
    .offered = 250,
};

static void expect(const struct bound_facts *facts, const char *leg, double share)
{
    struct bound bound = bound_judge(facts);
    CHECK(strcmp(bound_leg_name(bound.leg), leg) == 0, "%s, not %s", bound_leg_name(bound.leg),
          leg);
    CHECK(bound.share > share - 1e-9 && bound.share < share + 1e-9, "%s: %g, not %g", leg,
          bound.share, share);
}

static void test_legs(void)
{
    struct bound_facts facts = easy;
    expect(&facts, "network", 0);
    facts.decode = 0.95; // one camera's thread, with processors to spare
    expect(&facts, "decoder", 0.95);
    facts.overflow = 25;
    expect(&facts, "client", 0.1);
    facts.submit = 0.5;
    expect(&facts, "kernel", 0.5);
    facts.waits = true;
    expect(&facts, "client", 0.5);
    facts.nvdec = 0.92;
    expect(&facts, "decoder", 0.92);
    facts.busy = 3.8; // others' work counts too
    expect(&facts, "cpu", 0.95);
    facts.busy = 0; // where the system does not say
    facts.used = 4.4;
    expect(&facts, "cpu", 1);
    facts.running = 0;
    expect(&facts, "unknown", 0);
}

// On a GPU: the busiest of its legs is what is waited for.
static void test_device(void)
{
    struct bound_facts facts = easy;
    facts.upload = facts.kernel = facts.download = 0;
    expect(&facts, "network", 0);
    facts.submit = 0.5;
    expect(&facts, "kernel", 0.5); // nothing was measured yet
    facts.upload = 0.3;
    expect(&facts, "upload", 0.5);
    facts.download = 0.4;
    expect(&facts, "download", 0.5);
    facts.kernel = 0.7;
    expect(&facts, "kernel", 0.5);
    facts.waits = true;
    expect(&facts, "client", 0.5);
    facts.upload = 0.95; // clients would get no more if they took more
    expect(&facts, "upload", 0.95);
    facts.submit = 0; // the cameras' threads need not wait for it to be at its end
    facts.download = 1;
    expect(&facts, "download", 1);
    facts.nvdec = 0.92;
    expect(&facts, "decoder", 0.92);
}

static void expect_more(const struct bound_facts *facts, int more, const char *end)
{
    struct bound bound = bound_judge(facts);
    CHECK(bound.more == more, "%d more, not %d", bound.more, more);
    CHECK(end ? bound.end && strcmp(bound.end, end) == 0 : !bound.end, "by %s", bound.end);
}

static void test_room(void)
{
    struct bound_facts facts = easy;
    expect_more(&facts, 24, "cpu"); // 0.1 of a processor each, 2.4 to be had
    facts.nvdec = 0.6;
    expect_more(&facts, 5, "nvdec");
    facts.nvdec = 0.01;
    expect_more(&facts, 24, "cpu");
    facts.nvdec = 0.99;
    expect_more(&facts, 0, "nvdec");
    facts.busy = 4;
    expect_more(&facts, 0, "cpu");
    facts = easy;
    facts.upload = 0.5;
    expect_more(&facts, 8, "upload");
    facts.kernel = 0.6;
    expect_more(&facts, 5, "kernel");
    facts.download = 0.8;
    expect_more(&facts, 1, "download");
    facts.download = 1;
    expect_more(&facts, 0, "download");
    facts = easy;
    facts.upload = facts.kernel = facts.download = 0; // idle
    expect_more(&facts, 24, "cpu");
    facts.used = 1e-9;
    expect_more(&facts, 1024, "cpu");
    facts.used = 0; // nothing was measured yet
    expect_more(&facts, -1, NULL);
    facts = easy;
    facts.running = 0;
    expect_more(&facts, -1, NULL);
}

int main(void)
{
    test_legs();
    test_device();
    test_room();
    return test_end("service_bound");
}
