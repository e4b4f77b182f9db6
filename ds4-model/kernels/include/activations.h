// Activations as integer products take them: signed bytes, one scale for 32.
//
//   byte 0..cols                      codes
//   byte cols..cols + cols/8          f32 scale of each 32
//   byte .. + cols/8                  i16 sum of the codes of each 16
//
// One row after the other, each 5/4 cols bytes long; cols is a multiple of 32, so that every part stays aligned to 4, and rows
// of a multiple of 64 to 16.
#pragma once
#include "gpu_port.h"

GP_DEV gp_u64 x_row_bytes(gp_u32 cols) { return cols + (cols >> 2); }

struct x_row {
    const gp_u8* codes;
    const float* scales;
    const gp_i16* sums;
};

GP_DEV x_row x_at(const gp_u8* x, gp_u32 cols, gp_u32 row) {
    const gp_u8* at = x + row * x_row_bytes(cols);
    return {at, (const float*)(at + cols), (const gp_i16*)(at + cols + (cols >> 3))};
}
