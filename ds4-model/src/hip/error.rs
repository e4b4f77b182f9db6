//! What can go wrong when a kernel is launched.

use ds4_gguf::TensorType;

/// What can go wrong when a kernel is launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device or its runtime refuses.
    #[error(transparent)]
    Hip(#[from] ds4_hip::Error),
    /// A code object is missing.
    #[error("no code of `{file}` for {arch}")]
    NoCode {
        /// The kernels' file, without `.hip`.
        file: &'static str,
        /// The device's architecture.
        arch: Box<str>,
    },
    /// No kernel takes weights of this type.
    #[error("no kernel multiplies weights of type {}", ty.name())]
    Type {
        /// The type.
        ty: TensorType,
    },
    /// A length that does not fit the others.
    #[error("{kernel}: {what} is {found}, expected {expected}")]
    Length {
        /// The launcher.
        kernel: &'static str,
        /// Whose length.
        what: &'static str,
        /// What it is.
        found: usize,
        /// What it must be.
        expected: usize,
    },
    /// A shape that the kernel does not do.
    #[error("{kernel}: {what} is {found}, it must be {must}")]
    Shape {
        /// The launcher.
        kernel: &'static str,
        /// Which extent.
        what: &'static str,
        /// What it is.
        found: usize,
        /// What it must be.
        must: &'static str,
    },
}

/// Both lengths, or the error that names them.
pub(crate) fn same(
    kernel: &'static str,
    what: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Length {
        kernel,
        what,
        found,
        expected,
    })
}

/// A number of rows or columns as kernels take it.
pub(crate) fn extent(kernel: &'static str, what: &'static str, n: usize) -> Result<u32, Error> {
    u32::try_from(n)
        .ok()
        .filter(|&n| n > 0 && n <= i32::MAX.cast_unsigned())
        .ok_or(Error::Shape {
            kernel,
            what,
            found: n,
            must: "1 to 2147483647",
        })
}
