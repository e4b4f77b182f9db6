//! The key/value section: in file order, found by key, edited and written again.

use std::collections::HashMap;

use crate::convert::FromValue;
use crate::{Error, Value};

/// Keys and values of a file, in file order.
///
/// Cloning copies keys and pointers, not values; a clone can be edited and handed to a [`crate::Plan`].
///
/// ```
/// use ds4_gguf::Metadata;
/// let mut metadata = Metadata::new();
/// metadata.set("general.architecture", "deepseek4");
/// metadata.set("deepseek4.block_count", 43u32);
/// metadata.set("deepseek4.attention.compress_ratios", vec![0i32, 0, 4, 128]);
///
/// assert_eq!(metadata.get::<usize>("deepseek4.block_count")?, 43);
/// assert_eq!(metadata.get::<Vec<u32>>("deepseek4.attention.compress_ratios")?, [0, 0, 4, 128]);
/// assert_eq!(metadata.find::<&str>("general.name"), None);
/// # Ok::<(), ds4_gguf::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    entries: Vec<(Box<str>, Value)>,
    index: HashMap<Box<str>, usize>,
}

impl Metadata {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of `key` as `T`.
    ///
    /// # Errors
    /// [`Error::MissingKey`] when the file has no such key, [`Error::KeyType`] when its value cannot be a `T`.
    pub fn get<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T, Error> {
        self.try_find(key)?
            .ok_or_else(|| Error::MissingKey { key: key.into() })
    }

    /// The value of `key` as `T`; `None` when it is absent or cannot be a `T`.
    pub fn find<'a, T: FromValue<'a>>(&'a self, key: &str) -> Option<T> {
        T::from_item(self.value(key)?.item()).ok()
    }

    /// The value of `key` as `T`; `None` when it is absent.
    ///
    /// # Errors
    /// [`Error::KeyType`] when it is there and cannot be a `T`.
    pub fn try_find<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>, Error> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        T::from_item(value.item())
            .map(Some)
            .map_err(|mismatch| Error::KeyType {
                key: key.into(),
                expected: mismatch.expected.into(),
                found: mismatch.found.into(),
            })
    }

    /// The value of `key` as stored.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.index.get(key).map(|&at| &self.entries[at].1)
    }

    /// Keys and values in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Give `key` a value: in its place when it exists, at the end otherwise. Returns what it replaced.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> Option<Value> {
        let value = value.into();
        if let Some(&at) = self.index.get(key) {
            return Some(std::mem::replace(&mut self.entries[at].1, value));
        }
        self.index.insert(key.into(), self.entries.len());
        self.entries.push((key.into(), value));
        None
    }

    /// Give the value of `from` the key `to`, in the same place.
    ///
    /// # Errors
    /// [`Error::MissingKey`] when there is no `from`, [`Error::Edit`] when there is a `to`.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        if self.index.contains_key(to) {
            return Err(Error::Edit {
                text: to.into(),
                why: "the key exists".into(),
            });
        }
        let at = self
            .index
            .remove(from)
            .ok_or_else(|| Error::MissingKey { key: from.into() })?;
        self.entries[at].0 = to.into();
        self.index.insert(to.into(), at);
        Ok(())
    }

    /// Take `key` out; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.index.remove(key)?;
        let (_, value) = self.entries.remove(at);
        for place in self.index.values_mut().filter(|place| **place > at) {
            *place -= 1;
        }
        Some(value)
    }
}

impl PartialEq for Metadata {
    /// Same keys in the same order with the same values.
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}
