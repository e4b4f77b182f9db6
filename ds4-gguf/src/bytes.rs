//! Shared, immutable bytes: a mapped file or a vector, and ranges of it that keep it alive.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Where bytes live.
enum Source {
    Owned(Vec<u8>),
    #[cfg(feature = "mmap")]
    Mapped(crate::map::Map),
}

impl Source {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            #[cfg(feature = "mmap")]
            Self::Mapped(map) => map.as_slice(),
        }
    }
}

/// A range of shared bytes. Cloning copies a pointer; the file stays mapped while any clone lives.
#[derive(Clone)]
pub(crate) struct Bytes {
    source: Arc<Source>,
    range: Range<usize>,
}

impl Bytes {
    /// The sub-range `range` of these bytes.
    ///
    /// # Panics
    /// When `range` is not inside them: callers have measured it on this very slice.
    pub(crate) fn slice(&self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len(),
            "range measured on these bytes"
        );
        let start = self.range.start + range.start;
        Self {
            source: Arc::clone(&self.source),
            range: start..start + range.len(),
        }
    }

    #[cfg(feature = "mmap")]
    pub(crate) fn mapped(map: crate::map::Map) -> Self {
        let range = 0..map.as_slice().len();
        Self {
            source: Arc::new(Source::Mapped(map)),
            range,
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self {
            source: Arc::new(Source::Owned(bytes)),
            range,
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.source.as_slice()[self.range.clone()]
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.range.len())
    }
}
