//! Reports over small files written for each test, and over the demo model.

use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
use ds4_model::inspect::{Report, Role};

fn model(
    metadata: Metadata,
    tensors: &[(&str, &[u64], TensorType)],
) -> Result<Gguf, ds4_gguf::Error> {
    let mut plan = Plan::new(metadata)?;
    for (name, dims, ty) in tensors {
        plan.add(name, dims, *ty)?;
    }
    let mut writer = Writer::new(Vec::new(), plan)?;
    while let Some(bytes) = writer.current().map(|info| info.extent.bytes as usize) {
        writer.write(&vec![0; bytes])?;
    }
    Gguf::from_vec(writer.finish()?)
}

fn routed(used: u32, count: u32) -> Metadata {
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", "deepseek4");
    metadata.set("deepseek4.block_count", 1u32);
    metadata.set("deepseek4.expert_used_count", used);
    metadata.set("deepseek4.expert_count", count);
    metadata
}

const TENSORS: [(&str, &[u64], TensorType); 7] = [
    ("token_embd.weight", &[256, 100], TensorType::F16),
    ("blk.0.attn_q_a.weight", &[256, 32], TensorType::Q8_0),
    ("blk.0.attn_norm.weight", &[256], TensorType::F32),
    ("blk.0.ffn_gate_tid2eid.weight", &[2, 100], TensorType::I32),
    (
        "blk.0.ffn_gate_exps.weight",
        &[256, 64, 8],
        TensorType::Iq2Xxs,
    ),
    ("blk.0.ffn_gate_shexp.weight", &[256, 64], TensorType::Q8_0),
    ("blk.1.attn_q_a.weight", &[256, 32], TensorType::Q8_0),
];

#[test]
fn a_token_reads_a_row_of_tables_its_experts_and_all_of_the_rest() {
    let report = Report::of(&model(routed(2, 8), &TENSORS).unwrap());
    let q8_0 = |weights: u64| weights / 32 * 34;
    let expected = 256 * 2 + q8_0(256 * 32) + 256 * 4 + 2 * 4 + 64 * 66 * 2 + q8_0(256 * 64);
    assert_eq!(report.bytes_per_token(), Some(expected));
}

#[test]
fn groups_are_by_role_and_type_and_add_up_to_the_file() {
    let gguf = model(routed(2, 8), &TENSORS).unwrap();
    let report = Report::of(&gguf);
    let groups: Vec<_> = report
        .groups()
        .iter()
        .map(|g| (g.role, g.ty, g.tensors))
        .collect();
    assert_eq!(
        groups,
        [
            (Role::Embedding, TensorType::F16, 1),
            (Role::Attention, TensorType::Q8_0, 1),
            (Role::Attention, TensorType::F32, 1),
            (Role::Router, TensorType::I32, 1),
            (Role::Experts, TensorType::Iq2Xxs, 1),
            (Role::Dense, TensorType::Q8_0, 1),
            (Role::Other, TensorType::Q8_0, 1),
        ],
        "blk.1 lies beyond the one layer of the model"
    );
    assert_eq!(
        report.bytes(),
        gguf.tensors().iter().map(|t| t.extent.bytes).sum::<u64>()
    );
}

#[test]
fn experts_without_a_count_leave_the_bytes_of_a_token_unknown() {
    assert_eq!(
        Report::of(&model(Metadata::new(), &TENSORS).unwrap()).bytes_per_token(),
        None
    );
    assert_eq!(
        Report::of(&model(routed(9, 8), &TENSORS).unwrap()).bytes_per_token(),
        None
    );
    assert_eq!(
        Report::of(&model(routed(0, 0), &TENSORS).unwrap()).bytes_per_token(),
        None
    );
}

#[test]
fn types_that_no_codec_decodes_are_all_named() {
    let tensors: [(&str, &[u64], TensorType); 3] = [
        ("a", &[256], TensorType::Iq1S),
        ("b", &[256], TensorType::Tq1_0),
        ("c", &[256], TensorType::I32),
    ];
    let report = Report::of(&model(Metadata::new(), &tensors).unwrap());
    let names: Vec<_> = report
        .unsupported()
        .iter()
        .map(|u| u.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    let text = report.to_string();
    assert!(
        text.contains("2 tensor(s) cannot be decoded") && text.contains("no codec for IQ1_S"),
        "{text}"
    );
}

#[test]
fn json_has_whole_short_arrays_and_the_start_of_long_ones() {
    let mut metadata = Metadata::new();
    metadata.set("short", vec![1i32, 2, 3]);
    metadata.set("long", (0..1000i32).collect::<Vec<_>>());
    let json = Report::of(&model(metadata, &TENSORS[..1]).unwrap()).to_json();
    assert_eq!(json["metadata"]["short"], serde_json::json!([1, 2, 3]));
    assert_eq!(json["metadata"]["long"]["length"], 1000);
    assert_eq!(json["metadata"]["long"]["first"][7], 7);
    assert_eq!(json["tensors"][0]["dims"], serde_json::json!([256, 100]));
    assert_eq!(json["bytes"], 256 * 100 * 2);
}

#[test]
fn every_tensor_of_the_demo_model_has_a_role_and_a_codec() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
    let report = Report::of(&Gguf::open(path).unwrap());
    assert!(report.groups().iter().all(|g| g.role != Role::Other));
    assert!(
        report.unsupported().is_empty(),
        "{:?}",
        report.unsupported()
    );
    let bytes = |role| {
        report
            .groups()
            .iter()
            .filter(|g| g.role == role)
            .map(|g| g.bytes)
            .sum::<u64>()
    };
    let by_token: u64 = report
        .groups()
        .iter()
        .filter(|g| g.ty == TensorType::I32)
        .map(|g| g.bytes)
        .sum();
    let tables = bytes(Role::Embedding) + by_token;
    let unread = bytes(Role::Experts) / 16 * 12 + tables / 3072 * 3071;
    assert_eq!(
        report.bytes_per_token(),
        Some(report.bytes() - unread),
        "4 of 16 experts, 1 of 3072 rows"
    );
}
