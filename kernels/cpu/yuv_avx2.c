#include "kernels/cpu/versions.h"
#include "kernels/cpu/yuv_rows.h"

void yuv_avx2(const struct image *dst, const struct image *src, const struct op *op,
              struct band band, bool filled)
{
    (void)filled;
    yuv_rows(dst, src, &op->yuv, band);
}
