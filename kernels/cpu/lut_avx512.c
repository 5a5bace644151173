#include "kernels/cpu/lut_x86.h"
#include "kernels/cpu/versions.h"

void lut_avx512(const struct lut *lut, uint8_t *to, const uint8_t *from, int n)
{
    lanes_lut(lut, to, from, n);
}
