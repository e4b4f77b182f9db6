//! `DS4_LOCK_FILE`: one program with a model at a time, where somebody wants that. The system lets go of the lock when its
//! holder ends, however it ends; the file stays, with the number of the last holder's process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::env;

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// Another process has it.
    #[error("{} is locked by process {holder}, expected no other instance", path.display())]
    Held { path: PathBuf, holder: String },
    /// The file cannot be used.
    #[error("cannot lock {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Take the lock, if the environment names one. It is held for as long as the file is open.
pub(crate) fn take() -> Result<Option<File>, LockError> {
    match std::env::var_os(env::LOCK).filter(|path| !path.is_empty()) {
        None => Ok(None),
        Some(path) => take_file(Path::new(&path)).map(Some),
    }
}

fn take_file(path: &Path) -> Result<File, LockError> {
    let failed = |source| LockError::File {
        path: path.to_owned(),
        source,
    };
    let mut options = OpenOptions::new();
    // What is in it is the holder's, until it is ours.
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            const LONGEST_NUMBER: u64 = 20;
            let mut holder = String::new();
            // One that has just begun may not have said who it is.
            let read = (&file).take(LONGEST_NUMBER).read_to_string(&mut holder);
            if read.is_err() || holder.trim().is_empty() {
                holder = "of unknown number".to_owned();
            }
            return Err(LockError::Held {
                path: path.to_owned(),
                holder: holder.trim().to_owned(),
            });
        }
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = take_file(&path).unwrap();
        let own = std::process::id().to_string();
        match take_file(&path) {
            Err(LockError::Held { holder, .. }) => assert_eq!(holder, own),
            other => panic!("{other:?}"),
        }
        drop(first);
        // A longer number of somebody who is gone leaves nothing behind.
        std::fs::write(&path, "99999999999999\n").unwrap();
        let again = take_file(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), own);
        drop(again);
        match take_file(folder.path()) {
            Err(LockError::File { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}
