//! Every expert is its range of the mapped file; the operating system decides what stays in memory.

use ds4_gguf::Gguf;

use crate::{Error, Expert, ExpertMap, ExpertSource, Lease, Span, Stats};

/// The source for models that fit into memory: leases are ranges of the mapping, nothing is copied.
pub struct Resident {
    gguf: Gguf,
    map: ExpertMap,
    stats: Stats,
}

impl Resident {
    /// Serve the experts of `gguf`.
    ///
    /// # Errors
    /// As [`ExpertMap::from_gguf`].
    pub fn new(gguf: Gguf) -> Result<Self, Error> {
        let map = ExpertMap::from_gguf(&gguf)?;
        Ok(Self {
            gguf,
            map,
            stats: Stats::default(),
        })
    }

    /// What lies where.
    pub fn map(&self) -> &ExpertMap {
        &self.map
    }

    fn bytes(&self, span: Span) -> &[u8] {
        let start = span.extent.offset as usize;
        &self.gguf.shards()[span.shard as usize].bytes()[start..start + span.extent.bytes as usize]
    }
}

impl ExpertSource for Resident {
    fn acquire(&mut self, layer: u32, experts: &[u16]) -> Result<Lease<'_>, Error> {
        let mut spans = Vec::with_capacity(experts.len());
        for &id in experts {
            spans.push((id, self.map.spans(layer, id)?));
        }
        self.stats.acquired += spans.len() as u64;
        self.stats.hits += spans.len() as u64;
        let lease = spans.into_iter().map(|(id, spans)| {
            let [gate, up, down] = spans.map(|span| self.bytes(span));
            Expert { id, gate, up, down }
        });
        Ok(Lease::new(lease.collect()))
    }

    fn hint(&mut self, _layer: u32, _experts: &[u16]) {}

    fn stats(&self) -> Stats {
        self.stats
    }
}
