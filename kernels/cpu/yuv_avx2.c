#include "kernels/cpu/versions.h"
#include "kernels/cpu/yuv_rows.h"
#include "kernels/yuv.h"

void yuv_avx2(const struct image *dst, const struct image *src, const struct op *op,
              struct band band, bool filled)
{
    if (op->yuv.warps)
        yuv_resized(dst, src, &op->yuv, band, filled, warp_avx2, yuv_rows);
    else
        yuv_rows(dst, src, &op->yuv, band);
}
