//! `NewFile`: a file that appears under its name only when it is complete.
//!
//! Written as `<name>.partial` beside the target; [`NewFile::publish`] makes it durable, renames it and makes the rename
//! durable. Dropped before that, the partial file is removed; after a kill or a power loss it may stay behind, and the
//! next writer of the same name starts it anew. The name never shows a file that is not whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

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
        let fail = |doing, path: &Path, source| Error::File {
            doing,
            path: path.to_owned(),
            source,
        };
        self.file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all())
            .map_err(|source| fail("write", &self.partial, source))?;
        fs::rename(&self.partial, &self.target)
            .map_err(|source| fail("rename to", &self.target, source))?;
        self.published = true;
        sync_folder(&self.target).map_err(|source| fail("sync the folder of", &self.target, source))
    }
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
