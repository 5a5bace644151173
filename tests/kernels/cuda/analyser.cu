// Tests the CUDA backend's analyser against the CPU's: cameras with sequences of pictures on their
// own threads, and a picture the device cannot read, which fails the backend.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cuda/cuda.h"
#include "tests/kernels/random.h"
#include "tests/test.h"

enum { CAMERAS = 12, PICTURES = 40 };

static const struct backend_driver *const cuda = &cuda_backend, *const cpu = &cpu_backend;

struct camera {
    struct backend *backend;
    struct random random;
    struct image host, device;
    struct analysis analysis;
    struct analyser *expecting, *analyser;
    cudaStream_t stream;
    size_t bytes;
    int wrong;
    bool moved;
};

static void camera_init(struct camera *c, struct backend *backend, int i)
{
    static const int sizes[][2] = {{1920, 1080}, {1280, 720}, {704, 576}, {638, 358}};
    struct analysis_params params;
    memset(c, 0, sizeof *c);
    memset(&params, 0, sizeof params);
    c->backend = backend;
    c->random.state = 7 * (uint64_t)i;
    c->host.format = i % 3 == 2 ? PIXEL_P010 : PIXEL_NV12;
    c->host.width = sizes[i % 4][0];
    c->host.height = sizes[i % 4][1];
    c->device = c->host;
    c->device.memory = MEMORY_CUDA;
    c->bytes = image_lay_out(&c->host, NULL);
    image_lay_out(&c->host, malloc(c->bytes));
    void *memory = NULL;
    CHECK(!cudaMalloc(&memory, c->bytes) &&
              !cudaStreamCreateWithFlags(&c->stream, cudaStreamDefault),
          "memory");
    image_lay_out(&c->device, memory);
    params.statistics.black = 16;
    params.statistics.white = 235;
    params.statistics.all = i % 2 == 0;
    params.motion = motion_defaults();
    params.motion.rate_num = 10; // learning takes 20 pictures
    params.motion.rate_den = 1;
    CHECK(!analysis_init(&c->analysis, &params, &c->host, NULL), "analysis_init");
    CHECK(!cpu->analyser_open(NULL, &c->expecting, &c->analysis, &c->host), "cpu");
    CHECK(!cuda->analyser_open(backend, &c->analyser, &c->analysis, &c->device), "cuda");
}

static void camera_finish(struct camera *c)
{
    cpu->analyser_close(c->expecting);
    cuda->analyser_close(c->analyser);
    cudaStreamDestroy(c->stream);
    cudaFree(c->device.plane[0].data);
    free(c->host.plane[0].data);
}

// Draws a background, a moving square and noise.
static void camera_draw(struct camera *c, int n)
{
    const int bytes = c->host.format == PIXEL_P010 ? 2 : 1;
    const int side = c->host.height / 6, left = n * 11 % (c->host.width - side);
    for (int y = 0; y < c->host.height; y++) {
        uint8_t *row = c->host.plane[0].data + y * c->host.plane[0].stride;
        for (int x = 0; x < c->host.width; x++) {
            const bool on = x >= left && x < left + side && y / side == 2;
            const int level = on ? 210 : 60 + x / 32 % 7 * 8 + y / 32 % 5 * 8;
            row[x * bytes + bytes - 1] = (uint8_t)(level + (random_next(&c->random) & 3));
        }
    }
}

static bool results_equal(const struct camera *c, const struct analysis_result *a,
                          const struct analysis_result *b)
{
    const struct statistics *s = &c->analysis.statistics;
    return memcmp(&a->luma, &b->luma, offsetof(struct luma_statistics, max) + 1) == 0 &&
           memcmp(a->grid, b->grid, (size_t)(s->grid_columns * s->grid_rows)) == 0 &&
           a->fingerprint == b->fingerprint && a->motion->count == b->motion->count &&
           a->motion->changed == b->motion->changed && a->motion->flags == b->motion->flags &&
           a->motion->moving == b->motion->moving &&
           memcmp(a->motion->box, b->motion->box, a->motion->count * sizeof *a->motion->box) == 0;
}

// Pictures are written on the legacy default stream, as a decoder does.
static void *camera_run(void *argument)
{
    struct camera *c = (struct camera *)argument;
    struct analysis_result expected, found;
    for (int n = 0; n < PICTURES; n++) {
        memset(&found, UNTOUCHED, sizeof found);
        camera_draw(c, n);
        c->wrong += cudaMemcpyAsync(c->device.plane[0].data, c->host.plane[0].data, c->bytes,
                                    cudaMemcpyHostToDevice, cudaStreamLegacy) != cudaSuccess;
        c->wrong += cuda->analyse(c->analyser, &c->device, &found) != 0;
        cpu->analyse(c->expecting, &c->host, &expected);
        c->wrong += !results_equal(c, &expected, &found);
        c->moved |= expected.motion->moving;
    }
    return NULL;
}

static void test_cameras(struct backend *backend)
{
    static struct camera cameras[CAMERAS];
    pthread_t threads[CAMERAS];
    for (int i = 0; i < CAMERAS; i++)
        camera_init(&cameras[i], backend, i);
    for (int i = 0; i < CAMERAS; i++)
        CHECK(!pthread_create(&threads[i], NULL, camera_run, &cameras[i]), "thread");
    for (int i = 0; i < CAMERAS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(cameras[i].wrong == 0 && cameras[i].moved, "camera %d: %d wrong of %d, moved %d", i,
              cameras[i].wrong, PICTURES, cameras[i].moved);
        camera_finish(&cameras[i]);
    }
}

static void test_failure(struct backend *backend)
{
    static struct camera camera;
    struct analysis_result result;
    camera_init(&camera, backend, 0);
    struct image bad = camera.device;
    bad.plane[0].data = (uint8_t *)4096;
    int rc = cuda->analyse(camera.analyser, &bad, &result);
    CHECK(rc == -EIO, "a bad picture: %d", rc);
    rc = cuda->analyse(camera.analyser, &camera.device, &result);
    CHECK(rc == -EIO, "after it: %d", rc);
    camera_finish(&camera);
}

int main(void)
{
    struct backend_options options = {};
    struct backend *backend = NULL;
    const int error = cuda->open(&backend, &options);
    CHECK(error == 0 || error == -ENODEV, "open: %d", error);
    if (error) {
        SKIP("no CUDA device");
        return test_end();
    }
    TEST(test_cameras(backend));
    TEST(test_failure(backend));
    cuda->close(backend);
    return test_end();
}
