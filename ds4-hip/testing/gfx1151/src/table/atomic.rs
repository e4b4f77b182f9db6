//! Read-modify-write operations of memory and LDS: what is stored, from the old value and the operands.

/// The new value from the old one, the data and, for compare-and-swap, the value compared with.
pub(crate) type Update = fn(old: u64, data: u64, compare: u64) -> u64;

/// One operation.
#[derive(Clone, Copy)]
pub(crate) struct Atomic {
    pub(crate) bytes: u8,
    /// Whether it takes a value to compare with.
    pub(crate) compares: bool,
    pub(crate) update: Update,
}

fn f(x: u64) -> f32 {
    f32::from_bits(x as u32)
}

fn of(x: f32) -> u64 {
    x.to_bits().into()
}

fn int(x: u64) -> i32 {
    x as u32 as i32
}

fn word(update: Update) -> (u8, bool, Update) {
    (4, false, update)
}

fn wide(update: Update) -> (u8, bool, Update) {
    (8, false, update)
}

/// By the name after `ds_` or `global_atomic_`, without `rtn`.
pub(crate) fn find(name: &str) -> Option<Atomic> {
    let (bytes, compares, update): (u8, bool, Update) = match name {
        "add_u32" => word(|old, x, _| old.wrapping_add(x)),
        "sub_u32" => word(|old, x, _| old.wrapping_sub(x)),
        "rsub_u32" => word(|old, x, _| x.wrapping_sub(old)),
        "inc_u32" => word(|old, x, _| if old >= x { 0 } else { old + 1 }),
        "dec_u32" => word(|old, x, _| if old == 0 || old > x { x } else { old - 1 }),
        "min_i32" => word(|old, x, _| if int(x) < int(old) { x } else { old }),
        "max_i32" => word(|old, x, _| if int(x) >= int(old) { x } else { old }),
        "min_u32" => word(|old, x, _| old.min(x)),
        "max_u32" => word(|old, x, _| old.max(x)),
        "and_b32" => word(|old, x, _| old & x),
        "or_b32" => word(|old, x, _| old | x),
        "xor_b32" => word(|old, x, _| old ^ x),
        "swap_b32" | "storexchg_b32" => word(|_, x, _| x),
        "add_f32" => word(|old, x, _| of(f(old) + f(x))),
        "min_f32" => word(|old, x, _| of(super::minimum(f(old), f(x)))),
        "max_f32" => word(|old, x, _| of(super::maximum(f(old), f(x)))),
        "cmpswap_b32" | "cmpstore_b32" => (4, true, |old, x, c| if old == c { x } else { old }),
        "cmpswap_f32" | "cmpstore_f32" => {
            (4, true, |old, x, c| if f(old) == f(c) { x } else { old })
        }
        "add_u64" => wide(|old, x, _| old.wrapping_add(x)),
        "sub_u64" => wide(|old, x, _| old.wrapping_sub(x)),
        "min_i64" => wide(|old, x, _| (old as i64).min(x as i64) as u64),
        "max_i64" => wide(|old, x, _| (old as i64).max(x as i64) as u64),
        "min_u64" => wide(|old, x, _| old.min(x)),
        "max_u64" => wide(|old, x, _| old.max(x)),
        "and_b64" => wide(|old, x, _| old & x),
        "or_b64" => wide(|old, x, _| old | x),
        "xor_b64" => wide(|old, x, _| old ^ x),
        "swap_b64" | "storexchg_b64" => wide(|_, x, _| x),
        "cmpswap_b64" | "cmpstore_b64" => (8, true, |old, x, c| if old == c { x } else { old }),
        _ => return None,
    };
    Some(Atomic {
        bytes,
        compares,
        update,
    })
}
