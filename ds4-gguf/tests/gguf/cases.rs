//! One broken rule a case, as bytes and as the fault they have. The small ones are the fuzz corpus as well.

use crate::raw::Raw;
use ds4_gguf::{Malformed, TensorType};

/// The name of a case, its bytes, and what is wrong with them; `None` when nothing is.
pub(crate) type Case = (&'static str, Raw, Option<Malformed>);

const F32: u32 = 0;
const Q8_0: u32 = 8;

const U32: u32 = 4;
const BOOL: u32 = 7;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

fn truncated(subject: &str, offset: u64, need: u64, len: u64) -> Option<Malformed> {
    Some(Malformed::Truncated {
        subject: subject.into(),
        offset,
        need,
        len,
    })
}

fn header_cases() -> Vec<Case> {
    let bad_version = |found| Some(Malformed::Version { found });
    vec![
        ("empty", Raw(vec![]), truncated("the header", 0, 4, 0)),
        (
            "magic",
            Raw(b"GGML\x03\0\0\0".to_vec()),
            Some(Malformed::Magic { found: *b"GGML" }),
        ),
        (
            "big-endian-version",
            Raw(b"GGUF\0\0\0\x03".to_vec()),
            Some(Malformed::BigEndian),
        ),
        (
            "big-endian-magic",
            Raw(b"FUGG\0\0\0\x03".to_vec()),
            Some(Malformed::BigEndian),
        ),
        ("version-0", Raw::with_version(0, 0, 0), bad_version(0)),
        ("version-1", Raw::with_version(1, 0, 0), bad_version(1)),
        ("version-4", Raw::with_version(4, 0, 0), bad_version(4)),
        (
            "cut-version",
            Raw(b"GGUF\x03\0".to_vec()),
            truncated("the header", 4, 4, 6),
        ),
        (
            "cut-counts",
            Raw(b"GGUF\x03\0\0\0\0\0".to_vec()),
            truncated("the header", 8, 8, 10),
        ),
        (
            "many-tensors",
            Raw::new(u64::MAX, 0),
            Some(Malformed::CountLimit {
                what: "tensors",
                found: u64::MAX,
                limit: 1 << 20,
            }),
        ),
        (
            "many-keys",
            Raw::new(0, 1 << 40),
            Some(Malformed::CountLimit {
                what: "keys",
                found: 1 << 40,
                limit: 1 << 16,
            }),
        ),
        (
            "absent-tensors",
            Raw::new(10, 0),
            truncated("a table of 10 tensors", 24, 330, 24),
        ),
        (
            "absent-keys",
            Raw::new(0, 10),
            truncated("metadata of 10 keys", 24, 140, 24),
        ),
        ("ok-nothing", Raw::new(0, 0), None),
        (
            "ok-version-2",
            Raw::with_version(2, 1, 0)
                .tensor("t", &[8], F32, 0)
                .data(32),
            None,
        ),
    ]
}

fn key_cases() -> Vec<Case> {
    let value = "the value of metadata key `k`";
    let alignment = |found: &str| {
        Some(Malformed::Key {
            key: "general.alignment".into(),
            expected: "a power of two from 1 to 16777216".into(),
            found: found.into(),
        })
    };
    let aligned = |n| Raw::new(0, 1).key("general.alignment", U32).u32(n);
    let deep = |levels: usize| {
        Raw::new(0, 1)
            .key("k", ARRAY)
            .bytes(&[9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0].repeat(levels))
    };
    let key = "metadata key number 0";
    vec![
        (
            "key-empty",
            Raw::new(0, 1).key("", U32).u32(0).bytes(&[0; 8]),
            Some(Malformed::NameLength {
                subject: key.into(),
                len: 0,
                offset: 24,
            }),
        ),
        (
            "key-65536",
            Raw::new(0, 1).key("k".repeat(65_536), U32).u32(0),
            Some(Malformed::NameLength {
                subject: key.into(),
                len: 65_536,
                offset: 24,
            }),
        ),
        (
            "ok-key-65535",
            Raw::new(0, 1).key("k".repeat(65_535), U32).u32(0),
            None,
        ),
        (
            "key-not-utf-8",
            Raw::new(0, 1).key(b"ab\xff", U32).u32(0),
            Some(Malformed::NotUtf8 {
                subject: key.into(),
                offset: 24,
                valid_up_to: 2,
            }),
        ),
        (
            "key-giant",
            Raw::new(0, 1).u64(u64::MAX).bytes(&[b'k'; 64]),
            truncated(key, 32, u64::MAX, 96),
        ),
        (
            "key-twice",
            Raw::new(0, 2).key("k", U32).u32(1).key("k", U32).u32(2),
            Some(Malformed::DuplicateKey { key: "k".into() }),
        ),
        (
            "value-type-13",
            Raw::new(0, 1).key("k", 13).u64(0),
            Some(Malformed::ValueType {
                subject: value.into(),
                id: 13,
                offset: 33,
            }),
        ),
        (
            "value-cut",
            Raw::new(0, 1).key("k", U32).bytes(&[0]),
            truncated(value, 37, 4, 38),
        ),
        (
            "bool-2",
            Raw::new(0, 1).key("k", BOOL).bytes(&[2]),
            Some(Malformed::Bool {
                subject: value.into(),
                found: 2,
                offset: 37,
            }),
        ),
        (
            "bool-2-in-array",
            Raw::new(0, 1)
                .key("k", ARRAY)
                .u32(BOOL)
                .u64(3)
                .bytes(&[1, 0, 2]),
            Some(Malformed::Bool {
                subject: value.into(),
                found: 2,
                offset: 51,
            }),
        ),
        (
            "string-giant",
            Raw::new(0, 1).key("k", STRING).u64(1 << 62),
            truncated(value, 45, 1 << 62, 45),
        ),
        (
            "array-giant",
            Raw::new(0, 1).key("k", ARRAY).u32(U32).u64(1 << 61),
            truncated(value, 49, 1 << 63, 49),
        ),
        (
            "array-overflow",
            Raw::new(0, 1).key("k", ARRAY).u32(U32).u64(1 << 62),
            truncated(value, 49, u64::MAX, 49),
        ),
        (
            "array-of-absent-strings",
            Raw::new(0, 1).key("k", ARRAY).u32(STRING).u64(1000),
            truncated(value, 49, 8000, 49),
        ),
        (
            "array-of-giant-strings",
            Raw::new(0, 1)
                .key("k", ARRAY)
                .u32(STRING)
                .u64(2)
                .string("a")
                .u64(1 << 40),
            truncated(value, 66, 1 << 40, 66),
        ),
        (
            "array-of-nothing-known",
            Raw::new(0, 1).key("k", ARRAY).u32(99).u64(1).u64(0),
            Some(Malformed::ValueType {
                subject: value.into(),
                id: 99,
                offset: 37,
            }),
        ),
        ("ok-array-8-deep", deep(7).u32(U32).u64(1).u32(5), None),
        (
            "array-9-deep",
            deep(8).u32(U32).u64(1).u32(5),
            Some(Malformed::Depth {
                subject: value.into(),
                max: 8,
                offset: 37 + 8 * 12,
            }),
        ),
        (
            "array-1000-deep",
            deep(1000),
            Some(Malformed::Depth {
                subject: value.into(),
                max: 8,
                offset: 37 + 8 * 12,
            }),
        ),
        (
            "ok-string-not-utf-8",
            Raw::new(0, 1).key("k", STRING).string(b"\xff\xfe"),
            None,
        ),
        ("alignment-0", aligned(0), alignment("0")),
        ("alignment-48", aligned(48), alignment("48")),
        ("alignment-2-gib", aligned(1 << 31), alignment("2147483648")),
        (
            "alignment-text",
            Raw::new(0, 1).key("general.alignment", STRING).string("32"),
            alignment("\"32\""),
        ),
        ("ok-alignment-1", aligned(1), None),
    ]
}

fn tensor_cases() -> Vec<Case> {
    let one = |ne: &[u64], ty, offset| Raw::new(1, 0).tensor("t", ne, ty, offset).data(64);
    let dims = |found: &[u64]| {
        Some(Malformed::Dims {
            name: "t".into(),
            found: found.to_vec(),
        })
    };
    let out = |bytes, start, len| {
        Some(Malformed::OutOfFile {
            name: "t".into(),
            start,
            bytes,
            len,
        })
    };
    let two = |second: &str, offset| {
        Raw::new(2, 0)
            .tensor("a", &[16], F32, 0)
            .tensor(second, &[8], F32, offset)
            .data(96)
    };
    vec![
        (
            "name-empty",
            Raw::new(1, 0).tensor("", &[8], F32, 0).data(64),
            Some(Malformed::NameLength {
                subject: "the name of tensor number 0".into(),
                len: 0,
                offset: 24,
            }),
        ),
        (
            "name-not-utf-8",
            Raw::new(1, 0).tensor(b"\xc3\x28", &[8], F32, 0).data(64),
            Some(Malformed::NotUtf8 {
                subject: "the name of tensor number 0".into(),
                offset: 24,
                valid_up_to: 0,
            }),
        ),
        (
            "name-twice",
            two("a", 64),
            Some(Malformed::DuplicateTensor { name: "a".into() }),
        ),
        (
            "rank-0",
            one(&[], F32, 0),
            Some(Malformed::Rank {
                name: "t".into(),
                found: 0,
            }),
        ),
        (
            "rank-5",
            one(&[1; 5], F32, 0),
            Some(Malformed::Rank {
                name: "t".into(),
                found: 5,
            }),
        ),
        (
            "rank-giant",
            Raw::new(1, 0).string("t").u32(u32::MAX).data(64),
            Some(Malformed::Rank {
                name: "t".into(),
                found: u32::MAX,
            }),
        ),
        (
            "entry-cut",
            Raw::new(1, 0)
                .string("blk.0.attn_q.weight")
                .u32(2)
                .u64(4)
                .bytes(&[0; 5]),
            truncated("the entry of tensor `blk.0.attn_q.weight`", 63, 8, 68),
        ),
        ("dims-zero", one(&[8, 0], F32, 0), dims(&[8, 0])),
        (
            "dims-overflow",
            one(&[1 << 32, 1 << 32], F32, 0),
            dims(&[1 << 32, 1 << 32]),
        ),
        ("dims-63-bits", one(&[1 << 63], F32, 0), dims(&[1 << 63])),
        (
            "bytes-overflow",
            one(&[1 << 62], F32, 0),
            Some(Malformed::TooLarge {
                name: "t".into(),
                ty: TensorType::F32,
                elements: 1 << 62,
            }),
        ),
        (
            "row-not-whole",
            one(&[33], Q8_0, 0),
            Some(Malformed::Row {
                name: "t".into(),
                ty: TensorType::Q8_0,
                cols: 33,
            }),
        ),
        (
            "offset-odd",
            one(&[8], F32, 4),
            Some(Malformed::Misaligned {
                name: "t".into(),
                offset: 4,
                alignment: 32,
            }),
        ),
        ("offset-beyond", one(&[8], F32, 64), out(32, 128, 128)),
        (
            "offset-wraps",
            one(&[8], F32, u64::MAX - 31),
            out(32, u64::MAX, 128),
        ),
        ("data-cut", one(&[17], F32, 0), out(68, 64, 128)),
        ("ok-data-exact", one(&[16], F32, 0), None),
        ("unknown-beyond", one(&[8], 999, 96), out(0, 160, 128)),
        (
            "overlap",
            two("b", 32),
            Some(Malformed::Overlap {
                name: "b".into(),
                start: 128,
                other: "a".into(),
                end: 160,
            }),
        ),
        (
            "overlap-same",
            two("b", 0),
            Some(Malformed::Overlap {
                name: "b".into(),
                start: 96,
                other: "a".into(),
                end: 160,
            }),
        ),
        (
            "overlap-unknown",
            Raw::new(2, 0)
                .tensor("a", &[16], F32, 0)
                .tensor("b", &[8], 999, 32)
                .data(96),
            Some(Malformed::Overlap {
                name: "b".into(),
                start: 128,
                other: "a".into(),
                end: 160,
            }),
        ),
        (
            "ok-order-reversed",
            Raw::new(2, 0)
                .tensor("b", &[8], F32, 32)
                .tensor("a", &[8], F32, 0)
                .data(64),
            None,
        ),
        ("ok-gap", two("b", 64), None),
        (
            "ok-unknown-types",
            Raw::new(2, 0)
                .tensor("a", &[8], 42, 0)
                .tensor("b", &[8], 105_000, 32)
                .data(64),
            None,
        ),
        (
            "layout-of-107",
            Raw::new(1, 1)
                .key("general.quantization.rocmfp2_layout", STRING)
                .string("triple")
                .tensor("t", &[32], 107, 0)
                .data(64),
            Some(Malformed::Key {
                key: "general.quantization.rocmfp2_layout".into(),
                expected: "\"s40\", \"two-scale\" or \"affine\"".into(),
                found: "\"triple\"".into(),
            }),
        ),
    ]
}

/// All cases; those whose names start with `ok-` break nothing.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = header_cases();
    cases.extend(key_cases());
    cases.extend(tensor_cases());
    cases
}
