//! Everything a program may do with a file it was given, done to one file: the body of the fuzz target, of the
//! mutation test and of the corpus test. It panics only when this crate breaks a promise.

use ds4_gguf::{Array, Error, Gguf, Item, Metadata, Plan, TensorType, Writer};

/// What became of the file.
pub(crate) enum Outcome {
    /// It opened, and all promises held.
    Opened,
    /// It was refused.
    Refused(Error),
}

/// Open `bytes` and, when that works, read all of it, write it again, and read that.
pub(crate) fn exercise(bytes: &[u8]) -> Outcome {
    let file = match Gguf::from_vec(bytes.to_vec()) {
        Ok(file) => file,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!format!("{error:?}").is_empty());
            return Outcome::Refused(error);
        }
    };
    read_metadata(file.metadata());
    read_tensors(&file, bytes.len() as u64);
    let unsupported = file.unsupported_tensors();
    let unknown = file
        .tensors()
        .iter()
        .filter(|info| matches!(info.ty, TensorType::Unknown(_)));
    assert_eq!(unsupported.len(), unknown.count());
    for tensor in &unsupported {
        assert!(!tensor.reason.to_string().is_empty());
    }
    // Padding is written in full: an alignment of megabytes would only measure the memory of this machine.
    if unsupported.is_empty() && file.alignment() <= 4096 {
        rewrite(&file);
    }
    Outcome::Opened
}

fn read_metadata(metadata: &Metadata) {
    for (key, value) in metadata.iter() {
        assert_eq!(
            metadata.value(key).map(|found| found.ty()),
            Some(value.ty())
        );
        assert!(!format!("{value} {value:?} {}", value.ty()).is_empty());
        read_item(value.item());
        // Each conversion either works or says why it does not.
        let errors = [
            metadata.get::<u8>(key).err(),
            metadata.get::<i64>(key).err(),
            metadata.get::<f32>(key).err(),
            metadata.get::<bool>(key).err(),
            metadata.get::<&str>(key).err(),
            metadata.get::<&[u8]>(key).err(),
            metadata.get::<Vec<u32>>(key).err(),
            metadata.get::<Vec<&str>>(key).err(),
            metadata.get::<Vec<Vec<f64>>>(key).err(),
        ];
        assert!(
            errors
                .iter()
                .flatten()
                .all(|error| !error.to_string().is_empty())
        );
    }
}

fn read_item(item: Item<'_>) {
    if let Item::Array(array) = item {
        read_array(&array);
    }
}

fn read_array(array: &Array<'_>) {
    assert_eq!(array.iter().map(read_item).count(), array.len());
    if let Some(strings) = array.strings() {
        assert_eq!(strings.count(), array.len());
    }
}

/// Extents lie in the file and apart; lookup by name finds each tensor.
fn read_tensors(file: &Gguf, len: u64) {
    let mut extents = Vec::new();
    for info in file.tensors() {
        let tensor = file.tensor(&info.name).expect("a listed tensor is found");
        assert_eq!(tensor.info, info);
        assert_eq!(tensor.bytes.len() as u64, info.extent.bytes);
        assert_eq!(info.extent.offset % file.alignment(), 0);
        assert!(info.dims.elements() > 0 && !info.dims.to_string().is_empty());
        let end = info
            .extent
            .offset
            .checked_add(info.extent.bytes)
            .expect("extents do not wrap");
        assert!(end <= len, "{info:?} passes the end");
        extents.push((info.extent.offset, end));
        if !matches!(info.ty, TensorType::Unknown(_)) {
            let row = info
                .ty
                .row_bytes(info.dims.cols())
                .expect("an opened tensor has whole rows");
            assert_eq!(row * info.dims.rows(), info.extent.bytes);
        }
        match (info.ty, tensor.blocks::<f32>()) {
            (TensorType::F32 | TensorType::I32, Ok(numbers)) => {
                assert_eq!(numbers.len() as u64, info.dims.elements());
            }
            (_, Ok(numbers)) => assert_eq!(info.ty.block_bytes(), 4, "{} numbers", numbers.len()),
            (_, Err(error)) => assert!(!error.to_string().is_empty()),
        }
    }
    extents.sort_unstable();
    assert!(
        extents.windows(2).all(|pair| pair[0].1 <= pair[1].0),
        "extents overlap"
    );
}

/// What was read can be written, reads as the same, and is then stable to the byte.
fn rewrite(file: &Gguf) {
    let first = write(file);
    let again = Gguf::from_vec(first.clone()).expect("what the writer wrote opens");
    for ((key, value), (key_again, value_again)) in
        file.metadata().iter().zip(again.metadata().iter())
    {
        assert_eq!(key, key_again);
        // Compared as text, since NaN differs from itself.
        assert_eq!(format!("{value:?}"), format!("{value_again:?}"));
    }
    for (info, info_again) in file.tensors().iter().zip(again.tensors()) {
        assert_eq!(
            (&info.name, info.dims, info.ty),
            (&info_again.name, info_again.dims, info_again.ty)
        );
        let (old, new) = (file.find(&info.name), again.find(&info.name));
        assert_eq!(
            old.map(|tensor| tensor.bytes),
            new.map(|tensor| tensor.bytes)
        );
    }
    assert_eq!(file.tensors().len(), again.tensors().len());
    assert!(write(&again) == first, "a second writing differs");
}

/// All of `file`, written again.
pub(crate) fn write(file: &Gguf) -> Vec<u8> {
    let mut plan =
        Plan::new(file.metadata().clone()).expect("metadata that was read can be written");
    for info in file.tensors() {
        plan.add(&info.name, info.dims.as_slice(), info.ty)
            .expect("a tensor that was read can be planned");
    }
    let mut writer = Writer::new(Vec::new(), plan).expect("a header in memory can be written");
    for info in file.tensors() {
        let tensor = file.tensor(&info.name).expect("a listed tensor is found");
        writer
            .tensor(&info.name, tensor.bytes)
            .expect("tensors come in order");
    }
    let planned = writer.file_bytes();
    let bytes = writer.finish().expect("all tensors are written");
    assert_eq!(bytes.len() as u64, planned);
    bytes
}
