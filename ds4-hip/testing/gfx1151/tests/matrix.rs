//! Matrix products of every format.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]

mod device;

use device::{have_llvm, one, run};
use ds4_hip_gfx1151::Options;

/// 16x16 products of every format against sums over k, the layout as AMD draws it.
#[test]
fn matrix_products_of_every_format() {
    if !have_llvm() {
        return;
    }
    let regs = |n: u32, at: u32| -> String {
        (0..n)
            .map(|k| {
                format!(
                    "global_load_b32 v{}, v12, s[4:5] offset:{}\n",
                    at + k,
                    4 * (at - 32 + k)
                )
            })
            .collect()
    };
    let store: String = (0..8)
        .map(|i| {
            format!(
                "global_store_b32 v12, v{}, s[6:7] offset:{}\n",
                64 + i,
                4 * i
            )
        })
        .collect();
    // Each lane has 32 input words: A at 0, B at 8, C at 16. Outputs: 32 words a lane, of which 8 count.
    let text = |op: &str, a: u32, c: &str| {
        let tail = if a == 8 { "" } else { " neg_lo:[1,0,0]" };
        format!(
            "s_load_b128 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v12, 7, v0\n{}{}{}{op} v[64:71], v[32:{}], v[40:{}], {c}{tail}\n{store}",
            regs(8, 32),
            regs(8, 40),
            (0..8)
                .map(|k| format!(
                    "global_load_b32 v{}, v12, s[4:5] offset:{}\n",
                    64 + k,
                    64 + 4 * k
                ))
                .collect::<String>(),
            32 + a - 1,
            40 + a - 1
        )
    };
    let formats = [
        ("v_wmma_f32_16x16x16_f16", 8_u32, 16_u32),
        ("v_wmma_f32_16x16x16_bf16", 8, 16),
        ("v_wmma_f16_16x16x16_f16", 8, 16),
        ("v_wmma_i32_16x16x16_iu8", 4, 8),
        ("v_wmma_i32_16x16x16_iu4", 2, 4),
    ];
    for (op, registers, bits) in formats {
        let value = |row: usize, k: usize, salt: usize| {
            ((row * 5 + k * 3 + salt * 7) % 8) as i32 - if bits < 16 && salt == 1 { 0 } else { 3 }
        };
        let float = |x: i32| -> u32 {
            let f = x as f32;
            if op.ends_with("bf16") {
                f.to_bits() >> 16
            } else {
                half_of(x)
            }
        };
        let encode = |x: i32| {
            if bits == 16 {
                float(x)
            } else {
                x as u32 & ((1 << bits) - 1)
            }
        };
        let mut input = vec![0_u32; 32 * 32];
        for l in 0..32 {
            for k in 0..16 {
                let (at, shift) = (k * bits as usize / 32, k * bits as usize % 32);
                input[l * 32 + at] |= encode(value(l & 15, k, 0)) << shift;
                input[l * 32 + 8 + at] |= encode(value(l & 15, k, 1)) << shift;
            }
            for i in 0..8 {
                let c = i as i32 - l as i32;
                input[l * 32 + 16 + i] = match op {
                    "v_wmma_f16_16x16x16_f16" => 0xabcd_0000 | half_of(c),
                    _ if bits == 16 => (c as f32).to_bits(),
                    _ => c as u32,
                };
            }
        }
        let module = one(&text(op, registers, "v[64:71]"), 0);
        let (out, _) = run(
            module.kernel("k").unwrap(),
            1,
            32,
            &input,
            1024,
            &Options::default(),
        )
        .unwrap_or_else(|f| panic!("{op}: {f}"));
        for l in 0..32 {
            for i in 0..8 {
                let (row, column) = (2 * i + l / 16, l % 16);
                let sum: i32 = (0..16)
                    .map(|k| value(row, k, 0) * value(column, k, 1))
                    .sum::<i32>()
                    + i as i32
                    - l as i32;
                let want = match op {
                    "v_wmma_f16_16x16x16_f16" => 0xabcd_0000 | half_of(sum),
                    _ if bits == 16 => (sum as f32).to_bits(),
                    _ => sum as u32,
                };
                assert_eq!(out[l * 32 + i], want, "{op} lane {l} element {i}");
            }
        }
    }
}

/// A whole number below 2048 as f16.
fn half_of(x: i32) -> u32 {
    let magnitude = x.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let e = 31 - magnitude.leading_zeros();
    u32::from(x < 0) << 15 | (15 + e) << 10 | (magnitude << (10 - e)) & 0x3ff
}
