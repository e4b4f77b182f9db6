//! What a device is and can do, typed.

use std::ffi::c_char;

use crate::sys;

/// What a device is and can do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Props {
    /// Its name in the trade, for instance `AMD Radeon 8060S`.
    pub name: String,
    /// The architecture that code objects are chosen by, for instance `gfx1151`: `gcnArchName` up to the first colon.
    pub arch: String,
    /// What follows the architecture, for instance `sramecc+`, `xnack-`; empty for most.
    pub features: Vec<String>,
    /// Threads of a wave.
    pub wave_size: u32,
    /// Compute units; on RDNA each two make a workgroup processor.
    pub units: u32,
    /// Highest clock of the shaders, in kHz.
    pub clock_khz: u32,
    /// Highest clock of the memory, in kHz.
    pub memory_clock_khz: u32,
    /// Width of the memory bus, in bits.
    pub memory_bus_bits: u32,
    /// Bytes the device may use in all.
    pub memory_bytes: u64,
    /// Bytes of the second-level cache.
    pub l2_bytes: u64,
    /// Bytes of local memory that one block may have.
    pub lds_bytes: u64,
    /// Threads that one block may have.
    pub max_block: u32,
    /// Whether the GPU shares the machine's memory (an APU).
    pub integrated: bool,
    /// Whether pinned host memory can be mapped for the device.
    pub maps_host: bool,
    /// Whether managed memory exists.
    pub managed: bool,
}

impl Props {
    pub(crate) fn new(raw: &sys::hipDeviceProp_tR0600) -> Self {
        let full = text(&raw.gcnArchName);
        let mut parts = full.split(':').map(str::to_owned);
        Self {
            name: text(&raw.name),
            arch: parts.next().unwrap_or_default(),
            features: parts.collect(),
            wave_size: number(raw.warpSize),
            units: number(raw.multiProcessorCount),
            clock_khz: number(raw.clockRate),
            memory_clock_khz: number(raw.memoryClockRate),
            memory_bus_bits: number(raw.memoryBusWidth),
            memory_bytes: raw.totalGlobalMem as u64,
            l2_bytes: u64::from(number(raw.l2CacheSize)),
            lds_bytes: raw.sharedMemPerBlock as u64,
            max_block: number(raw.maxThreadsPerBlock),
            integrated: raw.integrated != 0,
            maps_host: raw.canMapHostMemory != 0,
            managed: raw.managedMemory != 0,
        }
    }
}

/// A number that has no meaning below zero.
fn number(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// C text in an array: up to the first zero byte, or all of it.
fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .take_while(|c| **c != 0)
        .map(|c| c.cast_unsigned())
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_cut_off_the_architecture() {
        let mut raw = sys::hipDeviceProp_tR0600::default();
        for (to, from) in raw.gcnArchName.iter_mut().zip(b"gfx90a:sramecc+:xnack-") {
            *to = from.cast_signed();
        }
        let props = Props::new(&raw);
        assert_eq!(props.arch, "gfx90a");
        assert_eq!(props.features, ["sramecc+", "xnack-"]);
    }

    #[test]
    fn a_name_without_an_end_is_taken_whole() {
        let mut raw = sys::hipDeviceProp_tR0600::default();
        raw.name.fill(b'x'.cast_signed());
        assert_eq!(Props::new(&raw).name.len(), raw.name.len());
    }
}
