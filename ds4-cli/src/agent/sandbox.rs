//! The folder that file tools stay in.
//!
//! A path is resolved with all its symbolic links before it is looked at, so neither `..` nor a link leads out. This
//! binds the file tools; a shell command runs in the folder and can reach whatever its user can, which is why each one
//! is shown before it runs.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Why a path cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum PathError {
    /// It leads out of the folder.
    #[error("`{}` is outside of {}", path.display(), root.display())]
    Outside { path: PathBuf, root: PathBuf },
    /// It leads nowhere.
    #[error("cannot reach `{}`: {source}", path.display())]
    Unreachable { path: PathBuf, source: io::Error },
    /// It names no file.
    #[error("`{}` names no file", path.display())]
    NoFile { path: PathBuf },
}

/// A folder, resolved.
#[derive(Clone, Debug)]
pub(super) struct Sandbox {
    root: PathBuf,
}

impl Sandbox {
    pub(super) fn new(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The true path of something that exists.
    pub(super) fn existing(&self, path: &str) -> Result<PathBuf, PathError> {
        let full = self.root.join(path);
        let real = full
            .canonicalize()
            .map_err(|source| unreachable(path, source))?;
        self.inside(path, real)
    }

    /// The true path of a file that may not exist yet; its folder must.
    pub(super) fn for_writing(&self, path: &str) -> Result<PathBuf, PathError> {
        let full = self.root.join(path);
        if full.symlink_metadata().is_ok() {
            // A link that leads nowhere is an error here, and not a way to make a file elsewhere.
            return self.existing(path);
        }
        let no_file = || PathError::NoFile { path: path.into() };
        let Some(Component::Normal(name)) = full.components().next_back() else {
            return Err(no_file());
        };
        if path.ends_with('/') {
            return Err(no_file());
        }
        let folder = full.parent().ok_or_else(no_file)?;
        let folder = folder
            .canonicalize()
            .map_err(|source| unreachable(path, source))?;
        Ok(self.inside(path, folder)?.join(name))
    }

    /// Make the folders on the way to a file, those that are missing.
    pub(super) fn make_folders(&self, path: &str) -> Result<(), PathError> {
        let relative = Path::new(path);
        let relative = relative.strip_prefix(&self.root).unwrap_or(relative);
        let mut at = self.root.clone();
        for component in relative.parent().unwrap_or(Path::new("")).components() {
            let Component::Normal(name) = component else {
                let root = self.root.clone();
                return match component {
                    Component::CurDir => continue,
                    _ => Err(PathError::Outside {
                        path: path.into(),
                        root,
                    }),
                };
            };
            at.push(name);
            match fs::create_dir(&at) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // It may be a link: what follows is made where it leads, if that is inside.
                    let real = at
                        .canonicalize()
                        .map_err(|source| unreachable(path, source))?;
                    at = self.inside(path, real)?;
                }
                Err(source) => return Err(unreachable(path, source)),
            }
        }
        Ok(())
    }

    /// A path as the model knows it.
    pub(super) fn show<'p>(&self, path: &'p Path) -> std::path::Display<'p> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }

    fn inside(&self, path: &str, real: PathBuf) -> Result<PathBuf, PathError> {
        if real.starts_with(&self.root) {
            Ok(real)
        } else {
            Err(PathError::Outside {
                path: path.into(),
                root: self.root.clone(),
            })
        }
    }
}

fn unreachable(path: &str, source: io::Error) -> PathError {
    PathError::Unreachable {
        path: path.into(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// `room/` with a file and links out of it; `secret` beside it.
    fn place() -> (tempfile::TempDir, Sandbox) {
        let folder = tempfile::tempdir().unwrap();
        let room = folder.path().join("room");
        fs::create_dir_all(room.join("inner")).unwrap();
        fs::write(room.join("file"), "in").unwrap();
        fs::write(folder.path().join("secret"), "out").unwrap();
        fs::create_dir(folder.path().join("room2")).unwrap();
        symlink("../secret", room.join("link")).unwrap();
        symlink("..", room.join("up")).unwrap();
        symlink("../nothing", room.join("dangling")).unwrap();
        symlink("inner", room.join("within")).unwrap();
        let sandbox = Sandbox::new(&room).unwrap();
        (folder, sandbox)
    }

    #[test]
    fn no_path_leads_out() {
        let (folder, sandbox) = place();
        let absolute = folder.path().join("secret");
        let beside = folder.path().join("room2/new");
        for path in [
            "../secret",
            "inner/../../secret",
            "link",
            "up/secret",
            "up",
            "/etc/passwd",
            "..",
            absolute.to_str().unwrap(),
        ] {
            let error = sandbox.existing(path).unwrap_err();
            assert!(
                matches!(error, PathError::Outside { .. }),
                "{path}: {error}"
            );
        }
        for path in [
            "../new",
            "up/new",
            "link",
            "dangling",
            "inner/../../new",
            "/etc/new-file",
            beside.to_str().unwrap(),
        ] {
            assert!(sandbox.for_writing(path).is_err(), "{path}");
        }
        for path in ["../a/new", "up/a/new", "/tmp/a/new", "inner/../../a/new"] {
            assert!(sandbox.make_folders(path).is_err(), "{path}");
        }
        assert!(!folder.path().join("a").exists() && !folder.path().join("nothing").exists());
    }

    #[test]
    fn what_is_inside_is_found_by_any_name() {
        let (_folder, sandbox) = place();
        let file = sandbox.root().join("file");
        let absolute = file.to_str().unwrap();
        for path in ["file", "./file", "inner/../file", "up/room/file", absolute] {
            assert_eq!(sandbox.existing(path).unwrap(), file, "{path}");
            assert_eq!(sandbox.for_writing(path).unwrap(), file, "{path}");
        }
        let new = sandbox.for_writing("within/new").unwrap();
        assert_eq!(new, sandbox.root().join("inner/new"));
        assert_eq!(sandbox.show(&new).to_string(), "inner/new");
        sandbox.make_folders("within/a/b/new").unwrap();
        assert!(sandbox.root().join("inner/a/b").is_dir());
        for path in ["", ".", "inner/", "none/new"] {
            let found = sandbox.for_writing(path).map(|p| p.is_file());
            assert!(!matches!(found, Ok(true)), "{path}");
        }
    }
}
