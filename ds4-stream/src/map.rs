//! Which bytes of a GGUF are which expert.
//!
//! ```text
//! blk.L.ffn_gate_exps.weight   [hidden, width, experts]     expert e = bytes e·n .. (e+1)·n,  n = tensor bytes / experts
//! blk.L.ffn_up_exps.weight     [hidden, width, experts]
//! blk.L.ffn_down_exps.weight   [width, hidden, experts]
//! ```
//! The expert index is the slowest extent, so one expert of one tensor is one contiguous range; types may differ between
//! the three tensors and from layer to layer.

use std::collections::BTreeMap;
use std::fmt;

use ds4_gguf::{Extent, Gguf, TensorInfo, TensorType};

use crate::Error;

/// Ids of experts are 16 bits wide.
const MOST_EXPERTS: u64 = 1 << 16;

/// Which of an expert's three matrices: `blk.L.ffn_{gate,up,down}_exps.weight`. Shapes here are in file order, fastest
/// first: `[hidden, width]` has `width` rows of `hidden` weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// `[hidden, width]`, its output goes through SiLU.
    Gate,
    /// `[hidden, width]`, multiplied with the gate.
    Up,
    /// `[width, hidden]`, back to the model's width.
    Down,
}

impl Role {
    /// In the order of every array of three in this crate.
    pub const ALL: [Self; 3] = [Self::Gate, Self::Up, Self::Down];

    /// The word in tensor names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    /// The tensor of this role in `layer`.
    pub fn tensor_name(self, layer: u32) -> String {
        format!("blk.{layer}.ffn_{self}_exps.weight")
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A byte range of one file of a (possibly split) model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which file: an index into [`Gguf::shards`].
    pub shard: u32,
    /// Where in that file.
    pub extent: Extent,
}

/// One role of one layer: the matrices of all its experts, back to back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Type of the weights.
    pub ty: TensorType,
    /// Inputs of each expert's matrix: the length of a row, in weights.
    pub cols: u64,
    /// Outputs of each expert's matrix.
    pub rows: u64,
    /// Bytes of one expert.
    pub bytes: u64,
    /// The whole tensor.
    pub span: Span,
}

/// The routed experts of one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// How many experts there are.
    pub experts: u32,
    /// Gate, up and down.
    pub parts: [Part; 3],
}

impl Layer {
    /// Bytes of one expert of this layer, all three matrices.
    pub fn expert_bytes(&self) -> u64 {
        self.parts.iter().map(|p| p.bytes).sum()
    }
}

/// For each layer with routed experts, where each of them lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpertMap {
    layers: BTreeMap<u32, Layer>,
}

impl ExpertMap {
    /// Read the tensor directory of a model. A model without routed experts has an empty map.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Shape`], [`Error::Disagree`] or [`Error::Type`] when a layer's three tensors do not
    /// make a set of experts.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, Error> {
        let mut found: BTreeMap<u32, [Option<&TensorInfo>; 3]> = BTreeMap::new();
        for info in gguf.tensors() {
            if let Some((layer, role)) = place(&info.name) {
                found.entry(layer).or_default()[role as usize] = Some(info);
            }
        }
        let layers = found
            .into_iter()
            .map(|(layer, tensors)| Ok((layer, read_layer(layer, tensors)?)));
        Ok(Self {
            layers: layers.collect::<Result<_, Error>>()?,
        })
    }

    /// The layers that have routed experts, in order.
    pub fn layers(&self) -> impl Iterator<Item = (u32, &Layer)> {
        self.layers.iter().map(|(number, layer)| (*number, layer))
    }

    /// The experts of one layer.
    ///
    /// # Errors
    /// [`Error::NoLayer`] when it has none.
    pub fn layer(&self, layer: u32) -> Result<&Layer, Error> {
        self.layers.get(&layer).ok_or(Error::NoLayer {
            layer,
            count: self.layers.len(),
        })
    }

    /// Where gate, up and down of one expert lie.
    ///
    /// # Errors
    /// [`Error::NoLayer`] and [`Error::NoExpert`].
    pub fn spans(&self, layer: u32, expert: u16) -> Result<[Span; 3], Error> {
        let found = self.layer(layer)?;
        if u32::from(expert) >= found.experts {
            return Err(Error::NoExpert {
                layer,
                expert,
                count: found.experts,
            });
        }
        Ok(found.parts.each_ref().map(|part| Span {
            shard: part.span.shard,
            // In range of the tensor, whose own end is checked when the file is opened.
            extent: Extent {
                offset: part.span.extent.offset + u64::from(expert) * part.bytes,
                bytes: part.bytes,
            },
        }))
    }

    /// Bytes of the largest expert over all layers: what a slot for any expert must hold. 0 without experts.
    pub fn largest_expert(&self) -> u64 {
        self.layers
            .values()
            .map(Layer::expert_bytes)
            .max()
            .unwrap_or(0)
    }

    /// Bytes of all routed experts together.
    pub fn total_bytes(&self) -> u64 {
        self.layers
            .values()
            .map(|layer| layer.expert_bytes() * u64::from(layer.experts))
            .sum()
    }
}

/// The layer and role of an expert tensor; `None` for other tensors.
fn place(name: &str) -> Option<(u32, Role)> {
    let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let part = rest.strip_prefix("ffn_")?.strip_suffix("_exps.weight")?;
    let role = Role::ALL.into_iter().find(|role| role.name() == part)?;
    Some((layer.parse().ok()?, role))
}

fn read_layer(layer: u32, tensors: [Option<&TensorInfo>; 3]) -> Result<Layer, Error> {
    let mut read = Vec::with_capacity(3);
    for (role, info) in Role::ALL.into_iter().zip(tensors) {
        let missing = || Error::Missing {
            layer,
            name: role.tensor_name(layer).into(),
        };
        read.push(read_part(info.ok_or_else(missing)?)?);
    }
    let [(experts, gate), up, down] = <[(u32, Part); 3]>::try_from(read)
        .expect("one part was pushed for each of the three roles");
    for (role, (count, part)) in [(Role::Up, &up), (Role::Down, &down)] {
        let (cols, rows) = if role == Role::Down {
            (gate.rows, gate.cols)
        } else {
            (gate.cols, gate.rows)
        };
        if (part.cols, part.rows, *count) != (cols, rows, experts) {
            let found = shape(part.cols, part.rows, *count);
            return Err(Error::Disagree {
                layer,
                role,
                found,
                expected: shape(cols, rows, experts),
            });
        }
    }
    Ok(Layer {
        experts,
        parts: [gate, up.1, down.1],
    })
}

/// How many experts the tensor holds, and the tensor as a part.
fn read_part(info: &TensorInfo) -> Result<(u32, Part), Error> {
    let (cols, rows, experts) = (info.dims.get(0), info.dims.get(1), info.dims.get(2));
    let is_stack = info.dims.as_slice().len() == 3 && (1..=MOST_EXPERTS).contains(&experts);
    let Ok(count) = u32::try_from(experts) else {
        return Err(bad_shape(info));
    };
    if !is_stack {
        return Err(bad_shape(info));
    }
    if info.ty.block_bytes() == 0 {
        return Err(Error::Type {
            name: info.name.clone(),
            ty: info.ty.id(),
        });
    }
    let span = Span {
        shard: info.shard,
        extent: info.extent,
    };
    // Rows are whole blocks and never shared between experts, so the division leaves nothing.
    Ok((
        count,
        Part {
            ty: info.ty,
            cols,
            rows,
            bytes: info.extent.bytes / experts,
            span,
        },
    ))
}

fn bad_shape(info: &TensorInfo) -> Error {
    Error::Shape {
        name: info.name.clone(),
        dims: info.dims.to_string().into(),
        most: MOST_EXPERTS,
    }
}

fn shape(cols: u64, rows: u64, experts: u32) -> Box<str> {
    format!("{cols} × {rows} × {experts}").into()
}
