//! `Pool`: the threads of one engine, and the two shapes of work it hands out.
//!
//! Work is cut by its own shape, never by the number of threads, and every piece writes its own part of the result:
//! any number of threads gives the same bits.

use crate::Error;

/// Worker threads of one engine. Without the feature `rayon`, and for one thread, everything runs on the caller.
#[derive(Debug)]
pub struct Pool {
    threads: usize,
    #[cfg(feature = "rayon")]
    workers: Option<rayon::ThreadPool>,
}

impl Pool {
    /// Start `threads` workers; 0 asks for one a processor.
    ///
    /// # Errors
    /// [`Error::Threads`] when the system refuses.
    #[cfg(feature = "rayon")]
    pub fn new(threads: usize) -> Result<Self, Error> {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        let workers = (threads > 1)
            .then(|| {
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .thread_name(|i| format!("ds4-quant-{i}"))
                    .build()
            })
            .transpose()
            .map_err(|error| Error::Threads {
                threads,
                reason: error.to_string().into(),
            })?;
        Ok(Self { threads, workers })
    }

    /// One thread: the caller. `threads` is what the feature `rayon` would start.
    ///
    /// # Errors
    /// None without the feature `rayon`.
    #[cfg(not(feature = "rayon"))]
    pub fn new(threads: usize) -> Result<Self, Error> {
        let _ = threads;
        Ok(Self { threads: 1 })
    }

    /// How many threads share the work.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Run `f` inside the pool: calls to the pool from there start without waking anybody. Worth it around a whole
    /// step of a model.
    pub fn run<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        #[cfg(feature = "rayon")]
        if let Some(workers) = &self.workers {
            return workers.install(f);
        }
        f()
    }

    /// Call `f(i, part)` for every part of `data`: `chunk` numbers each, the last may be shorter.
    ///
    /// # Panics
    /// When `chunk` is 0.
    pub fn for_chunks<T: Send>(
        &self,
        data: &mut [T],
        chunk: usize,
        f: impl Fn(usize, &mut [T]) + Sync + Send,
    ) {
        #[cfg(feature = "rayon")]
        if let Some(workers) = &self.workers
            && data.len() > chunk
        {
            use rayon::prelude::*;
            workers.install(|| {
                data.par_chunks_mut(chunk)
                    .enumerate()
                    .for_each(|(i, part)| f(i, part));
            });
            return;
        }
        for (i, part) in data.chunks_mut(chunk).enumerate() {
            f(i, part);
        }
    }
}
