//! Conversations in a folder, a file each: `ID.talk`, in the layout of [`ds4_model::Saved`], with the timeline behind it.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use ds4_gguf::NewFile;
use ds4_model::{Engine, Saved, Session};

use super::transcript::{FILE_MODE, FOLDER_MODE, home, now};

const SUFFIX: &str = ".talk";
/// What stands for the newest one.
const LAST: &str = "last";

/// The folder.
pub(super) struct Sessions {
    folder: PathBuf,
}

/// One of them, as a list shows it.
pub(super) struct Listed {
    pub(super) id: String,
    /// What is in it; an error for a file that is damaged. With the model's fingerprint.
    pub(super) saved: Result<(Saved, u64)>,
}

impl Sessions {
    /// In `folder`, or where they are usually kept. It is made when something is saved.
    pub(super) fn new(folder: Option<&Path>) -> Result<Self> {
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => home("--session-dir")?.join("sessions"),
        };
        Ok(Self { folder })
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}{SUFFIX}"))
    }

    /// The names of all, oldest first by the time of their files.
    fn ids(&self) -> Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| self.folder.display().to_string()),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry.with_context(|| self.folder.display().to_string())?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(id) = name.strip_suffix(SUFFIX) {
                // One that was removed meanwhile is none.
                if let Ok(modified) = entry.metadata().and_then(|m| m.modified()) {
                    ids.push((modified, id.to_owned()));
                }
            }
        }
        ids.sort();
        Ok(ids.into_iter().map(|(_, id)| id).collect())
    }

    /// All of them, oldest first.
    pub(super) fn list(&self) -> Result<Vec<Listed>> {
        let look = |id: String| {
            let path = self.path(&id);
            let saved = File::open(&path)
                .map_err(anyhow::Error::from)
                .and_then(|file| Ok(Saved::look(&mut BufReader::new(file))?))
                .with_context(|| path.display().to_string());
            Listed { id, saved }
        };
        Ok(self.ids()?.into_iter().map(look).collect())
    }

    /// The one that `name` is, begins, or stands for. Only what is in the folder can be meant.
    pub(super) fn find(&self, name: &str) -> Result<String> {
        let ids = self.ids()?;
        let folder = self.folder.display();
        if name == LAST {
            let last = ids.into_iter().next_back();
            return last.with_context(|| format!("no conversation is saved in {folder}"));
        }
        let mut meant: Vec<String> = ids
            .into_iter()
            .filter(|id| !name.is_empty() && id.starts_with(name))
            .collect();
        if let Some(at) = meant.iter().position(|id| id == name) {
            return Ok(meant.swap_remove(at));
        }
        match meant.len() {
            0 => bail!("no conversation `{name}` is saved in {folder}; /list shows them"),
            1 => Ok(meant.remove(0)),
            _ => bail!("`{name}` begins several: {}", meant.join(", ")),
        }
    }

    /// A name that no other has.
    pub(super) fn new_id(&self) -> String {
        let mut number = now();
        loop {
            let id = format!("{number:08x}");
            if !self.path(&id).exists() {
                return id;
            }
            number += 1;
        }
    }

    /// Write one, in place of what has its name; the bytes of the file.
    pub(super) fn save(&self, id: &str, saved: &Saved, session: &Session) -> Result<u64> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(&self.folder)
            .with_context(|| self.folder.display().to_string())?;
        let path = self.path(id);
        let name = || format!("cannot write {}", path.display());
        let mut file = NewFile::create(&path, true)?;
        let mut out = BufWriter::new(&mut file);
        saved.write(session.engine(), &mut out).with_context(name)?;
        session.save(&mut out).with_context(name)?;
        out.flush().with_context(name)?;
        drop(out);
        file.publish()?;
        // The folder may be one that others see into.
        let mode = fs::Permissions::from_mode(FILE_MODE);
        fs::set_permissions(&path, mode).with_context(name)?;
        Ok(fs::metadata(&path).with_context(name)?.len())
    }

    /// What was said in one, and the file at its timeline.
    pub(super) fn open(&self, id: &str, engine: &Engine) -> Result<(Saved, BufReader<File>)> {
        let path = self.path(id);
        let name = || path.display().to_string();
        let mut file = BufReader::new(File::open(&path).with_context(name)?);
        let saved = Saved::read(engine, &mut file).with_context(name)?;
        Ok((saved, file))
    }

    /// Remove one.
    pub(super) fn delete(&self, id: &str) -> Result<()> {
        let path = self.path(id);
        fs::remove_file(&path).with_context(|| path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_or_begin_one_and_lead_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("sessions");
        let sessions = Sessions::new(Some(&inner)).unwrap();
        assert!(sessions.find("last").is_err());
        assert!(sessions.list().unwrap().is_empty());
        fs::create_dir(&inner).unwrap();
        fs::write(folder.path().join("secret.talk"), "").unwrap();
        for (at, id) in ["ab1", "ab", "cd2"].into_iter().enumerate() {
            let file = File::create(sessions.path(id)).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(at as u64);
            file.set_modified(time).unwrap();
        }
        fs::write(inner.join("cd9.other"), "").unwrap();
        for (name, id) in [("ab", "ab"), ("ab1", "ab1"), ("c", "cd2"), ("last", "cd2")] {
            assert_eq!(sessions.find(name).unwrap(), id, "{name}");
        }
        for (name, words) in [
            ("a", "begins several: ab1, ab"),
            ("", "no conversation ``"),
            ("../secret", "no conversation `../secret`"),
            ("cd9", "no conversation `cd9`"),
        ] {
            let error = sessions.find(name).unwrap_err().to_string();
            assert!(error.contains(words), "{name}: {error}");
        }
        // A damaged one is listed as such.
        let broken = sessions.list().unwrap().remove(0);
        assert_eq!(broken.id, "ab1");
        assert!(format!("{:#}", broken.saved.unwrap_err()).contains("ab1.talk"));
        sessions.delete("ab1").unwrap();
        assert!(sessions.find("ab1").is_err());
    }
}
