//! File mapping, the crate's only `unsafe`.
//!
//! A mapping is a view of the file, not a copy. Whoever shortens the file while it is open makes later reads fault
//! (`SIGBUS`); whoever overwrites it changes what is read. Model files are written under another name and renamed,
//! which leaves an open mapping intact.
#![expect(unsafe_code, reason = "maps a file")]

use std::fs::File;
use std::io;
use std::path::Path;

/// A read-only mapping of a whole file. An empty file maps to no bytes.
pub(crate) struct Map(Option<memmap2::Mmap>);

impl Map {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        if facts.len() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: mapped read-only and shared as `&[u8]`. Nothing in this process writes to the file; the module
        // comment states what another process must not do, as for every memory-mapped format.
        let map = unsafe { memmap2::Mmap::map(&file) }?;
        Ok(Self(Some(map)))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}
