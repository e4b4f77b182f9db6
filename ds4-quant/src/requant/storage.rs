//! What a requantization does to the disk: the model, its journal, and nothing else.
//!
//! All access goes through [`Storage`], so that a test can put a disk under it that fails, tears writes, and forgets
//! what was not synced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ds4_gguf::sync_folder;

use super::RequantError;

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The model.
    Model,
    /// The journal beside it.
    Journal,
}

/// The model and its journal.
pub trait Storage {
    /// Length in bytes; `None` when there is no journal.
    ///
    /// # Errors
    /// Those of the system.
    fn len(&mut self, part: Part) -> io::Result<Option<u64>>;

    /// Fill `bytes` from `offset` on.
    ///
    /// # Errors
    /// Those of the system; `UnexpectedEof` when the file ends before.
    fn read_at(&mut self, part: Part, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Write all of `bytes`; the file grows when it ends before.
    ///
    /// # Errors
    /// Those of the system; a part may be written then.
    fn write_at(&mut self, part: Part, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cut or extend the file.
    ///
    /// # Errors
    /// Those of the system.
    fn set_len(&mut self, part: Part, len: u64) -> io::Result<()>;

    /// Return when everything written is durable.
    ///
    /// # Errors
    /// Those of the system.
    fn sync(&mut self, part: Part) -> io::Result<()>;

    /// Make an empty journal, or empty the one that is there; its name is durable on return.
    ///
    /// # Errors
    /// Those of the system.
    fn create_journal(&mut self) -> io::Result<()>;

    /// Remove the journal; its absence is durable on return. No journal is no error.
    ///
    /// # Errors
    /// Those of the system.
    fn remove_journal(&mut self) -> io::Result<()>;
}

/// Real files: `FILE`, locked against other processes that want to write it, and `FILE.requant`.
#[derive(Debug)]
pub struct FileStorage {
    path: PathBuf,
    model: File,
    journal: Option<File>,
}

impl FileStorage {
    /// Open and lock the model, and the journal where there is one. The journal lies beside the file itself, also when
    /// `path` is a link to it.
    ///
    /// # Errors
    /// [`RequantError::Busy`] when another process has the lock, [`RequantError::Open`] when the system refuses.
    pub fn open(path: &Path) -> Result<Self, RequantError> {
        let fail = |source| RequantError::Open {
            path: path.to_owned(),
            source,
        };
        let path = fs::canonicalize(path).map_err(fail)?;
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
        let model = open(&path).map_err(fail)?;
        match model.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(RequantError::Busy { path }),
            Err(fs::TryLockError::Error(source)) => return Err(fail(source)),
        }
        let journal = match open(&journal_path(&path)) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fail(error)),
        };
        Ok(Self {
            path,
            model,
            journal,
        })
    }

    /// The model, links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, part: Part) -> io::Result<&File> {
        match part {
            Part::Model => Ok(&self.model),
            Part::Journal => self.journal.as_ref().ok_or(io::ErrorKind::NotFound.into()),
        }
    }
}

/// The name of the journal of the model at `path`.
pub fn journal_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".requant");
    name.into()
}

impl Storage for FileStorage {
    fn len(&mut self, part: Part) -> io::Result<Option<u64>> {
        match self.file(part) {
            Ok(file) => Ok(Some(file.metadata()?.len())),
            Err(_) => Ok(None),
        }
    }

    fn read_at(&mut self, part: Part, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = self.file(part)?;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }

    fn write_at(&mut self, part: Part, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.file(part)?;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn set_len(&mut self, part: Part, len: u64) -> io::Result<()> {
        self.file(part)?.set_len(len)
    }

    fn sync(&mut self, part: Part) -> io::Result<()> {
        self.file(part)?.sync_data()
    }

    fn create_journal(&mut self) -> io::Result<()> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(journal_path(&self.path))?;
        self.journal = Some(file);
        sync_folder(&self.path)
    }

    fn remove_journal(&mut self) -> io::Result<()> {
        if self.journal.take().is_some() {
            fs::remove_file(journal_path(&self.path))?;
            sync_folder(&self.path)?;
        }
        Ok(())
    }
}
