//! `Packed<B>`: the codec of any format that is an array of blocks `B`.

use std::marker::PhantomData;

use bytemuck::Pod;
use ds4_gguf::TensorType;

use crate::accumulate::{FloatChains, SmallBlock, SuperBlock, small_row, super_row};
use crate::{Activations, Codec, Error, Precision, encode};

/// One block of a packed format: plain bytes of alignment 1, so any range of a mapped file can be viewed as blocks.
pub(crate) trait Block: Pod + Send + Sync {
    /// The type these blocks make up.
    const TY: TensorType;
    /// Weights in one block.
    const LEN: usize = Self::TY.block_len();
    /// The integers behind the block, and how they are summed.
    const INTEGERS: Integers<Self>;

    /// Expand to `out`: `[LEN]`.
    fn decode(&self, out: &mut [f32]);

    /// The first scale byte that the format forbids.
    fn invalid_scale(&self) -> Option<u8> {
        None
    }
}

/// Which of the two integer forms a format has.
pub(crate) enum Integers<B> {
    /// 256 weights; `min` says whether the format has minima.
    Super {
        expand: fn(&B) -> SuperBlock,
        min: bool,
    },
    /// A whole number of 32 weights: `expand(block, k)` gives the k-th.
    Small { expand: fn(&B, usize) -> SmallBlock },
}

/// The codec of blocks `B`.
pub(crate) struct Packed<B>(PhantomData<B>);

impl<B: Block> Packed<B> {
    pub(crate) const CODEC: Self = Self(PhantomData);

    /// View bytes as blocks, and check that `weights` numbers belong to them.
    fn blocks<'b>(what: &'static str, bytes: &'b [u8], weights: usize) -> Result<&'b [B], Error> {
        let blocks: &[B] = bytemuck::try_cast_slice(bytes).map_err(|_| Error::Length {
            what,
            got: bytes.len(),
            want: weights / B::LEN * size_of::<B>(),
        })?;
        let want = blocks.len() * B::LEN;
        if weights != want {
            return Err(Error::Length {
                what,
                got: weights,
                want,
            });
        }
        Ok(blocks)
    }
}

impl<B: Block> Codec for Packed<B> {
    fn ty(&self) -> TensorType {
        B::TY
    }

    fn decode(&self, blocks: &[u8], out: &mut [f32]) -> Result<(), Error> {
        let blocks = Self::blocks("decoded weights", blocks, out.len())?;
        for (block, w) in blocks.iter().zip(out.chunks_exact_mut(B::LEN)) {
            block.decode(w);
        }
        Ok(())
    }

    fn encode(
        &self,
        row: &[f32],
        importance: Option<&[f32]>,
        blocks: &mut [u8],
    ) -> Result<(), Error> {
        encode::encode_row(B::TY, row, importance, blocks)
    }

    fn validate(&self, blocks: &[u8]) -> Result<(), Error> {
        let blocks = Self::blocks(
            "packed bytes",
            blocks,
            blocks.len() / size_of::<B>() * B::LEN,
        )?;
        for (block, b) in blocks.iter().enumerate() {
            if let Some(byte) = b.invalid_scale() {
                return Err(Error::InvalidScale {
                    ty: B::TY,
                    block,
                    byte,
                });
            }
        }
        Ok(())
    }

    fn dot(&self, blocks: &[u8], x: &Activations, row: usize) -> f32 {
        let blocks: &[B] = bytemuck::cast_slice(blocks);
        assert_eq!(
            blocks.len() * B::LEN,
            x.cols(),
            "one row of weights for one row of activations"
        );
        if x.precision() == Precision::Exact {
            let mut acc = FloatChains::new();
            let mut w = [0.0; 256];
            for (block, x) in blocks.iter().zip(x.row(row).chunks_exact(B::LEN)) {
                block.decode(&mut w[..B::LEN]);
                acc.add(&w[..B::LEN], x);
            }
            return acc.sum();
        }
        match B::INTEGERS {
            Integers::Super { expand, min } => {
                super_row(blocks.iter().map(expand), x.q8_k(row), min)
            }
            Integers::Small { expand } => {
                let parts = B::LEN / 32;
                let small = blocks
                    .iter()
                    .flat_map(|b| (0..parts).map(move |k| expand(b, k)));
                small_row(small, x.q8_0(row))
            }
        }
    }
}
