"""Writes `gguf_py.gguf`: every metadata type, nested arrays, alignment 64, several tensor types.

Origin of the file beside this script: Python package gguf 0.19.0, `python gguf_py.py gguf_py.gguf`.
"""
import sys

import numpy as np
from gguf import GGMLQuantizationType as Q, GGUFValueType as V, GGUFWriter

w = GGUFWriter(sys.argv[1], "deepseek4")
w.add_custom_alignment(64)
w.add_key_value("t.u8", 200, V.UINT8)
w.add_key_value("t.i8", -100, V.INT8)
w.add_key_value("t.u16", 60000, V.UINT16)
w.add_key_value("t.i16", -30000, V.INT16)
w.add_key_value("t.u32", 4000000000, V.UINT32)
w.add_key_value("t.i32", -2000000000, V.INT32)
w.add_key_value("t.f32", 1e-6, V.FLOAT32)
w.add_key_value("t.u64", 2**63, V.UINT64)
w.add_key_value("t.i64", -(2**62), V.INT64)
w.add_key_value("t.f64", 0.1, V.FLOAT64)
w.add_key_value("t.bool", True, V.BOOL)
w.add_key_value("t.string", "größer als 0", V.STRING)
w.add_key_value("a.u8", bytes([1, 2, 255]), V.ARRAY, sub_type=V.UINT8)
w.add_key_value("a.i32", [0, 0, 4, 128], V.ARRAY, sub_type=V.INT32)
w.add_key_value("a.f32", [10.0, 0.5], V.ARRAY, sub_type=V.FLOAT32)
w.add_key_value("a.bool", [True, False, True], V.ARRAY, sub_type=V.BOOL)
w.add_key_value("a.string", ["<s>", "", "Ġthe"], V.ARRAY, sub_type=V.STRING)
w.add_key_value("a.nested", [[1, 2], [3], [4, 5, 6]], V.ARRAY)
w.add_key_value("a.nested_strings", [["a", "b"], ["c"]], V.ARRAY)

ramp = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(5, 4, 3, 2)
w.add_tensor("four_dims", ramp)
w.add_tensor("one_dim", np.array([1.5, -2.5, 3.5], dtype=np.float16))
w.add_tensor("ids", np.array([[3, 1], [0, 2]], dtype=np.int32))
w.add_tensor("q8", np.arange(2 * 34, dtype=np.uint8).reshape(2, 34), raw_dtype=Q.Q8_0)
w.add_tensor("mxfp4", np.arange(17, dtype=np.uint8).reshape(1, 17), raw_dtype=Q.MXFP4)

w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
