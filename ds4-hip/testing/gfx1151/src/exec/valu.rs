//! Vector arithmetic: operands of all formats, modifiers, result modifiers, lane masks.

use super::dpp::Dpp;
use super::operand::{At, Dst, Src};
use super::wave::{Lanes, NULL, VCC, Wave, each};
use crate::fault::Done;
use crate::float16::{from_f32, to_f32};
use crate::table::{self, Body, Ty};

/// A resolved vector instruction.
#[derive(Clone)]
pub(crate) struct Valu {
    pub(crate) body: Body,
    pub(crate) dst_ty: Ty,
    pub(crate) src_ty: [Ty; 3],
    pub(crate) dst: Dst,
    /// Where a bit a lane goes; [`NULL`] for nowhere.
    pub(crate) flags: u8,
    pub(crate) src: [Src; 3],
    /// Bit k: operand k takes the upper half (16-bit operands), or does so for the lower result (packed).
    pub(crate) op_sel: u8,
    /// Bit k: operand k takes the upper half for the upper result (packed), or is f16 (mixed).
    pub(crate) op_sel_hi: u8,
    /// Sign of operand k for the lower and the upper result (packed).
    pub(crate) neg_lo: u8,
    pub(crate) neg_hi: u8,
    /// A 16-bit result goes to the upper half.
    pub(crate) high: bool,
    /// Outcome is multiplied by 1, 2, 4 or 1/2.
    pub(crate) scale: f32,
    pub(crate) clamp: bool,
    pub(crate) dpp: Option<Dpp>,
}

/// The words of a result, before they are written.
pub(crate) struct Outcome {
    /// The lanes to write.
    lanes: u32,
    low: Lanes,
    high: Lanes,
    flags: u32,
    /// The lanes whose result, or whose upper word, counts as never written.
    undefined: u32,
    partial: u32,
}

impl Outcome {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            lanes: 0,
            low: [0; 32],
            high: [0; 32],
            flags: 0,
            undefined: 0,
            partial: 0,
        }
    }
}

/// Compute and write.
#[inline]
pub(crate) fn run(w: &mut Wave, i: &Valu) -> Done {
    let mut result = Outcome::new();
    compute(w, i, &mut result)?;
    write(w, i, &result);
    Ok(())
}

/// Compute both, then write both.
pub(crate) fn run_dual(w: &mut Wave, pair: &[Valu; 2]) -> Done {
    let (mut x, mut y) = (Outcome::new(), Outcome::new());
    compute(w, &pair[0], &mut x)?;
    compute(w, &pair[1], &mut y)?;
    write(w, &pair[0], &x);
    write(w, &pair[1], &y);
    Ok(())
}

fn write(w: &mut Wave, i: &Valu, r: &Outcome) {
    match i.dst {
        Dst::V(register) => {
            w.write_v(register, r.lanes, &r.low);
            w.forget(register, r.undefined);
            if i.dst_ty.wide() {
                w.write_v(register.wrapping_add(1), r.lanes, &r.high);
                w.forget(register.wrapping_add(1), r.partial);
            }
        }
        Dst::S(register) => w.write_s(register, r.flags & r.lanes),
    }
    if i.flags != NULL {
        w.write_s(i.flags, r.flags & r.lanes);
    }
}

struct Fetch<'a> {
    w: &'a Wave,
    i: &'a Valu,
    lanes: u32,
    /// Operand 0 after the exchange between lanes.
    moved: Option<&'a Lanes>,
    /// Packed: the operands of the upper result.
    upper: bool,
}

impl<'a> Fetch<'a> {
    /// Operand `k` as 32-bit lanes in the form its formula takes.
    #[inline]
    fn get<'b>(&self, k: usize, buffer: &'b mut Lanes) -> Done<&'b Lanes>
    where
        'a: 'b,
    {
        let (src, ty) = (&self.i.src[k], self.i.src_ty[k]);
        let bare = match ty {
            Ty::B32 => true,
            Ty::F32 => self.w.denormals & 1 == 1,
            _ => false,
        };
        if bare && !src.neg && !src.abs && (k > 0 || self.moved.is_none()) {
            return self.w.plain(src, self.lanes, buffer);
        }
        self.modified(k, buffer)?;
        Ok(buffer)
    }

    /// Ask for operand `k` only in those of `lanes` in which it has been written; the others.
    fn narrow(&mut self, k: usize, lanes: u32) -> u32 {
        let missing = match self.i.src[k].at {
            // What came from other lanes has been checked there.
            At::V(register) if k > 0 || self.moved.is_none() => {
                lanes & !self.w.written_lanes(register)
            }
            _ => 0,
        };
        self.lanes = lanes & !missing;
        missing
    }

    fn modified(&self, k: usize, out: &mut Lanes) -> Done {
        let (src, ty) = (&self.i.src[k], self.i.src_ty[k]);
        if ty == Ty::Mask {
            let mask = self.w.scalar(src.at)?;
            *out = std::array::from_fn(|l| mask >> l & 1);
            return Ok(());
        }
        match self.moved {
            Some(moved) if k == 0 => *out = *moved,
            _ => {
                let mut buffer = [0; 32];
                *out = *self.w.plain(src, self.lanes, &mut buffer)?;
            }
        }
        let bit = |mask: u8| mask >> k & 1 == 1;
        let (mut neg, mut sign) = (src.neg, 1 << 31);
        match ty {
            Ty::B16 | Ty::F16 => {
                half(out, bit(self.i.op_sel));
                sign = 1 << 15;
            }
            Ty::PkB16 | Ty::PkF16 => {
                let (select, negate) = if self.upper {
                    (self.i.op_sel_hi, self.i.neg_hi)
                } else {
                    (self.i.op_sel, self.i.neg_lo)
                };
                half(out, bit(select));
                neg = bit(negate);
                sign = 1 << 15;
            }
            Ty::Mix if bit(self.i.op_sel_hi) => {
                half(out, bit(self.i.op_sel));
                for x in out.iter_mut() {
                    *x = to_f32(*x).to_bits();
                }
            }
            _ => {}
        }
        if src.abs {
            out.iter_mut().for_each(|x| *x &= !sign);
        }
        if neg {
            out.iter_mut().for_each(|x| *x ^= sign);
        }
        if ty == Ty::F32 && self.w.denormals & 1 == 0 {
            out.iter_mut().for_each(|x| *x = flush(*x));
        }
        Ok(())
    }

    /// Operand `k` as 64-bit lanes, narrow ones extended with zeros.
    fn wide(&self, k: usize) -> Done<[u64; 32]> {
        let (src, ty) = (&self.i.src[k], self.i.src_ty[k]);
        if !ty.wide() {
            let mut buffer = [0; 32];
            return Ok(self.get(k, &mut buffer)?.map(u64::from));
        }
        let mut out = self.w.wide(src, self.lanes)?;
        if src.abs {
            out.iter_mut().for_each(|x| *x &= !(1 << 63));
        }
        if src.neg {
            out.iter_mut().for_each(|x| *x ^= 1 << 63);
        }
        Ok(out)
    }
}

fn half(lanes: &mut Lanes, upper: bool) {
    let shift = if upper { 16 } else { 0 };
    for x in lanes.iter_mut() {
        *x = *x >> shift & 0xffff;
    }
}

fn flush(x: u32) -> u32 {
    if x & 0x7f80_0000 == 0 { x & 1 << 31 } else { x }
}

/// Compute `i` on the state of `w`, which does not change.
#[inline]
pub(crate) fn compute(w: &Wave, i: &Valu, r: &mut Outcome) -> Done {
    let mut moved = [0; 32];
    let mut fetch = Fetch {
        w,
        i,
        lanes: w.exec(),
        moved: None,
        upper: false,
    };
    if let Some(dpp) = &i.dpp {
        fetch.lanes = dpp.gather(w, &i.src[0], &mut moved)?;
        fetch.moved = Some(&moved);
    }
    r.lanes = fetch.lanes;
    let (mut x, mut y, mut z) = ([0; 32], [0; 32], [0; 32]);
    match i.body {
        Body::L2(f) if !i.dst_ty.packed() => {
            f(fetch.get(0, &mut x)?, fetch.get(1, &mut y)?, &mut r.low);
        }
        Body::L3(f) if !i.dst_ty.packed() => f(
            fetch.get(0, &mut x)?,
            fetch.get(1, &mut y)?,
            fetch.get(2, &mut z)?,
            &mut r.low,
        ),
        Body::L1(f) => f(fetch.get(0, &mut x)?, &mut r.low),
        Body::Copy => {
            r.undefined = fetch.narrow(0, fetch.lanes);
            r.low = *fetch.get(0, &mut x)?;
        }
        Body::Select => {
            let (all, mask) = (fetch.lanes, w.scalar(i.src[2].at)?);
            r.undefined = fetch.narrow(0, all & !mask);
            let a = *fetch.get(0, &mut x)?;
            r.undefined |= fetch.narrow(1, all & mask);
            let b = fetch.get(1, &mut y)?;
            for l in 0..32 {
                r.low[l] = if mask >> l & 1 == 1 { b[l] } else { a[l] };
            }
        }
        Body::L2(_) | Body::L3(_) => {
            halves(&fetch, &mut r.low)?;
            fetch.upper = true;
            halves(&fetch, &mut r.high)?;
        }
        Body::Compare(f) => r.flags = f(fetch.get(0, &mut x)?, fetch.get(1, &mut y)?),
        Body::Flag(f) => {
            if i.src_ty[2] != Ty::B64 {
                z = *fetch.get(2, &mut [0; 32])?;
            }
            r.flags = f(fetch.get(0, &mut x)?, fetch.get(1, &mut y)?, &z, &mut r.low);
        }
        _ => one_by_one(&fetch, r)?,
    }
    finish(w, i, r);
    Ok(())
}

fn halves(fetch: &Fetch<'_>, out: &mut Lanes) -> Done {
    let (mut x, mut y, mut z) = ([0; 32], [0; 32], [0; 32]);
    let (a, b) = (fetch.get(0, &mut x)?, fetch.get(1, &mut y)?);
    match fetch.i.body {
        Body::L2(f) => f(a, b, out),
        Body::L3(f) => f(a, b, fetch.get(2, &mut z)?, out),
        _ => {}
    }
    Ok(())
}

fn one_by_one(fetch: &Fetch<'_>, r: &mut Outcome) -> Done {
    let partial = match (fetch.i.body, fetch.i.src[2].at) {
        (Body::Mad(_), At::V(register)) => {
            fetch.lanes & !fetch.w.written_lanes(register.wrapping_add(1))
        }
        _ => 0,
    };
    r.partial = partial;
    let mut put = |l: usize, value: u64, flag: bool| {
        r.low[l] = value as u32;
        r.high[l] = (value >> 32) as u32;
        r.flags |= u32::from(flag) << l;
    };
    let lanes = each(fetch.lanes);
    match fetch.i.body {
        Body::S1(f) => {
            let a = fetch.wide(0)?;
            lanes.for_each(|l| put(l, f(a[l]), false));
        }
        Body::S2(f) => {
            let (a, b) = (fetch.wide(0)?, fetch.wide(1)?);
            lanes.for_each(|l| put(l, f(a[l], b[l]), false));
        }
        Body::S3(f) => {
            let (a, b, c) = (fetch.wide(0)?, fetch.wide(1)?, fetch.wide(2)?);
            lanes.for_each(|l| put(l, f(a[l], b[l], c[l]), false));
        }
        Body::FlagOne(f) => {
            let (a, b, c) = (fetch.wide(0)?, fetch.wide(1)?, fetch.wide(2)?);
            lanes.for_each(|l| {
                let (value, flag) = f(a[l], b[l], c[l]);
                put(l, value, flag);
            });
        }
        Body::Mad(f) => {
            let (a, b) = (fetch.wide(0)?, fetch.wide(1)?);
            let c = match fetch.i.src[2].at {
                At::V(register) => fetch.w.wide_low(register, fetch.lanes)?,
                _ => fetch.wide(2)?,
            };
            lanes.for_each(|l| {
                let (value, flag) = f(a[l], b[l], c[l]);
                put(l, value, flag);
            });
        }
        Body::CompareOne(f) => {
            let (a, b) = (fetch.wide(0)?, fetch.wide(1)?);
            lanes.for_each(|l| put(l, 0, f(a[l], b[l])));
        }
        Body::Fmas32 => {
            let (a, b, c) = (fetch.wide(0)?, fetch.wide(1)?, fetch.wide(2)?);
            let (vcc, f) = (fetch.w.s(VCC)?, |x: u64| f32::from_bits(x as u32));
            lanes.for_each(|l| {
                let value = table::div_fmas(vcc >> l & 1 == 1, f(a[l]), f(b[l]), f(c[l]));
                put(l, value.into(), false);
            });
        }
        Body::Fmas64 => {
            let (a, b, c) = (fetch.wide(0)?, fetch.wide(1)?, fetch.wide(2)?);
            let (vcc, f) = (fetch.w.s(VCC)?, f64::from_bits);
            lanes.for_each(|l| {
                let value = table::div_fmas_f64(vcc >> l & 1 == 1, f(a[l]), f(b[l]), f(c[l]));
                put(l, value, false);
            });
        }
        Body::Copy
        | Body::Select
        | Body::L1(_)
        | Body::L2(_)
        | Body::L3(_)
        | Body::Compare(_)
        | Body::Flag(_) => {}
    }
    Ok(())
}

/// Outcome modifiers, and the half that a 16-bit result leaves alone.
#[inline]
fn finish(w: &Wave, i: &Valu, r: &mut Outcome) {
    match i.dst_ty {
        Ty::F32 => {
            if i.clamp || i.scale != 1.0 {
                for x in &mut r.low {
                    *x = limit(f32::from_bits(*x) * i.scale, i.clamp).to_bits();
                }
            }
            if w.denormals & 2 == 0 {
                for x in &mut r.low {
                    *x = flush(*x);
                }
            }
        }
        Ty::F64 if i.clamp || i.scale != 1.0 => {
            for l in 0..32 {
                let x = f64::from_bits(u64::from(r.low[l]) | u64::from(r.high[l]) << 32);
                let x = x * f64::from(i.scale);
                let x = if !i.clamp {
                    x
                } else if x.is_nan() {
                    0.0
                } else {
                    x.clamp(0.0, 1.0)
                };
                r.low[l] = x.to_bits() as u32;
                r.high[l] = (x.to_bits() >> 32) as u32;
            }
        }
        Ty::F16 | Ty::B16 | Ty::Mix => {
            if i.dst_ty == Ty::Mix {
                for x in &mut r.low {
                    *x = from_f32(f32::from_bits(*x));
                }
            }
            if i.dst_ty != Ty::B16 && (i.clamp || i.scale != 1.0) {
                limit_halves(i, &mut r.low);
            }
            if let Dst::V(register) = i.dst {
                let old = w.v_kept(register);
                let (shift, keep) = if i.high {
                    (16, 0xffff)
                } else {
                    (0, 0xffff_0000)
                };
                for (x, old) in r.low.iter_mut().zip(old) {
                    *x = (*x & 0xffff) << shift | old & keep;
                }
            }
        }
        Ty::PkF16 | Ty::PkB16 => {
            if i.dst_ty == Ty::PkF16 && i.clamp {
                limit_halves(i, &mut r.low);
                limit_halves(i, &mut r.high);
            }
            for l in 0..32 {
                r.low[l] = r.low[l] & 0xffff | r.high[l] << 16;
            }
        }
        _ => {}
    }
}

fn limit_halves(i: &Valu, lanes: &mut Lanes) {
    for x in lanes {
        *x = from_f32(limit(to_f32(*x) * i.scale, i.clamp));
    }
}

/// The clamp modifier of float results: to 0..=1, NaN to 0.
fn limit(x: f32, clamp: bool) -> f32 {
    if !clamp {
        x
    } else if x.is_nan() {
        0.0
    } else {
        x.clamp(0.0, 1.0)
    }
}
