//! Requantization in place, for disks that cannot hold a model twice.
//!
//! ```text
//!  model            journal
//!  GGUF old         –
//!  GGUF old         plan, synced              1  nothing is lost: the model opens as it was
//!  GGRQ old         plan                      2  no reader opens the model from here on
//!  GGRQ mixed       plan, redo k, done k …    3  steps in order, each synced before the next
//!  GGRQ new         plan, all done            4  header written, file cut
//!  GGUF new         –                         5
//! ```
//! A step whose result lies clear of its source can be repeated; the result of any other goes to the journal before it
//! goes to the model. So each state has exactly one continuation, [`resume`]: after a kill, a power loss that forgets
//! what was not synced, a full disk, an I/O error. The result has the bytes that [`crate::quantize`] writes for the
//! same types and metadata.
//!
//! Other programs that have the model mapped see it change under them; the lock on the file is advisory.
//!
//! [`requant_file`] does all of it; [`resume_file`] finishes what was interrupted. [`Requant`] and [`Storage`] are the
//! parts.
//!
//! ```
//! use std::ops::ControlFlow;
//! use ds4_gguf::{Gguf, Metadata, NewFile, Plan, TensorType, Writer};
//! use ds4_quant::recipe::Recipe;
//! use ds4_quant::requant::requant_file;
//! use ds4_quant::{NonFinite, Pool};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("model.gguf");
//! let mut plan = Plan::new(Metadata::new())?;
//! plan.add("output.weight", &[64, 10], TensorType::F32)?;
//! let mut writer = Writer::new(NewFile::create(&path, false)?, plan)?;
//! writer.tensor("output.weight", &[0; 64 * 10 * 4])?;
//! writer.finish()?.publish()?;
//!
//! let recipe = Recipe::named("native")?;
//! let pool = Pool::new(2)?;
//! requant_file(&path, &recipe, None, NonFinite::Refuse, &pool, |_, _| ControlFlow::Continue(()))?;
//! assert_eq!(Gguf::open(&path)?.tensor("output.weight")?.info.ty, TensorType::Q8_0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod file;
mod header;
mod journal;
mod layout;
mod storage;

use std::ops::ControlFlow;

use ds4_gguf::{Gguf, UNFINISHED, is_unfinished};

use crate::quantize::{Changed, Importance, Progress, Quantize, QuantizeError, Report};
use crate::recipe::Recipe;
use crate::transcode::{Shape, Transcode};
use crate::{NonFinite, Pool};

use journal::{Body, Kind, disk};
use layout::{Move, Step};

pub use error::RequantError;
pub use file::{Stage, requant_file, resume_file};
pub use storage::{FileStorage, Part, Storage, journal_path};

/// Bytes of weights looked at a time before anything is written.
const CHUNK: u64 = 4 << 20;

/// A requantization that is decided and not yet begun.
#[derive(Debug)]
pub struct Requant {
    body: Body,
    unrecorded: Vec<&'static str>,
}

impl Requant {
    /// Decide what becomes of each tensor of `source`, which must be one file, and whether that can be done in place.
    ///
    /// # Errors
    /// [`RequantError::Split`], [`RequantError::Order`], [`RequantError::Grows`] and [`RequantError::HeaderRoom`] when
    /// it cannot; [`RequantError::Nothing`]; [`RequantError::Quantize`] when the types or the importance do not fit.
    pub fn new(
        source: &Gguf,
        recipe: &Recipe,
        importance: Option<Importance<'_>>,
        nonfinite: NonFinite,
    ) -> Result<Self, RequantError> {
        if source.shards().len() != 1 {
            return Err(RequantError::Split {
                count: source.shards().len(),
            });
        }
        let decided = Quantize::new(source, recipe, importance)?;
        if decided.tensors().iter().all(|t| t.is_copied()) {
            return Err(RequantError::Nothing);
        }
        decided.check_importance()?;
        let Some(first) = source.tensors().iter().map(|t| t.extent.offset).min() else {
            return Err(RequantError::Nothing);
        };
        let (header, unrecorded) = header::build(source, &decided, importance, first)?;
        let alignment = source.alignment();
        let mut write = header.len() as u64;
        let mut moves = Vec::new();
        for (info, planned) in source.tensors().iter().zip(decided.tensors()) {
            let vectors = crate::quantize::vectors(importance, info, planned.info.ty)?;
            moves.push(Move {
                name: info.name.clone(),
                dims: info.dims,
                from: info.ty,
                to: planned.info.ty,
                read: info.extent.offset,
                write,
                importance: vectors.concat(),
            });
            write = (write + planned.info.extent.bytes).next_multiple_of(alignment);
        }
        layout::check(&moves)?;
        let file = source.shards()[0].bytes();
        let old_header = first as usize;
        Ok(Self {
            body: Body {
                old_len: file.len() as u64,
                old_header: (first, crc32fast::hash(&file[..old_header])),
                new_len: write,
                alignment,
                step: (layout::STEP, layout::SMALL_STEP),
                clamp: nonfinite == NonFinite::Clamp,
                header,
                moves,
            },
            unrecorded,
        })
    }

    /// Work in steps of at most `step` bytes of the source, `small` where they go by way of the journal. The defaults
    /// are 64 MiB and 1 MiB; tests want less.
    pub fn steps_of(mut self, step: u64, small: u64) -> Self {
        self.body.step = (step.max(1), small.max(1));
        self
    }

    /// Bytes of the file before and after.
    pub fn file_bytes(&self) -> (u64, u64) {
        (self.body.old_len, self.body.new_len)
    }

    /// Bytes of the journal while the work goes on.
    pub fn journal_bytes(&self) -> u64 {
        let plan = self.body.header.len() as u64
            + self
                .body
                .moves
                .iter()
                .map(|m| 4 * m.importance.len() as u64 + m.name.len() as u64 + 128)
                .sum::<u64>();
        plan + records(&steps(&self.body))
    }

    /// Keys that say how the file was quantized and for which the old header leaves no room.
    pub fn unrecorded(&self) -> &[&'static str] {
        &self.unrecorded
    }

    /// Look at every weight that will be encoded, so that none stops the work in the middle. `source` is the file that
    /// this was made for.
    ///
    /// # Errors
    /// [`QuantizeError::NonFinite`] for the first weight that is no number, unless such are clamped,
    /// [`QuantizeError::Codec`] for the first that is too large for its type; [`QuantizeError::Cancelled`]. The model is
    /// as it was.
    pub fn check_weights(
        &self,
        source: &Gguf,
        pool: &Pool,
        mut on: impl FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<(), RequantError> {
        let changing = || self.body.moves.iter().filter(|m| m.from != m.to);
        let total = changing().map(|m| m.bytes(m.from)).sum();
        let mut done = 0;
        for m in changing() {
            let transcode = transcode(&self.body, m)?;
            let tensor = source.tensor(&m.name).map_err(QuantizeError::from)?;
            let rows = (CHUNK / m.row(m.from)).max(1);
            let bytes = (rows * m.row(m.from)) as usize;
            for (i, chunk) in tensor.bytes.chunks(bytes).enumerate() {
                transcode
                    .check(pool, i * rows as usize, chunk)
                    .map_err(|error| QuantizeError::codec(&m.name, error))?;
                done += chunk.len() as u64;
                let progress = Progress {
                    tensor: &m.name,
                    done,
                    total,
                };
                if on(progress).is_break() {
                    return Err(QuantizeError::Cancelled.into());
                }
            }
        }
        Ok(())
    }

    /// Do it. Until the journal is durable a failure leaves the model as it was; from then on it can be resumed.
    ///
    /// # Errors
    /// [`RequantError::Changed`] when the model is not the one that this was made for, [`RequantError::Unfinished`]
    /// when it is in the middle of an earlier requantization; [`RequantError::Disk`], [`RequantError::Cancelled`];
    /// [`RequantError::Quantize`] for a weight that cannot be encoded, in the middle of the work: call
    /// [`Self::check_weights`] first, as [`requant_file`] does.
    pub fn run(
        &self,
        storage: &mut dyn Storage,
        pool: &Pool,
        on: impl FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Report, RequantError> {
        if is_unfinished(magic(storage)?) {
            return Err(RequantError::Unfinished);
        }
        check_old(storage, &self.body)?;
        let steps = steps(&self.body);
        let end = journal::create(storage, &self.body, records(&steps))?;
        mark(storage)?;
        go_on(storage, pool, &self.body, &steps, 0, end, on)
    }
}

/// Finish a requantization that was interrupted. The report is of the part that is done here.
///
/// # Errors
/// [`RequantError::NotUnfinished`] when the model is whole, as before or as after (what is left of a journal is removed
/// then); [`RequantError::NoJournal`], [`RequantError::Journal`] and [`RequantError::Changed`] when the journal does not
/// belong to the model; [`RequantError::Disk`] and [`RequantError::Cancelled`]: it can be resumed again.
pub fn resume(
    storage: &mut dyn Storage,
    pool: &Pool,
    on: impl FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Report, RequantError> {
    let unfinished = is_unfinished(magic(storage)?);
    let journal = journal::read(storage)?;
    let Some((body, start)) = journal else {
        if unfinished {
            return Err(RequantError::NoJournal);
        }
        let had = storage
            .len(Part::Journal)
            .map_err(|e| disk("read", Part::Journal, e))?;
        remove(storage)?;
        let journal = match had {
            None => "there is no journal",
            Some(_) => "its journal was not complete; start again without --resume",
        };
        return Err(RequantError::NotUnfinished { journal });
    };
    let steps = steps(&body);
    if !unfinished {
        // Interrupted between two and three durable facts: either end of the work.
        if head_is(storage, &body.header)? {
            remove(storage)?;
            return Ok(Report::default());
        }
        check_old(storage, &body)?;
        mark(storage)?;
        return go_on(storage, pool, &body, &steps, 0, start, on);
    }
    let len = model_len(storage)?;
    let (least, most) = (
        body.old_len.min(body.new_len),
        body.old_len.max(body.new_len),
    );
    if !(least..=most).contains(&len) {
        return Err(RequantError::Changed {
            what: "the size of the model",
            expected: format!("{} bytes", body.old_len).into(),
            found: format!("{len} bytes").into(),
        });
    }
    mark(storage)?;
    let sizes: Vec<u64> = steps.iter().map(|s| s.write_bytes + s.padding).collect();
    let state = journal::replay(storage, start, &sizes)?;
    let (mut done, mut end) = (state.done, state.end);
    if let Some(result) = state.redo {
        end = finish_step(storage, &steps[done], done, end, &result)?;
        done += 1;
    }
    go_on(storage, pool, &body, &steps, done, end, on)
}

/// The steps from number `done` on, then the header.
fn go_on(
    storage: &mut dyn Storage,
    pool: &Pool,
    body: &Body,
    steps: &[Step],
    done: usize,
    mut end: u64,
    mut on: impl FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Report, RequantError> {
    let total = steps.iter().map(|s| s.read_bytes).sum();
    let mut bytes = steps[..done].iter().map(|s| s.read_bytes).sum();
    let mut report = Report {
        copied: body.moves.iter().filter(|m| m.from == m.to).count(),
        ..Report::default()
    };
    for (k, step) in steps.iter().enumerate().skip(done) {
        let m = &body.moves[step.tensor];
        let progress = Progress {
            tensor: &m.name,
            done: bytes,
            total,
        };
        if on(progress).is_break() {
            return Err(RequantError::Cancelled);
        }
        let result = compute(storage, pool, body, step, &mut report)?;
        if step.overlaps() {
            end = journal::append(storage, end, Kind::Redo, k, &result)?;
        }
        end = finish_step(storage, step, k, end, &result)?;
        bytes += step.read_bytes;
    }
    let fail = |source| disk("finish", Part::Model, source);
    storage
        .write_at(Part::Model, 4, &body.header[4..])
        .map_err(fail)?;
    storage.set_len(Part::Model, body.new_len).map_err(fail)?;
    storage.sync(Part::Model).map_err(fail)?;
    storage
        .write_at(Part::Model, 0, &body.header[..4])
        .map_err(fail)?;
    storage.sync(Part::Model).map_err(fail)?;
    remove(storage)?;
    Ok(report)
}

/// Read the source of a step and make its result, padding included.
fn compute(
    storage: &mut dyn Storage,
    pool: &Pool,
    body: &Body,
    step: &Step,
    report: &mut Report,
) -> Result<Vec<u8>, RequantError> {
    let m = &body.moves[step.tensor];
    let mut source = vec![0; step.read_bytes as usize];
    storage
        .read_at(Part::Model, step.read, &mut source)
        .map_err(|e| disk("read", Part::Model, e))?;
    let padding = step.padding as usize;
    if m.from == m.to {
        source.resize(source.len() + padding, 0);
        return Ok(source);
    }
    let mut blocks = vec![0; step.write_bytes as usize];
    let error = transcode(body, m)?
        .rows(pool, step.row as usize, &source, &mut blocks)
        .map_err(|error| QuantizeError::codec(&m.name, error))?;
    match report.tensors.last_mut() {
        Some(last) if last.name == m.name => last.error.merge(&error),
        _ => report.tensors.push(Changed {
            name: m.name.clone(),
            from: m.from,
            to: m.to,
            error,
        }),
    }
    blocks.resize(blocks.len() + padding, 0);
    Ok(blocks)
}

/// The rows of a tensor that changes its type.
fn transcode<'a>(body: &Body, m: &'a Move) -> Result<Transcode<'a>, QuantizeError> {
    let fail = |source| QuantizeError::codec(&m.name, source);
    let shape = Shape::of(&m.dims).map_err(fail)?;
    let vectors = m.importance.chunks(shape.cols).collect();
    let nonfinite = if body.clamp {
        NonFinite::Clamp
    } else {
        NonFinite::Refuse
    };
    Transcode::new(m.from, m.to, shape, vectors, nonfinite).map_err(fail)
}

/// Write the result of step `k`, then say so; both durable on return.
fn finish_step(
    storage: &mut dyn Storage,
    step: &Step,
    k: usize,
    end: u64,
    result: &[u8],
) -> Result<u64, RequantError> {
    storage
        .write_at(Part::Model, step.write, result)
        .and_then(|()| storage.sync(Part::Model))
        .map_err(|e| disk("write", Part::Model, e))?;
    journal::append(storage, end, Kind::Done, k, &[])
}

/// Take the model away from readers; durable on return.
fn mark(storage: &mut dyn Storage) -> Result<(), RequantError> {
    storage
        .write_at(Part::Model, 0, &UNFINISHED)
        .and_then(|()| storage.sync(Part::Model))
        .map_err(|e| disk("mark", Part::Model, e))
}

fn remove(storage: &mut dyn Storage) -> Result<(), RequantError> {
    storage
        .remove_journal()
        .map_err(|e| disk("remove", Part::Journal, e))
}

fn steps(body: &Body) -> Vec<Step> {
    layout::steps(&body.moves, body.alignment, body.step.0, body.step.1)
}

/// Bytes of all records that the steps write.
fn records(steps: &[Step]) -> u64 {
    let redo = |s: &Step| {
        if s.overlaps() {
            journal::record_bytes(s.write_bytes + s.padding)
        } else {
            0
        }
    };
    steps
        .iter()
        .map(|s| redo(s) + journal::record_bytes(0))
        .sum()
}

fn model_len(storage: &mut dyn Storage) -> Result<u64, RequantError> {
    let len = storage.len(Part::Model);
    Ok(len
        .map_err(|e| disk("read", Part::Model, e))?
        .unwrap_or_default())
}

/// The first four bytes of the model: of a GGUF, or of a requantization that is not finished.
fn magic(storage: &mut dyn Storage) -> Result<[u8; 4], RequantError> {
    let mut found = [0; 4];
    if model_len(storage)? >= 4 {
        storage
            .read_at(Part::Model, 0, &mut found)
            .map_err(|e| disk("read", Part::Model, e))?;
    }
    if found == *b"GGUF" || is_unfinished(found) {
        Ok(found)
    } else {
        Err(RequantError::Magic { found })
    }
}

/// The model is the one that was planned for.
fn check_old(storage: &mut dyn Storage, body: &Body) -> Result<(), RequantError> {
    let len = model_len(storage)?;
    if len != body.old_len {
        return Err(RequantError::Changed {
            what: "the size of the model",
            expected: format!("{} bytes", body.old_len).into(),
            found: format!("{len} bytes").into(),
        });
    }
    let (bytes, want) = body.old_header;
    let mut header = vec![0; bytes.min(len) as usize];
    storage
        .read_at(Part::Model, 0, &mut header)
        .map_err(|e| disk("read", Part::Model, e))?;
    let found = crc32fast::hash(&header);
    if found != want {
        return Err(RequantError::Changed {
            what: "the checksum of the header",
            expected: format!("{want:08x}").into(),
            found: format!("{found:08x}").into(),
        });
    }
    Ok(())
}

/// Whether the model starts with these bytes.
fn head_is(storage: &mut dyn Storage, bytes: &[u8]) -> Result<bool, RequantError> {
    if model_len(storage)? < bytes.len() as u64 {
        return Ok(false);
    }
    let mut found = vec![0; bytes.len()];
    storage
        .read_at(Part::Model, 0, &mut found)
        .map_err(|e| disk("read", Part::Model, e))?;
    Ok(found == bytes)
}
