// Activations as integer products take them. See activations.h.
#include "activations.h"

// codes[i] = round(x[i] · 127/max), to even at a half; scale = max/127; max over each 32
// grid ceil(rows · cols/32 / 4), block 128: a wave for each 32
// in: x[rows][cols], cols a multiple of 32; out: y rows of activations
GP_KERNEL(quantize_activations, 128, const float* x, gp_u8* y, gp_u32 rows, gp_u32 cols) {
    gp_u32 groups = cols / 32, n = gp_block() * 4 + gp_wave_of_block(), lane = gp_lane();
    if (n >= rows * groups) return;
    gp_u32 row = n / groups, group = n % groups;
    float v = x[(gp_u64)row * cols + 32 * group + lane];
    float max = gp_wave_max(gp_abs(v));
    gp_i32 code = max > 0.0f ? (gp_i32)gp_rint(v * (127.0f / max)) : 0;
    gp_i32 sum = code;
    sum += gp_shfl_xor<8>(sum);
    sum += gp_shfl_xor<4>(sum);
    sum += gp_shfl_xor<2>(sum);
    sum += gp_shfl_xor<1>(sum);
    gp_u8* at = y + row * x_row_bytes(cols);
    at[32 * group + lane] = (gp_u8)(gp_i8)code;
    if (lane == 0) ((float*)(at + cols))[group] = max / 127.0f;
    if ((lane & 15) == 0) ((gp_i16*)(at + cols + (cols >> 3)))[2 * group + (lane >> 4)] = (gp_i16)sum;
}
