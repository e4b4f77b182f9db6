//! Finding, loading and first questioning of `libamdhip64`.
#![expect(unsafe_code, reason = "loads a library and calls C functions in it")]

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::Library;

use crate::{Attempt, Error, Version};

/// Names that are accepted, newest first. The unversioned one often comes only with development packages.
const NAMES: [&str; 3] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"];

/// A name that is opened only to say that it is too old.
const OLD_NAME: &str = "libamdhip64.so.5";

/// The oldest major version that is understood.
const OLDEST: u32 = 6;

/// `hipErrorNoDevice`.
const NO_DEVICE: c_int = 100;

/// `hipError_t f(int *value)`: the shape of both functions used here.
type GetInt = unsafe extern "C" fn(*mut c_int) -> c_int;

/// Where to look for the runtime.
///
/// Each folder is tried with every accepted name, in the order given; then the system's loader is asked, unless `system` is off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Folders to look in first, for instance the executable's own, then `$ROCM_PATH/lib` as the caller reads it.
    pub folders: Vec<PathBuf>,
    /// Whether to ask the system's loader (`ld.so` cache and `LD_LIBRARY_PATH`) after the folders.
    pub system: bool,
}

impl Default for Search {
    /// The system's loader alone.
    fn default() -> Self {
        Self {
            folders: Vec::new(),
            system: true,
        }
    }
}

/// The loaded HIP runtime. Stays loaded as long as one handle lives; `Send + Sync`.
pub struct Hip {
    runtime_get_version: GetInt,
    get_device_count: GetInt,
    path: PathBuf,
    // Keeps the code behind the pointers above in memory.
    _library: Library,
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
        for path in candidates(search, &[OLD_NAME]) {
            if let Some(library) = open(&path)? {
                let found = Self::new(library, path.clone())
                    .and_then(|hip| hip.version())
                    .ok();
                return Err(Error::TooOld {
                    path,
                    found,
                    need: OLDEST,
                });
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
        const CALL: &str = "hipRuntimeGetVersion";
        let (code, value) = get(self.runtime_get_version);
        check(CALL, code)?;
        let packed = u32::try_from(value).map_err(|_| Error::Value { call: CALL, value })?;
        Ok(Version::from_packed(packed))
    }

    /// How many devices the runtime sees; 0 on a machine without one.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses for another reason than having no device, [`Error::Value`] when it
    /// returns a negative number.
    pub fn device_count(&self) -> Result<u32, Error> {
        const CALL: &str = "hipGetDeviceCount";
        let (code, value) = get(self.get_device_count);
        if code == NO_DEVICE {
            return Ok(0);
        }
        check(CALL, code)?;
        u32::try_from(value).map_err(|_| Error::Value { call: CALL, value })
    }

    fn new(library: Library, path: PathBuf) -> Result<Self, Error> {
        Ok(Self {
            runtime_get_version: symbol(&library, "hipRuntimeGetVersion", &path)?,
            get_device_count: symbol(&library, "hipGetDeviceCount", &path)?,
            path,
            _library: library,
        })
    }

    /// Itself, unless it is too old.
    fn accept(self) -> Result<Self, Error> {
        let found = self.version()?;
        if found.major < OLDEST {
            return Err(Error::TooOld {
                path: self.path,
                found: Some(found),
                need: OLDEST,
            });
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

/// Every path `search` leads to, in order.
fn candidates(search: &Search, names: &[&str]) -> Vec<PathBuf> {
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
    match unsafe { Library::new(path) } {
        Ok(library) => Ok(Some(library)),
        Err(error) if bare_name && is_absent(&error, path) => Ok(None),
        Err(source) => Err(Error::Load {
            path: path.to_path_buf(),
            source,
        }),
    }
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

fn symbol(library: &Library, symbol: &'static str, path: &Path) -> Result<GetInt, Error> {
    // SAFETY: HIP declares every function asked for here as `hipError_t f(int *)`, and `hipError_t` is a C int.
    let found = unsafe { library.get::<GetInt>(symbol) };
    match found {
        Ok(function) => Ok(*function),
        Err(source) => Err(Error::NoSymbol {
            path: path.to_path_buf(),
            symbol,
            source,
        }),
    }
}

/// Call `function`; its status and what it wrote.
fn get(function: GetInt) -> (c_int, c_int) {
    let mut value: c_int = 0;
    // SAFETY: the function writes one int through a pointer that is valid for the call; `Hip` keeps its library loaded.
    let code = unsafe { function(&raw mut value) };
    (code, value)
}

fn check(call: &'static str, code: c_int) -> Result<(), Error> {
    if code == 0 {
        Ok(())
    } else {
        Err(Error::Call { call, code })
    }
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Hip>();
};
