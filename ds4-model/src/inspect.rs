//! What is in a GGUF: sizes by role and type, bytes that one decoded token reads, tensors that nothing here can decode.
//!
//! Works for every GGUF that opens, also for models this crate cannot run.
//!
//! ```
//! use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
//! use ds4_model::inspect::{Report, Role};
//!
//! let mut plan = Plan::new(Metadata::new())?;
//! plan.add("token_embd.weight", &[32, 100], TensorType::Q8_0)?;
//! let mut writer = Writer::new(Vec::new(), plan)?;
//! writer.write(&[0; 3400])?;
//! let file = Gguf::from_vec(writer.finish()?)?;
//!
//! let report = Report::of(&file);
//! assert_eq!(report.bytes(), 3400);
//! assert_eq!(report.groups()[0].role, Role::Embedding);
//! assert_eq!(report.bytes_per_token(), Some(34)); // one row of the table
//! # Ok::<(), ds4_gguf::Error>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;

use ds4_gguf::{Array, DecidedBy, Gguf, Item, Metadata, TensorInfo, TensorType};
use serde_json::{Map, Value, json};

pub use ds4_quant::recipe::Role;

/// All tensors of one role and one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they are for.
    pub role: Role,
    /// Type of their weights.
    pub ty: TensorType,
    /// How many tensors.
    pub tensors: usize,
    /// Weights in them.
    pub weights: u64,
    /// Bytes in the file.
    pub bytes: u64,
}

/// A tensor whose weights cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The tensor.
    pub name: String,
    /// ggml's number of its type.
    pub id: u32,
    /// Why.
    pub reason: String,
}

/// What the tensors of a model take, in its file and at each decoded token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Tensors by role, within a role the largest first.
    pub groups: Vec<Group>,
    /// Bytes of weights read to decode one token: see [`Report::bytes_per_token`].
    pub bytes_per_token: Option<u64>,
}

impl Sizes {
    /// Add up `tensors`, of a file that exists or of one that is planned.
    pub fn of<'a>(metadata: &Metadata, tensors: impl IntoIterator<Item = &'a TensorInfo>) -> Self {
        let architecture = metadata
            .find::<&str>("general.architecture")
            .unwrap_or_default();
        let number = |key: &str| metadata.find::<u64>(&format!("{architecture}.{key}"));
        let layers = number("block_count");
        let experts = number("expert_used_count")
            .zip(number("expert_count"))
            .filter(|(used, count)| used <= count && *count > 0);
        let mut groups = BTreeMap::new();
        let mut bytes_per_token = Some(0u64);
        for info in tensors {
            let role = Role::of(&info.name, layers);
            let group = groups.entry((role, info.ty)).or_insert(Group {
                role,
                ty: info.ty,
                tensors: 0,
                weights: 0,
                bytes: 0,
            });
            group.tensors += 1;
            group.weights = group.weights.saturating_add(info.dims.elements());
            group.bytes = group.bytes.saturating_add(info.extent.bytes);
            bytes_per_token = bytes_per_token
                .zip(read_per_token(info, role, experts))
                .map(|(sum, bytes)| sum.saturating_add(bytes));
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by_key(|g| (g.role, std::cmp::Reverse(g.bytes)));
        Self {
            groups,
            bytes_per_token,
        }
    }
}

impl fmt::Display for Sizes {
    /// The table by role.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<18} {:<18} {:>8} {:>12} {:>14}",
            "role", "type", "tensors", "bytes", "bits/weight"
        )?;
        for g in &self.groups {
            let bits = 8.0 * g.bytes as f64 / g.weights.max(1) as f64;
            writeln!(
                f,
                "{:<18} {:<18} {:>8} {:>12} {bits:>14.2}",
                g.role.name(),
                type_name(g.ty),
                g.tensors,
                human_bytes(g.bytes)
            )?;
        }
        let tensors: usize = self.groups.iter().map(|g| g.tensors).sum();
        let sum = |of: fn(&Group) -> u64| {
            self.groups
                .iter()
                .fold(0u64, |sum, g| sum.saturating_add(of(g)))
        };
        let (bytes, weights) = (sum(|g| g.bytes), sum(|g| g.weights));
        let bits = 8.0 * bytes as f64 / weights.max(1) as f64;
        write!(
            f,
            "{:<18} {:<18} {tensors:>8} {:>12} {bits:>14.2}",
            "total",
            "",
            human_bytes(bytes)
        )
    }
}

/// The summary of one model file.
#[derive(Clone, Debug)]
pub struct Report {
    gguf: Gguf,
    sizes: Sizes,
    unsupported: Vec<Unsupported>,
}

impl Report {
    /// Summarise `gguf`. Reads the directory alone, no weights.
    pub fn of(gguf: &Gguf) -> Self {
        Self {
            gguf: gguf.clone(),
            sizes: Sizes::of(gguf.metadata(), gguf.tensors()),
            unsupported: unsupported(gguf),
        }
    }

    /// Tensors by role, within a role the largest first.
    pub fn groups(&self) -> &[Group] {
        &self.sizes.groups
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.groups()
            .iter()
            .fold(0, |sum, g| sum.saturating_add(g.bytes))
    }

    /// Bytes of weights read to decode one token: one row of tables by token, the chosen routed experts, all of the rest.
    /// `None` when the file has routed experts and does not say how many are used.
    pub fn bytes_per_token(&self) -> Option<u64> {
        self.sizes.bytes_per_token
    }

    /// Tensors that cannot be decoded, all of them.
    pub fn unsupported(&self) -> &[Unsupported] {
        &self.unsupported
    }

    /// Everything as JSON: metadata, tensors, groups, bytes a token, what is not supported. Arrays of more than 64 elements
    /// are given as their type, length and first elements.
    pub fn to_json(&self) -> Value {
        let gguf = &self.gguf;
        let metadata: Map<String, Value> = gguf
            .metadata()
            .iter()
            .map(|(key, value)| (key.to_owned(), item_json(&value.item())))
            .collect();
        let tensors: Vec<Value> = gguf
            .tensors()
            .iter()
            .map(|t| {
                json!({ "name": t.name, "dims": t.dims.as_slice(), "type": type_name(t.ty), "shard": t.shard, "offset": t.extent.offset, "bytes": t.extent.bytes })
            })
            .collect();
        let groups: Vec<Value> = self
            .groups()
            .iter()
            .map(|g| json!({ "role": g.role.name(), "type": type_name(g.ty), "tensors": g.tensors, "weights": g.weights, "bytes": g.bytes }))
            .collect();
        let unsupported: Vec<Value> = self
            .unsupported
            .iter()
            .map(|u| json!({ "name": u.name, "type_id": u.id, "reason": u.reason }))
            .collect();
        json!({
            "path": gguf.path().map(|p| p.display().to_string()),
            "version": gguf.version(),
            "alignment": gguf.alignment(),
            "shards": gguf.shards().len(),
            "metadata": metadata,
            "tensors": tensors,
            "groups": groups,
            "bytes": self.bytes(),
            "bytes_per_token": self.bytes_per_token(),
            "unsupported": unsupported,
        })
    }
}

/// Bytes of `info` that one decoded token reads; `None` when that cannot be known.
fn read_per_token(info: &TensorInfo, role: Role, experts: Option<(u64, u64)>) -> Option<u64> {
    let bytes = info.extent.bytes;
    let rows = info.dims.rows();
    match role {
        Role::Other => Some(0),
        Role::Embedding => Some(bytes / rows),
        Role::Router if info.name.contains("tid2eid") => Some(bytes / rows),
        Role::Experts => experts
            .map(|(used, count)| (u128::from(bytes) * u128::from(used) / u128::from(count)) as u64),
        _ => Some(bytes),
    }
}

/// Types without a layout, then types that no codec decodes. Integer tables need none.
fn unsupported(gguf: &Gguf) -> Vec<Unsupported> {
    let without_layout = gguf.unsupported_tensors();
    let mut all: Vec<Unsupported> = without_layout
        .iter()
        .map(|u| Unsupported {
            name: u.name.to_owned(),
            id: u.id,
            reason: u.reason.to_string(),
        })
        .collect();
    let is_integer = |ty| {
        matches!(
            ty,
            TensorType::I8 | TensorType::I16 | TensorType::I32 | TensorType::I64
        )
    };
    for info in gguf.tensors() {
        if !matches!(info.ty, TensorType::Unknown(_))
            && !is_integer(info.ty)
            && ds4_quant::codec(info.ty).is_none()
        {
            let reason = format!("no codec for {}", info.ty.name());
            all.push(Unsupported {
                name: info.name.to_string(),
                id: info.ty.id(),
                reason,
            });
        }
    }
    all
}

fn decided(by: &DecidedBy) -> String {
    match by {
        DecidedBy::User => "as the caller said".to_owned(),
        DecidedBy::Key => "as a key of the file says".to_owned(),
        DecidedBy::Statistics(s) => format!("as {} blocks of {} tensors look", s.blocks, s.tensors),
    }
}

fn type_name(ty: TensorType) -> String {
    match ty {
        TensorType::Unknown(id) => format!("type {id}"),
        known => known.name().to_owned(),
    }
}

fn item_json(item: &Item<'_>) -> Value {
    match item {
        Item::Unsigned(n) => json!(n),
        Item::Signed(n) => json!(n),
        // As short as the f32 is, without the digits that widening would show.
        Item::F32(n) => json!(n.to_string().parse::<f64>().ok().filter(|n| n.is_finite())),
        Item::F64(n) => json!(n),
        Item::Bool(b) => json!(b),
        Item::String(bytes) => json!(String::from_utf8_lossy(bytes)),
        Item::Array(array) => array_json(array),
    }
}

fn array_json(array: &Array<'_>) -> Value {
    const SHORT: usize = 64;
    const HEAD: usize = 8;
    let first = |n: usize| {
        array
            .iter()
            .take(n)
            .map(|item| item_json(&item))
            .collect::<Vec<_>>()
    };
    if array.len() <= SHORT {
        return Value::Array(first(SHORT));
    }
    json!({ "array": array.element().to_string(), "length": array.len(), "first": first(HEAD) })
}

/// `1.23 GB` and its smaller brothers, in powers of 1000.
pub fn human_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.2} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

impl fmt::Display for Report {
    /// Metadata, tensors, sizes; what is not supported comes last, where it is seen.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gguf = &self.gguf;
        let path = gguf
            .path()
            .map_or_else(|| "GGUF in memory".to_owned(), |p| p.display().to_string());
        let shards = gguf.shards().len();
        writeln!(
            f,
            "{path}: GGUF version {}, alignment {}, {shards} file(s)",
            gguf.version(),
            gguf.alignment()
        )?;

        writeln!(f, "\nmetadata ({})", gguf.metadata().len())?;
        for (key, value) in gguf.metadata().iter() {
            writeln!(f, "  {key} = {value}")?;
        }

        writeln!(f, "\ntensors ({})", gguf.tensors().len())?;
        let width = gguf
            .tensors()
            .iter()
            .map(|t| t.name.chars().count())
            .max()
            .unwrap_or(0)
            .min(48);
        for t in gguf.tensors() {
            writeln!(
                f,
                "  {:<width$}  {:<8} {:>24}  {:>10}",
                t.name,
                type_name(t.ty),
                t.dims.to_string(),
                human_bytes(t.extent.bytes)
            )?;
        }

        writeln!(f, "\n{}", self.sizes)?;
        match self.bytes_per_token() {
            Some(bytes) => writeln!(f, "\nbytes per decoded token: {}", human_bytes(bytes))?,
            None => writeln!(
                f,
                "\nbytes per decoded token: unknown, the file does not say how many experts are used"
            )?,
        }
        if let Some(decision) = gguf.rocmfp2_layout() {
            writeln!(
                f,
                "type 107 is read as {}, {}",
                decision.layout,
                decided(&decision.by)
            )?;
        }
        match self.unsupported.as_slice() {
            [] => write!(f, "every tensor type is supported"),
            all => {
                write!(f, "{} tensor(s) cannot be decoded:", all.len())?;
                for u in all {
                    write!(f, "\n  {} (type id {}): {}", u.name, u.id, u.reason)?;
                }
                Ok(())
            }
        }
    }
}
