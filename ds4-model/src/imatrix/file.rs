//! Importance files, as [`ds4_quant::Imatrix`] and llama.cpp read them.
//!
//! The GGUF has sums and counts, and beside llama.cpp's keys `imatrix.token_count`, the tokens that were read. The older
//! file has the mean of the squares of every expert under a count of one, as antirez/ds4 writes it; an expert that saw
//! no token has ones.
//! Sources: ggml-org/llama.cpp:tools/imatrix/imatrix.cpp; antirez/ds4:ds4.c (imatrix).

use std::io::{self, Write};

use ds4_gguf::{Metadata, Plan, TensorType, Writer};

use super::{Collected, Entry};

impl Collected {
    /// Write a GGUF into `sink`; `dataset` is the name of the text.
    ///
    /// # Errors
    /// [`ds4_gguf::Error::Write`] when the sink fails.
    pub fn to_gguf<W: Write>(&self, sink: W, dataset: &str) -> Result<W, ds4_gguf::Error> {
        let mut metadata = Metadata::new();
        metadata.set("general.type", "imatrix");
        metadata.set("imatrix.datasets", vec![dataset]);
        metadata.set("imatrix.chunk_count", clamped(self.chunks));
        metadata.set("imatrix.chunk_size", clamped(self.chunk));
        // Not known to others: the last piece may be short, and the text may not have been read to its end.
        metadata.set("imatrix.token_count", self.tokens as u64);
        let mut plan = Plan::new(metadata)?;
        for (name, entry) in self.matrices() {
            let experts = entry.counts.len() as u64;
            let sums = format!("{name}.in_sum2");
            plan.add(&sums, &[entry.cols as u64, experts], TensorType::F32)?;
            plan.add(&format!("{name}.counts"), &[1, experts], TensorType::F32)?;
        }
        let mut writer = Writer::new(sink, plan)?;
        for (_, entry) in self.matrices() {
            writer.write(bytemuck::cast_slice(&little(&entry.sums)))?;
            let counts: Vec<f32> = entry.counts.iter().map(|&count| count as f32).collect();
            writer.write(bytemuck::cast_slice(&little(&counts)))?;
        }
        writer.finish()
    }

    /// Write the older kind of file into `sink`.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn to_legacy(&self, mut sink: impl Write, dataset: &str) -> io::Result<()> {
        let int = |n: usize| (clamped(n) as i32).to_le_bytes();
        sink.write_all(&int(self.matrices().count()))?;
        for (name, entry) in self.matrices() {
            sink.write_all(&int(name.len()))?;
            sink.write_all(name.as_bytes())?;
            sink.write_all(&int(1))?;
            sink.write_all(&int(entry.sums.len()))?;
            for (sums, &count) in entry.sums.chunks_exact(entry.cols).zip(&entry.counts) {
                let mean = |sum: &f32| if count == 0 { 1.0 } else { sum / count as f32 };
                let means: Vec<f32> = sums.iter().map(mean).collect();
                sink.write_all(bytemuck::cast_slice(&little(&means)))?;
            }
        }
        sink.write_all(&int(self.chunks))?;
        sink.write_all(&int(dataset.len()))?;
        sink.write_all(dataset.as_bytes())
    }

    /// Every matrix by its name.
    fn matrices(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries
            .iter()
            .flat_map(|entry| entry.tensors.iter().map(move |name| (&**name, entry)))
    }
}

/// A number that fits the fields of both files.
fn clamped(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX).min(i32::MAX as u32)
}

fn little(x: &[f32]) -> Vec<[u8; 4]> {
    x.iter().map(|x| x.to_le_bytes()).collect()
}
