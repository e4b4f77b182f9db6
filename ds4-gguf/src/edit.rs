//! `Edit`: one change of metadata, written as people write it on a command line.

use std::str::FromStr;

use crate::{ArrayBuf, Error, Metadata, Value, ValueType, shard};

/// One change of metadata, as people write it on a command line.
///
/// | | text | |
/// |---|---|---|
/// | [`Edit::set`] | `KEY=VALUE` | the type that the key has already |
/// | | `KEY=TYPE:VALUE` | `u8` `i8` `u16` `i16` `u32` `i32` `u64` `i64` `f32` `f64` `bool` `string` |
/// | | `KEY=TYPE[]:A,B,C` | numbers or flags; arrays of strings are set with [`Metadata::set`] |
/// | [`Edit::rename`] | `OLD=NEW` | in the same place |
/// | [`Edit::remove`] | `KEY` | |
///
/// Keys that say how a model is split are not for editing: its files are written whole.
///
/// ```
/// use ds4_gguf::{Edit, Metadata};
///
/// let mut metadata = Metadata::new();
/// metadata.set("general.version", 1u32);
/// for edit in [
///     Edit::set("general.version=2")?, // stays a u32
///     Edit::set("general.name=string:mine")?,
///     Edit::rename("general.version=general.revision")?,
/// ] {
///     edit.apply(&mut metadata)?;
/// }
/// assert_eq!(metadata.get::<u32>("general.revision")?, 2);
/// # Ok::<(), ds4_gguf::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Give a key a value.
    Set {
        /// The key.
        key: Box<str>,
        /// What to give it.
        value: Given,
    },
    /// Take a key out.
    Remove {
        /// The key.
        key: Box<str>,
    },
    /// Give a value another key, in the same place.
    Rename {
        /// The key.
        from: Box<str>,
        /// What it becomes.
        to: Box<str>,
    },
}

/// A value, or the text of one whose type the file knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// A typed value.
    Value(Value),
    /// Text, to be read as the type that the key has.
    Text(Box<str>),
}

impl Edit {
    /// Read `KEY=TYPE:VALUE`, `KEY=TYPE[]:A,B` or `KEY=VALUE`.
    ///
    /// # Errors
    /// [`Error::Edit`] when the text is none of them, or the value is not of the type.
    pub fn set(text: &str) -> Result<Self, Error> {
        let (key, value) = pair(text, "KEY=VALUE")?;
        let typed = value.split_once(':').and_then(|(ty, rest)| {
            let (ty, is_array) = match ty.strip_suffix("[]") {
                Some(ty) => (ty, true),
                None => (ty, false),
            };
            Some((by_name(ty)?, is_array, rest))
        });
        let given = match typed {
            Some((ty, true, rest)) => {
                Given::Value(array(ty, rest).map_err(|why| fault(text, why))?)
            }
            Some((ty, false, rest)) => {
                Given::Value(scalar(ty, rest).map_err(|why| fault(text, why))?)
            }
            None => Given::Text(value.into()),
        };
        Ok(Self::Set {
            key: key.into(),
            value: given,
        })
    }

    /// Read `OLD=NEW`.
    ///
    /// # Errors
    /// [`Error::Edit`] when the text is not that.
    pub fn rename(text: &str) -> Result<Self, Error> {
        let (from, to) = pair(text, "OLD=NEW")?;
        if to.is_empty() {
            return Err(fault(text, "expected OLD=NEW".into()));
        }
        Ok(Self::Rename {
            from: from.into(),
            to: to.into(),
        })
    }

    /// Take this key out.
    pub fn remove(key: &str) -> Self {
        Self::Remove { key: key.into() }
    }

    /// Change `metadata`.
    ///
    /// # Errors
    /// [`Error::MissingKey`] when there is no key to remove, to rename or to take the type of; [`Error::Edit`] when the
    /// value is not of that type, the new name is taken, or the key says how a model is split.
    pub fn apply(&self, metadata: &mut Metadata) -> Result<(), Error> {
        match self {
            Self::Set { key, value } => {
                guard(key)?;
                let value = match value {
                    Given::Value(value) => value.clone(),
                    Given::Text(text) => {
                        let old = metadata
                            .value(key)
                            .ok_or_else(|| Error::MissingKey { key: key.clone() })?;
                        let read = match old {
                            Value::Array(old) => array(old.view().element(), text),
                            old => scalar(old.ty(), text),
                        };
                        read.map_err(|why| fault(&format!("{key}={text}"), why))?
                    }
                };
                metadata.set(key, value);
            }
            Self::Remove { key } => {
                guard(key)?;
                metadata
                    .remove(key)
                    .ok_or_else(|| Error::MissingKey { key: key.clone() })?;
            }
            Self::Rename { from, to } => {
                guard(from)?;
                guard(to)?;
                metadata.rename(from, to)?;
            }
        }
        Ok(())
    }
}

fn guard(key: &str) -> Result<(), Error> {
    if [shard::COUNT, shard::INDEX, shard::TENSORS].contains(&key) {
        return Err(fault(
            key,
            "the key says how a model is split, and is written with its files".into(),
        ));
    }
    Ok(())
}

fn pair<'a>(text: &'a str, form: &str) -> Result<(&'a str, &'a str), Error> {
    text.split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or_else(|| fault(text, format!("expected {form}")))
}

fn fault(text: &str, why: String) -> Error {
    Error::Edit {
        text: text.into(),
        why: why.into(),
    }
}

fn by_name(name: &str) -> Option<ValueType> {
    (0..)
        .map_while(ValueType::from_id)
        .find(|ty| ty.name() == name && *ty != ValueType::Array)
}

fn scalar(ty: ValueType, text: &str) -> Result<Value, String> {
    fn read<T: FromStr>(ty: ValueType, text: &str) -> Result<T, String> {
        text.parse().map_err(|_| format!("`{text}` is no {ty}"))
    }
    Ok(match ty {
        ValueType::U8 => Value::U8(read(ty, text)?),
        ValueType::I8 => Value::I8(read(ty, text)?),
        ValueType::U16 => Value::U16(read(ty, text)?),
        ValueType::I16 => Value::I16(read(ty, text)?),
        ValueType::U32 => Value::U32(read(ty, text)?),
        ValueType::I32 => Value::I32(read(ty, text)?),
        ValueType::U64 => Value::U64(read(ty, text)?),
        ValueType::I64 => Value::I64(read(ty, text)?),
        ValueType::F32 => Value::F32(read(ty, text)?),
        ValueType::F64 => Value::F64(read(ty, text)?),
        ValueType::Bool => Value::Bool(read(ty, text)?),
        ValueType::String => text.into(),
        ValueType::Array => return Err("arrays are written as TYPE[]:A,B,C".into()),
    })
}

fn array(element: ValueType, text: &str) -> Result<Value, String> {
    fn read<T: FromStr>(element: ValueType, text: &str) -> Result<Value, String>
    where
        ArrayBuf: From<Vec<T>>,
    {
        let parts = text.split(',').map(str::trim);
        let elements = parts
            .filter(|part| !(part.is_empty() && text.trim().is_empty()))
            .map(|part| {
                part.parse::<T>()
                    .map_err(|_| format!("`{part}` is no {element}"))
            })
            .collect::<Result<Vec<T>, _>>()?;
        Ok(Value::Array(elements.into()))
    }
    match element {
        ValueType::U8 => read::<u8>(element, text),
        ValueType::I8 => read::<i8>(element, text),
        ValueType::U16 => read::<u16>(element, text),
        ValueType::I16 => read::<i16>(element, text),
        ValueType::U32 => read::<u32>(element, text),
        ValueType::I32 => read::<i32>(element, text),
        ValueType::U64 => read::<u64>(element, text),
        ValueType::I64 => read::<i64>(element, text),
        ValueType::F32 => read::<f32>(element, text),
        ValueType::F64 => read::<f64>(element, text),
        ValueType::Bool => read::<bool>(element, text),
        ValueType::String | ValueType::Array => Err(format!(
            "an array of {element} cannot be written on one line; use the library"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        let mut metadata = Metadata::new();
        metadata.set("a", 1u32);
        metadata.set("b", vec![1i32, 2]);
        metadata.set("c", "text");
        metadata
    }

    #[test]
    fn every_type_is_set_as_written_or_as_it_was() {
        for (text, key, want) in [
            ("a=7", "a", Value::U32(7)),
            ("a=i64:-7", "a", Value::I64(-7)),
            ("b=3, 4,5", "b", Value::from(vec![3i32, 4, 5])),
            ("b=f32[]:0.5", "b", Value::from(vec![0.5f32])),
            ("c=a=b: c", "c", Value::from("a=b: c")),
            ("d=string:u8:1", "d", Value::from("u8:1")),
            ("d=bool:true", "d", Value::Bool(true)),
            ("d=u16[]:", "d", Value::from(Vec::<u16>::new())),
        ] {
            let mut metadata = metadata();
            Edit::set(text).unwrap().apply(&mut metadata).unwrap();
            assert_eq!(metadata.value(key), Some(&want), "{text}");
        }
    }

    #[test]
    fn a_renamed_key_keeps_its_place() {
        let mut metadata = metadata();
        Edit::rename("b=z").unwrap().apply(&mut metadata).unwrap();
        Edit::remove("a").apply(&mut metadata).unwrap();
        let keys: Vec<&str> = metadata.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["z", "c"]);
        assert_eq!(metadata.get::<Vec<i32>>("z").unwrap(), [1, 2]);
        assert_eq!(metadata.get::<&str>("c").unwrap(), "text");
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_changes_nothing() {
        for (edit, words) in [
            (Edit::set("a"), "KEY=VALUE"),
            (Edit::set("=1"), "KEY=VALUE"),
            (Edit::set("a=u8:256"), "no u8"),
            (Edit::set("a=string[]:x"), "library"),
            (Edit::set("a=x"), "no u32"),
            (Edit::set("q=1"), "`q`"),
            (Edit::rename("a=c"), "exists"),
            (Edit::rename("q=c2"), "`q`"),
            (Edit::rename("a=a"), "exists"),
            (Edit::rename("a="), "OLD=NEW"),
            (Edit::rename("=a"), "OLD=NEW"),
            (Ok(Edit::remove("q")), "`q`"),
            (Edit::set("split.count=u16:2"), "split"),
            (Ok(Edit::remove("split.no")), "split"),
        ] {
            let mut changed = metadata();
            let error = edit.and_then(|edit| edit.apply(&mut changed)).unwrap_err();
            assert!(error.to_string().contains(words), "{words}: {error}");
            assert_eq!(changed, metadata());
        }
    }
}
