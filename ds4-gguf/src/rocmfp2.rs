//! Which layout a file means by type id 107.
//!
//! Three incompatible layouts of the same ten bytes share the id, and reading one as another is silently wrong. The
//! order of evidence: what the caller says, what the file's key [`RocmFp2Layout::KEY`] says, what the weights
//! themselves look like.
//!
//! ```text
//! byte 0..8   32 codes of 2 bits, little-endian bit stream
//! byte 8, 9   unsigned E4M3: two scales (S40, two-scale), or scale and offset (affine)
//! ```
//! Affine offsets are about 1.5 scales, so byte 9 is nearly always the larger; the scales of the other two are
//! exchangeable. S40 uses its four codes symmetrically, two-scale does not. Over blocks whose two bytes are both
//! nonzero, with `up = P(byte 9 > byte 8)` and `p[c]` the frequency of code `c`:
//!
//! | | up | p, for weights that look like a model's |
//! |---|---|---|
//! | affine | 0.83–0.93 | .14 .33 .36 .17 |
//! | S40 | 0.27–0.46 | .18 .32 .32 .18 to .13 .37 .37 .13 |
//! | two-scale | 0.37–0.47 | .30 .39 .23 .07 to .23 .54 .17 .06 |

use crate::RocmFp2Layout;

/// Bytes of a block in any of the layouts.
const BLOCK: usize = 10;

/// Blocks that the whole file must offer for the statistics to decide.
pub(crate) const ENOUGH: u64 = 4096;

/// Blocks that one tensor must offer to contradict the rest of the file.
const ENOUGH_OF_ONE: u64 = 1024;

/// Runs that the sample of one tensor is taken in, evenly spread.
const RUNS: usize = 4;

/// How the layout of type id 107 was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DecidedBy {
    /// [`crate::OpenOptions::rocmfp2_layout`].
    User,
    /// The metadata key [`RocmFp2Layout::KEY`].
    Key,
    /// The look of the weights.
    Statistics(Statistics),
}

/// The layout of type id 107 in a file, and how it was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RocmFp2Decision {
    /// The layout; every tensor of type 107 has the [`crate::TensorType`] it names.
    pub layout: RocmFp2Layout,
    /// The evidence.
    pub by: DecidedBy,
}

/// What the sampled blocks looked like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Tensors sampled.
    pub tensors: u64,
    /// Blocks counted: those of the sample whose two last bytes are both nonzero.
    pub blocks: u64,
    /// Share of blocks whose last byte is larger than the one before it.
    pub up: f64,
    /// Share of each of the four codes.
    pub codes: [f64; 4],
}

impl Statistics {
    /// The layout these numbers point to.
    fn layout(&self) -> RocmFp2Layout {
        let [p0, p1, p2, p3] = self.codes;
        if self.up > 0.65 {
            RocmFp2Layout::Affine
        } else if (p0 - p3).abs() < 0.08 && (p1 - p2).abs() < 0.08 {
            RocmFp2Layout::S40
        } else {
            RocmFp2Layout::TwoScale
        }
    }
}

/// What the weights say.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// They agree.
    Layout(RocmFp2Layout, Statistics),
    /// There are too few of them; how many there are.
    TooFew(u64),
    /// Tensor number `tensor` of those given looks like `single`, the whole like `pooled`.
    Disagree {
        tensor: usize,
        single: RocmFp2Layout,
        pooled: RocmFp2Layout,
    },
}

/// Look at a sample of every tensor of type 107; `tensors` are their bytes.
pub(crate) fn examine(tensors: &[&[u8]]) -> Verdict {
    let per_tensor = (65_536 / tensors.len().max(1)).clamp(1024, 16_384);
    let counts: Vec<Counts> = tensors
        .iter()
        .map(|bytes| Counts::of_sample(bytes, per_tensor))
        .collect();
    let mut all = Counts::default();
    counts.iter().for_each(|counts| all.add(counts));
    if all.blocks < ENOUGH {
        return Verdict::TooFew(all.blocks);
    }
    let statistics = all.statistics(tensors.len() as u64);
    let pooled = statistics.layout();
    for (tensor, counts) in counts
        .iter()
        .enumerate()
        .filter(|(_, counts)| counts.blocks >= ENOUGH_OF_ONE)
    {
        let single = counts.statistics(1).layout();
        if single != pooled {
            return Verdict::Disagree {
                tensor,
                single,
                pooled,
            };
        }
    }
    Verdict::Layout(pooled, statistics)
}

/// Counts behind [`Statistics`].
#[derive(Default)]
struct Counts {
    blocks: u64,
    up: u64,
    codes: [u64; 4],
}

impl Counts {
    /// Count about `sample` blocks of a tensor, all of them when it has no more.
    fn of_sample(tensor: &[u8], sample: usize) -> Self {
        let blocks = tensor.len() / BLOCK;
        let mut counts = Self::default();
        if blocks <= sample {
            counts.count(tensor);
            return counts;
        }
        let run = sample / RUNS;
        for i in 0..RUNS {
            let first = (blocks - run) * i / (RUNS - 1);
            counts.count(&tensor[first * BLOCK..(first + run) * BLOCK]);
        }
        counts
    }

    fn count(&mut self, blocks: &[u8]) {
        for block in blocks.as_chunks::<BLOCK>().0 {
            let (codes, [e0, e1]) = (&block[..8], [block[8], block[9]]);
            if e0 == 0 || e1 == 0 {
                continue;
            }
            self.blocks += 1;
            self.up += u64::from(e1 > e0);
            for byte in codes {
                for shift in [0, 2, 4, 6] {
                    self.codes[usize::from(byte >> shift & 3)] += 1;
                }
            }
        }
    }

    fn add(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.up += other.up;
        for (sum, n) in self.codes.iter_mut().zip(other.codes) {
            *sum += n;
        }
    }

    fn statistics(&self, tensors: u64) -> Statistics {
        let blocks = self.blocks as f64;
        Statistics {
            tensors,
            blocks: self.blocks,
            up: self.up as f64 / blocks,
            codes: self.codes.map(|n| n as f64 / (32.0 * blocks)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tensor of `blocks` blocks of which those in `counted` have scales.
    fn tensor(blocks: usize, counted: std::ops::Range<usize>) -> Vec<u8> {
        (0..blocks)
            .flat_map(|i| {
                if counted.contains(&i) {
                    [1; BLOCK]
                } else {
                    [0; BLOCK]
                }
            })
            .collect()
    }

    #[test]
    fn a_sample_is_as_large_as_asked_and_reaches_both_ends() {
        let count = |counted| Counts::of_sample(&tensor(20_000, counted), 1024).blocks;
        assert_eq!(count(0..20_000), 1024);
        assert_eq!((count(0..256), count(19_744..20_000)), (256, 256));
        assert_eq!(Counts::of_sample(&tensor(1000, 0..999), 1024).blocks, 999);
    }

    #[test]
    fn many_tensors_give_fewer_blocks_each_and_none_too_few_to_object() {
        let bytes = tensor(3000, 0..3000);
        let Verdict::Layout(_, statistics) = examine(&vec![&bytes[..]; 200]) else {
            panic!("enough blocks")
        };
        assert_eq!(
            (statistics.tensors, statistics.blocks),
            (200, 200 * ENOUGH_OF_ONE)
        );
        assert_eq!(examine(&[]), Verdict::TooFew(0));
    }
}
