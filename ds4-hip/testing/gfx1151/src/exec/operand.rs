//! Operands as execution sees them: resolved once, when a module is loaded.

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// A vector register, the first of several for wide operands.
    V(u8),
    /// A scalar register, the first of several for wide operands.
    S(u8),
    /// An inline constant or a literal, already in the operand's own format.
    K(u64),
    /// The scalar condition code.
    Scc,
    /// Whether VCC is zero.
    Vccz,
    /// Whether EXEC is zero.
    Execz,
}

/// A source operand with its float modifiers: the absolute value is taken first, then the sign is turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Src {
    pub(crate) at: At,
    pub(crate) neg: bool,
    pub(crate) abs: bool,
}

impl Src {
    /// Without modifiers.
    pub(crate) const fn new(at: At) -> Self {
        Self {
            at,
            neg: false,
            abs: false,
        }
    }
}

/// Where a result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dst {
    /// A vector register, the first of several for wide results.
    V(u8),
    /// A scalar register.
    S(u8),
}
