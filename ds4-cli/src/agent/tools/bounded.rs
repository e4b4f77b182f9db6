//! The first and the last bytes of a long output.

/// How much a call may take.
#[derive(Clone, Copy, Debug)]
pub(in crate::agent) struct Limits {
    /// Most bytes of a result.
    pub(in crate::agent) output: usize,
    /// Seconds of a command, when the call does not say.
    pub(in crate::agent) seconds: u64,
}

impl Limits {
    /// The beginning and the end of a long text.
    pub(in crate::agent) fn cut(&self, text: &str) -> String {
        let mut bounded = Bounded::new(self.output);
        bounded.add(text.as_bytes());
        bounded.text()
    }
}

/// The bytes that are kept.
pub(super) struct Bounded {
    limit: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    left_out: usize,
}

impl Bounded {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            head: Vec::new(),
            tail: Vec::new(),
            left_out: 0,
        }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        let half = self.limit / 2;
        let room = half.saturating_sub(self.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        if self.tail.len() > self.limit - half {
            let over = self.tail.len() - (self.limit - half);
            self.tail.drain(..over);
            self.left_out += over;
        }
    }

    pub(super) fn text(&self) -> String {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if self.left_out == 0 {
            // Together, so that a character across the two halves stays whole.
            return lossy(&[&self.head[..], &self.tail].concat());
        }
        format!(
            "{}\n… {} bytes left out …\n{}",
            lossy(&self.head),
            self.left_out,
            lossy(&self.tail)
        )
    }
}
