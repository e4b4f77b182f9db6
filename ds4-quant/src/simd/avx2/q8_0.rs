//! Q8_0 in registers: the codes are there already.

use std::arch::x86_64::__m256i;

use super::reg::{halves8, load_codes};
use super::{Codes, Scales, Small};
use crate::format::q8_0::BlockQ8_0;

impl Small for BlockQ8_0 {
    const CODES: Codes = Codes::Signed;
    const SPAN: usize = 1;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        load_codes(&group[k].q)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        Scales::One(halves8(std::array::from_fn(|k| group[k].d)))
    }
}
