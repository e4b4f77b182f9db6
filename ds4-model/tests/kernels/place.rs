//! A device, its kernels, and data for them: what tests and the bench of the kernels have in common.
#![allow(dead_code, reason = "each of the two programs uses a part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ds4_gguf::TensorType;
use ds4_hip::{Buffer, Device, Hip, Search, Stream};
use ds4_hip_compile::{Compiler, Target};
use ds4_model::hip::linear::{Variant, Weights, linear_as};
use ds4_model::hip::{FILES, Kernels, activations};
use half::f16;

/// A device with all kernels loaded.
pub(crate) struct Place {
    pub(crate) device: Arc<Device>,
    pub(crate) stream: Stream,
    pub(crate) kernels: Kernels,
}

impl Place {
    /// The device of the runtime at `library`, with code objects as files `NAME.ARCH` in `folder`.
    pub(crate) fn open(library: &Path, folder: &Path) -> Self {
        let hip = Hip::load_with(&Search::library(library)).unwrap();
        let device = Device::open(&hip, 0).unwrap();
        let code =
            |file: &str, arch: &str| std::fs::read(folder.join(format!("{file}.{arch}"))).ok();
        let kernels = Kernels::load(&device, code).unwrap();
        Self {
            stream: Stream::new(&device).unwrap(),
            device,
            kernels,
        }
    }
}

/// Compile every file of kernels for `target` into `folder`; `None`, said aloud, where there is no compiler.
pub(crate) fn compile(target: Target, folder: &Path) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiler = match Compiler::find(target) {
        Ok(found) => found
            .include(here.join("../ds4-hip/include"))
            .include(here.join("kernels/include")),
        Err(why) => {
            println!("SKIPPED: {why}");
            return None;
        }
    };
    let out = folder.join(target.arch());
    std::fs::create_dir_all(&out).unwrap();
    for file in FILES {
        let source = here.join("kernels").join(format!("{file}.hip"));
        let code = compiler.compile(&source, &folder.join("cache")).unwrap();
        // Tests of other processes may look at the file meanwhile: it is replaced whole.
        let partial = out.join(format!("{file}.{}.partial", std::process::id()));
        std::fs::copy(code, &partial).unwrap();
        std::fs::rename(&partial, out.join(format!("{file}.{}", target.arch()))).unwrap();
    }
    Some(out)
}

/// Numbers that look random and are the same everywhere (SplitMix64).
pub(crate) struct Rng(pub u64);

impl Rng {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// −1 to 1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub(crate) fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.unit()).collect()
    }
}

/// Blocks of random codes under scales as they occur: every code, every index, every sign comes up.
pub(crate) fn packed(rng: &mut Rng, ty: TensorType, rows: usize, cols: usize) -> Vec<u8> {
    let (block, bytes) = (ty.block_len(), ty.block_bytes());
    let mut all = vec![0u8; rows * cols / block * bytes];
    for eight in all.chunks_mut(8) {
        let bits = rng.bits().to_le_bytes();
        eight.copy_from_slice(&bits[..eight.len()]);
    }
    let halves: &[usize] = match ty {
        TensorType::Q8_0 | TensorType::Iq2Xxs | TensorType::Iq2S | TensorType::Iq3Xxs => &[0],
        TensorType::Q4K => &[0, 2],
        TensorType::Q2K => &[80, 82],
        _ => &[],
    };
    let tail = match ty {
        TensorType::RocmFp4Fast | TensorType::RocmFp8 => 1,
        TensorType::Mxfp4 => 0,
        _ if halves.is_empty() => 2,
        _ => 0,
    };
    for one in all.chunks_exact_mut(bytes) {
        for &at in halves {
            let d = f16::from_f32(0.001 + 0.01 * rng.unit().abs());
            one[at..at + 2].copy_from_slice(&d.to_le_bytes());
        }
        // Unsigned E4M3: 0x7f and above stand for nothing.
        for e in &mut one[bytes - tail..] {
            *e %= 0x7f;
        }
        if ty == TensorType::Mxfp4 {
            one[0] = 120 + one[0] % 12;
        }
    }
    all
}

/// One product on `place`: what came out.
pub(crate) fn product(
    place: &Place,
    variant: Variant,
    ty: TensorType,
    w: &[u8],
    x: &[f32],
    rows: usize,
    cols: usize,
) -> Vec<f32> {
    let Place {
        device,
        stream,
        kernels,
    } = place;
    let n = x.len() / cols;
    let w = Buffer::from_slice(stream, w).unwrap();
    let x = Buffer::from_slice(stream, x).unwrap();
    let mut q = Buffer::<u8>::new(device, activations::bytes(n, cols)).unwrap();
    activations::quantize(kernels, stream, &x.view(), cols, &mut q.view_mut()).unwrap();
    let mut y = Buffer::<f32>::new(device, n * rows).unwrap();
    let weights = Weights {
        ty,
        rows,
        cols,
        bytes: w.view(),
    };
    linear_as(
        kernels,
        stream,
        variant,
        &weights,
        &q.view(),
        &mut y.view_mut(),
    )
    .unwrap();
    stream.read(y.view()).unwrap()
}
