//! The experts of the demo model were trained on the lattices of IQ2_XXS and Q2_K, by another quantizer than ours: their blocks
//! are found again from the weights that a checkpoint has. See `tests/data/demo/README.md`.

use ds4_gguf::TensorType;
use half::f16;
use serde_json::Value;

const GOLDEN: &[u8] = include_bytes!("../data/demo/experts.safetensors");

/// The bytes of a tensor.
fn tensor<'a>(header: &Value, data: &'a [u8], name: &str) -> &'a [u8] {
    let at = |i: usize| header[name]["data_offsets"][i].as_u64().unwrap() as usize;
    &data[at(0)..at(1)]
}

#[test]
fn blocks_that_weights_were_trained_on_are_found_again() {
    let (size, rest) = GOLDEN.split_first_chunk().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*size) as usize);
    let header: Value = serde_json::from_slice(header).unwrap();
    let (mut blocks, mut others) = (0, 0);
    for name in header.as_object().unwrap().keys() {
        let (weights, ty) = match name.rsplit_once('.') {
            Some((weights, "iq2_xxs")) => (weights, TensorType::Iq2Xxs),
            Some((weights, "q2_k")) => (weights, TensorType::Q2K),
            _ => continue,
        };
        let codec = ds4_quant::codec(ty).unwrap();
        let trained = tensor(&header, data, name).chunks_exact(ty.block_bytes());
        let weights = tensor(&header, data, weights).as_chunks::<512>().0;
        assert_eq!(trained.len(), weights.len(), "{name}");
        for (trained, weights) in trained.zip(weights) {
            let halves = weights.as_chunks().0;
            let x: Vec<f32> = halves
                .iter()
                .map(|b| f16::from_le_bytes(*b).to_f32())
                .collect();
            let mut found = vec![0; ty.block_bytes()];
            // Importance need not be measured: an error of zero is the least under any.
            codec.encode(&x, Some(&[1.0; 256]), &mut found).unwrap();
            let error = |block: &[u8]| -> f64 {
                let mut y = [0.0; 256];
                codec.decode(block, &mut y).unwrap();
                x.iter().zip(y).map(|(x, y)| f64::from(x - y).powi(2)).sum()
            };
            assert!(
                error(&found) <= error(trained),
                "{name}: {found:02x?}, {trained:02x?}"
            );
            // Half a unit in the last place of a half float: 2^-11 of a weight.
            let size: f64 = x.iter().map(|x| f64::from(*x).powi(2)).sum();
            assert!(
                error(&found) <= size * 2f64.powi(-22),
                "{name}: {found:02x?}"
            );
            blocks += 1;
            if found != trained {
                others += 1;
            }
        }
    }
    assert_eq!((blocks, others), (7 * 2 * 8, 0));
}
