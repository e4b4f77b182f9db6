//! The HIP runtime, found and loaded while the program runs: nothing of ROCm is needed to build.
//!
//! ```
//! use ds4_hip::{Device, Error, Hip};
//!
//! match Hip::load().and_then(|hip| Device::open(&hip, 0)) {
//!     Ok(device) => println!("{} ({})", device.props().name, device.props().arch),
//!     Err(Error::NotInstalled { .. } | Error::NoDevice) => println!("no AMD GPU here"),
//!     Err(error) => println!("{error}"),
//! }
//! ```
//!
//! A machine without the runtime is an ordinary case ([`Error::NotInstalled`]), and so is one without a device
//! ([`Error::NoDevice`]) or with a runtime older than this crate understands ([`Error::TooOld`]).
//!
//! Three layers: [`sys`] is what bindgen makes of AMD's header; every call of it has its status looked at; and the handles own
//! what they made. [`Device`] → [`Buffer`], [`HostBuffer`], [`Stream`], [`Event`], [`Module`] → [`Kernel`] → [`Launch`] →
//! [`Graph`] → [`GraphExec`]. Each handle keeps alive what it needs, so they can be dropped in any order; a graph also owns the
//! argument blocks and keeps the memory that its nodes mention. Only launching a kernel is `unsafe`: nobody but its author knows
//! what it does with its arguments.

mod buffer;
mod call;
mod device;
mod error;
mod event;
mod graph;
mod host;
mod launch;
mod load;
mod module;
mod props;
mod stream;
pub mod sys;
mod version;

pub use buffer::{Buffer, View, ViewMut};
pub use device::{Device, Memory};
pub use error::{Attempt, Error, Pool};
pub use event::Event;
pub use graph::{Graph, GraphExec, NodeId};
pub use host::HostBuffer;
pub use launch::{Launch, Scalar};
pub use load::{Hip, Search};
pub use module::{Kernel, Module, Resources};
pub use props::Props;
pub use stream::Stream;
pub use version::Version;
