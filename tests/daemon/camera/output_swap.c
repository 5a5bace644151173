// Which outputs a camera's thread goes over to, and which it is said to have left.
#include "daemon/camera/output_swap.h"

#include "tests/test.h"

enum { OUTPUTS = 3 };

struct fixture {
    struct output_swap handover;
    struct transform *pipeline;
    struct device_lease lease;
    _Atomic bool stop;
    struct output *output[OUTPUTS]; // A, B, C
};

static struct outputs choose(const struct fixture *f, const char *names)
{
    struct outputs outputs = {0};
    for (; *names; names++)
        outputs.list[outputs.n++] = f->output[*names - 'A'];
    return outputs;
}

static void give(struct fixture *f, const char *names)
{
    const struct outputs outputs = choose(f, names);
    output_swap_give(&f->handover, &outputs);
}

static bool follow(struct fixture *f)
{
    return output_swap_follow(&f->handover, f->pipeline, &f->lease);
}

static void check_left(const struct fixture *f, const char *names, const char *when)
{
    const struct outputs expected = choose(f, names);
    for (int i = 0; i < OUTPUTS; i++)
        CHECK(atomic_load(&f->output[i]->left) == outputs_have(&expected, f->output[i]), "%s: %c",
              when, 'A' + i);
}

static void start(struct fixture *f)
{
    const struct output_config config = {
        .name = "o", .kernel = OP_YUV, .slots = 3, .sink = {.kind = SINK_TCP}};
    *f = (struct fixture){0};
    for (int i = 0; i < OUTPUTS; i++)
        CHECK(output_open(&f->output[i], "gate", &config) == 0, "output");
    const struct transform_context context = {.lease = &f->lease, .stop = &f->stop};
    const struct outputs outputs = choose(f, "A");
    CHECK(transform_open(&f->pipeline, &context) == 0, "pipeline");
    output_swap_open(&f->handover, &outputs);
}

static void end(struct fixture *f)
{
    transform_close(f->pipeline);
    output_swap_close(&f->handover);
    for (int i = 0; i < OUTPUTS; i++)
        output_close(f->output[i]);
}

static void test_one_after_another(void)
{
    struct fixture f;
    start(&f);
    CHECK(!follow(&f), "nothing was given");
    give(&f, "AB");
    check_left(&f, "", "given");
    CHECK(follow(&f) && f.handover.now.n == 2, "taken");
    CHECK(!follow(&f), "taken twice");
    check_left(&f, "", "added");
    give(&f, "BC");
    check_left(&f, "", "given, not taken");
    CHECK(follow(&f), "taken");
    check_left(&f, "A", "replaced");
    end(&f);
}

// What comes and goes before the camera looks, it has never had.
static void test_overtaken(void)
{
    struct fixture f;
    start(&f);
    give(&f, "AB");
    give(&f, "AC");
    check_left(&f, "B", "overtaken");
    give(&f, "C");
    check_left(&f, "B", "A is the camera's still");
    give(&f, "AC");
    CHECK(follow(&f) && f.handover.now.n == 2, "taken");
    check_left(&f, "B", "A came back in time");
    end(&f);
}

int main(void)
{
    TEST(test_one_after_another());
    TEST(test_overtaken());
    return test_end("handover");
}
