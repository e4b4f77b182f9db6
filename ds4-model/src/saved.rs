//! A conversation in a file, to go on with later: what was said, and the timeline that has read it.
//!
//! ```text
//!  0  "DS4TALK\0"
//!  8  version                        u32
//! 12  model                          u64, its Fingerprint
//! 20  bytes of the record n          u64
//! 28  record                         n bytes of JSON
//!     CRC-32 of everything before    u32
//!     timeline                       as Session::save writes it, with a checksum of its own
//! ```
//! The record stands alone: when the timeline is damaged, or too long for a smaller context, the conversation is whole all the
//! same and can be read anew. A change of the layout raises the version.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::chat::{Conversation, Replay};
use crate::engine::Engine;
use crate::snapshot::Fingerprint;
use crate::tokenizer::{Segment, Segments};

const MAGIC: &[u8; 8] = b"DS4TALK\0";
const VERSION: u32 = 1;
/// Most bytes of a record: more text than the longest context has.
const LONGEST: u64 = 256 << 20;

/// Why a conversation cannot be written or taken up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// Reading or writing failed, or the file ends too early.
    #[error("the saved conversation cannot be read or written")]
    Io(#[from] io::Error),
    /// The bytes are none.
    #[error("not a saved conversation: it starts with {found:02x?}")]
    Magic {
        /// First eight bytes.
        found: [u8; 8],
    },
    /// It was written in another layout.
    #[error("the version of the saved conversation is {found}, expected {VERSION}")]
    Version {
        /// Version in the file.
        found: u32,
    },
    /// It was held with another model.
    #[error("the conversation was held with model {found:016x}, this model is {expected:016x}")]
    Model {
        /// Fingerprint in the file.
        found: u64,
        /// Fingerprint of the open model.
        expected: u64,
    },
    /// Its record has an impossible length.
    #[error("the record of the conversation has {found} bytes, at most {limit} are possible")]
    Length {
        /// Length in the file, or of what was to be written.
        found: u64,
        /// Most.
        limit: u64,
    },
    /// The checksum does not match: the bytes were damaged.
    #[error("the checksum of the conversation is {found:08x}, expected {expected:08x}")]
    Checksum {
        /// Checksum in the file.
        found: u32,
        /// Checksum of what was read.
        expected: u32,
    },
    /// The record is not the JSON that it should be.
    #[error("the record of the conversation makes no sense")]
    Record(#[from] serde_json::Error),
    /// A message has no counterpart in what the model wrote.
    #[error("the record has {found} replays for {expected} messages")]
    Replays {
        /// Replays.
        found: usize,
        /// Messages.
        expected: usize,
    },
}

/// A conversation, as it is kept.
///
/// ```
/// use ds4_model::chat::Conversation;
/// use ds4_model::{Engine, Message, Options, Saved};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
/// let engine = Engine::open(path, Options::default())?;
/// let saved = Saved {
///     title: "capitals".to_owned(),
///     time: 0,
///     drawn: 0,
///     conversation: Conversation::from(vec![Message::user("What is the capital of France?")]),
/// };
/// let mut file = Vec::new();
/// saved.write(&engine, &mut file)?; // a timeline may follow: `session.save(&mut file)`
/// assert_eq!(Saved::read(&engine, &mut &file[..])?, saved);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// What it is about.
    pub title: String,
    /// When it was saved, in seconds since 1970.
    pub time: u64,
    /// Random numbers used so far: [`Sampler::used`](crate::Sampler::used).
    pub drawn: u64,
    /// Messages and tools, with the model's own texts.
    pub conversation: Conversation,
}

#[derive(Serialize, Deserialize)]
struct Record {
    title: String,
    time: u64,
    drawn: u64,
    conversation: Conversation,
    /// For each message what the model wrote, if it did.
    replays: Vec<Option<Written>>,
}

/// A [`Replay`] part by part.
#[derive(Serialize, Deserialize)]
struct Written {
    thinking: bool,
    parts: Vec<Part>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    Marker(String),
    Text(String),
}

impl From<&Replay> for Written {
    fn from(replay: &Replay) -> Self {
        let part = |part| match part {
            Segment::Marker(marker) => Part::Marker(marker.to_owned()),
            Segment::Text(text) => Part::Text(text.to_owned()),
        };
        Self {
            thinking: replay.thinking,
            parts: replay.text.iter().map(part).collect(),
        }
    }
}

impl From<Written> for Replay {
    fn from(written: Written) -> Self {
        let mut text = Segments::default();
        for part in &written.parts {
            match part {
                Part::Marker(marker) => text.marker(marker),
                Part::Text(words) => text.text(words),
            }
        }
        Self {
            text,
            thinking: written.thinking,
        }
    }
}

impl Saved {
    /// Write it, as held with `engine`. The timeline follows, by [`Session::save`](crate::Session::save).
    ///
    /// # Errors
    /// [`SavedError::Io`] when `out` fails, [`SavedError::Length`] for more text than can be read again; nothing is
    /// written then.
    pub fn write(&self, engine: &Engine, out: &mut impl Write) -> Result<(), SavedError> {
        let replay = |m: &crate::Message| m.replay.as_ref().map(Written::from);
        let record = serde_json::to_vec(&Record {
            title: self.title.clone(),
            time: self.time,
            drawn: self.drawn,
            conversation: self.conversation.clone(),
            replays: self.conversation.messages.iter().map(replay).collect(),
        })?;
        let length = within(record.len() as u64)?;
        let mut head = Vec::with_capacity(28);
        head.extend(MAGIC);
        head.extend(VERSION.to_le_bytes());
        head.extend(engine.fingerprint().value().to_le_bytes());
        head.extend(length.to_le_bytes());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head);
        crc.update(&record);
        out.write_all(&head)?;
        out.write_all(&record)?;
        Ok(out.write_all(&crc.finalize().to_le_bytes())?)
    }

    /// Read what [`Self::write`] wrote; `from` is then at the timeline, for [`Session::load`](crate::Session::load).
    ///
    /// # Errors
    /// [`SavedError`] says what is wrong with the bytes; [`SavedError::Model`] when it was held with another model.
    pub fn read(engine: &Engine, from: &mut impl Read) -> Result<Self, SavedError> {
        let (saved, model) = Self::look(from)?;
        let (found, expected) = (model, engine.fingerprint().value());
        if found == expected {
            Ok(saved)
        } else {
            Err(SavedError::Model { found, expected })
        }
    }

    /// As [`Self::read`], of whatever model; its [`Fingerprint::value`] comes with it.
    ///
    /// # Errors
    /// [`SavedError`].
    pub fn look(from: &mut impl Read) -> Result<(Self, u64), SavedError> {
        let mut crc = crc32fast::Hasher::new();
        let magic: [u8; 8] = get(from, &mut crc)?;
        if magic != *MAGIC {
            return Err(SavedError::Magic { found: magic });
        }
        let version = u32::from_le_bytes(get(from, &mut crc)?);
        if version != VERSION {
            return Err(SavedError::Version { found: version });
        }
        let model = u64::from_le_bytes(get(from, &mut crc)?);
        let length = within(u64::from_le_bytes(get(from, &mut crc)?))?;
        // It grows as bytes arrive: a short file cannot ask for more memory than it has bytes.
        let mut record = Vec::new();
        from.take(length).read_to_end(&mut record)?;
        if (record.len() as u64) < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        crc.update(&record);
        let expected = crc.finalize();
        let mut found = [0; 4];
        from.read_exact(&mut found)?;
        let found = u32::from_le_bytes(found);
        if found != expected {
            return Err(SavedError::Checksum { found, expected });
        }
        Ok((Self::of(serde_json::from_slice(&record)?)?, model))
    }

    fn of(record: Record) -> Result<Self, SavedError> {
        let mut conversation = record.conversation;
        let (found, expected) = (record.replays.len(), conversation.messages.len());
        if found != expected {
            return Err(SavedError::Replays { found, expected });
        }
        for (message, replay) in conversation.messages.iter_mut().zip(record.replays) {
            message.replay = replay.map(Replay::from);
        }
        Ok(Self {
            title: record.title,
            time: record.time,
            drawn: record.drawn,
            conversation,
        })
    }
}

impl Engine {
    /// Which model this is, as far as files that belong to it must know.
    pub fn fingerprint(&self) -> Fingerprint {
        self.shared().fingerprint
    }
}

fn within(length: u64) -> Result<u64, SavedError> {
    if length <= LONGEST {
        Ok(length)
    } else {
        Err(SavedError::Length {
            found: length,
            limit: LONGEST,
        })
    }
}

fn get<const N: usize>(
    from: &mut impl Read,
    crc: &mut crc32fast::Hasher,
) -> Result<[u8; N], SavedError> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    crc.update(&bytes);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Message, Tool, ToolCall};
    use crate::options::Options;

    const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

    fn engine() -> Engine {
        let options = Options {
            context: Some(128),
            threads: 1,
            ..Options::default()
        };
        Engine::open(DEMO, options).unwrap()
    }

    /// With everything that a message of an agent can have.
    fn saved() -> Saved {
        let mut text = Segments::default();
        text.text("thought");
        text.marker("</think>");
        text.text("said <｜User｜>");
        let answer = Message {
            reasoning: Some("thought".into()),
            replay: Some(Replay {
                text,
                thinking: true,
            }),
            tool_calls: vec![ToolCall {
                id: Some("call_1".into()),
                name: "bash".into(),
                arguments: "{\"command\":  \"ls\"}".into(),
            }],
            ..Message::assistant("said")
        };
        let tool = r#"{"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}"#;
        Saved {
            title: "files".into(),
            time: 1_764_000_000,
            drawn: 12,
            conversation: Conversation {
                messages: vec![
                    Message::system("Be brief."),
                    Message::user("What is here?\n"),
                    answer,
                    Message::tool("call_1", "a.txt"),
                ],
                tools: vec![Tool::new(tool).unwrap()],
            },
        }
    }

    #[test]
    fn what_is_written_reads_back_and_the_timeline_follows() {
        let (engine, saved) = (engine(), saved());
        let mut session = engine.session().unwrap();
        session.sync(&[5, 6, 7]).unwrap();
        let mut file = Vec::new();
        saved.write(&engine, &mut file).unwrap();
        session.save(&mut file).unwrap();
        let mut from = &file[..];
        assert_eq!(Saved::read(&engine, &mut from).unwrap(), saved);
        let mut other = engine.session().unwrap();
        other.load(&mut from).unwrap();
        assert_eq!(other.tokens(), [5, 6, 7]);
        assert!(from.is_empty());
    }

    /// Every byte of the record counts; none of a truncated one is taken for a whole one.
    #[test]
    fn no_damaged_record_is_taken_up() {
        let (engine, saved) = (engine(), saved());
        let mut file = Vec::new();
        saved.write(&engine, &mut file).unwrap();
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert!(Saved::read(&engine, &mut &damaged[..]).is_err(), "{at}");
            assert!(Saved::read(&engine, &mut &file[..at]).is_err(), "{at}");
        }
        let with = |at: usize, bytes: &[u8]| {
            let mut file = file.clone();
            file[at..at + bytes.len()].copy_from_slice(bytes);
            Saved::read(&engine, &mut &file[..])
                .unwrap_err()
                .to_string()
        };
        assert!(with(0, b"GGUF").contains("not a saved conversation"));
        assert!(with(8, &[9]).contains("is 9, expected 1"));
        assert!(with(20, &u64::MAX.to_le_bytes()).contains("at most 268435456"));
        assert!(with(40, b"x").contains("checksum"));
    }

    #[test]
    fn another_model_is_named() {
        let (engine, saved) = (engine(), saved());
        let mut file = Vec::new();
        saved.write(&engine, &mut file).unwrap();
        let model = u64::from_le_bytes(file[12..20].try_into().unwrap()) ^ 1;
        file[12..20].copy_from_slice(&model.to_le_bytes());
        let end = file.len() - 4;
        let crc = crc32fast::hash(&file[..end]);
        file[end..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Saved::look(&mut &file[..]).unwrap(), (saved, model));
        let refused = Saved::read(&engine, &mut &file[..]).unwrap_err();
        let SavedError::Model { found, expected } = refused else {
            panic!("{refused}")
        };
        assert_eq!((found, expected), (model, model ^ 1));
    }
}
