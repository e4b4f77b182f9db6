//! GGUF bytes put together by hand: nothing is checked, so nothing is too wrong to be written.

/// A file under construction.
#[derive(Clone)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

impl Raw {
    /// Magic, version 3, counts.
    pub(crate) fn new(tensors: u64, keys: u64) -> Self {
        Self::with_version(3, tensors, keys)
    }

    pub(crate) fn with_version(version: u32, tensors: u64, keys: u64) -> Self {
        Self(b"GGUF".to_vec()).u32(version).u64(tensors).u64(keys)
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u32(self, n: u32) -> Self {
        self.bytes(&n.to_le_bytes())
    }

    pub(crate) fn u64(self, n: u64) -> Self {
        self.bytes(&n.to_le_bytes())
    }

    /// A string: length, bytes.
    pub(crate) fn string(self, text: impl AsRef<[u8]>) -> Self {
        self.u64(text.as_ref().len() as u64).bytes(text.as_ref())
    }

    /// A key and the type of its value; the value is up to the caller.
    pub(crate) fn key(self, key: impl AsRef<[u8]>, ty: u32) -> Self {
        self.string(key).u32(ty)
    }

    /// A line of the tensor table.
    pub(crate) fn tensor(self, name: impl AsRef<[u8]>, ne: &[u64], ty: u32, offset: u64) -> Self {
        let head = self.string(name).u32(ne.len() as u32);
        ne.iter()
            .fold(head, |raw, &n| raw.u64(n))
            .u32(ty)
            .u64(offset)
    }

    /// Zeros up to a multiple of 32, then `len` bytes of data.
    pub(crate) fn data(mut self, len: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(32) + len, 0);
        self
    }
}
