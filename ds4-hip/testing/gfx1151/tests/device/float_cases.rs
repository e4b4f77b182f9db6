//! Cases of one float instruction each: how they run, and when a result is as wanted.

use ds4_hip_gfx1151::Options;

use super::{Asm, asm, assemble, have_llvm, load, run};

const F32: [f32; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    3.25,
    1e-45,
    -1e-40,
    1.1754944e-38,
    3.4028235e38,
    -3.4028235e38,
    65504.0,
    65520.0,
    6e-8,
    2147483648.0,
    -2147483904.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

/// v2 = a, v3 = b, v4 = c, v[6:7] = the f64 of a; the result is v8.
pub(crate) struct Case(
    pub(crate) &'static str,
    pub(crate) fn(f32, f32, f32) -> Want,
);

pub(crate) enum Want {
    /// These bits; any NaN for a NaN.
    F(f32),
    /// An f16 in the low half; any NaN for a NaN.
    H(f32),
    Bits(u32),
    /// Within one unit of the last place, or below the normal range on both sides.
    Near(f64),
}

fn agrees(got: u32, want: &Want) -> bool {
    match *want {
        Want::F(x) => got == x.to_bits() || x.is_nan() && f32::from_bits(got).is_nan(),
        Want::H(x) => {
            let half = half(x);
            got & 0xffff == half || half & 0x7fff > 0x7c00 && got & 0x7fff > 0x7c00
        }
        Want::Bits(x) => got == x,
        Want::Near(x) => {
            let (got, want) = (f32::from_bits(got), x as f32);
            got.to_bits() == want.to_bits()
                || got.is_nan() && want.is_nan()
                || got.is_finite()
                    && want.is_finite()
                    && (got.to_bits().abs_diff(want.to_bits())) <= 1
                || got == 0.0 && want.abs() < f32::MIN_POSITIVE
        }
    }
}

/// f32 to f16 by search among all values: the nearest, the even one of two.
pub(crate) fn half(x: f32) -> u32 {
    let sign = x.to_bits() >> 16 & 0x8000;
    if x.is_nan() {
        return sign | 0x7e00;
    }
    let x = f64::from(x.abs());
    if x >= 65520.0 {
        return sign | 0x7c00;
    }
    let (mut low, mut high) = (0, 0x7c00);
    while high - low > 1 {
        let middle = (low + high) / 2;
        *(if half_value(middle) <= x {
            &mut low
        } else {
            &mut high
        }) = middle;
    }
    let (below, above) = (x - half_value(low), half_value(high) - x);
    let up = above < below || above == below && high & 1 == 0;
    sign | if up { high } else { low }
}

pub(crate) fn check(cases: &[Case]) {
    if !have_llvm() {
        return;
    }
    let names: Vec<String> = (0..cases.len()).map(|k| format!("k{k}")).collect();
    let bodies: Vec<String> = cases
        .iter()
        .map(|case| {
            format!(
                "s_load_b128 s[4:7], s[0:1], 0x0\ns_lshl_b32 s3, s2, 5\nv_add_nc_u32 v1, s3, v0\nv_mul_u32_u24 v20, 12, v1\n\
                 s_waitcnt lgkmcnt(0)\nglobal_load_b96 v[2:4], v20, s[4:5]\ns_waitcnt vmcnt(0)\nv_cvt_f64_f32 v[6:7], v2\n\
                 v_cvt_f64_f32 v[10:11], v3\nv_cvt_f64_f32 v[14:15], v4\n\
                 v_mov_b32 v8, 0\n{}\nv_lshlrev_b32 v20, 2, v1\nglobal_store_b32 v20, v8, s[6:7]",
                case.0
            )
        })
        .collect();
    let kernels: Vec<Asm<'_>> = names
        .iter()
        .zip(&bodies)
        .map(|(name, body)| Asm {
            name,
            body,
            lds: 0,
            kernarg: 16,
        })
        .collect();
    let module = load(&assemble(&asm(&kernels)));
    let mut inputs: Vec<[f32; 3]> = Vec::new();
    for (i, &a) in F32.iter().enumerate() {
        for (j, &b) in F32.iter().enumerate() {
            inputs.push([a, b, F32[(3 * i + 5 * j) % F32.len()]]);
        }
    }
    let mut state = 1_u64;
    while !inputs.len().is_multiple_of(32) || inputs.len() < 1500 {
        inputs.push(std::array::from_fn(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(3);
            f32::from_bits((state >> 32) as u32)
        }));
    }
    let words: Vec<u32> = inputs.iter().flatten().map(|x| x.to_bits()).collect();
    let mut wrong = Vec::new();
    for (name, case) in names.iter().zip(cases) {
        let blocks = inputs.len() as u32 / 32;
        let (out, _) = run(
            module.kernel(name).unwrap(),
            blocks,
            32,
            &words,
            inputs.len(),
            &Options::default(),
        )
        .unwrap_or_else(|fault| panic!("{}: {fault}", case.0));
        for (k, &[a, b, c]) in inputs.iter().enumerate() {
            if !agrees(out[k], &case.1(a, b, c)) {
                wrong.push(format!(
                    "{} of {a:e} {b:e} {c:e} gives {:#x} = {:e}",
                    case.0,
                    out[k],
                    f32::from_bits(out[k])
                ));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The value of an f16, infinity as the next power of two.
pub(crate) fn half_value(h: u32) -> f64 {
    match h >> 10 & 31 {
        0 => f64::from(h & 1023) * 2f64.powi(-24),
        e => f64::from(1024 + (h & 1023)) * 2f64.powi(e as i32 - 25),
    }
}
