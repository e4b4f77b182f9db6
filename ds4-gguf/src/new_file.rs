//! `NewFile`: a file that appears under its name only when it is complete.
//!
//! Written as `<name>.partial` beside the target; [`NewFile::publish`] makes it durable, renames it and makes the rename
//! durable. Dropped before that, the partial file is removed; after a kill or a power loss it may stay behind, and the
//! next writer of the same name starts it anew. The name never shows a file that is not whole.
//!
//! [`NewFile::seal`] divides that: a [`SealedFile`] is whole and durable, has not its name yet and holds neither memory
//! nor a descriptor, so that thousands of files can appear together.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::Error;

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;

/// A file under construction: a sink for [`crate::Writer`].
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.gguf");
/// use std::io::Write;
/// let mut file = ds4_gguf::NewFile::create(&path, false)?;
/// file.write_all(b"all of it")?;
/// assert!(!path.exists());
/// file.publish()?;
/// assert_eq!(std::fs::read(&path)?, b"all of it");
/// assert!(ds4_gguf::NewFile::create(&path, false).is_err()); // it exists
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NewFile {
    target: PathBuf,
    partial: PathBuf,
    file: BufWriter<File>,
    published: bool,
}

impl NewFile {
    /// Start the file that will be called `target`, which may exist when `overwrite` says so: readers that have it
    /// open, mapped or not, keep the old one. A link to a file is replaced itself, and not the file.
    ///
    /// # Errors
    /// [`Error::NotAFile`] when the target is a directory, a device, a pipe or a socket, or a link to one: a rename would
    /// fail, or put a file in the place of a device; [`Error::Exists`] when it exists and must not be replaced,
    /// [`Error::Busy`] when another process writes it, [`Error::File`] when the system refuses.
    pub fn create(target: &Path, overwrite: bool) -> Result<Self, Error> {
        if let Ok(there) = fs::metadata(target)
            && !there.is_file()
        {
            return Err(Error::NotAFile {
                path: target.to_owned(),
                found: if there.is_dir() {
                    "a directory"
                } else {
                    "a device, a pipe or a socket"
                },
            });
        }
        if !overwrite && target.symlink_metadata().is_ok() {
            return Err(Error::Exists {
                path: target.to_owned(),
            });
        }
        let mut name = target.as_os_str().to_owned();
        name.push(".partial");
        let partial = PathBuf::from(name);
        let fail = |source| Error::File {
            doing: "create",
            path: partial.clone(),
            source,
        };
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            // What another process may be writing must stay until the lock says that none does.
            .truncate(false)
            .open(&partial)
            .map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(Error::Busy { path: partial }),
            Err(fs::TryLockError::Error(source)) => return Err(fail(source)),
        }
        file.set_len(0).map_err(fail)?;
        Ok(Self {
            target: target.to_owned(),
            partial,
            file: BufWriter::with_capacity(BUFFER, file),
            published: false,
        })
    }

    /// The name that the file will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Make it durable and give it its name.
    ///
    /// # Errors
    /// [`Error::File`] when the system refuses; the target is as it was then.
    pub fn publish(mut self) -> Result<(), Error> {
        self.sync()?;
        rename(&self.partial, &self.target)?;
        self.published = true;
        sync_name(&self.target)
    }

    /// Make it durable and close it; it gets its name later.
    ///
    /// # Errors
    /// [`Error::File`] when the system refuses.
    pub fn seal(mut self) -> Result<SealedFile, Error> {
        self.sync()?;
        let state = self.file.get_ref().metadata();
        let state = state
            .and_then(|state| State::of(&state))
            .map_err(|source| fail("look at", &self.partial, source))?;
        self.published = true;
        Ok(SealedFile {
            target: self.target.clone(),
            partial: self.partial.clone(),
            state,
            published: false,
        })
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all())
            .map_err(|source| fail("write", &self.partial, source))
    }
}

fn fail(doing: &'static str, path: &Path, source: io::Error) -> Error {
    Error::File {
        doing,
        path: path.to_owned(),
        source,
    }
}

fn rename(partial: &Path, target: &Path) -> Result<(), Error> {
    fs::rename(partial, target).map_err(|source| fail("rename to", target, source))
}

/// Make the name of `path` durable.
pub(crate) fn sync_name(path: &Path) -> Result<(), Error> {
    sync_folder(path).map_err(|source| fail("sync the folder of", path, source))
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.published {
            // Nothing to tell anybody: the partial file is of no use and is started anew the next time.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// What another writer of the same name could not leave as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    bytes: u64,
    modified: SystemTime,
}

impl State {
    fn of(metadata: &fs::Metadata) -> io::Result<Self> {
        Ok(Self {
            bytes: metadata.len(),
            modified: metadata.modified()?,
        })
    }
}

/// A file that is whole and durable, and has not its name yet. Dropped, it is removed.
#[derive(Debug)]
pub struct SealedFile {
    target: PathBuf,
    partial: PathBuf,
    state: State,
    published: bool,
}

impl SealedFile {
    /// Give it its name, and make that durable.
    ///
    /// # Errors
    /// [`Error::Busy`] when another process has begun to write a file of this name since, [`Error::File`] when the system
    /// refuses; the target is as it was then.
    pub fn publish(self) -> Result<(), Error> {
        let target = self.target.clone();
        self.name()?;
        sync_name(&target)
    }

    /// Give it its name; the caller makes it durable.
    pub(crate) fn name(mut self) -> Result<(), Error> {
        let _locked = self.untouched()?;
        rename(&self.partial, &self.target)?;
        self.published = true;
        Ok(())
    }

    /// The file, locked: no lock was held since it was closed, and nobody must have used that.
    fn untouched(&self) -> Result<File, Error> {
        let open = |source| fail("open", &self.partial, source);
        let file = File::open(&self.partial).map_err(open)?;
        let busy = || Error::Busy {
            path: self.partial.clone(),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(busy()),
            Err(fs::TryLockError::Error(source)) => return Err(open(source)),
        }
        let state = file.metadata().and_then(|m| State::of(&m)).map_err(open)?;
        if state == self.state {
            Ok(file)
        } else {
            Err(busy())
        }
    }
}

impl Drop for SealedFile {
    fn drop(&mut self) {
        if !self.published
            && let Ok(_locked) = self.untouched()
        {
            // Nothing to tell anybody, as for a `NewFile`.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Make the names in the folder of `path` durable: a rename, a new file, a removed one.
///
/// # Errors
/// Those of the system. Where folders cannot be opened as files (Windows) there is nothing to do.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_file_leaves_nothing_and_the_target_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        let mut file = NewFile::create(&path, true).unwrap();
        file.write_all(b"new").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_writer_left_is_started_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(folder.path().join("a.partial"), "long and useless").unwrap();
        let mut file = NewFile::create(&path, false).unwrap();
        file.write_all(b"new").unwrap();
        file.publish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn two_writers_of_one_name_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let first = NewFile::create(&path, false).unwrap();
        let second = NewFile::create(&path, false);
        assert!(matches!(second, Err(Error::Busy { .. })), "{second:?}");
        drop(first);
        NewFile::create(&path, false).unwrap();
    }

    #[test]
    fn a_sealed_file_is_whole_before_it_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let sealed = |text: &[u8]| {
            let mut file = NewFile::create(&path, true).unwrap();
            file.write_all(text).unwrap();
            file.seal().unwrap()
        };
        let first = sealed(b"one");
        assert!(!path.exists());
        assert_eq!(fs::read(folder.path().join("a.partial")).unwrap(), b"one");
        first.publish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        drop(sealed(b"two"));
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// The second one writes, has written and was killed: what it left is neither named nor removed by the first.
    #[test]
    fn a_sealed_file_that_another_writer_took_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, partial) = (folder.path().join("a"), folder.path().join("a.partial"));
        let sealed = || {
            let mut file = NewFile::create(&path, true).unwrap();
            file.write_all(b"first").unwrap();
            file.seal().unwrap()
        };
        let busy = |error| matches!(error, Err(Error::Busy { .. }));
        let first = sealed();
        let second = NewFile::create(&path, true).unwrap();
        assert!(busy(first.publish()));
        assert!(partial.exists());
        drop(second);
        let first = sealed();
        fs::write(&partial, "secon").unwrap();
        File::open(&partial)
            .and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH))
            .unwrap();
        assert!(busy(first.publish()));
        assert_eq!(fs::read(&partial).unwrap(), b"secon");
        let first = sealed();
        fs::remove_file(&partial).unwrap();
        let gone = first.publish().unwrap_err();
        assert!(gone.to_string().contains("open"), "{gone}");
        assert!(!path.exists());
    }

    /// Found on a device file: a privileged process can replace one.
    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("directory")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        for name in ["directory", "socket"] {
            std::os::unix::fs::symlink(path(name), path(&format!("link to {name}"))).unwrap();
        }
        for (name, words) in [
            ("directory", "is a directory"),
            ("socket", "a socket"),
            ("link to directory", "is a directory"),
            ("link to socket", "a socket"),
            (".", "is a directory"),
            ("directory/", "is a directory"),
        ] {
            for overwrite in [true, false] {
                let error = NewFile::create(&path(name), overwrite).unwrap_err();
                assert!(matches!(error, Error::NotAFile { .. }), "{name}: {error}");
                assert!(error.to_string().contains(words), "{name}: {error}");
            }
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
        // A link to a file, or to nothing, is a name like any other.
        fs::write(path("file"), "old").unwrap();
        for to in ["file", "nothing"] {
            std::os::unix::fs::symlink(path(to), path("link")).unwrap();
            let refused = NewFile::create(&path("link"), false);
            assert!(matches!(refused, Err(Error::Exists { .. })), "{to}");
            let mut file = NewFile::create(&path("link"), true).unwrap();
            file.write_all(b"new").unwrap();
            file.publish().unwrap();
            assert_eq!(fs::read(path("link")).unwrap(), b"new");
            fs::remove_file(path("link")).unwrap();
        }
        assert_eq!(fs::read(path("file")).unwrap(), b"old");
        assert!(!path("nothing").exists());
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = NewFile::create(&folder.path().join("no/a"), false).unwrap_err();
        assert!(error.to_string().contains("a.partial"), "{error}");
    }
}
