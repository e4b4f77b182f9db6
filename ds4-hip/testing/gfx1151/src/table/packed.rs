//! VOP3P: the same formula on both halves of a register. The rows repeat those of the single forms.

use super::{Body, Row, halves, maximum, minimum, row, words};

fn signed(x: u32) -> i32 {
    i32::from(x as u16 as i16)
}

fn clamp_signed(x: i32) -> u32 {
    x.clamp(i16::MIN.into(), i16::MAX.into()) as u32
}

/// The rows.
pub(super) const ROWS: &[Row] = &[
    row!("pk_add_f16", PkF16, [PkF16, PkF16], halves!(|a, b| a + b)),
    row!("pk_mul_f16", PkF16, [PkF16, PkF16], halves!(|a, b| a * b)),
    row!(
        "pk_fma_f16",
        PkF16,
        [PkF16, PkF16, PkF16],
        Body::L3(super::f16::fma)
    ),
    row!(
        "pk_fmac_f16",
        PkF16,
        [PkF16, PkF16, PkF16],
        Body::L3(super::f16::fma)
    ),
    row!(
        "pk_min_f16",
        PkF16,
        [PkF16, PkF16],
        halves!(|a, b| minimum(a, b))
    ),
    row!(
        "pk_max_f16",
        PkF16,
        [PkF16, PkF16],
        halves!(|a, b| maximum(a, b))
    ),
    row!(
        "pk_add_u16",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| a.wrapping_add(b))
    ),
    row!(
        "pk_add_u16.clamp",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| (a + b).min(0xffff))
    ),
    row!(
        "pk_sub_u16",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| a.wrapping_sub(b))
    ),
    row!(
        "pk_sub_u16.clamp",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| a.saturating_sub(b))
    ),
    row!(
        "pk_add_i16",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| a.wrapping_add(b))
    ),
    row!(
        "pk_add_i16.clamp",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| clamp_signed(signed(a) + signed(b)))
    ),
    row!(
        "pk_sub_i16",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| a.wrapping_sub(b))
    ),
    row!(
        "pk_sub_i16.clamp",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| clamp_signed(signed(a) - signed(b)))
    ),
    row!(
        "pk_mul_lo_u16",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| a.wrapping_mul(b))
    ),
    row!(
        "pk_mad_u16",
        PkB16,
        [PkB16, PkB16, PkB16],
        words!(|a, b, c| a.wrapping_mul(b).wrapping_add(c))
    ),
    row!(
        "pk_mad_i16",
        PkB16,
        [PkB16, PkB16, PkB16],
        words!(|a, b, c| a.wrapping_mul(b).wrapping_add(c))
    ),
    row!("pk_min_u16", PkB16, [PkB16, PkB16], words!(|a, b| a.min(b))),
    row!("pk_max_u16", PkB16, [PkB16, PkB16], words!(|a, b| a.max(b))),
    row!(
        "pk_min_i16",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| signed(a).min(signed(b)) as u32)
    ),
    row!(
        "pk_max_i16",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| signed(a).max(signed(b)) as u32)
    ),
    row!(
        "pk_lshlrev_b16",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| b << (a & 15))
    ),
    row!(
        "pk_lshrrev_b16",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| b >> (a & 15))
    ),
    row!(
        "pk_ashrrev_i16",
        PkB16,
        [PkB16, PkB16],
        words!(|a, b| (signed(b) >> (a & 15)) as u32)
    ),
];
