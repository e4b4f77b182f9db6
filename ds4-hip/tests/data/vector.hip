// Small kernels for the tests and the example of ds4-hip.
#include "gpu_port.h"

// y[i] = a x[i] + y[i]; grid ceil(n / 128), block 128
GP_KERNEL(axpy, 128, float a, const float* x, float* y, gp_u32 n) {
    gp_u32 i = gp_block() * 128 + gp_thread();
    if (i < n) y[i] = a * x[i] + y[i];
}

// y[b] = sum of x[256 b .. 256 b + 256]; grid blocks, block 256: a wave's butterfly, then shared memory
GP_KERNEL(sums, 256, const float* x, float* y) {
    GP_SHARED float part[8];
    float s = gp_wave_sum(x[gp_block() * 256 + gp_thread()]);
    if (gp_lane() == 0) part[gp_wave_of_block()] = s;
    gp_sync();
    if (gp_thread() == 0) {
        float all = 0;
        for (int i = 0; i < 8; i++) all += part[i];
        y[gp_block()] = all;
    }
}

// Every kind of argument: out[0..5] = the values, as u64; grid 1, block 32
GP_KERNEL(arguments, 32, gp_u64* out, gp_u32 a, gp_i32 b, float c, gp_u64 d, const gp_u32* e) {
    if (gp_thread() != 0) return;
    out[0] = a;
    out[1] = (gp_u64)(long long)b;
    out[2] = (gp_u32)gp_f2i(c);
    out[3] = d;
    out[4] = e[1];
}

// A wave operation in half a wave; grid 1, block 32
GP_KERNEL(divergent, 32, float* y) {
    if (gp_lane() < 16) y[0] = gp_wave_sum(1.0f);
}

// A barrier that one wave does not come to; grid 1, block 64
GP_KERNEL(lonely, 64, float* y) {
    if (gp_thread() < 32) gp_sync();
    y[gp_thread()] = 1;
}

// Writes one value behind the end; grid 1, block 32
GP_KERNEL(overrun, 32, float* y, gp_u32 n) {
    if (gp_thread() == 0) y[n] = 1;
}
