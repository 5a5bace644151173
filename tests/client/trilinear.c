// Trilinear interpolation against a definition in double; its gradients against differences and
// against the rule <grad, f(x)> = <f'(grad), x>; the same bytes on a GPU.
#include <errno.h>
#include <math.h>
#include <string.h>

#include "client/framed.h"
#include "tests/client/cuda_driver.h"
#include "tests/kernels/random.h"
#include "tests/test.h"

enum { POINTS = 37, FEATURES = 70, CORNERS = 8, AXES = 3, GUARD = 8 };

static const float UNTOUCHED_FLOAT = -12345;

// A case's inputs and results, with floats behind the results that must stay unchanged.
struct arrays {
    int f;
    float features[POINTS * CORNERS * FEATURES], points[POINTS * AXES], grad_out[POINTS * FEATURES];
    float out[POINTS * FEATURES + GUARD], grad_features[POINTS * CORNERS * FEATURES + GUARD],
        grad_points[POINTS * AXES + GUARD];
};

static float between(struct random *random, float most)
{
    return most * (float)((double)random_in(random, -(1 << 20), 1 << 20) / (1 << 20));
}

// Returns a multiple of 1/4; binary32 computes exactly with such numbers.
static float coarse(struct random *random, float most)
{
    return (float)random_in(random, (int)(-4 * most), (int)(4 * most)) / 4;
}

static void fill(struct arrays *of, int f, struct random *random,
                 float (*number)(struct random *, float))
{
    of->f = f;
    for (int i = 0; i < POINTS * CORNERS * f; i++)
        of->features[i] = number(random, 8);
    for (int i = 0; i < POINTS * AXES; i++)
        of->points[i] = number(random, i < AXES ? 3 : 1); // the first point is outside its cell
    for (int i = 0; i < POINTS * f; i++)
        of->grad_out[i] = number(random, 4);
    for (float *at = of->out; at < of->grad_points + POINTS * AXES + GUARD; at++)
        *at = UNTOUCHED_FLOAT;
}

static int run(struct arrays *of)
{
    const uint64_t f = (uint64_t)of->f;
    const int rc = framed_trilinear_forward(of->out, of->features, of->points, POINTS, f, NULL);
    return rc ? rc
              : framed_trilinear_backward(of->grad_features, of->grad_points, of->grad_out,
                                          of->features, of->points, POINTS, f, NULL);
}

static double mixed(double from, double to, double x)
{
    return from + (to - from) * (x + 1) / 2;
}

// Feature i of point p after a move by `moved`: one linear interpolation per axis.
static double defined(const struct arrays *of, int p, int i, const double moved[AXES])
{
    const float *corner = of->features + p * CORNERS * of->f + i;
    double at[AXES], x[2], y[2];
    for (int axis = 0; axis < AXES; axis++)
        at[axis] = (double)of->points[p * AXES + axis] + moved[axis];
    for (int kx = 0; kx < 2; kx++) {
        for (int ky = 0; ky < 2; ky++)
            y[ky] = mixed((double)corner[(4 * kx + 2 * ky) * of->f],
                          (double)corner[(4 * kx + 2 * ky + 1) * of->f], at[2]);
        x[kx] = mixed(y[0], y[1], at[1]);
    }
    return mixed(x[0], x[1], at[0]);
}

static void test_defined(struct arrays *of, int f, struct random *random)
{
    static const double still[AXES];
    fill(of, f, random, between);
    CHECK(run(of) == 0, "%s", strerror(errno));
    for (int p = 0; p < POINTS; p++) {
        double slope[AXES] = {0};
        for (int i = 0; i < f; i++) {
            const double wanted = defined(of, p, i, still), is = (double)of->out[p * f + i];
            CHECK(fabs(is - wanted) < (p ? 1e-5 : 1e-3), "%d features: point %d: %g, not %g", f, p,
                  is, wanted);
            for (int axis = 0; axis < AXES; axis++) { // along one axis the definition is linear
                double ahead[AXES] = {0}, back[AXES] = {0};
                ahead[axis] = 0.5;
                back[axis] = -0.5;
                slope[axis] += (double)of->grad_out[p * f + i] *
                               (defined(of, p, i, ahead) - defined(of, p, i, back));
            }
        }
        for (int axis = 0; axis < AXES; axis++)
            CHECK(fabs((double)of->grad_points[p * AXES + axis] - slope[axis]) < (p ? 1e-3 : 2e-2),
                  "%d features: point %d: slope %g, not %g", f, p,
                  (double)of->grad_points[p * AXES + axis], slope[axis]);
    }
    for (int i = 0; i < GUARD; i++)
        CHECK(of->out[POINTS * f + i] == UNTOUCHED_FLOAT &&
                  of->grad_features[POINTS * CORNERS * f + i] == UNTOUCHED_FLOAT &&
                  of->grad_points[POINTS * AXES + i] == UNTOUCHED_FLOAT,
              "%d features: wrote behind the results", f);
}

// Each corner receives grad_out with the weight that it has in `out`.
static void test_adjoint(struct arrays *of, int f, struct random *random)
{
    fill(of, f, random, coarse);
    CHECK(run(of) == 0, "%s", strerror(errno));
    double forth = 0, back = 0;
    for (int i = 0; i < POINTS * f; i++)
        forth += (double)of->grad_out[i] * (double)of->out[i];
    for (int i = 0; i < POINTS * CORNERS * f; i++)
        back += (double)of->grad_features[i] * (double)of->features[i];
    CHECK(forth == back && forth != 0, "%d features: %.17g, but %.17g", f, forth, back);
}

// The corners have the places that the header gives: there a cell returns its own features.
static void test_corners(struct arrays *of)
{
    enum { F = 5 };
    of->f = F;
    for (int i = 0; i < CORNERS * CORNERS * F; i++)
        of->features[i] = (float)(i * 7 % 311) / 3;
    for (int k = 0; k < CORNERS; k++)
        for (int axis = 0; axis < AXES; axis++)
            of->points[k * AXES + axis] = k & 4 >> axis ? 1 : -1;
    const int rc = framed_trilinear_forward(of->out, of->features, of->points, CORNERS, F, NULL);
    CHECK(rc == 0, "%s", strerror(errno));
    for (int k = 0; k < CORNERS; k++)
        CHECK(memcmp(of->out + k * F, of->features + (k * CORNERS + k) * F, F * sizeof(float)) == 0,
              "corner %d gives %g, not %g", k, (double)of->out[k * F],
              (double)of->features[(k * CORNERS + k) * F]);
}

static void test_one_gradient(struct arrays *of, struct random *random)
{
    static struct arrays both;
    fill(of, 3, random, between);
    both = *of;
    CHECK(run(&both) == 0, "%s", strerror(errno));
    CHECK(framed_trilinear_backward(of->grad_features, NULL, of->grad_out, NULL, of->points, POINTS,
                                    3, NULL) == 0 &&
              framed_trilinear_backward(NULL, of->grad_points, of->grad_out, of->features,
                                        of->points, POINTS, 3, NULL) == 0,
          "%s", strerror(errno));
    CHECK(memcmp(of->grad_features, both.grad_features, sizeof both.grad_features) == 0 &&
              memcmp(of->grad_points, both.grad_points, sizeof both.grad_points) == 0,
          "one gradient alone is another than both");
}

static void test_refused(struct arrays *of)
{
    const struct framed_place unknown = {.memory = FRAMED_RING_CUDA_IPC},
                              nowhere = {.memory = FRAMED_RING_CUDA, .device = 1000};
    const struct {
        uint64_t n, f;
        const struct framed_place *place;
        int error;
    } cases[] = {
        {1, 0, NULL, EINVAL},     {1, (1 << 24) + 1, NULL, EINVAL}, {1ull << 59, 1, NULL, EINVAL},
        {1, 1, &unknown, EINVAL}, {1, 1, &nowhere, ENODEV},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        errno = 0;
        const int rc = framed_trilinear_forward(of->out, of->features, of->points, cases[i].n,
                                                cases[i].f, cases[i].place);
        CHECK(rc == -1 &&
                  (errno == cases[i].error || (cases[i].error == ENODEV && errno == ENOTSUP)),
              "case %zu: %d, %s", i, rc, strerror(errno));
    }
    CHECK(framed_trilinear_backward(of->grad_features, of->grad_points, of->grad_out, NULL,
                                    of->points, 1, 1, NULL) == -1 &&
              errno == EINVAL,
          "slopes without features");
    CHECK(framed_trilinear_forward(NULL, NULL, NULL, 0, 3, NULL) == 0, "no points");
}

// --- on a GPU

static struct arrays *copied_up(const struct driver *driver, const struct arrays *from)
{
    uint64_t address = 0;
    const bool is_there = driver->allocate(&address, sizeof *from) == 0 &&
                          driver->copy_up(address, from, sizeof *from) == 0;
    return is_there ? (struct arrays *)(uintptr_t)address : NULL;
}

static void test_gpu(const struct driver *driver, struct arrays *of, int f, struct random *random)
{
    static struct arrays found;
    const struct framed_place place = {.memory = FRAMED_RING_CUDA};
    const uint64_t n = f == 1 ? 1 : POINTS;
    fill(of, f, random, between);
    struct arrays *gpu = copied_up(driver, of);
    CHECK(gpu, "device memory");
    if (!gpu)
        return;
    CHECK(framed_trilinear_forward(gpu->out, gpu->features, gpu->points, n, (uint64_t)f, &place) ==
                  0 &&
              framed_trilinear_backward(gpu->grad_features, gpu->grad_points, gpu->grad_out,
                                        gpu->features, gpu->points, n, (uint64_t)f, &place) == 0,
          "%s", strerror(errno));
    CHECK(framed_trilinear_forward(of->out, of->features, of->points, n, (uint64_t)f, NULL) == 0 &&
              framed_trilinear_backward(of->grad_features, of->grad_points, of->grad_out,
                                        of->features, of->points, n, (uint64_t)f, NULL) == 0,
          "%s", strerror(errno));
    CHECK(driver->copy_down(&found, (uintptr_t)gpu, sizeof found) == 0 &&
              memcmp(&found, of, sizeof found) == 0,
          "%d features: other bytes on the GPU", f);
}

int main(void)
{
    static const int sizes[] = {1, 2, 3, 4, 7, 8, 9, 16, 33, 64, FEATURES};
    static struct arrays arrays;
    struct random random = {7};
    struct driver driver;
    const struct framed_place place = {.memory = FRAMED_RING_CUDA};
    const bool is_gpu =
        framed_trilinear_forward(NULL, NULL, NULL, 0, 1, &place) == 0 && driver_load(&driver);
    TEST(test_refused(&arrays)); // first: later calls on the GPU must not be affected
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        TEST(test_defined(&arrays, sizes[i], &random));
        TEST(test_adjoint(&arrays, sizes[i], &random));
        if (is_gpu)
            TEST(test_gpu(&driver, &arrays, sizes[i], &random));
    }
    TEST(test_corners(&arrays));
    TEST(test_one_gradient(&arrays, &random));
    if (!is_gpu)
        SKIP("no GPU, or built without CUDA");
    return test_end();
}
