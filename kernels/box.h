// Maps boxes from one picture to another by an affine matrix, in the daemon and its clients.
// Matrices map pixel centres, corners are edges: corner p maps to M * (p - 1/2) + 1/2. No other
// code may map boxes.
#ifndef FRAMED_KERNELS_BOX_H
#define FRAMED_KERNELS_BOX_H

struct box_corner {
    double x, y;
};

// `m`: a 2x3 matrix, row by row.
static inline struct box_corner box_map_corner(const float m[6], double x, double y)
{
    x -= 0.5;
    y -= 0.5;
    return (struct box_corner){(double)m[0] * x + (double)m[1] * y + (double)m[2] + 0.5,
                               (double)m[3] * x + (double)m[4] * y + (double)m[5] + 0.5};
}

// Maps the corners x1 y1 x2 y2 of a box; if the matrix rotates, to the hull of all four.
static inline void box_map(const float m[6], const float from[4], double to[4])
{
    const struct box_corner corner[] = {box_map_corner(m, (double)from[0], (double)from[1]),
                                        box_map_corner(m, (double)from[2], (double)from[1]),
                                        box_map_corner(m, (double)from[0], (double)from[3]),
                                        box_map_corner(m, (double)from[2], (double)from[3])};
    to[0] = to[2] = corner[0].x;
    to[1] = to[3] = corner[0].y;
    for (int i = 1; i < 4; i++) {
        to[0] = corner[i].x < to[0] ? corner[i].x : to[0];
        to[1] = corner[i].y < to[1] ? corner[i].y : to[1];
        to[2] = corner[i].x > to[2] ? corner[i].x : to[2];
        to[3] = corner[i].y > to[3] ? corner[i].y : to[3];
    }
}

// Clips to [0, end], the picture's width or height. NaN stays NaN.
static inline float box_clip(double value, double end)
{
    return (float)(value < 0 ? 0 : value > end ? end : value);
}

#endif
