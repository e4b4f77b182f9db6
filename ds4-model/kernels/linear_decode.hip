// Mat-vec over packed weights, one to four columns. See mat_vec.h.
//
// linear_FORMAT_C        C columns, two rows a wave: grid ceil(rows / 8), block 128
// linear_FORMAT_C_split  C columns, two rows for the four waves of a block: grid ceil(rows / 2), block 128; for few rows
//
// in: w rows · cols/WEIGHTS blocks, 16-byte aligned, readable to the next multiple of 16; x C rows of activations
//     (activations.h), cols a multiple of the block's weights and of 64; out: y[C][rows]
#include "mat_vec.h"

#define LINEAR_OF(FORMAT, COLS)                                                                                        \
    GP_KERNEL(linear_##FORMAT##_##COLS, 128, const gp_u8* w, const gp_u8* x, float* y, gp_u32 rows, gp_u32 cols) {     \
        mat_vec<FORMAT, 2, 1, COLS>(w, x, y, rows, cols);                                                              \
    }                                                                                                                  \
    GP_KERNEL(linear_##FORMAT##_##COLS##_split, 128, const gp_u8* w, const gp_u8* x, float* y, gp_u32 rows, gp_u32 cols) { \
        mat_vec<FORMAT, 2, 4, COLS>(w, x, y, rows, cols);                                                              \
    }
#define LINEAR(FORMAT) LINEAR_OF(FORMAT, 1) LINEAR_OF(FORMAT, 2) LINEAR_OF(FORMAT, 3) LINEAR_OF(FORMAT, 4)

LINEAR(q8_0)
LINEAR(q4_k)
LINEAR(q2_k)
LINEAR(iq2_xxs)
LINEAR(iq2_s)
LINEAR(iq3_xxs)
LINEAR(mxfp4)
LINEAR(rocmfp2_s40)
LINEAR(rocmfp2_two_scale)
LINEAR(rocmfp2_affine)
LINEAR(rocmfp3)
LINEAR(rocmfp4)
LINEAR(rocmfp4_fast)
LINEAR(rocmfp6)
LINEAR(rocmfp8)
