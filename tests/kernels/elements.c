// Tests tiles of a picture made by one job: each equals the result of a plan with only that crop,
// byte by byte, on every backend and from pictures of any format.
#include "tests/test.h"

#include "kernels/image.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/cases.h"

enum { PICTURES = 12 };

struct tiled {
    struct picture source;
    struct op op[TILES_MAX];
    const struct op *ops[TILES_MAX];
    struct job_result results[TILES_MAX];
    int n;
};

// Makes tiles of 32 by 32 pixels, at their own or another size, and the whole picture.
static void tiled_init(struct tiled *t, struct random *random)
{
    const enum pixel_format format = sources[random_in(random, 0, SOURCES - 1)];
    const int width = random_in(random, 100, 190), height = random_in(random, 60, 120);
    struct rect tiles[TILES_MAX];
    struct tiling tiling = {.size = 32, .full = true};
    struct op_params params = {.kind = OP_WARP};
    *t = (struct tiled){.source = picture_sized(format, width, height, random)};
    t->source.image.colour = colour_case(random);
    tiling.overlap = random_in(random, 0, 25);
    params.warp = warp_case(random, GEOMETRY_LETTERBOX, &t->source.image, 48);
    if (random_in(random, 0, 1))
        params.warp.width = params.warp.height = tiling.size;
    tensor_case(random, &params.warp);
    t->n = tiles_make(tiles, &tiling, (struct rect){0, 0, width, height});
    CHECK(t->n > 10, "%d tiles of %dx%d", t->n, width, height);
    for (int i = 0; i < t->n; i++) {
        params.warp.crop = tiles[i];
        const int error = op_init(&t->op[i], &params, &t->source.image);
        CHECK(error == 0, "tile %d: %d", i, error);
        t->ops[i] = &t->op[i];
    }
}

static void tiled_finish(struct tiled *t)
{
    for (int i = 0; i < t->n; i++)
        op_finish(&t->op[i]);
    picture_free(&t->source);
}

// Runs one job of a plan with ops [first, first + n) and consecutive results. Returns false if it
// was refused or failed.
static bool run_job(const struct setting *setting, struct backend *backend, struct tiled *t,
                    int first, int n, uint8_t *memory)
{
    struct tally tally = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    struct plan *plan;
    struct job job = {.src = t->source.image,
                      .results = &t->results[first],
                      .n = n,
                      .done = tally_done,
                      .opaque = &tally};
    for (int i = first; i < first + n; i++, memory += t->op[first].dst_bytes)
        t->results[i] = (struct job_result){.data = memory};
    if (setting->driver->plan_open(backend, &plan, &job.src, &t->ops[first], n, 1) < 0)
        return false;
    const bool submitted = setting->driver->submit(plan, &job) == 0;
    if (submitted)
        tally_wait(&tally, 1);
    setting->driver->plan_close(plan);
    return submitted && tally.failed == 0;
}

static void check_tiled(const struct setting *setting, struct backend *backend,
                        struct random *random)
{
    struct tiled t;
    tiled_init(&t, random);
    const size_t bytes = t.op[0].dst_bytes;
    uint8_t *together = malloc((size_t)t.n * bytes), *alone = malloc(bytes);
    memset(together, UNTOUCHED, (size_t)t.n * bytes);
    CHECK(run_job(setting, backend, &t, 0, t.n, together), "%d at once: %s", t.n, setting->name);
    int wrong = 0;
    for (int i = 0; i < t.n; i++) {
        memset(alone, (uint8_t)~UNTOUCHED, bytes);
        CHECK(run_job(setting, backend, &t, i, 1, alone), "tile %d: %s", i, setting->name);
        wrong += memcmp(together + (size_t)i * bytes, alone, bytes) != 0;
    }
    CHECK(wrong == 0, "%d of %d tiles of %s %dx%d: %s", wrong, t.n,
          pixel_format_name(t.source.image.format), t.source.image.width, t.source.image.height,
          setting->name);
    free(alone);
    free(together);
    tiled_finish(&t);
}

static void test_tiles(struct random *random)
{
    int missing = 0;
    for (int i = 0; i < SETTINGS; i++) {
        struct backend *backend = setting_open(&settings[i], &missing);
        for (int k = 0; backend && k < PICTURES; k++)
            check_tiled(&settings[i], backend, random);
        if (backend)
            settings[i].driver->close(backend);
    }
    if (missing)
        SKIP("%d settings: no CUDA device", missing);
}

int main(int argc, char **argv)
{
    struct random random = random_from(argc, argv);
    printf("elements: seed %llu\n", (unsigned long long)random.state);
    TEST(test_tiles(&random));
    return test_end();
}
