//! Whatever can be planned is written, reads as it was planned, and is written again byte for byte.

use crate::exercise::{Outcome, exercise, write};
use ds4_gguf::{Array, ArrayBuf, Dims, Gguf, Metadata, Plan, TensorType, Value, Writer};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u8>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        any::<u16>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        vec(any::<u8>(), 0..20).prop_map(|bytes| Value::String(bytes.as_slice().into())),
    ]
}

fn array() -> impl Strategy<Value = ArrayBuf> {
    let leaf = prop_oneof![
        vec(any::<u8>(), 0..40).prop_map(ArrayBuf::from),
        vec(any::<i16>(), 0..40).prop_map(ArrayBuf::from),
        vec(any::<u32>(), 0..40).prop_map(ArrayBuf::from),
        vec(any::<f32>(), 0..40).prop_map(ArrayBuf::from),
        vec(any::<u64>(), 0..40).prop_map(ArrayBuf::from),
        vec(any::<f64>(), 0..40).prop_map(ArrayBuf::from),
        vec(any::<bool>(), 0..40).prop_map(ArrayBuf::from),
        vec(".{0,9}", 0..20).prop_map(ArrayBuf::from),
    ];
    // A leaf and at most seven levels around it: the deepest that a file may hold.
    leaf.prop_recursive(7, 32, 4, |inner| {
        vec(inner, 0..4).prop_map(|arrays| ArrayBuf::arrays(arrays.iter().map(ArrayBuf::view)))
    })
}

fn metadata() -> impl Strategy<Value = Metadata> {
    let value = prop_oneof![3 => scalar(), 1 => array().prop_map(Value::from)];
    let alignment = prop_oneof![Just(None), (0u32..10).prop_map(|log| Some(1u32 << log))];
    (
        btree_map("[a-z]{1,6}(\\.[a-zé_]{1,6}){0,2}", value, 0..12),
        alignment,
    )
        .prop_map(|(entries, alignment)| {
            let mut metadata = Metadata::new();
            for (key, value) in entries {
                metadata.set(&key, value);
            }
            if let Some(alignment) = alignment {
                metadata.set("general.alignment", alignment);
            }
            metadata
        })
}

type Tensors = Vec<(String, Vec<u64>, TensorType)>;

fn tensors() -> impl Strategy<Value = Tensors> {
    // One layout of id 107 a file: keep the first and drop the others from the choice.
    let types: Vec<TensorType> = TensorType::KNOWN
        .iter()
        .copied()
        .filter(|ty| !matches!(ty, TensorType::RocmFp2S40 | TensorType::RocmFp2Affine))
        .collect();
    let tensor = (prop::sample::select(types), 1u64..4, vec(1u64..4, 0..4));
    btree_map("[a-z]{1,8}\\.[0-9]{1,2}", tensor, 0..12).prop_map(|tensors| {
        let tensors = tensors.into_iter();
        tensors
            .map(|(name, (ty, blocks, rest))| {
                let mut dims = vec![blocks * ty.block_len() as u64];
                dims.extend(rest);
                (name, dims, ty)
            })
            .collect()
    })
}

/// Write a file with these tensors, the bytes of each counting up from its place in the list.
fn file(metadata: &Metadata, tensors: &Tensors) -> Vec<u8> {
    let mut plan = Plan::new(metadata.clone()).expect("a power of two");
    for (name, dims, ty) in tensors {
        plan.add(name, dims, *ty).expect("whole blocks");
    }
    let mut writer = Writer::new(Vec::new(), plan).expect("names and depths in range");
    let mut seed = 0u8;
    while let Some(info) = writer.current() {
        let bytes: Vec<u8> = (0..info.extent.bytes)
            .map(|i| seed.wrapping_add(i as u8))
            .collect();
        // In pieces of seven: pieces are the writer's business, not the file's.
        for piece in bytes.chunks(7) {
            writer.write(piece).expect("it fits");
        }
        seed = seed.wrapping_add(1);
    }
    writer.finish().expect("all is written")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_was_planned_is_read_and_written_again_byte_for_byte(metadata in metadata(), tensors in tensors()) {
        let bytes = file(&metadata, &tensors);
        prop_assert!(matches!(exercise(&bytes), Outcome::Opened));
        let read = Gguf::from_vec(bytes.clone()).unwrap();
        prop_assert_eq!(bytes.len() as u64 % read.alignment(), 0);
        for (key, value) in metadata.iter() {
            let again = read.metadata().value(key).unwrap();
            prop_assert_eq!(format!("{value:?}"), format!("{again:?}"));
            prop_assert_eq!(value.ty(), again.ty());
        }
        prop_assert_eq!(read.tensors().len(), tensors.len());
        for (seed, (info, (name, dims, ty))) in (0u8..).zip(read.tensors().iter().zip(&tensors)) {
            prop_assert_eq!((&*info.name, info.dims.as_slice(), info.ty), (name.as_str(), dims.as_slice(), *ty));
            let tensor = read.tensor(name).unwrap();
            prop_assert!(tensor.bytes.iter().enumerate().all(|(i, &b)| b == seed.wrapping_add(i as u8)));
        }
        prop_assert!(write(&read) == bytes);
    }

    #[test]
    fn dims_multiply_to_rows_times_cols(ne in vec(1u64..5000, 1..=4)) {
        let dims = Dims::new(&ne).unwrap();
        prop_assert_eq!(dims.as_slice(), &ne[..]);
        prop_assert_eq!(dims.elements(), ne.iter().product::<u64>());
        prop_assert_eq!(dims.rows() * dims.cols(), dims.elements());
        prop_assert!((ne.len()..9).all(|i| dims.get(i) == 1));
    }
}

/// `Array::encoded` and the iterators describe the same elements.
#[test]
fn encoded_numbers_are_their_little_endian_bytes() {
    let array = ArrayBuf::from(vec![1u16, 0x0203]);
    assert_eq!(array.view().encoded(), [1, 0, 3, 2]);
    let empty = ArrayBuf::strings([""; 0]);
    let empty: Array<'_> = empty.view();
    assert!(empty.is_empty() && empty.iter().next().is_none());
}

#[test]
fn the_plan_refuses_what_no_reader_would_accept() {
    let refuse = |error: Result<(), ds4_gguf::Error>| error.unwrap_err().to_string();
    let mut plan = Plan::new(Metadata::new()).unwrap();
    plan.add("a", &[32], TensorType::Q8_0).unwrap();
    assert_eq!(
        refuse(plan.add("a", &[32], TensorType::Q8_0)),
        "cannot write tensor `a`: the plan has one of this name"
    );
    assert_eq!(
        refuse(plan.add("", &[32], TensorType::Q8_0)),
        "cannot write tensor ``: 0 bytes long, names have 1 to 65535"
    );
    assert_eq!(
        refuse(plan.add("b", &[0], TensorType::F32)),
        "cannot write tensor `b`: dimensions [0], expected 1 to 4 of at least 1 and a product below 2^63"
    );
    assert_eq!(
        refuse(plan.add("b", &[33], TensorType::Q8_0)),
        "cannot write tensor `b`: tensor `b` has rows of 33 weights, Q8_0 stores 32 at a time"
    );
    assert_eq!(
        refuse(plan.add("b", &[32], TensorType::Unknown(42))),
        "cannot write tensor `b`: type 42 has no known size"
    );
    plan.add("b", &[1 << 60], TensorType::F32).unwrap();
    assert_eq!(
        refuse(plan.add("c", &[1 << 60], TensorType::F32)),
        "cannot write tensor `c`: the file would pass 2^63 bytes"
    );
    plan.add("two", &[32], TensorType::RocmFp2TwoScale).unwrap();
    assert_eq!(
        refuse(plan.add("s40", &[32], TensorType::RocmFp2S40)),
        "cannot write tensor `s40`: layout s40, but general.quantization.rocmfp2_layout is \"two-scale\""
    );

    let mut metadata = Metadata::new();
    metadata.set("general.alignment", 24u32);
    assert!(
        Plan::new(metadata)
            .unwrap_err()
            .to_string()
            .contains("a power of two from 1 to 16777216, found 24")
    );
    let mut metadata = Metadata::new();
    let deep = (0..8).fold(ArrayBuf::from(vec![1u8]), |array, _| {
        ArrayBuf::arrays([array.view()])
    });
    metadata.set("deep", deep);
    let error = Writer::new(Vec::new(), Plan::new(metadata).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot write metadata key `deep`: arrays nested 9 deep, at most 8"
    );
}

#[test]
fn data_off_the_plan_is_refused_and_nothing_of_it_is_written() {
    let mut plan = Plan::new(Metadata::new()).unwrap();
    plan.add("a", &[8], TensorType::F32).unwrap();
    plan.add("b", &[8], TensorType::F32).unwrap();
    let mut writer = Writer::new(Vec::new(), plan).unwrap();
    let message = |error: Result<(), ds4_gguf::Error>| error.unwrap_err().to_string();
    assert_eq!(
        message(writer.tensor("b", &[0; 32])),
        "the plan has 32 bytes of tensor `a` here, got 32 bytes of tensor `b`"
    );
    assert_eq!(
        message(writer.write(&[0; 33])),
        "the plan has 32 bytes of tensor `a` here, got 33 bytes"
    );
    writer.write(&[1; 30]).unwrap();
    assert_eq!(
        message(writer.tensor("a", &[0; 32])),
        "the plan has 2 bytes of tensor `a` here, got 32 bytes of tensor `a`"
    );
    writer.write(&[1; 2]).unwrap();
    writer.write(&[]).unwrap();
    assert_eq!(writer.current().map(|info| &*info.name), Some("b"));
    assert_eq!(
        writer.finish().unwrap_err().to_string(),
        "the plan has 32 bytes of tensor `b` here, got the end"
    );
}

/// A disk that is full after the header.
#[test]
fn a_failing_sink_is_an_error_with_its_cause() {
    let mut plan = Plan::new(Metadata::new()).unwrap();
    plan.add("a", &[8], TensorType::F32).unwrap();
    let mut room = [0u8; 80];
    let mut writer = Writer::new(&mut room[..], plan).unwrap();
    let error = writer.tensor("a", &[0; 32]).unwrap_err();
    assert!(
        matches!(&error, ds4_gguf::Error::Write(cause) if cause.kind() == std::io::ErrorKind::WriteZero)
    );
}
