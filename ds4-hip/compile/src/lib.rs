//! Compiles kernels written against `gpu_port.h`.
//!
//! One source, three kinds of code: a bare ELF code object for an AMD GPU, PTX text for an NVIDIA one, a shared library for the
//! CPU. The first two need clang and for AMD its linker, version 19 or newer, and nothing of ROCm or CUDA; the last needs any
//! C++17 compiler. What was compiled is kept by the hash of all that went into it, so that tests compile a file once.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// What kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An AMD GPU, for instance `gfx1151`.
    Amd(&'static str),
    /// An NVIDIA GPU, for instance `sm_90`; PTX that newer ones take too.
    Nvidia(&'static str),
    /// This machine's CPU.
    Host,
}

/// Architectures with a name of their own here.
const KNOWN: [Target; 12] = [
    Target::Amd("gfx1100"),
    Target::Amd("gfx1101"),
    Target::Amd("gfx1102"),
    Target::Amd("gfx1103"),
    Target::Amd("gfx1150"),
    Target::Amd("gfx1151"),
    Target::Amd("gfx1152"),
    Target::Amd("gfx1200"),
    Target::Amd("gfx1201"),
    Target::Nvidia("sm_80"),
    Target::Nvidia("sm_90"),
    Target::Host,
];

impl Target {
    /// The target for a device that says this of itself; `None` for one that kernels are not written for.
    pub fn of(arch: &str) -> Option<Self> {
        KNOWN.into_iter().find(|target| target.arch() == arch)
    }

    /// What a device says its architecture is, which code is chosen by.
    pub fn arch(self) -> String {
        match self {
            Self::Amd(arch) => arch.to_owned(),
            Self::Nvidia(arch) => format!("cuda-{arch}"),
            Self::Host => "host".to_owned(),
        }
    }
}

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No compiler for the target.
    #[error(
        "no compiler for {target} found (tried {tried}); `cargo xtask kernels --install` installs it where Debian's packages are"
    )]
    NoCompiler {
        /// The target.
        target: String,
        /// Names that were tried.
        tried: String,
    },
    /// The compiler refuses the source.
    #[error("{} does not compile for {target}:\n{said}", path.display())]
    Refused {
        /// The source.
        path: PathBuf,
        /// The target.
        target: String,
        /// The compiler's words.
        said: String,
    },
    /// A file cannot be read or written.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// A compiler for one target, with the folders that headers are looked for in.
#[derive(Clone, Debug)]
pub struct Compiler {
    program: PathBuf,
    target: Target,
    version: String,
    include: Vec<PathBuf>,
    defines: Vec<String>,
}

/// Clang versions that are known to do, best first.
const CLANG: [&str; 5] = ["clang-19", "clang-20", "clang-21", "clang-22", "clang"];

impl Compiler {
    /// Find one in the folders of `PATH`, as `path` says it.
    ///
    /// # Errors
    /// [`Error::NoCompiler`] where there is none; ordinary on a machine without clang.
    pub fn find(target: Target) -> Result<Self, Error> {
        let names: &[&str] = match target {
            Target::Host => &["g++", "c++", "clang++-19", "clang++"],
            Target::Amd(_) | Target::Nvidia(_) => &CLANG,
        };
        for name in names {
            let Ok(said) = Command::new(name).arg("--version").output() else {
                continue;
            };
            let version = String::from_utf8_lossy(&said.stdout).into_owned();
            if said.status.success() && (target == Target::Host || new_enough(&version)) {
                return Ok(Self {
                    program: name.into(),
                    target,
                    version,
                    include: Vec::new(),
                    defines: Vec::new(),
                });
            }
        }
        Err(Error::NoCompiler {
            target: target.arch(),
            tried: names.join(", "),
        })
    }

    /// Look for headers here too.
    #[must_use]
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.include.push(folder.into());
        self
    }

    /// Define a macro: `NAME` or `NAME=VALUE`.
    #[must_use]
    pub fn define(mut self, macro_: impl Into<String>) -> Self {
        self.defines.push(macro_.into());
        self
    }

    /// What is compiled for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Compile `source`; the code. What was compiled before from the same text is taken from `cache`.
    ///
    /// # Errors
    /// [`Error::Refused`] with the compiler's words, [`Error::Io`] when a file cannot be read or written.
    pub fn compile(&self, source: &Path, cache: &Path) -> Result<PathBuf, Error> {
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |source| Error::Io { path, source }
        };
        fs::create_dir_all(cache).map_err(io(cache))?;
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let hash = self.hash(source)?;
        let code = cache.join(format!("{stem}.{}.{hash:016x}", self.target.arch()));
        if code.exists() {
            return Ok(code);
        }
        // Threads and processes may compile the same: each writes its own file, the last one to be renamed stays.
        static COMPILED: AtomicU64 = AtomicU64::new(0);
        let n = COMPILED.fetch_add(1, Ordering::Relaxed);
        let partial = cache.join(format!(
            "{stem}.{hash:016x}.{}.{n}.partial",
            std::process::id()
        ));
        let said = Command::new(&self.program)
            .args(self.arguments())
            .arg(source)
            .arg("-o")
            .arg(&partial)
            .output()
            .map_err(io(&self.program))?;
        if !said.status.success() {
            // There may be none.
            drop(fs::remove_file(&partial));
            return Err(Error::Refused {
                path: source.to_path_buf(),
                target: self.target.arch(),
                said: String::from_utf8_lossy(&said.stderr).into_owned(),
            });
        }
        fs::rename(&partial, &code).map_err(io(&code))?;
        Ok(code)
    }

    fn arguments(&self) -> Vec<String> {
        let mut all: Vec<String> = match self.target {
            Target::Amd(arch) => vec![
                "-x".into(),
                "hip".into(),
                format!("--offload-arch={arch}"),
                "--cuda-device-only".into(),
                "--no-gpu-bundle-output".into(),
                "-nogpuinc".into(),
                "-nogpulib".into(),
                "-mcode-object-version=5".into(),
                "-O3".into(),
            ],
            Target::Nvidia(arch) => vec![
                "-x".into(),
                "cuda".into(),
                format!("--cuda-gpu-arch={arch}"),
                "--cuda-device-only".into(),
                "-nocudainc".into(),
                "-nocudalib".into(),
                "-S".into(),
                "-O3".into(),
                // Made for sm_90's PTX by any clang; the driver compiles it for the card.
                "-Xclang".into(),
                "-target-feature".into(),
                "-Xclang".into(),
                "+ptx80".into(),
                "-Wno-unknown-cuda-version".into(),
            ],
            Target::Host => {
                let mut host: Vec<String> = ["-x", "c++", "-O2", "-fPIC", "-shared", "-pthread"]
                    .map(String::from)
                    .to_vec();
                // Shared memory is thread-local and much: too much for the kind of storage that is found fastest.
                #[cfg(target_arch = "x86_64")]
                host.push("-mtls-dialect=gnu2".into());
                host.extend(vector_flags());
                host
            }
        };
        all.extend(["-std=c++17", "-ffp-contract=off", "-Wall", "-Werror"].map(String::from));
        if self.target == Target::Host {
            all.push("-Wno-unknown-pragmas".into());
        } else {
            all.push("-Wno-unused-function".into());
        }
        all.extend(self.defines.iter().map(|d| format!("-D{d}")));
        all.extend(self.include.iter().map(|i| format!("-I{}", i.display())));
        all
    }

    /// Of the source, of every header in the folders, of the compiler and its arguments.
    fn hash(&self, source: &Path) -> Result<u64, Error> {
        let mut hasher = DefaultHasher::new();
        self.version.hash(&mut hasher);
        self.arguments().hash(&mut hasher);
        let beside = source.parent().map(Path::to_path_buf);
        for folder in self.include.iter().cloned().chain(beside) {
            let io = |source| Error::Io {
                path: folder.clone(),
                source,
            };
            let mut headers: Vec<PathBuf> = fs::read_dir(&folder)
                .map_err(io)?
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|p| p.extension().is_some_and(|e| e == "h"))
                .collect();
            headers.sort();
            for header in headers {
                read(&header)?.hash(&mut hasher);
            }
        }
        read(source)?.hash(&mut hasher);
        Ok(hasher.finish())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Io {
        path: path.to_path_buf(),
        source,
    })
}

/// Whether it is clang 19 or newer: older ones do not know gfx1151.
fn new_enough(version: &str) -> bool {
    let number = version
        .split("clang version ")
        .nth(1)
        .and_then(|rest| rest.split('.').next())
        .and_then(|major| major.parse::<u32>().ok());
    number.is_some_and(|major| major >= 19)
}

/// What this CPU has of what the kernels' host form gains from.
fn vector_flags() -> Vec<String> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("fma")
        && std::arch::is_x86_feature_detected!("f16c")
    {
        return ["-mavx2", "-mfma", "-mf16c"].map(String::from).to_vec();
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart() {
        assert!(new_enough(
            "Debian clang version 19.1.7 (3~deb12u1)\nTarget: x86_64"
        ));
        assert!(new_enough("clang version 22.0.0"));
        assert!(!new_enough("Debian clang version 14.0.6"));
        assert!(!new_enough("g++ (Debian 12.2.0-14) 12.2.0"));
    }
}
