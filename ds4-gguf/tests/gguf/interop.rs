//! A file that another writer made (`data/gguf_py.py` says how) reads as it meant it, and is written back unchanged.

use crate::exercise::write;
use ds4_gguf::{Array, ArrayBuf, Error, Gguf, Metadata, Plan, Strings, TensorType, Value, Writer};

fn file() -> Gguf {
    Gguf::from_vec(include_bytes!("../data/gguf_py.gguf").to_vec()).expect("a valid file")
}

#[test]
fn every_scalar_type_keeps_type_and_value() {
    let file = file();
    let want: [(&str, Value); 12] = [
        ("t.u8", 200u8.into()),
        ("t.i8", (-100i8).into()),
        ("t.u16", 60_000u16.into()),
        ("t.i16", (-30_000i16).into()),
        ("t.u32", 4_000_000_000u32.into()),
        ("t.i32", (-2_000_000_000i32).into()),
        ("t.f32", 1e-6f32.into()),
        ("t.u64", (1u64 << 63).into()),
        ("t.i64", (-(1i64 << 62)).into()),
        ("t.f64", 0.1f64.into()),
        ("t.bool", true.into()),
        ("t.string", "größer als 0".into()),
    ];
    for (key, want) in want {
        assert_eq!(file.metadata().value(key), Some(&want), "{key}");
    }
    assert_eq!(
        (file.version(), file.alignment(), file.path()),
        (3, 64, None)
    );
}

#[test]
fn arrays_read_as_vectors_views_and_iterators() {
    let file = file();
    let metadata = file.metadata();
    assert_eq!(metadata.get::<&[u8]>("a.u8").unwrap(), [1, 2, 255]);
    assert_eq!(metadata.get::<Vec<u32>>("a.i32").unwrap(), [0, 0, 4, 128]);
    assert_eq!(metadata.get::<Vec<f64>>("a.f32").unwrap(), [10.0, 0.5]);
    assert_eq!(
        metadata.get::<Vec<bool>>("a.bool").unwrap(),
        [true, false, true]
    );
    assert_eq!(
        metadata.get::<Vec<&str>>("a.string").unwrap(),
        ["<s>", "", "Ġthe"]
    );
    assert_eq!(
        metadata.get::<Vec<String>>("a.string").unwrap(),
        ["<s>", "", "Ġthe"]
    );
    let mut strings = metadata.get::<Strings<'_>>("a.string").unwrap();
    assert_eq!(
        (strings.len(), strings.nth(2)),
        (3, Some("Ġthe".as_bytes()))
    );
    assert_eq!(
        metadata.get::<Vec<Vec<i64>>>("a.nested").unwrap(),
        [vec![1, 2], vec![3], vec![4, 5, 6]]
    );
    let nested = metadata.get::<Vec<Array<'_>>>("a.nested_strings").unwrap();
    assert_eq!(nested[1].strings().unwrap().collect::<Vec<_>>(), [b"c"]);
    assert_eq!(
        metadata.value("a.nested").unwrap().to_string(),
        "[[1, 2], [3], [4, 5, 6]]"
    );
}

#[test]
fn numbers_convert_where_they_fit_and_say_so_where_they_do_not() {
    let file = file();
    let metadata = file.metadata();
    assert_eq!(metadata.get::<u8>("t.u8").unwrap(), 200);
    assert_eq!(metadata.get::<i64>("t.u32").unwrap(), 4_000_000_000);
    assert_eq!(metadata.get::<f32>("t.i8").unwrap(), -100.0);
    assert_eq!(metadata.get::<f64>("t.f32").unwrap(), f64::from(1e-6f32));
    let message = |error: Error| error.to_string();
    assert_eq!(
        message(metadata.get::<u32>("t.i8").unwrap_err()),
        "metadata key `t.i8` should be an integer in the range of u32, the file has the integer -100"
    );
    assert_eq!(
        message(metadata.get::<i8>("t.u8").unwrap_err()),
        "metadata key `t.u8` should be an integer in the range of i8, the file has the integer 200"
    );
    assert_eq!(
        message(metadata.get::<&str>("a.i32").unwrap_err()),
        "metadata key `a.i32` should be a string of UTF-8, the file has an array of 4 i32"
    );
    assert_eq!(
        message(metadata.get::<Vec<u32>>("a.string").unwrap_err()),
        "metadata key `a.string` should be an integer in the range of u32, the file has the string \"<s>\" as element 0"
    );
    assert_eq!(
        message(metadata.get::<u32>("t.none").unwrap_err()),
        "metadata has no key `t.none`"
    );
    // Present but of another type: `find` says nothing, `try_find` says what.
    assert_eq!(metadata.find::<bool>("t.u8"), None);
    assert!(matches!(
        metadata.try_find::<bool>("t.u8"),
        Err(Error::KeyType { .. })
    ));
    assert_eq!(metadata.try_find::<bool>("t.none").unwrap(), None);
}

#[test]
fn tensors_have_the_shapes_types_and_bytes_that_were_written() {
    let file = file();
    let four = file.tensor("four_dims").unwrap();
    assert_eq!(four.info.dims.to_string(), "2 × 3 × 4 × 5");
    let ramp: Vec<f32> = (0..120u8).map(f32::from).collect();
    assert_eq!(four.blocks::<f32>().unwrap(), ramp);
    assert_eq!(
        file.tensor("ids").unwrap().blocks::<i32>().unwrap(),
        [3, 1, 0, 2]
    );
    let q8 = file.tensor("q8").unwrap();
    assert_eq!(
        (q8.info.ty, q8.info.dims.as_slice(), q8.bytes.len()),
        (TensorType::Q8_0, &[32, 2][..], 68)
    );
    let mxfp4 = file.find("mxfp4").unwrap();
    assert_eq!(
        (mxfp4.info.ty, mxfp4.blocks::<[u8; 17]>().unwrap()[0][16]),
        (TensorType::Mxfp4, 16)
    );
    assert_eq!(
        file.tensor("none").unwrap_err().to_string(),
        "there is no tensor `none`"
    );
    assert_eq!(
        q8.blocks::<f32>().unwrap_err().to_string(),
        "tensor `q8` of type Q8_0 cannot be viewed as f32: its blocks have another size"
    );
}

#[test]
fn writing_it_again_gives_the_same_bytes() {
    assert!(write(&file()) == include_bytes!("../data/gguf_py.gguf"));
}

#[test]
fn version_2_reads_as_the_same_and_is_written_as_version_3() {
    let mut bytes = include_bytes!("../data/gguf_py.gguf").to_vec();
    bytes[4] = 2;
    let old = Gguf::from_vec(bytes).unwrap();
    assert_eq!(old.version(), 2);
    assert!(write(&old) == include_bytes!("../data/gguf_py.gguf"));
}

#[test]
fn metadata_of_a_file_is_copied_edited_and_written() {
    let file = file();
    let mut metadata = file.metadata().clone();
    let keys: Vec<String> = metadata.iter().map(|(key, _)| key.to_owned()).collect();
    assert_eq!(
        metadata.set("general.architecture", "other"),
        Some("deepseek4".into())
    );
    assert!(metadata.remove("t.u8").is_some() && metadata.remove("t.u8").is_none());
    assert_eq!(
        metadata.set(
            "new",
            ArrayBuf::arrays([ArrayBuf::strings(["x", "y"]).view()])
        ),
        None
    );
    let writer = Writer::new(Vec::new(), Plan::new(metadata.clone()).unwrap()).unwrap();
    let edited = Gguf::from_vec(writer.finish().unwrap()).unwrap();
    assert_eq!(edited.metadata(), &metadata);
    let mut want: Vec<&str> = keys
        .iter()
        .map(String::as_str)
        .filter(|key| *key != "t.u8")
        .collect();
    want.push("new");
    assert_eq!(
        edited
            .metadata()
            .iter()
            .map(|(key, _)| key)
            .collect::<Vec<_>>(),
        want
    );
    assert_eq!(
        edited.metadata().get::<Vec<Vec<&str>>>("new").unwrap(),
        [["x", "y"]]
    );
    // The copy keeps the file's bytes alive, not the other way round.
    drop(file);
    assert_eq!(metadata.get::<&str>("t.string").unwrap(), "größer als 0");
    assert_ne!(metadata, Metadata::new());
}
