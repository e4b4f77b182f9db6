//! The table of tensor types, and files with types that are not in it.

use ds4_gguf::{Gguf, Reason, RocmFp2Layout, TensorType};

use crate::raw::Raw;

/// Id, name, weights and bytes a block: the tables of the format descriptions, written down a second time.
const TABLE: &str = "
    0 F32 1 4|1 F16 1 2|30 BF16 1 2|2 Q4_0 32 18|3 Q4_1 32 20|6 Q5_0 32 22|7 Q5_1 32 24|8 Q8_0 32 34|9 Q8_1 32 36
    |10 Q2_K 256 84|11 Q3_K 256 110|12 Q4_K 256 144|13 Q5_K 256 176|14 Q6_K 256 210|15 Q8_K 256 292|16 IQ2_XXS 256 66
    |17 IQ2_XS 256 74|18 IQ3_XXS 256 98|19 IQ1_S 256 50|20 IQ4_NL 32 18|21 IQ3_S 256 110|22 IQ2_S 256 82
    |23 IQ4_XS 256 136|24 I8 1 1|25 I16 1 2|26 I32 1 4|27 I64 1 8|28 F64 1 8|29 IQ1_M 256 56|34 TQ1_0 256 54
    |35 TQ2_0 256 66|39 MXFP4 32 17|40 NVFP4 64 36|41 Q1_0 128 18
    |100 Q4_0_ROCMFP4 32 18|101 Q4_0_ROCMFP4_FAST 32 17|102 Q6_0_ROCMFPX 32 26|103 Q8_0_ROCMFPX 32 33
    |104 Q3_0_ROCMFPX 32 14|105 Q3_1_ROCMFP3_MIX 32 14|106 Q2_1_ROCMFP2_MIX 32 10|107 Q2_0_ROCMFPX 32 10
    |107 Q2_0_ROCMFP2 32 10|107 Q2_0_ROCMFP2_AFFINE 32 10|108 Q4_0_ROCMI4 32 17";

#[test]
fn every_type_has_the_id_name_and_block_of_the_format_descriptions() {
    let rows: Vec<Vec<&str>> = TABLE
        .split('|')
        .map(|row| row.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), TensorType::KNOWN.len());
    for row in rows {
        let number = |i: usize| row[i].parse::<u64>().unwrap();
        let ty: TensorType = row[1].parse().unwrap();
        assert_eq!(u64::from(ty.id()), number(0), "{ty}");
        assert_eq!(
            (ty.block_len() as u64, ty.block_bytes() as u64),
            (number(2), number(3)),
            "{ty}"
        );
        assert_eq!((ty.name(), ty.to_string().as_str()), (row[1], row[1]));
        assert_eq!(row[1].to_lowercase().parse::<TensorType>().unwrap(), ty);
        assert_eq!(ty.row_bytes(6 * number(2)).unwrap(), 6 * number(3));
    }
}

#[test]
fn ids_map_to_types_and_107_needs_a_layout() {
    for &ty in TensorType::KNOWN {
        if let Some(layout) = ty.rocmfp2_layout() {
            assert_eq!(TensorType::from_id(ty.id()), None);
            assert_eq!(TensorType::from_id_with(107, layout), Some(ty));
            assert_eq!(RocmFp2Layout::from_name(layout.name()), Some(layout));
        } else {
            assert_eq!(TensorType::from_id(ty.id()), Some(ty));
            assert_eq!(
                TensorType::from_id_with(ty.id(), RocmFp2Layout::Affine),
                Some(ty)
            );
        }
    }
    for id in [4, 5, 31, 32, 33, 36, 37, 38, 42, 99, 109, 110, u32::MAX] {
        assert_eq!(TensorType::from_id(id), None, "{id}");
    }
}

#[test]
fn rows_that_are_not_whole_blocks_have_no_size() {
    let message = |ty: TensorType, cols| ty.row_bytes(cols).unwrap_err().to_string();
    assert_eq!(
        message(TensorType::Q2K, 128),
        "a row of 128 weights cannot be stored as Q2_K (84 bytes for each 256 weights)"
    );
    assert!(TensorType::F64.row_bytes(u64::MAX / 4).is_err());
    assert!(message(TensorType::Unknown(42), 32).contains("stored as type 42"));
    assert_eq!(
        "Q9".parse::<TensorType>().unwrap_err().to_string(),
        "no tensor type is called `Q9`"
    );
}

#[test]
fn unknown_types_list_with_their_reasons_and_the_rest_of_the_file_works() {
    let ids = [42u32, 5, 31, 109, 777];
    let raw = Raw::new(1 + ids.len() as u64, 0).tensor("good", &[8], 0, 0);
    let raw = ids.iter().fold(raw, |raw, id| {
        raw.tensor(
            format!("t{id}"),
            &[4096, 2048, 256],
            *id,
            32 * u64::from(*id),
        )
    });
    let file = Gguf::from_vec(raw.data(32 * 778).0).unwrap();
    let unsupported = file.unsupported_tensors();
    let reported: Vec<(&str, u32)> = unsupported
        .iter()
        .map(|tensor| (tensor.name, tensor.id))
        .collect();
    assert_eq!(
        reported,
        [
            ("t42", 42),
            ("t5", 5),
            ("t31", 31),
            ("t109", 109),
            ("t777", 777)
        ]
    );
    let reasons: Vec<String> = unsupported
        .iter()
        .map(|tensor| tensor.reason.to_string())
        .collect();
    assert_eq!(
        reasons[0],
        "Q2_0, TQ3_0 or F8_E4M3_B128, depending on who wrote the file"
    );
    assert_eq!(
        (reasons[1].as_str(), reasons[4].as_str()),
        ("type retired by ggml", "unknown type")
    );
    assert_eq!(unsupported[2].reason, Reason::Retired);
    let unknown = file.tensor("t42").unwrap();
    assert_eq!(
        (unknown.info.ty, unknown.bytes.len()),
        (TensorType::Unknown(42), 0)
    );
    assert!(unknown.blocks::<u8>().is_err());
    assert_eq!(
        file.tensor("good").unwrap().blocks::<f32>().unwrap(),
        [0.0; 8]
    );
}
