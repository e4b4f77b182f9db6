//! Adaptive ROCmFPX types: blocks decode with the books beside them, and wrong books are refused.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::fs;
use std::io;
use std::path::Path;

use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
use ds4_quant::{Error, MixError, MixTables};

const GATE: &str = "blk.3.ffn_gate_exps.weight";
const DOWN: &str = "blk.3.ffn_down_exps.weight";

fn golden(file: &str) -> Vec<u8> {
    fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(file),
    )
    .unwrap()
}

fn u32s(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Two experts of `[rows, 32]`: fixed levels, then books. Gate and up, or down.
fn table(books: &[u8], rows: u32, down: bool) -> Vec<u8> {
    let mut bytes = if down { b"P4MIXv1\0" } else { b"GUMIXs1\0" }.to_vec();
    bytes.extend(u32s(&[1, 0, 3]));
    if !down {
        bytes.extend(u32s(&[0]));
    }
    bytes.extend(u32s(&[2, rows, 32, 2, if down { 8 } else { 4 }]));
    bytes.extend([0, 1]);
    if down {
        bytes.extend([0, 0]);
    }
    bytes.extend(vec![0; books.len()]);
    bytes.extend(books);
    bytes
}

/// A model of one tensor of two experts, 64 rows of one block each.
fn model(name: &str, ty: TensorType, tables: &[(&str, Vec<u8>)], blocks: &[u8]) -> Vec<u8> {
    let mut metadata = Metadata::new();
    for (key, bytes) in tables {
        metadata.set(key, bytes.clone());
    }
    let mut plan = Plan::new(metadata).unwrap();
    plan.add(name, &[32, 64, 2], ty).unwrap();
    let mut writer = Writer::new(Vec::new(), plan).unwrap();
    writer.tensor(name, blocks).unwrap();
    writer.finish().unwrap()
}

fn nothing(_: &Path) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::NotFound.into())
}

const GATE_KEY: &str = "deepseek4.gumix.sidecar";
const DOWN_KEY: &str = "deepseek4.p4mix.sidecar";

#[test]
fn blocks_decode_like_the_reference_in_both_modes() {
    for (golden_name, name, ty, key) in [
        ("Q2_1_ROCMFP2_MIX", GATE, TensorType::RocmFp2Mix, GATE_KEY),
        ("Q3_1_ROCMFP3_MIX", DOWN, TensorType::RocmFp3Mix, DOWN_KEY),
    ] {
        let file = |file: &str| golden(&format!("{golden_name}/{file}"));
        let blocks = [file("blocks_mode0.bin"), file("blocks_mode1.bin")];
        let table = table(&file("books.bf16"), 64, name == DOWN);
        let model = Gguf::from_vec(model(name, ty, &[(key, table)], &blocks.concat())).unwrap();
        let tables = MixTables::find(&model, nothing).unwrap();
        let table = tables.get(name).unwrap();
        assert_eq!(table.experts(), 2);
        for (expert, blocks) in blocks.iter().enumerate() {
            let want = file(&format!("blocks_mode{expert}.f32"));
            let mut got = vec![f32::NAN; 64 * 32];
            table.decode(expert, blocks, &mut got).unwrap();
            for (got, want) in got.iter().zip(want.as_chunks().0) {
                assert_eq!(
                    *got,
                    f32::from_le_bytes(*want),
                    "{golden_name} mode {expert}"
                );
            }
            table.validate(expert, blocks).unwrap();
            let short = table.decode(expert, &blocks[1..], &mut got);
            assert!(matches!(short, Err(Error::Length { .. })));
        }
        // Bit 7 chooses a book where there are books, and is no scale where there are none.
        let mut block = vec![0; ty.block_bytes()];
        block[ty.block_bytes() - 1] = 0x81;
        table.validate(1, &block).unwrap();
        let found = table.validate(0, &block);
        assert_eq!(
            found,
            Err(Error::InvalidScale {
                ty,
                block: 0,
                byte: 0x81
            })
        );
        block[ty.block_bytes() - 1] = 0xff;
        assert!(table.validate(1, &block).is_err());
    }
}

#[test]
fn books_lie_in_a_file_beside_the_model_where_the_metadata_has_none() {
    let blocks = golden("Q2_1_ROCMFP2_MIX/blocks_mode0.bin").repeat(2);
    let folder = std::env::temp_dir().join(format!("ds4-quant-mix-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("model.gguf");
    fs::write(&path, model(GATE, TensorType::RocmFp2Mix, &[], &blocks)).unwrap();
    let opened = Gguf::open(&path).unwrap();
    let found = MixTables::find(&opened, nothing).unwrap_err();
    assert!(
        matches!(&found, MixError::Missing { name, .. } if &**name == GATE),
        "{found}"
    );
    let tables = MixTables::find(&opened, |path| {
        assert!(path.ends_with("model.gguf.gumix.bin"));
        Ok(table(&golden("Q2_1_ROCMFP2_MIX/books.bf16"), 64, false))
    });
    assert!(tables.unwrap().get(GATE).is_some());
    let denied = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
    let found = MixTables::find(&opened, denied).unwrap_err();
    assert!(matches!(found, MixError::Io { .. }), "{found}");
    drop(opened);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn wrong_books_are_refused_with_their_place() {
    let books = golden("Q2_1_ROCMFP2_MIX/books.bf16");
    let good = table(&books, 64, false);
    let blocks = golden("Q2_1_ROCMFP2_MIX/blocks_mode0.bin").repeat(2);
    let error = |bytes: Vec<u8>| {
        let file = model(GATE, TensorType::RocmFp2Mix, &[(GATE_KEY, bytes)], &blocks);
        MixTables::find(&Gguf::from_vec(file).unwrap(), nothing).unwrap_err()
    };
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        error(bytes)
    };
    let found = changed(5, b'v');
    assert!(matches!(found, MixError::Magic { .. }), "{found}");
    for end in 8..good.len() {
        let found = error(good[..end].to_vec());
        assert!(
            matches!(found, MixError::End { len, .. } if len == end),
            "{found}"
        );
    }
    let found = error([&good[..], &[0]].concat());
    assert!(matches!(found, MixError::Extra { extra: 1, .. }), "{found}");
    let found = changed(20, 2);
    assert!(
        matches!(
            found,
            MixError::Field {
                field: "the surface",
                found: 2,
                ..
            }
        ),
        "{found}"
    );
    let found = changed(36, 3);
    assert!(matches!(found, MixError::Field { found: 3, .. }), "{found}");
    let found = changed(40, 8);
    assert!(matches!(found, MixError::Field { found: 8, .. }), "{found}");
    let found = changed(16, 4);
    assert!(
        matches!(found, MixError::Missing { .. }),
        "books of another layer: {found}"
    );
    let found = changed(28, 63);
    assert!(matches!(found, MixError::Shape { .. }), "{found}");
    let found = changed(45, 2);
    assert!(
        matches!(
            found,
            MixError::Expert {
                layer: 3,
                expert: 1,
                ..
            }
        ),
        "{found}"
    );
    // The second expert's first level: 0x4040 is 3.0.
    let mut bytes = good.clone();
    bytes[62..64].copy_from_slice(&0x4040u16.to_le_bytes());
    let found = error(bytes);
    assert!(
        matches!(found, MixError::Expert { expert: 1, .. }),
        "{found}"
    );
    let mut bytes = good.clone();
    bytes.copy_within(64..66, 62);
    let found = error(bytes);
    assert!(found.to_string().contains("do not ascend"), "{found}");
    let mut twice = good.clone();
    twice[8] = 2;
    twice.extend(&good[16..]);
    let found = error(twice);
    assert!(
        matches!(&found, MixError::Twice { name } if &**name == GATE),
        "{found}"
    );
    let down = table(&golden("Q3_1_ROCMFP3_MIX/books.bf16"), 64, true);
    let found = error(down);
    assert!(matches!(found, MixError::Magic { .. }), "{found}");
}

#[test]
fn a_model_without_such_tensors_needs_no_books() {
    let blocks = vec![0; 2 * 64 * 14];
    let file = model(
        DOWN,
        TensorType::RocmFp3,
        &[(DOWN_KEY, b"anything".to_vec())],
        &blocks,
    );
    let tables = MixTables::find(&Gguf::from_vec(file).unwrap(), nothing).unwrap();
    assert!(tables.get(DOWN).is_none());
}
