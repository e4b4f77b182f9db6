// y[c][r] = Σ_k W[r, k] · x[c][k] over packed weights and byte activations: the form for few columns, bound by the bytes of W.
//
// A wave brings 32 units of each of its rows into shared memory, 16 bytes a lane, and holds the next in registers meanwhile;
// then each lane takes its unit apart and multiplies it with all columns. Sums: lane l has units l, l + 32, …; then the wave's
// butterfly; where PARTS waves share the rows, their sums in order. So the result depends on the shape alone.
#pragma once
#include "activations.h"
#include "formats.h"

constexpr gp_u32 MAT_VEC_WAVES = 4;

// The four words of a group with 16 activations.
GP_DEV gp_i32 dot_16(const gp_u32* q, const gp_u32x4& x) {
    gp_i32 s = gp_dot4((gp_i32)q[0], (gp_i32)x.x[0], 0);
    s = gp_dot4((gp_i32)q[1], (gp_i32)x.x[1], s);
    s = gp_dot4((gp_i32)q[2], (gp_i32)x.x[2], s);
    return gp_dot4((gp_i32)q[3], (gp_i32)x.x[3], s);
}

// What a unit adds to a row's sum: for each scale, d_x · (scale · Σ code · x − minimum · Σ x).
template <class F> GP_DEV float add_unit(const unit<F::GROUPS>& u, x_row x, gp_u32 block, gp_u32 i, float sum) {
    constexpr gp_u32 SIXTEENS = F::WEIGHTS / 16;
    if constexpr (F::PAIRED) {
#pragma unroll
        for (int g = 0; g < F::GROUPS; g += 2) {
            gp_u32 at = SIXTEENS * block + F::position(i, g);
            const gp_u32x4* codes = (const gp_u32x4*)(x.codes + 16 * at);
            float v = u.scale[g] * (float)(dot_16(u.q[g], codes[0]) + dot_16(u.q[g + 1], codes[1]));
            if constexpr (F::MIN) v = __builtin_fmaf(-u.min[g], (float)(x.sums[at] + x.sums[at + 1]), v);
            sum = __builtin_fmaf(x.scales[at >> 1], v, sum);
        }
    } else {
#pragma unroll
        for (int g = 0; g < F::GROUPS; g++) {
            gp_u32 at = SIXTEENS * block + F::position(i, g);
            float v = u.scale[g] * (float)dot_16(u.q[g], *(const gp_u32x4*)(x.codes + 16 * at));
            if constexpr (F::MIN) v = __builtin_fmaf(-u.min[g], (float)x.sums[at], v);
            sum = __builtin_fmaf(x.scales[at >> 1], v, sum);
        }
    }
    return sum;
}

// One window of a row: 32 units, with what lies before them in the first 16 bytes.
template <class F> struct stage {
    static constexpr gp_u32 BYTES = 32 / F::UNITS * F::BYTES;
    static constexpr gp_u32 LOADS = (BYTES + 15 + 15) / 16;      // 16 bytes each
    static constexpr gp_u32 EACH = (LOADS + 31) / 32;            // a lane
    static constexpr gp_u32 WORDS = (LOADS + 1) * 4;             // one more may be read
};

template <class F, int ROWS, int PARTS, int COLS>
GP_DEV void mat_vec(const gp_u8* w, const gp_u8* x, float* y, gp_u32 rows, gp_u32 cols) {
    using S = stage<F>;
    constexpr gp_u32 GROUPS_OF_WAVES = MAT_VEC_WAVES / PARTS;
    GP_SHARED gp_u32x4 shared[MAT_VEC_WAVES][ROWS][S::WORDS / 4];
    GP_SHARED float part[MAT_VEC_WAVES][ROWS * COLS];
    GP_SHARED gp_u32 points[F::TABLE_WORDS ? F::TABLE_WORDS : 1];
    if constexpr (F::TABLE_WORDS > 0) {
        for (gp_u32 i = gp_thread(); i < F::TABLE_WORDS; i += MAT_VEC_WAVES * GP_WAVE) points[i] = F::table(i);
        gp_sync();
    }
    const gp_u32 lane = gp_lane(), wave = gp_uniform(gp_wave_of_block());
    const gp_u32 first = (gp_block() * GROUPS_OF_WAVES + wave / PARTS) * ROWS;
    const gp_u32 blocks = cols / F::WEIGHTS, units = blocks * F::UNITS;
    const gp_u64 row_bytes = (gp_u64)blocks * F::BYTES;
    const gp_u32 windows = (units + 31) / 32;
    float sum[ROWS][COLS] = {};
    gp_u32x4 next[ROWS][S::EACH] = {};
    // Rows beyond the last are read as the last one and not written.
    auto fetch = [&](gp_u32 window) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            gp_u32 row = first + r < rows ? first + r : rows - 1;
            gp_u64 from = row * row_bytes + (gp_u64)window * S::BYTES;
            gp_u64 end = (row + 1) * row_bytes, to = from + S::BYTES < end ? from + S::BYTES : end;
            gp_u64 base = from & ~(gp_u64)15;
            gp_u32 count = (gp_u32)((to - base + 15) / 16);
#pragma unroll
            for (gp_u32 j = 0; j < S::EACH; j++) {
                gp_u32 at = lane + 32 * j;
                if (at < count) next[r][j] = gp_load16(w + base + 16 * at);
            }
        }
    };
    gp_u32 window = wave % PARTS;
    if (window < windows) fetch(window);
    for (; window < windows; window += PARTS) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (gp_u32 j = 0; j < S::EACH; j++)
                if (lane + 32 * j < S::LOADS) shared[wave][r][lane + 32 * j] = next[r][j];
        gp_wave_sync();
        if (window + PARTS < windows) fetch(window + PARTS);
        gp_u32 n = 32 * window + lane, block = n / F::UNITS, i = n % F::UNITS;
        if (n < units) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                gp_u32 row = first + r < rows ? first + r : rows - 1;
                gp_u32 lead = (gp_u32)(row * row_bytes + (gp_u64)window * S::BYTES) & 15;
                packed<F::ALIGN> p = {(const gp_u32*)shared[wave][r], lead + lane / F::UNITS * F::BYTES};
                unit<F::GROUPS> u;
                F::take(p, i, points, u);
#pragma unroll
                for (int c = 0; c < COLS; c++) sum[r][c] = add_unit<F>(u, x_at(x, cols, c), block, i, sum[r][c]);
            }
        }
        gp_wave_sync();
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int c = 0; c < COLS; c++) sum[r][c] = gp_wave_sum(sum[r][c]);
    if constexpr (PARTS == 1) {
        if (lane == 0)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c < COLS; c++)
                    if (first + r < rows) y[(gp_u64)c * rows + first + r] = sum[r][c];
    } else {
        if (lane == 0)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c < COLS; c++) part[wave][r * COLS + c] = sum[r][c];
        gp_sync();
        gp_u32 t = gp_thread();
        if (t < GROUPS_OF_WAVES * ROWS * COLS) {
            gp_u32 group = t / (ROWS * COLS), k = t % (ROWS * COLS), row = (gp_block() * GROUPS_OF_WAVES + group) * ROWS + k / COLS;
            float all = part[group * PARTS][k];
            for (gp_u32 q = 1; q < PARTS; q++) all += part[group * PARTS + q][k];
            if (row < rows) y[(gp_u64)(k % COLS) * rows + row] = all;
        }
    }
}
