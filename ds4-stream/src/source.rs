//! The one door between a model and the weights of its routed experts.

use crate::Error;

/// Gives a model the experts its router chose.
///
/// What a source does behind this (serve a mapping, cache in slots, read from SSD) is invisible to the model except in time.
pub trait ExpertSource: Send {
    /// Make `experts` of `layer` addressable, in the order asked for; blocks until they are. Nothing of a lease moves or is
    /// replaced while it lives. An id may occur more than once.
    ///
    /// # Errors
    /// [`Error::NoLayer`] and [`Error::NoExpert`] for what the model does not have; a source that reads files adds its own.
    fn acquire(&mut self, layer: u32, experts: &[u16]) -> Result<Lease<'_>, Error>;

    /// Say that `experts` of `layer` are likely to be asked for soon. May start reads; never blocks, never fails: layers and
    /// experts that do not exist are ignored.
    fn hint(&mut self, layer: u32, experts: &[u16]);

    /// What happened since the source was made.
    fn stats(&self) -> Stats;
}

/// Experts that stay addressable as long as this lives.
#[derive(Debug)]
pub struct Lease<'a> {
    experts: Vec<Expert<'a>>,
}

impl<'a> Lease<'a> {
    pub(crate) fn new(experts: Vec<Expert<'a>>) -> Self {
        Self { experts }
    }

    /// In the order they were asked for.
    pub fn experts(&self) -> &[Expert<'a>] {
        &self.experts
    }
}

/// The packed weights of one expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expert<'a> {
    /// Its number in the layer.
    pub id: u16,
    /// `width` rows of `hidden` packed weights, in the type of the first of [`Layer::parts`](crate::Layer::parts).
    pub gate: &'a [u8],
    /// The same shape, in the type of the second.
    pub up: &'a [u8],
    /// `hidden` rows of `width` packed weights, in the type of the third.
    pub down: &'a [u8],
}

/// Counts of a source. [`Resident`](crate::Resident) counts every expert as a hit: what the system reads behind a mapping is
/// not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Experts asked for.
    pub acquired: u64,
    /// Of these, experts that were addressable without a read.
    pub hits: u64,
    /// Bytes read for the others.
    pub bytes_read: u64,
}
