//! Maps and leases over small models written for each test.

use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
use ds4_stream::{Error, ExpertMap, ExpertSource, Resident, Role, Stats};

type Tensors<'a> = &'a [(&'a str, &'a [u64], TensorType)];

/// A model with these tensors; byte `i` of the data of tensor `t` is `(7·t + i) mod 251`.
fn model(tensors: Tensors<'_>) -> Result<Gguf, ds4_gguf::Error> {
    let mut plan = Plan::new(Metadata::new())?;
    for (name, dims, ty) in tensors {
        plan.add(name, dims, *ty)?;
    }
    let mut writer = Writer::new(Vec::new(), plan)?;
    let mut t = 0;
    while let Some(bytes) = writer.current().map(|info| info.extent.bytes as usize) {
        let data: Vec<u8> = (0..bytes).map(|i| ((7 * t + i) % 251) as u8).collect();
        writer.write(&data)?;
        t += 1;
    }
    Gguf::from_vec(writer.finish()?)
}

const GATE_1: (&str, &[u64], TensorType) = (
    "blk.1.ffn_gate_exps.weight",
    &[256, 32, 4],
    TensorType::Iq2Xxs,
);
const UP_1: (&str, &[u64], TensorType) =
    ("blk.1.ffn_up_exps.weight", &[256, 32, 4], TensorType::Q2K);
const DOWN_1: (&str, &[u64], TensorType) = (
    "blk.1.ffn_down_exps.weight",
    &[32, 256, 4],
    TensorType::Q8_0,
);

fn two_layers() -> Result<Gguf, ds4_gguf::Error> {
    model(&[
        ("token_embd.weight", &[256, 10], TensorType::F16),
        ("blk.0.ffn_down.weight", &[256, 10], TensorType::F16),
        GATE_1,
        UP_1,
        DOWN_1,
        (
            "blk.10.ffn_down_exps.weight",
            &[256, 256, 2],
            TensorType::Q2K,
        ),
        ("blk.10.ffn_up_exps.weight", &[256, 256, 2], TensorType::Q2K),
        (
            "blk.10.ffn_gate_exps.weight",
            &[256, 256, 2],
            TensorType::Q2K,
        ),
    ])
}

#[test]
fn the_map_knows_sizes_by_layer_and_the_largest_expert() {
    let map = ExpertMap::from_gguf(&two_layers().unwrap()).unwrap();
    assert_eq!(
        map.layers()
            .map(|(n, l)| (n, l.experts))
            .collect::<Vec<_>>(),
        [(1, 4), (10, 2)]
    );
    let layer = map.layer(1).unwrap();
    assert_eq!(
        layer.parts.each_ref().map(|p| p.bytes),
        [32 * 66, 32 * 84, 256 * 34]
    );
    assert_eq!(
        layer.parts.each_ref().map(|p| (p.cols, p.rows)),
        [(256, 32), (256, 32), (32, 256)]
    );
    assert_eq!(map.largest_expert(), 3 * 256 * 84);
    assert_eq!(
        map.total_bytes(),
        4 * (32 * 66 + 32 * 84 + 256 * 34) + 2 * 3 * 256 * 84
    );
}

#[test]
fn a_lease_is_the_slice_of_each_tensor_in_the_order_asked_for() {
    let gguf = two_layers().unwrap();
    let mut source = Resident::new(gguf.clone()).unwrap();
    let lease = source.acquire(1, &[3, 0, 3]).unwrap();
    assert_eq!(
        lease.experts().iter().map(|e| e.id).collect::<Vec<_>>(),
        [3, 0, 3]
    );
    for expert in lease.experts() {
        let parts = [
            (Role::Gate, expert.gate),
            (Role::Up, expert.up),
            (Role::Down, expert.down),
        ];
        for (role, bytes) in parts {
            let whole = gguf.tensor(&role.tensor_name(1)).unwrap().bytes;
            let size = whole.len() / 4;
            let start = size * usize::from(expert.id);
            assert_eq!(
                bytes,
                &whole[start..start + size],
                "{role} of expert {}",
                expert.id
            );
        }
    }
    let stats = source.stats();
    assert_eq!((stats.acquired, stats.hits, stats.bytes_read), (3, 3, 0));
}

#[test]
fn hints_change_nothing_that_can_be_seen() {
    let mut source = Resident::new(two_layers().unwrap()).unwrap();
    source.hint(1, &[0, 1]);
    source.hint(99, &[500]);
    assert_eq!(source.stats(), Stats::default());
}

#[test]
fn asking_for_what_is_not_there_names_it() {
    let mut source = Resident::new(two_layers().unwrap()).unwrap();
    assert!(matches!(
        source.acquire(0, &[0]).unwrap_err(),
        Error::NoLayer { layer: 0, count: 2 }
    ));
    assert!(matches!(
        source.acquire(10, &[1, 2]).unwrap_err(),
        Error::NoExpert {
            layer: 10,
            expert: 2,
            count: 2
        }
    ));
    assert_eq!(source.stats(), Stats::default());
}

#[test]
fn a_model_without_experts_has_an_empty_map() {
    let map = ExpertMap::from_gguf(
        &model(&[("blk.0.ffn_down.weight", &[32, 4], TensorType::F32)]).unwrap(),
    )
    .unwrap();
    assert_eq!(
        (
            map.layers().count(),
            map.largest_expert(),
            map.total_bytes()
        ),
        (0, 0, 0)
    );
}

#[test]
fn tensors_that_make_no_set_of_experts_are_named() {
    let read = |tensors: Tensors<'_>| {
        ExpertMap::from_gguf(&model(tensors).expect("each tensor by itself is well formed"))
            .unwrap_err()
    };

    let error = read(&[GATE_1, DOWN_1]);
    assert!(
        matches!(&error, Error::Missing { layer: 1, name } if name.contains("ffn_up_exps")),
        "{error}"
    );

    let error = read(&[
        ("blk.1.ffn_gate_exps.weight", &[256, 128], TensorType::F16),
        UP_1,
        DOWN_1,
    ]);
    assert!(
        matches!(&error, Error::Shape { name, .. } if name.contains("gate")),
        "{error}"
    );

    let error = read(&[
        GATE_1,
        ("blk.1.ffn_up_exps.weight", &[256, 32, 5], TensorType::F16),
        DOWN_1,
    ]);
    assert!(
        matches!(&error, Error::Disagree { role: Role::Up, .. }),
        "{error}"
    );

    let error = read(&[
        GATE_1,
        UP_1,
        ("blk.1.ffn_down_exps.weight", &[64, 256, 4], TensorType::F16),
    ]);
    assert!(
        matches!(
            &error,
            Error::Disagree {
                role: Role::Down,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("64 × 256 × 4") && error.to_string().contains("32 × 256 × 4"),
        "{error}"
    );
}
