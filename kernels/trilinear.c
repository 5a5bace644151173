// The reference, and the version for every CPU: it is limited by memory, so wider registers would
// not make it faster.
#include "kernels/trilinear.h"

enum { CORNERS = TRILINEAR_CORNERS, AXES = TRILINEAR_AXES, LANES = TRILINEAR_LANES };

void trilinear_forward(float *restrict out, const float *restrict features,
                       const float *restrict points, size_t n, size_t f)
{
    for (size_t p = 0; p < n; p++) {
        const struct trilinear_shares of = trilinear_shares_of(points + p * AXES);
        const float *corner = features + p * CORNERS * f;
        float w[CORNERS];
        for (int k = 0; k < CORNERS; k++)
            w[k] = trilinear_weight(&of, k);
        for (size_t i = 0; i < f; i++) {
            float sum = w[0] * corner[i];
            for (size_t k = 1; k < CORNERS; k++)
                sum += w[k] * corner[k * f + i];
            out[p * f + i] = sum;
        }
    }
}

// Sum over the features of grad_out * features of one corner.
static float dot(const float *restrict grad, const float *restrict features, size_t f)
{
    float sum[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= f; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            sum[lane] += grad[i + lane] * features[i + lane];
    for (size_t lane = 0; i + lane < f; lane++)
        sum[lane] += grad[i + lane] * features[i + lane];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

void trilinear_backward(float *restrict grad_features, float *restrict grad_points,
                        const float *restrict grad_out, const float *restrict features,
                        const float *restrict points, size_t n, size_t f)
{
    for (size_t p = 0; p < n; p++) {
        const struct trilinear_shares of = trilinear_shares_of(points + p * AXES);
        const float *grad = grad_out + p * f;
        float d[CORNERS];
        for (int k = 0; k < CORNERS; k++) {
            const size_t corner = (p * CORNERS + (size_t)k) * f;
            const float w = trilinear_weight(&of, k);
            if (grad_features)
                for (size_t i = 0; i < f; i++)
                    grad_features[corner + i] = w * grad[i];
            if (grad_points)
                d[k] = dot(grad, features + corner, f);
        }
        if (grad_points)
            for (int axis = 0; axis < AXES; axis++)
                grad_points[p * AXES + (size_t)axis] = trilinear_slope(&of, d, axis);
    }
}
