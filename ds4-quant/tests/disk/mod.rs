//! A disk in memory that fails on request: it stops, tears a write, refuses, and forgets what was not synced.

use std::io::{self, ErrorKind};

use ds4_quant::requant::{Part, Storage};

/// What happens at one operation that changes the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The machine stops before it.
    Stop,
    /// A write reaches the file as far as this share of 256, then the machine stops.
    Torn(u8),
    /// The system refuses, after a write has reached the file as far as this share of 256.
    Refuse(ErrorKind, u8),
}

/// What a power loss leaves of operations that were not synced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    /// All of them: the program was killed, the machine runs on.
    Nothing,
    /// None of them.
    Everything,
    /// Any of them, some torn, chosen by this seed.
    Some(u64),
}

#[derive(Clone, Debug)]
enum Op {
    Write(u64, Vec<u8>),
    Len(u64),
}

/// One file as readers see it, as it is on the platter, and what lies between.
#[derive(Clone, Debug, Default)]
struct File {
    seen: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Op>,
}

impl File {
    fn whole(bytes: Vec<u8>) -> Self {
        Self {
            durable: bytes.clone(),
            seen: bytes,
            pending: Vec::new(),
        }
    }

    fn apply(&mut self, op: Op) {
        act(&mut self.seen, &op);
        self.pending.push(op);
    }
}

fn act(bytes: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Len(len) => bytes.resize(*len as usize, 0),
        Op::Write(offset, new) => {
            let (start, end) = (*offset as usize, *offset as usize + new.len());
            bytes.resize(bytes.len().max(end), 0);
            bytes[start..end].copy_from_slice(new);
        }
    }
}

/// The model, the journal, and the operation that goes wrong.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    model: File,
    journal: Option<File>,
    /// Operations so far that change the disk.
    pub(crate) operations: usize,
    /// The operation that fails, counted from 0.
    pub(crate) fault: Option<(usize, Fault)>,
    stopped: bool,
}

impl Disk {
    pub(crate) fn new(model: Vec<u8>) -> Self {
        Self {
            model: File::whole(model),
            journal: None,
            operations: 0,
            fault: None,
            stopped: false,
        }
    }

    pub(crate) fn failing(mut self, at: usize, fault: Fault) -> Self {
        (self.operations, self.fault, self.stopped) = (0, Some((at, fault)), false);
        self
    }

    pub(crate) fn model(&self) -> &[u8] {
        &self.model.seen
    }

    pub(crate) fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// The disk after the next start.
    pub(crate) fn restarted(mut self, loss: Loss) -> Self {
        let mut state = match loss {
            Loss::Some(seed) => seed.wrapping_mul(2).wrapping_add(1),
            _ => 0,
        };
        let mut random = move |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n.max(1)
        };
        for file in [Some(&mut self.model), self.journal.as_mut()]
            .into_iter()
            .flatten()
        {
            match loss {
                Loss::Nothing => {}
                Loss::Everything => file.seen = file.durable.clone(),
                Loss::Some(_) => {
                    let mut bytes = file.durable.clone();
                    for op in &file.pending {
                        match (random(4), op) {
                            (0, _) => {}
                            (1, Op::Write(offset, new)) => {
                                let cut = new[..random(new.len() + 1)].to_vec();
                                act(&mut bytes, &Op::Write(*offset, cut));
                            }
                            (_, op) => act(&mut bytes, op),
                        }
                    }
                    file.seen = bytes;
                }
            }
            *file = File::whole(std::mem::take(&mut file.seen));
        }
        (self.operations, self.fault, self.stopped) = (0, None, false);
        self
    }

    /// Count an operation; how much of a write is to be done, and what then becomes of it.
    fn operation(&mut self) -> (u8, io::Result<()>) {
        let stopped = || io::Error::other("the machine has stopped");
        if self.stopped {
            return (0, Err(stopped()));
        }
        let number = self.operations;
        self.operations += 1;
        match self.fault {
            Some((at, fault)) if at == number => match fault {
                Fault::Stop => {
                    self.stopped = true;
                    (0, Err(stopped()))
                }
                Fault::Torn(share) => {
                    self.stopped = true;
                    (share, Err(stopped()))
                }
                Fault::Refuse(kind, share) => (share, Err(kind.into())),
            },
            _ => (255, Ok(())),
        }
    }

    fn file(&mut self, part: Part) -> io::Result<&mut File> {
        match part {
            Part::Model => Ok(&mut self.model),
            Part::Journal => self.journal.as_mut().ok_or(ErrorKind::NotFound.into()),
        }
    }
}

impl Storage for Disk {
    fn len(&mut self, part: Part) -> io::Result<Option<u64>> {
        Ok(self.file(part).ok().map(|file| file.seen.len() as u64))
    }

    fn read_at(&mut self, part: Part, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let file = self.file(part)?;
        let from = file
            .seen
            .get(offset as usize..offset as usize + bytes.len())
            .ok_or(ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(from);
        Ok(())
    }

    fn write_at(&mut self, part: Part, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (share, result) = self.operation();
        let reached = match result {
            Ok(()) => bytes.len(),
            Err(_) => bytes.len() * usize::from(share) / 256,
        };
        if reached > 0 {
            self.file(part)?
                .apply(Op::Write(offset, bytes[..reached].to_vec()));
        }
        result
    }

    fn set_len(&mut self, part: Part, len: u64) -> io::Result<()> {
        self.operation().1?;
        self.file(part)?.apply(Op::Len(len));
        Ok(())
    }

    fn sync(&mut self, part: Part) -> io::Result<()> {
        self.operation().1?;
        let file = self.file(part)?;
        file.durable.clone_from(&file.seen);
        file.pending.clear();
        Ok(())
    }

    fn create_journal(&mut self) -> io::Result<()> {
        self.operation().1?;
        self.journal = Some(File::default());
        Ok(())
    }

    fn remove_journal(&mut self) -> io::Result<()> {
        self.operation().1?;
        self.journal = None;
        Ok(())
    }
}
