//! FNV-1a: a hash that is the same in every version and on every machine.

/// FNV-1a, 64 bits: no defence against intent, and none is needed.
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) fn value(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the authors' own test program (Fowler, Noll, Vo).
    #[test]
    fn known_texts_have_their_known_hashes() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut fnv = Fnv::default();
            fnv.write(text.as_bytes());
            assert_eq!(fnv.value(), hash, "{text}");
        }
    }
}
