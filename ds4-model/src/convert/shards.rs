//! The tensors of a checkpoint, in one file or many.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::ConvertError;
use super::read::json;
use super::safetensors::{Entry, Safetensors};

const INDEX: &str = "model.safetensors.index.json";
const SINGLE: &str = "model.safetensors";

/// All shards, and where each tensor is.
#[derive(Debug)]
pub(super) struct Shards {
    files: Vec<Safetensors>,
    places: HashMap<Box<str>, Place>,
}

/// A tensor: its file, and its line in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    file: usize,
    entry: usize,
}

#[derive(Deserialize)]
struct Index {
    weight_map: HashMap<String, String>,
}

impl Shards {
    /// Open every shard of the checkpoint in `folder`.
    pub(super) fn open(folder: &Path) -> Result<Self, ConvertError> {
        let index = folder.join(INDEX);
        let paths = if let Some(Index { weight_map }) = json(&index)? {
            of_index(folder, &index, weight_map.values())?
        } else if folder.join(SINGLE).exists() {
            vec![folder.join(SINGLE)]
        } else {
            return Err(ConvertError::NoWeights {
                folder: folder.to_owned(),
            });
        };
        let files = paths
            .iter()
            .map(|path| Safetensors::open(path))
            .collect::<Result<Vec<_>, _>>()?;
        let mut places = HashMap::new();
        for (file, shard) in files.iter().enumerate() {
            for (entry, line) in shard.entries.iter().enumerate() {
                if places
                    .insert(line.name.clone(), Place { file, entry })
                    .is_some()
                {
                    return Err(ConvertError::Twice {
                        path: shard.path.clone(),
                        tensor: line.name.clone(),
                    });
                }
            }
        }
        Ok(Self { files, places })
    }

    /// The first of `names` that is there.
    pub(super) fn find(&self, names: &[String]) -> Option<Place> {
        names
            .iter()
            .find_map(|name| self.places.get(&**name).copied())
    }

    /// The line of the directory.
    pub(super) fn entry(&self, place: Place) -> &Entry {
        &self.files[place.file].entries[place.entry]
    }

    /// The file that a tensor is in.
    pub(super) fn path(&self, place: Place) -> &Path {
        &self.files[place.file].path
    }

    /// Fill `out` from byte `at` of a tensor.
    pub(super) fn read(&self, place: Place, at: u64, out: &mut [u8]) -> Result<(), ConvertError> {
        let start = self.entry(place).start;
        self.files[place.file].read(start + at, out)
    }

    /// The names of all tensors.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(|name| &**name)
    }
}

/// The files that an index names, once each.
fn of_index<'a>(
    folder: &Path,
    index: &Path,
    shards: impl Iterator<Item = &'a String>,
) -> Result<Vec<PathBuf>, ConvertError> {
    let shards: BTreeSet<&str> = shards.map(String::as_str).collect();
    let mut missing = Vec::new();
    for shard in &shards {
        let path = Path::new(shard);
        if path.file_name() != Some(path.as_os_str()) {
            return Err(ConvertError::ShardName {
                path: index.to_owned(),
                shard: (*shard).into(),
            });
        }
        if !folder.join(shard).exists() {
            missing.push((*shard).to_owned());
        }
    }
    if missing.is_empty() {
        Ok(shards.iter().map(|shard| folder.join(shard)).collect())
    } else {
        Err(ConvertError::MissingShards {
            path: index.to_owned(),
            shards: missing,
        })
    }
}
