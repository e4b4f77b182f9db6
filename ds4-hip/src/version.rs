//! Versions of the HIP runtime.

use std::fmt;

/// A version as `hipRuntimeGetVersion` packs it: `10⁷ · major + 10⁵ · minor + patch`.
///
/// ```
/// let version = ds4_hip::Version::from_packed(70_125_424);
/// assert_eq!(version.to_string(), "7.1.25424");
/// ```
/// Source: `HIP_VERSION` in ROCm's `hip_version.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// ROCm's major version.
    pub major: u32,
    /// ROCm's minor version.
    pub minor: u32,
    /// The build number.
    pub patch: u32,
}

impl Version {
    /// Take the runtime's number apart.
    pub const fn from_packed(packed: u32) -> Self {
        Self {
            major: packed / 10_000_000,
            minor: packed / 100_000 % 100,
            patch: packed % 100_000,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_seen_from_runtimes_come_apart() {
        assert_eq!(
            Version::from_packed(50_221_153),
            Version {
                major: 5,
                minor: 2,
                patch: 21153
            }
        );
        assert!(Version::from_packed(70_125_424) > Version::from_packed(60_443_483));
    }
}
