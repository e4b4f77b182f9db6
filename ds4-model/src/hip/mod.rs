//! GPU kernels of the model, and the functions that launch them (feature `hip`).
//!
//! The kernels are `ds4-model/kernels/*.hip`: one source for AMD GPUs, for the CPU and for NVIDIA GPUs. [`Kernels`] holds them
//! loaded on a device; each module has one function a kernel, which checks every length before it launches.
//!
//! | module | kernels |
//! |---|---|
//! | [`activations`] | f32 rows → signed bytes under a scale for each 32 |
//! | [`linear`] | mat-vec over packed weights, one to four columns |

pub mod activations;
mod error;
mod kernels;
pub mod linear;

pub use error::Error;
pub use kernels::{FILES, Kernels};
