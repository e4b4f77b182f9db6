//! The HIP runtime, found and loaded while the program runs: nothing of ROCm is needed to build.
//!
//! ```
//! match ds4_hip::Hip::load() {
//!     Ok(hip) => println!("HIP {} with {} device(s)", hip.version()?, hip.device_count()?),
//!     Err(ds4_hip::Error::NotInstalled { .. }) => println!("no HIP runtime here"),
//!     Err(error) => println!("{error}"),
//! }
//! # Ok::<(), ds4_hip::Error>(())
//! ```
//!
//! A machine without the runtime is an ordinary case ([`Error::NotInstalled`]), and so is one whose runtime is older than this
//! crate understands ([`Error::TooOld`]). Devices, memory, streams and graphs are planned; see `ARCHITECTURE.md` of the project.

mod error;
mod load;
mod version;

pub use error::{Attempt, Error};
pub use load::{Hip, Search};
pub use version::Version;
