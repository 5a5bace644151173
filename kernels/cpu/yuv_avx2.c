#include "kernels/cpu/versions.h"
#include "kernels/cpu/yuv_rows.h"

void yuv_avx2(const struct image *dst, const struct image *src, const struct yuv *yuv,
              struct band band)
{
    yuv_rows(dst, src, yuv, band);
}
