// y[i] += x[i]; grid ceil(n / 128), block 128
#include "gpu_port.h"

GP_KERNEL(vector_add, 128, const float* x, float* y, gp_u32 n) {
    gp_u32 i = gp_block() * 128 + gp_thread();
    if (i < n) y[i] += x[i];
}
