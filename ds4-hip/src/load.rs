//! Finding, loading and first questioning of `libamdhip64`.
#![expect(unsafe_code, reason = "loads a library and calls C functions in it")]

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::Library;

use crate::call::{call, status};
use crate::{Attempt, Error, Version, sys};

/// Names that are accepted, newest first. The unversioned one often comes only with development packages.
const NAMES: [&str; 3] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"];

/// A name that is opened only to say that it is too old.
const OLD_NAME: &str = "libamdhip64.so.5";

/// The oldest major version that is understood.
const OLDEST: u32 = 6;

/// Where to look for the runtime.
///
/// A library named by its path is the only one tried. Else each folder is tried with every accepted name, in the order given;
/// then the system's loader is asked, unless `system` is off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The library itself, for instance what `DS4_HIP_LIB` names as the caller reads it.
    pub library: Option<PathBuf>,
    /// Folders to look in first, for instance the executable's own, then `$ROCM_PATH/lib` as the caller reads it.
    pub folders: Vec<PathBuf>,
    /// Whether to ask the system's loader (`ld.so` cache and `LD_LIBRARY_PATH`) after the folders.
    pub system: bool,
}

impl Search {
    /// This library and no other.
    pub fn library(path: impl Into<PathBuf>) -> Self {
        Self {
            library: Some(path.into()),
            ..Self::default()
        }
    }
}

impl Default for Search {
    /// The system's loader alone.
    fn default() -> Self {
        Self {
            library: None,
            folders: Vec::new(),
            system: true,
        }
    }
}

/// The loaded HIP runtime. Stays loaded as long as one handle lives; `Send + Sync`.
pub struct Hip {
    sys: sys::Hip,
    path: PathBuf,
}

impl Hip {
    /// Load the runtime from where the system's loader finds it.
    ///
    /// # Errors
    /// [`Error::NotInstalled`] where there is none, [`Error::TooOld`] for one before ROCm 6, [`Error::Load`] or
    /// [`Error::NoSymbol`] for one that is broken.
    pub fn load() -> Result<Arc<Self>, Error> {
        Self::load_with(&Search::default())
    }

    /// Load the runtime, looking where `search` says.
    ///
    /// # Errors
    /// As for [`Hip::load`].
    pub fn load_with(search: &Search) -> Result<Arc<Self>, Error> {
        let mut tried = Vec::new();
        for path in candidates(search, &NAMES) {
            match open(&path)? {
                Some(library) => return Self::new(library, path)?.accept().map(Arc::new),
                None => tried.push(Attempt { path }),
            }
        }
        if search.library.is_none() {
            for path in candidates(search, &[OLD_NAME]) {
                if let Some(library) = open(&path)? {
                    let found = Self::new(library, path.clone())
                        .and_then(|hip| hip.version())
                        .ok();
                    return Err(too_old(path, found));
                }
            }
        }
        Err(Error::NotInstalled { tried })
    }

    /// The library as it was opened: a full path, or a bare name that the system's loader found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The runtime's version.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses, [`Error::Value`] when it returns a negative number.
    pub fn version(&self) -> Result<Version, Error> {
        let mut value = 0;
        // SAFETY: the function writes one int through a pointer that is valid for the call.
        unsafe { call!(self, hipRuntimeGetVersion(&raw mut value)) }?;
        not_negative("hipRuntimeGetVersion", value).map(Version::from_packed)
    }

    /// How many devices the runtime sees; 0 on a machine without one.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses for another reason than having no device, [`Error::Value`] when it
    /// returns a negative number.
    pub fn device_count(&self) -> Result<u32, Error> {
        let mut value = 0;
        // SAFETY: as for the version.
        let counted = unsafe { call!(self, hipGetDeviceCount(&raw mut value)) };
        match counted {
            Ok(()) => not_negative("hipGetDeviceCount", value),
            // Runtimes on machines without a device say the second one too.
            Err(error)
                if matches!(
                    status(&error),
                    Some(
                        sys::hipError_t::hipErrorNoDevice | sys::hipError_t::hipErrorInvalidDevice
                    )
                ) =>
            {
                self.forget_last_error();
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// The bindings behind it, for functions that this crate does not wrap.
    pub fn sys(&self) -> &sys::Hip {
        &self.sys
    }

    /// The error for a function that the library has not.
    pub(crate) fn lacks(&self, symbol: &'static str) -> Error {
        Error::NoSymbol {
            path: self.path.clone(),
            symbol,
        }
    }

    /// Take back the thread's last error, which the runtime would else report from a later call that had no part in it.
    pub(crate) fn forget_last_error(&self) {
        if let Ok(function) = self.sys.hipGetLastError.as_ref() {
            // SAFETY: takes nothing; reads and clears a number of this thread.
            unsafe { function() };
        }
    }

    fn new(library: Library, path: PathBuf) -> Result<Self, Error> {
        // SAFETY: the symbols of a library called `libamdhip64` are those its header declares, from which the bindings are made.
        let found = unsafe { sys::Hip::from_library(library) };
        match found {
            Ok(sys) => Ok(Self { sys, path }),
            Err(source) => Err(Error::Load { path, source }),
        }
    }

    /// Itself, unless it is too old.
    fn accept(self) -> Result<Self, Error> {
        let found = self.version()?;
        if found.major < OLDEST {
            return Err(too_old(self.path, Some(found)));
        }
        Ok(self)
    }
}

impl std::fmt::Debug for Hip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hip")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

fn too_old(path: PathBuf, found: Option<Version>) -> Error {
    Error::TooOld {
        path,
        found,
        need: OLDEST,
    }
}

fn not_negative(call: &'static str, value: c_int) -> Result<u32, Error> {
    u32::try_from(value).map_err(|_| Error::Value { call, value })
}

/// Every path `search` leads to, in order.
fn candidates(search: &Search, names: &[&str]) -> Vec<PathBuf> {
    if let Some(library) = &search.library {
        return vec![library.clone()];
    }
    let in_folders = search
        .folders
        .iter()
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let by_system = names.iter().filter(|_| search.system).map(PathBuf::from);
    in_folders.chain(by_system).collect()
}

/// Open a library; `None` where there is no such file.
fn open(path: &Path) -> Result<Option<Library>, Error> {
    let bare_name = path.components().count() == 1;
    if !bare_name && !path.exists() {
        return Ok(None);
    }
    // SAFETY: the initialisers that run are those of AMD's HIP runtime, which allows being loaded at any time from any thread.
    match unsafe { load_for_ever(path) } {
        Ok(library) => Ok(Some(library)),
        Err(error) if bare_name && is_absent(&error, path) => Ok(None),
        Err(source) => Err(Error::Load {
            path: path.to_path_buf(),
            source,
        }),
    }
}

/// Load a library that stays when its handle goes: the runtime has threads and thread-local values of its own, which would be
/// left without code.
///
/// # Safety
/// As for [`Library::new`].
#[cfg(unix)]
unsafe fn load_for_ever(path: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::unix;
    /// `RTLD_NODELETE` of `dlfcn.h`; the same in glibc and musl.
    const NO_DELETE: c_int = 0x1000;
    let flags = unix::RTLD_NOW | unix::RTLD_LOCAL | NO_DELETE;
    // SAFETY: the caller's promise.
    unsafe { unix::Library::open(Some(path), flags) }.map(Library::from)
}

#[cfg(not(unix))]
unsafe fn load_for_ever(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: the caller's promise.
    let library = unsafe { Library::new(path) }?;
    std::mem::forget(library);
    // SAFETY: the caller's promise; loaded already, and counted once more than it is given back.
    unsafe { Library::new(path) }
}

/// For a name it cannot find the loader says `NAME: cannot open shared object file`; when something that a found library
/// needs is missing it says the name of that instead.
fn is_absent(error: &libloading::Error, name: &Path) -> bool {
    let libloading::Error::DlOpen { source } = error else {
        return false;
    };
    source
        .to_string()
        .strip_prefix(&*name.to_string_lossy())
        .is_some_and(|rest| rest.starts_with(": cannot open"))
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Hip>();
};
