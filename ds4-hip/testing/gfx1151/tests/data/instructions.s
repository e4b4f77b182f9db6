// One of each instruction and form that is executed; assembled by llvm-mc -mcpu=gfx1151.
buffer_gl0_inv
buffer_gl1_inv
ds_add_f32 v0, v1
ds_add_rtn_f32 v0, v4, v8
ds_add_rtn_u32 v0, v1, v2
ds_add_rtn_u32 v0, v4, v8
ds_add_rtn_u64 v[0:1], v4, v[8:9]
ds_and_rtn_b32 v0, v4, v8
ds_and_rtn_b64 v[0:1], v4, v[8:9]
ds_bpermute_b32 v0, v1, v2
ds_cmpstore_rtn_b32 v0, v1, v2, v3
ds_cmpstore_rtn_b32 v0, v4, v8, v12
ds_cmpstore_rtn_b64 v[0:1], v4, v[8:9], v[12:13]
ds_cmpstore_rtn_f32 v0, v4, v8, v12
ds_dec_rtn_u32 v0, v4, v8
ds_inc_rtn_u32 v0, v4, v8
ds_load_2addr_b32 v[0:1], v2 offset1:1
ds_load_2addr_b32 v[0:1], v8 offset0:1 offset1:2
ds_load_2addr_b64 v[0:3], v8 offset0:1 offset1:2
ds_load_2addr_stride64_b32 v[0:1], v8 offset0:1 offset1:2
ds_load_2addr_stride64_b64 v[0:3], v4 offset0:1 offset1:2
ds_load_2addr_stride64_b64 v[0:3], v8 offset0:1 offset1:2
ds_load_b128 v[0:3], v8 offset:16
ds_load_b32 v0, v1 offset:16
ds_load_b32 v0, v8 offset:16
ds_load_b64 v[0:1], v8 offset:16
ds_load_b96 v[0:2], v8 offset:16
ds_load_i16 v0, v8 offset:16
ds_load_i8 v0, v8 offset:16
ds_load_i8_d16 v0, v8 offset:16
ds_load_i8_d16_hi v0, v8 offset:16
ds_load_u16 v0, v8 offset:16
ds_load_u16_d16 v0, v8 offset:16
ds_load_u16_d16_hi v0, v1
ds_load_u16_d16_hi v0, v8 offset:16
ds_load_u8 v0, v8 offset:16
ds_load_u8_d16 v0, v8 offset:16
ds_load_u8_d16_hi v0, v8 offset:16
ds_max_rtn_f32 v0, v4, v8
ds_max_rtn_i32 v0, v4, v8
ds_max_rtn_i64 v[0:1], v4, v[8:9]
ds_max_rtn_u32 v0, v4, v8
ds_max_rtn_u64 v[0:1], v4, v[8:9]
ds_min_rtn_f32 v0, v4, v8
ds_min_rtn_i32 v0, v4, v8
ds_min_rtn_i64 v[0:1], v4, v[8:9]
ds_min_rtn_u32 v0, v4, v8
ds_min_rtn_u64 v[0:1], v4, v[8:9]
ds_or_rtn_b32 v0, v4, v8
ds_or_rtn_b64 v[0:1], v4, v[8:9]
ds_permute_b32 v0, v1, v2 offset:4
ds_rsub_rtn_u32 v0, v4, v8
ds_store_2addr_b32 v0, v1, v2 offset0:4 offset1:5
ds_store_2addr_b32 v8, v0, v1 offset0:1 offset1:2
ds_store_2addr_b64 v8, v[0:1], v[2:3] offset0:1 offset1:2
ds_store_2addr_stride64_b32 v8, v0, v1 offset0:1 offset1:2
ds_store_2addr_stride64_b64 v8, v[0:1], v[2:3] offset0:1 offset1:2
ds_store_b128 v0, v[1:4]
ds_store_b128 v8, v[0:3] offset:16
ds_store_b16 v8, v0 offset:16
ds_store_b16_d16_hi v0, v1
ds_store_b16_d16_hi v8, v0 offset:16
ds_store_b32 v8, v0 offset:16
ds_store_b64 v8, v[0:1] offset:16
ds_store_b8 v8, v0 offset:16
ds_store_b8_d16_hi v8, v0 offset:16
ds_store_b96 v8, v[0:2] offset:16
ds_storexchg_rtn_b32 v0, v4, v8
ds_storexchg_rtn_b64 v[0:1], v4, v[8:9]
ds_sub_rtn_u32 v0, v4, v8
ds_sub_rtn_u64 v[0:1], v4, v[8:9]
ds_swizzle_b32 v0, v1 offset:0x1234
ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM, "01pip")
ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,8,3)
ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,0,1,2,3)
ds_swizzle_b32 v0, v1 offset:swizzle(REVERSE,4)
ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)
ds_xor_rtn_b32 v0, v4, v8
ds_xor_rtn_b64 v[0:1], v4, v[8:9]
flat_atomic_add_u32 v0, v[2:3], v4 glc
flat_load_b128 v[0:3], v[8:9]
flat_load_b32 v0, v[2:3] offset:8
flat_load_b32 v0, v[8:9]
flat_load_b64 v[0:1], v[8:9]
flat_load_b96 v[0:2], v[8:9]
flat_load_d16_b16 v0, v[8:9]
flat_load_d16_hi_b16 v0, v[8:9]
flat_load_d16_hi_i8 v0, v[8:9]
flat_load_d16_hi_u8 v0, v[8:9]
flat_load_d16_i8 v0, v[8:9]
flat_load_d16_u8 v0, v[8:9]
flat_load_i16 v0, v[8:9]
flat_load_i8 v0, v[8:9]
flat_load_u16 v0, v[8:9]
flat_load_u8 v0, v[8:9]
flat_store_b128 v[8:9], v[0:3]
flat_store_b16 v[8:9], v0
flat_store_b32 v[8:9], v0
flat_store_b64 v[8:9], v[0:1]
flat_store_b8 v[8:9], v0
flat_store_b96 v[8:9], v[0:2]
flat_store_d16_hi_b16 v[8:9], v0
flat_store_d16_hi_b8 v[8:9], v0
global_atomic_add_f32 v0, v4, s[0:1]
global_atomic_add_f32 v0, v[4:5], v8, off glc
global_atomic_add_u32 v0, v[2:3], v4, off glc
global_atomic_add_u32 v0, v[4:5], v8, off glc
global_atomic_add_u32 v[2:3], v4, off
global_atomic_add_u64 v[0:1], v[4:5], v[8:9], off glc
global_atomic_and_b32 v0, v[4:5], v8, off glc
global_atomic_and_b64 v[0:1], v[4:5], v[8:9], off glc
global_atomic_cmpswap_b32 v0, v[2:3], v[4:5], off glc
global_atomic_cmpswap_b32 v0, v[4:5], v[8:9], off glc
global_atomic_cmpswap_b64 v[0:1], v[4:5], v[8:11], off glc
global_atomic_cmpswap_f32 v0, v[4:5], v[8:9], off glc
global_atomic_dec_u32 v0, v[4:5], v8, off glc
global_atomic_inc_u32 v0, v[4:5], v8, off glc
global_atomic_max_f32 v0, v[4:5], v8, off glc
global_atomic_max_i32 v0, v[4:5], v8, off glc
global_atomic_max_i64 v[0:1], v[4:5], v[8:9], off glc
global_atomic_max_u32 v0, v[4:5], v8, off glc
global_atomic_max_u64 v[0:1], v[4:5], v[8:9], off glc
global_atomic_min_f32 v0, v[4:5], v8, off glc
global_atomic_min_i32 v0, v[4:5], v8, off glc
global_atomic_min_i64 v[0:1], v[4:5], v[8:9], off glc
global_atomic_min_u32 v0, v[4:5], v8, off glc
global_atomic_min_u64 v[0:1], v[4:5], v[8:9], off glc
global_atomic_or_b32 v0, v[4:5], v8, off glc
global_atomic_or_b64 v[0:1], v[4:5], v[8:9], off glc
global_atomic_sub_u32 v0, v[4:5], v8, off glc
global_atomic_sub_u64 v[0:1], v[4:5], v[8:9], off glc
global_atomic_swap_b32 v0, v[4:5], v8, off glc
global_atomic_swap_b64 v[0:1], v[4:5], v[8:9], off glc
global_atomic_xor_b32 v0, v[4:5], v8, off glc
global_atomic_xor_b64 v[0:1], v[4:5], v[8:9], off glc
global_load_b128 v[0:3], v0, s[2:3] offset:16
global_load_b128 v[0:3], v8, s[4:5]
global_load_b128 v[0:3], v[8:9], off offset:-8
global_load_b32 v0, v8, s[4:5]
global_load_b32 v0, v[8:9], off offset:-8
global_load_b32 v1, v[2:3], off offset:-16 glc dlc
global_load_b64 v[0:1], v8, s[4:5]
global_load_b64 v[0:1], v[8:9], off offset:-8
global_load_b96 v[0:2], v8, s[4:5]
global_load_b96 v[0:2], v[8:9], off offset:-8
global_load_d16_b16 v0, v8, s[4:5]
global_load_d16_b16 v0, v[8:9], off offset:-8
global_load_d16_hi_b16 v0, v1, s[0:1]
global_load_d16_hi_b16 v0, v8, s[4:5]
global_load_d16_hi_b16 v0, v[8:9], off offset:-8
global_load_d16_hi_i8 v0, v8, s[4:5]
global_load_d16_hi_i8 v0, v[8:9], off offset:-8
global_load_d16_hi_u8 v0, v8, s[4:5]
global_load_d16_hi_u8 v0, v[8:9], off offset:-8
global_load_d16_i8 v0, v8, s[4:5]
global_load_d16_i8 v0, v[8:9], off offset:-8
global_load_d16_u8 v0, v8, s[4:5]
global_load_d16_u8 v0, v[8:9], off offset:-8
global_load_i16 v0, v8, s[4:5]
global_load_i16 v0, v[8:9], off offset:-8
global_load_i8 v0, v8, s[4:5]
global_load_i8 v0, v[8:9], off offset:-8
global_load_u16 v0, v8, s[4:5]
global_load_u16 v0, v[8:9], off offset:-8
global_load_u8 v0, v8, s[4:5]
global_load_u8 v0, v[8:9], off offset:-8
global_store_b128 v8, v[0:3], s[4:5] offset:16
global_store_b128 v[8:9], v[0:3], off
global_store_b16 v8, v0, s[4:5] offset:16
global_store_b16 v[8:9], v0, off
global_store_b32 v8, v0, s[4:5] offset:16
global_store_b32 v[8:9], v0, off
global_store_b64 v8, v[0:1], s[4:5] offset:16
global_store_b64 v[8:9], v[0:1], off
global_store_b8 v8, v0, s[4:5] offset:16
global_store_b8 v[8:9], v0, off
global_store_b96 v8, v[0:2], s[4:5] offset:16
global_store_b96 v[0:1], v[2:4], off
global_store_b96 v[8:9], v[0:2], off
global_store_d16_hi_b16 v0, v1, s[0:1]
global_store_d16_hi_b16 v8, v0, s[4:5] offset:16
global_store_d16_hi_b16 v[8:9], v0, off
global_store_d16_hi_b8 v8, v0, s[4:5] offset:16
global_store_d16_hi_b8 v[8:9], v0, off
s_abs_i32 s0, s10
s_absdiff_i32 s0, s10, s14
s_add_f16 s0, s10, s14
s_add_f32 s0, s10, s14
s_add_i32 s0, s10, s14
s_add_u32 s0, s10, s14
s_addc_u32 s0, s10, s14
s_addk_i32 s0, 0x1234
s_addk_i32 s0, 0xff80
s_and_b32 s0, s10, s14
s_and_b32 vcc_lo, exec_lo, vcc_lo
s_and_b64 s[0:1], s[10:11], s[14:15]
s_and_not0_saveexec_b32 s0, s1
s_and_not0_wrexec_b32 s0, s1
s_and_not1_b32 s0, s10, s14
s_and_not1_b64 s[0:1], s[10:11], s[14:15]
s_and_not1_saveexec_b32 s0, s1
s_and_not1_wrexec_b32 s0, s1
s_and_saveexec_b32 s0, s1
s_ashr_i32 s0, s10, s14
s_ashr_i64 s[0:1], s[10:11], s14
s_barrier
s_bcnt0_i32_b32 s0, s10
s_bcnt0_i32_b64 s0, s[10:11]
s_bcnt1_i32_b32 s0, s10
s_bcnt1_i32_b64 s0, s[10:11]
s_bfe_i32 s0, s10, s14
s_bfe_i64 s[0:1], s[10:11], s14
s_bfe_u32 s0, s10, s14
s_bfe_u64 s[0:1], s[10:11], s14
s_bfm_b32 s0, s10, s14
s_bfm_b64 s[0:1], s10, s14
s_bitcmp0_b32 s10, s14
s_bitcmp0_b64 s[10:11], s14
s_bitcmp1_b32 s10, s14
s_bitcmp1_b64 s[10:11], s14
s_bitreplicate_b64_b32 s[0:1], s10
s_bitset0_b32 s0, s10
s_bitset0_b64 s[0:1], s10
s_bitset1_b32 s0, 3
s_bitset1_b32 s0, s10
s_bitset1_b64 s[0:1], s10
s_brev_b32 s0, s10
s_brev_b64 s[0:1], s[10:11]
s_ceil_f16 s0, s10
s_ceil_f32 s0, s10
s_clause 0x3
s_cls_i32 s0, s10
s_cls_i32_i64 s0, s[10:11]
s_clz_i32_u32 s0, s10
s_clz_i32_u64 s0, s[10:11]
s_cmov_b32 s0, s10
s_cmov_b64 s[0:1], s[10:11]
s_cmovk_i32 s0, 0x1234
s_cmp_eq_f16 s10, s14
s_cmp_eq_f32 s10, s14
s_cmp_eq_i32 s10, s14
s_cmp_eq_u32 s10, s14
s_cmp_eq_u64 s[10:11], s[14:15]
s_cmp_ge_f16 s10, s14
s_cmp_ge_f32 s10, s14
s_cmp_ge_i32 s10, s14
s_cmp_ge_u32 s10, s14
s_cmp_gt_f16 s10, s14
s_cmp_gt_f32 s10, s14
s_cmp_gt_i32 s10, s14
s_cmp_gt_u32 s10, s14
s_cmp_le_f16 s10, s14
s_cmp_le_f32 s10, s14
s_cmp_le_i32 s10, s14
s_cmp_le_u32 s10, s14
s_cmp_lg_f16 s10, s14
s_cmp_lg_f32 s10, s14
s_cmp_lg_i32 s10, s14
s_cmp_lg_u32 s10, s14
s_cmp_lg_u64 s[10:11], s[14:15]
s_cmp_lt_f16 s10, s14
s_cmp_lt_f32 s10, s14
s_cmp_lt_i32 s10, s14
s_cmp_lt_u32 s10, s14
s_cmp_neq_f16 s10, s14
s_cmp_neq_f32 s10, s14
s_cmp_nge_f16 s10, s14
s_cmp_nge_f32 s10, s14
s_cmp_ngt_f16 s10, s14
s_cmp_ngt_f32 s10, s14
s_cmp_nle_f16 s10, s14
s_cmp_nle_f32 s10, s14
s_cmp_nlg_f16 s10, s14
s_cmp_nlg_f32 s10, s14
s_cmp_nlt_f16 s10, s14
s_cmp_nlt_f32 s10, s14
s_cmp_o_f16 s10, s14
s_cmp_o_f32 s10, s14
s_cmp_u_f16 s10, s14
s_cmp_u_f32 s10, s14
s_cmpk_eq_i32 s10, 0x1234
s_cmpk_eq_u32 s10, 0x1234
s_cmpk_ge_i32 s10, 0x1234
s_cmpk_ge_u32 s10, 0x1234
s_cmpk_gt_i32 s10, 0x1234
s_cmpk_gt_u32 s10, 0x1234
s_cmpk_le_i32 s10, 0x1234
s_cmpk_le_u32 s10, 0x1234
s_cmpk_lg_i32 s10, 0x1234
s_cmpk_lg_u32 s10, 0x1234
s_cmpk_lt_i32 s0, 0x8000
s_cmpk_lt_i32 s10, 0x1234
s_cmpk_lt_u32 s10, 0x1234
s_cselect_b32 s0, -1, 0
s_cselect_b32 s0, s10, s14
s_cselect_b64 s[0:1], s[10:11], s[14:15]
s_ctz_i32_b32 s0, s10
s_ctz_i32_b64 s0, s[10:11]
s_cvt_f16_f32 s0, s10
s_cvt_f32_f16 s0, s10
s_cvt_f32_i32 s0, s10
s_cvt_f32_u32 s0, s10
s_cvt_hi_f32_f16 s0, s10
s_cvt_i32_f32 s0, s10
s_cvt_pk_rtz_f16_f32 s0, s10, s14
s_cvt_u32_f32 s0, s10
s_denorm_mode 15
s_floor_f16 s0, s10
s_floor_f32 s0, s10
s_fmaak_f32 s0, s10, s14, 0x12345678
s_fmac_f16 s0, s10, s14
s_fmac_f32 s0, s1, s2
s_fmac_f32 s0, s10, s14
s_fmamk_f32 s0, s10, 0x12345678, s18
s_getpc_b64 s[0:1]
s_getreg_b32 s0, hwreg(HW_REG_MODE, 4, 4)
s_icache_inv
s_inst_prefetch 1
s_load_b128 s[16:19], s[2:3], -0x20
s_load_b256 s[16:23], s[2:3], -0x20
s_load_b32 s0, s[2:3], s4 offset:0x10
s_load_b32 s16, s[2:3], -0x20
s_load_b512 s[16:31], s[2:3], -0x20
s_load_b64 s[16:17], s[2:3], -0x20
s_load_b64 vcc, s[2:3], 0x10 glc
s_lshl1_add_u32 s0, s10, s14
s_lshl2_add_u32 s0, s10, s14
s_lshl3_add_u32 s0, s10, s14
s_lshl4_add_u32 s0, s10, s14
s_lshl_b32 s0, s10, s14
s_lshl_b64 s[0:1], s[10:11], s14
s_lshr_b32 s0, s10, s14
s_lshr_b64 s[0:1], s[10:11], s14
s_max_f16 s0, s10, s14
s_max_f32 s0, s10, s14
s_max_i32 s0, s10, s14
s_max_u32 s0, s10, s14
s_min_f16 s0, s10, s14
s_min_f32 s0, s10, s14
s_min_i32 s0, s10, s14
s_min_u32 s0, s10, s14
s_mov_b32 s0, 1.0
s_mov_b32 s0, s10
s_mov_b64 s[0:1], -1
s_mov_b64 s[0:1], 0x80000000
s_mov_b64 s[0:1], s[10:11]
s_movk_i32 s0, 0x1234
s_movk_i32 s0, 0xff80
s_mul_f16 s0, s10, s14
s_mul_f32 s0, s10, s14
s_mul_hi_i32 s0, s10, s14
s_mul_hi_u32 s0, s10, s14
s_mul_i32 s0, s10, s14
s_mulk_i32 s0, 0x1234
s_nand_b32 s0, s10, s14
s_nand_b64 s[0:1], s[10:11], s[14:15]
s_nand_saveexec_b32 s0, s1
s_nor_b32 s0, s10, s14
s_nor_b64 s[0:1], s[10:11], s[14:15]
s_nor_saveexec_b32 s0, s1
s_not_b32 s0, s10
s_not_b64 s[0:1], s[10:11]
s_or_b32 s0, s10, s14
s_or_b64 s[0:1], s[10:11], s[14:15]
s_or_not0_saveexec_b32 s0, s1
s_or_not1_b32 s0, s10, s14
s_or_not1_b64 s[0:1], s[10:11], s[14:15]
s_or_not1_saveexec_b32 s0, s1
s_or_saveexec_b32 s0, s1
s_pack_hh_b32_b16 s0, s10, s14
s_pack_hl_b32_b16 s0, s10, s14
s_pack_lh_b32_b16 s0, s10, s14
s_pack_ll_b32_b16 s0, s10, s14
s_quadmask_b32 s0, s10
s_quadmask_b64 s[0:1], s[10:11]
s_rndne_f16 s0, s10
s_rndne_f32 s0, s10
s_round_mode 0
s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
s_set_inst_prefetch_distance 0x1
s_setpc_b64 s[0:1]
s_setprio 1
s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 15
s_sext_i32_i16 s0, s10
s_sext_i32_i8 s0, s10
s_sleep 1
s_sub_f16 s0, s10, s14
s_sub_f32 s0, s10, s14
s_sub_i32 s0, s10, s14
s_sub_u32 s0, s10, s14
s_subb_u32 s0, s10, s14
s_swappc_b64 s[30:31], s[4:5]
s_trunc_f16 s0, s10
s_trunc_f32 s0, s10
s_wait_idle
s_waitcnt vmcnt(0) lgkmcnt(0)
s_waitcnt_vscnt null, 0x0
s_wqm_b32 s0, s10
s_wqm_b64 s[0:1], s[10:11]
s_xnor_b32 s0, s10, s14
s_xnor_b64 s[0:1], s[10:11], s[14:15]
s_xnor_saveexec_b32 s0, s1
s_xor_b32 s0, s10, s14
s_xor_b64 s[0:1], s[10:11], s[14:15]
s_xor_saveexec_b32 s0, s1
v_add3_u32 v0, v10, v14, v18
v_add_co_ci_u32 v0, s21, v10, v14, s20
v_add_co_ci_u32_e64 v0, null, v1, v2, s0
v_add_co_ci_u32_e64 v0, s1, v1, v2, vcc_lo
v_add_co_u32 v0, s0, v1, v2
v_add_co_u32 v0, s21, v10, v14
v_add_f16 v0, 1.0, v2
v_add_f16 v0, v1, v2
v_add_f16 v0, v10, v14
v_add_f32 v0, v10, v14
v_add_f32_dpp v0, -v1, |v2| quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf bound_ctrl:1
v_add_f32_dpp v0, v1, v2 row_shr:3 row_mask:0xa bank_mask:0x5 fi:1
v_add_f32_e64_dpp v0, v1, v2 clamp row_mirror row_mask:0xf bank_mask:0xf
v_add_f64 v[0:1], v[10:11], v[14:15]
v_add_f64 v[0:1], v[2:3], 0x40590000
v_add_f64 v[0:1], v[2:3], 1.0
v_add_lshl_u32 v0, v10, v14, v18
v_add_nc_i16 v0, v10, v14
v_add_nc_i16 v0, v10, v14 clamp
v_add_nc_i32 v0, v10, v14
v_add_nc_i32 v0, v10, v14 clamp
v_add_nc_u16 v0, v1, v2 op_sel:[0,1,1]
v_add_nc_u16 v0, v10, v14
v_add_nc_u16 v0, v10, v14 clamp
v_add_nc_u32 v0, v10, v14
v_add_nc_u32 v0, v10, v14 clamp
v_alignbit_b32 v0, v10, v14, v18
v_alignbyte_b32 v0, v10, v14, v18
v_and_b16 v0, v10, v14
v_and_b32 v0, v10, v14
v_and_or_b32 v0, v10, v14, v18
v_ashrrev_i16 v0, v10, v14
v_ashrrev_i32 v0, v10, v14
v_ashrrev_i64 v[0:1], v10, v[14:15]
v_bcnt_u32_b32 v0, v10, v14
v_bfe_i32 v0, v10, v14, v18
v_bfe_u32 v0, v1, 8, 8
v_bfe_u32 v0, v10, v14, v18
v_bfi_b32 v0, v10, v14, v18
v_bfm_b32 v0, v10, v14
v_bfrev_b32 v0, v10
v_ceil_f16 v0, v10
v_ceil_f32 v0, v10
v_ceil_f64 v[0:1], v[10:11]
v_cls_i32 v0, v10
v_clz_i32_u32 v0, v10
v_cmp_class_f16 s20, v10, v14
v_cmp_class_f32 s0, v1, 0x1f8
v_cmp_class_f32 s20, v10, v14
v_cmp_class_f64 s20, v[10:11], v14
v_cmp_eq_f16 s20, v10, v14
v_cmp_eq_f32 s20, v10, v14
v_cmp_eq_f64 s20, v[10:11], v[14:15]
v_cmp_eq_i16 s20, v10, v14
v_cmp_eq_i32 s20, v10, v14
v_cmp_eq_i64 s20, v[10:11], v[14:15]
v_cmp_eq_u16 s20, v10, v14
v_cmp_eq_u32 s20, v10, v14
v_cmp_eq_u64 s20, v[10:11], v[14:15]
v_cmp_f_f16 s20, v10, v14
v_cmp_f_f32 s20, v10, v14
v_cmp_f_f64 s20, v[10:11], v[14:15]
v_cmp_f_i32 s20, v10, v14
v_cmp_f_i64 s20, v[10:11], v[14:15]
v_cmp_f_u32 s20, v10, v14
v_cmp_f_u64 s20, v[10:11], v[14:15]
v_cmp_ge_f16 s20, v10, v14
v_cmp_ge_f32 s20, v10, v14
v_cmp_ge_f64 s20, v[10:11], v[14:15]
v_cmp_ge_i16 s20, v10, v14
v_cmp_ge_i32 s20, v10, v14
v_cmp_ge_i64 s20, v[10:11], v[14:15]
v_cmp_ge_u16 s20, v10, v14
v_cmp_ge_u32 s20, v10, v14
v_cmp_ge_u64 s20, v[10:11], v[14:15]
v_cmp_gt_f16 s20, v10, v14
v_cmp_gt_f32 s20, v10, v14
v_cmp_gt_f64 s20, v[10:11], v[14:15]
v_cmp_gt_i16 s20, v10, v14
v_cmp_gt_i32 s20, v10, v14
v_cmp_gt_i64 s20, v[10:11], v[14:15]
v_cmp_gt_u16 s20, v10, v14
v_cmp_gt_u32 s20, v10, v14
v_cmp_gt_u64 s20, v[10:11], v[14:15]
v_cmp_le_f16 s20, v10, v14
v_cmp_le_f32 s20, v10, v14
v_cmp_le_f64 s20, v[10:11], v[14:15]
v_cmp_le_i16 s20, v10, v14
v_cmp_le_i32 s20, v10, v14
v_cmp_le_i64 s20, v[10:11], v[14:15]
v_cmp_le_u16 s20, v10, v14
v_cmp_le_u32 s20, v10, v14
v_cmp_le_u64 s20, v[10:11], v[14:15]
v_cmp_lg_f16 s20, v10, v14
v_cmp_lg_f32 s20, v10, v14
v_cmp_lg_f64 s20, v[10:11], v[14:15]
v_cmp_lt_f16 s20, v10, v14
v_cmp_lt_f16 vcc_lo, v0, v1
v_cmp_lt_f32 s20, v10, v14
v_cmp_lt_f32_dpp vcc_lo, v1, v2 row_half_mirror row_mask:0xf bank_mask:0xf
v_cmp_lt_f64 s20, v[10:11], v[14:15]
v_cmp_lt_i16 s0, v0, 5
v_cmp_lt_i16 s20, v10, v14
v_cmp_lt_i32 s20, v10, v14
v_cmp_lt_i64 s20, v[10:11], v[14:15]
v_cmp_lt_u16 s20, v10, v14
v_cmp_lt_u32 s20, v10, v14
v_cmp_lt_u64 s20, v[10:11], v[14:15]
v_cmp_ne_i16 s20, v10, v14
v_cmp_ne_i32 s20, v10, v14
v_cmp_ne_i64 s20, v[10:11], v[14:15]
v_cmp_ne_u16 s20, v10, v14
v_cmp_ne_u32 s20, v10, v14
v_cmp_ne_u64 s20, v[10:11], v[14:15]
v_cmp_neq_f16 s20, v10, v14
v_cmp_neq_f32 s20, v10, v14
v_cmp_neq_f64 s20, v[10:11], v[14:15]
v_cmp_nge_f16 s20, v10, v14
v_cmp_nge_f32 s20, v10, v14
v_cmp_nge_f64 s20, v[10:11], v[14:15]
v_cmp_ngt_f16 s20, v10, v14
v_cmp_ngt_f32 s20, v10, v14
v_cmp_ngt_f64 s20, v[10:11], v[14:15]
v_cmp_nle_f16 s20, v10, v14
v_cmp_nle_f32 s20, v10, v14
v_cmp_nle_f64 s20, v[10:11], v[14:15]
v_cmp_nlg_f16 s20, v10, v14
v_cmp_nlg_f32 s20, v10, v14
v_cmp_nlg_f64 s20, v[10:11], v[14:15]
v_cmp_nlt_f16 s20, v10, v14
v_cmp_nlt_f32 s20, v10, v14
v_cmp_nlt_f64 s20, v[10:11], v[14:15]
v_cmp_o_f16 s20, v10, v14
v_cmp_o_f32 s20, v10, v14
v_cmp_o_f64 s20, v[10:11], v[14:15]
v_cmp_t_f16 s20, v10, v14
v_cmp_t_f32 s20, v10, v14
v_cmp_t_f64 s20, v[10:11], v[14:15]
v_cmp_t_i32 s20, v10, v14
v_cmp_t_i64 s20, v[10:11], v[14:15]
v_cmp_t_u32 s20, v10, v14
v_cmp_t_u64 s20, v[10:11], v[14:15]
v_cmp_u_f16 s20, v10, v14
v_cmp_u_f32 s20, v10, v14
v_cmp_u_f64 s20, v[10:11], v[14:15]
v_cmpx_class_f16 v10, v14
v_cmpx_class_f32 v10, v14
v_cmpx_class_f64 v[10:11], v14
v_cmpx_eq_f16 v10, v14
v_cmpx_eq_f32 v10, v14
v_cmpx_eq_f64 v[10:11], v[14:15]
v_cmpx_eq_i16 v10, v14
v_cmpx_eq_i32 v10, v14
v_cmpx_eq_i64 v[10:11], v[14:15]
v_cmpx_eq_u16 v10, v14
v_cmpx_eq_u32 v0, v1
v_cmpx_eq_u32 v10, v14
v_cmpx_eq_u64 v[10:11], v[14:15]
v_cmpx_f_f16 v10, v14
v_cmpx_f_f32 v10, v14
v_cmpx_f_f64 v[10:11], v[14:15]
v_cmpx_f_i32 v10, v14
v_cmpx_f_i64 v[10:11], v[14:15]
v_cmpx_f_u32 v10, v14
v_cmpx_f_u64 v[10:11], v[14:15]
v_cmpx_ge_f16 v10, v14
v_cmpx_ge_f32 v10, v14
v_cmpx_ge_f64 v[10:11], v[14:15]
v_cmpx_ge_i16 v10, v14
v_cmpx_ge_i32 v10, v14
v_cmpx_ge_i64 v[10:11], v[14:15]
v_cmpx_ge_u16 v10, v14
v_cmpx_ge_u32 v10, v14
v_cmpx_ge_u64 v[10:11], v[14:15]
v_cmpx_gt_f16 v10, v14
v_cmpx_gt_f32 v10, v14
v_cmpx_gt_f64 v[10:11], v[14:15]
v_cmpx_gt_i16 v10, v14
v_cmpx_gt_i32 v10, v14
v_cmpx_gt_i64 v[10:11], v[14:15]
v_cmpx_gt_u16 v10, v14
v_cmpx_gt_u32 v10, v14
v_cmpx_gt_u64 v[10:11], v[14:15]
v_cmpx_le_f16 v10, v14
v_cmpx_le_f32 v10, v14
v_cmpx_le_f64 v[10:11], v[14:15]
v_cmpx_le_i16 v10, v14
v_cmpx_le_i32 v10, v14
v_cmpx_le_i64 v[10:11], v[14:15]
v_cmpx_le_u16 v10, v14
v_cmpx_le_u32 v10, v14
v_cmpx_le_u64 v[10:11], v[14:15]
v_cmpx_lg_f16 v10, v14
v_cmpx_lg_f32 v10, v14
v_cmpx_lg_f64 v[10:11], v[14:15]
v_cmpx_lt_f16 v10, v14
v_cmpx_lt_f32 v10, v14
v_cmpx_lt_f64 v[10:11], v[14:15]
v_cmpx_lt_i16 v10, v14
v_cmpx_lt_i32 v10, v14
v_cmpx_lt_i64 v[10:11], v[14:15]
v_cmpx_lt_u16 v10, v14
v_cmpx_lt_u32 v10, v14
v_cmpx_lt_u64 v[10:11], v[14:15]
v_cmpx_ne_i16 v10, v14
v_cmpx_ne_i32 v10, v14
v_cmpx_ne_i64 v[10:11], v[14:15]
v_cmpx_ne_u16 v10, v14
v_cmpx_ne_u32 v10, v14
v_cmpx_ne_u64 v[10:11], v[14:15]
v_cmpx_neq_f16 v10, v14
v_cmpx_neq_f32 v10, v14
v_cmpx_neq_f64 v[10:11], v[14:15]
v_cmpx_nge_f16 v10, v14
v_cmpx_nge_f32 v10, v14
v_cmpx_nge_f64 v[10:11], v[14:15]
v_cmpx_ngt_f16 v10, v14
v_cmpx_ngt_f32 v10, v14
v_cmpx_ngt_f64 v[10:11], v[14:15]
v_cmpx_nle_f16 v10, v14
v_cmpx_nle_f32 v10, v14
v_cmpx_nle_f64 v[10:11], v[14:15]
v_cmpx_nlg_f16 v10, v14
v_cmpx_nlg_f32 v10, v14
v_cmpx_nlg_f64 v[10:11], v[14:15]
v_cmpx_nlt_f16 v10, v14
v_cmpx_nlt_f32 v10, v14
v_cmpx_nlt_f64 v[10:11], v[14:15]
v_cmpx_o_f16 v10, v14
v_cmpx_o_f32 v10, v14
v_cmpx_o_f64 v[10:11], v[14:15]
v_cmpx_t_f16 v10, v14
v_cmpx_t_f32 v10, v14
v_cmpx_t_f64 v[10:11], v[14:15]
v_cmpx_t_i32 v10, v14
v_cmpx_t_i64 v[10:11], v[14:15]
v_cmpx_t_u32 v10, v14
v_cmpx_t_u64 v[10:11], v[14:15]
v_cmpx_u_f16 v10, v14
v_cmpx_u_f32 v10, v14
v_cmpx_u_f64 v[10:11], v[14:15]
v_cndmask_b16 v0, v10, v14, s20
v_cndmask_b32 v0, v10, v14, s20
v_cndmask_b32_e64 v0, 0, 1.0, s2
v_cos_f16 v0, v10
v_cos_f32 v0, v10
v_ctz_i32_b32 v0, v10
v_cvt_f16_f32 v0, v1
v_cvt_f16_f32 v0, v10
v_cvt_f16_i16 v0, v10
v_cvt_f16_u16 v0, v10
v_cvt_f32_f16 v0, -v1
v_cvt_f32_f16 v0, 1.0
v_cvt_f32_f16 v0, v10
v_cvt_f32_f16 v0, |v1|
v_cvt_f32_f64 v0, v[10:11]
v_cvt_f32_i32 v0, v10
v_cvt_f32_u32 v0, v10
v_cvt_f32_ubyte0 v0, v10
v_cvt_f32_ubyte1 v0, v10
v_cvt_f32_ubyte2 v0, v10
v_cvt_f32_ubyte3 v0, v10
v_cvt_f64_f32 v[0:1], v10
v_cvt_f64_i32 v[0:1], v10
v_cvt_f64_u32 v[0:1], v10
v_cvt_floor_i32_f32 v0, v1
v_cvt_floor_i32_f32 v0, v10
v_cvt_flr_i32_f32 v0, v1
v_cvt_i16_f16 v0, v10
v_cvt_i32_f32 v0, v10
v_cvt_i32_f64 v0, v[10:11]
v_cvt_i32_i16 v0, v10
v_cvt_nearest_i32_f32 v0, v10
v_cvt_norm_i16_f16 v0, v10
v_cvt_norm_u16_f16 v0, v10
v_cvt_off_f32_i4 v0, v10
v_cvt_pk_i16_f32 v0, v10, v14
v_cvt_pk_i16_i32 v0, v10, v14
v_cvt_pk_norm_i16_f16 v0, v10, v14
v_cvt_pk_norm_i16_f32 v0, v10, v14
v_cvt_pk_norm_u16_f16 v0, v10, v14
v_cvt_pk_norm_u16_f32 v0, v10, v14
v_cvt_pk_rtz_f16_f32 v0, v1, v2
v_cvt_pk_rtz_f16_f32 v0, v10, v14
v_cvt_pk_u16_f32 v0, v10, v14
v_cvt_pk_u16_u32 v0, v10, v14
v_cvt_pk_u8_f32 v0, v1, v2, v3
v_cvt_pk_u8_f32 v0, v10, v14, v18
v_cvt_pkrtz_f16_f32 v0, v1, v2
v_cvt_u16_f16 v0, v10
v_cvt_u32_f32 v0, v10
v_cvt_u32_f64 v0, v[10:11]
v_cvt_u32_u16 v0, v10
v_div_fixup_f16 v0, v10, v14, v18
v_div_fixup_f32 v0, v10, v14, v18
v_div_fixup_f64 v[0:1], v[10:11], v[14:15], v[18:19]
v_div_fmas_f32 v0, v10, v14, v18
v_div_fmas_f64 v[0:1], v[10:11], v[14:15], v[18:19]
v_div_scale_f32 v0, vcc_lo, v10, v14, v18
v_div_scale_f64 v[0:1], vcc_lo, v[10:11], v[14:15], v[18:19]
v_div_scale_f64 v[0:1], vcc_lo, v[2:3], v[4:5], v[2:3]
v_dot2_f16_f16 v0, v10, v14, v18
v_dot2_f32_bf16 v0, v1, v2, v3
v_dot2_f32_bf16 v0, v10, v14, v18
v_dot2_f32_f16 v0, v1, v2, v3
v_dot2_f32_f16 v0, v10, v14, v18
v_dot2acc_f32_f16 v0, v1, v2
v_dot2acc_f32_f16 v0, v10, v14
v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,1,0]
v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,1,0] clamp
v_dot4_i32_iu8 v0, v10, v14, v18
v_dot4_i32_iu8 v0, v10, v14, v18 clamp
v_dot4_u32_u8 v0, v10, v14, v18
v_dot8_i32_iu4 v0, v10, v14, v18
v_dot8_i32_iu4 v0, v10, v14, v18 clamp
v_dot8_u32_u4 v0, v10, v14, v18
v_dual_add_f32 v0, v1, v2 :: v_dual_add_f32 v3, s4, v5
v_dual_cndmask_b32 v0, v1, v2 :: v_dual_and_b32 v3, v4, v5
v_dual_cndmask_b32 v0, v1, v2 :: v_dual_mov_b32 v3, 0
v_dual_dot2acc_f32_f16 v0, v1, v2 :: v_dual_mov_b32 v3, s0
v_dual_fmaak_f32 v122, s74, v161, 2.741 :: v_dual_and_b32 v247, v160, v98
v_dual_fmac_f32 v0, v1, v2 :: v_dual_fmac_f32 v3, s4, v5
v_dual_fmamk_f32 v0, v1, 0x3f80, v2 :: v_dual_add_nc_u32 v3, v4, v5
v_dual_fmamk_f32 v122, v74, 0xa0172923, v161 :: v_dual_lshlrev_b32 v247, v160, v99
v_dual_max_f32 v0, v1, v2 :: v_dual_max_f32 v3, s4, v5
v_dual_min_f32 v0, v1, v2 :: v_dual_min_f32 v3, s4, v5
v_dual_mov_b32 v0, 0.5 :: v_dual_lshlrev_b32 v3, 4, v5
v_dual_mul_dx9_zero_f32 v0, v1, v2 :: v_dual_mul_dx9_zero_f32 v3, s4, v5
v_dual_mul_f32 v0, v1, v2 :: v_dual_add_f32 v3, v4, v5
v_dual_mul_f32 v0, v1, v2 :: v_dual_mul_f32 v3, s4, v5
v_dual_sub_f32 v0, v1, v2 :: v_dual_sub_f32 v3, s4, v5
v_dual_subrev_f32 v0, v1, v2 :: v_dual_subrev_f32 v3, s4, v5
v_exp_f16 v0, v10
v_exp_f32 v0, v10
v_floor_f16 v0, v10
v_floor_f32 v0, v10
v_floor_f64 v[0:1], v[10:11]
v_fma_dx9_zero_f32 v0, v10, v14, v18
v_fma_f16 v0, v1, v2, v3 op_sel:[1,0,1,1]
v_fma_f16 v0, v10, v14, v18
v_fma_f32 v0, v1, v2, neg(1.0)
v_fma_f32 v0, v10, v14, v18
v_fma_f32_e64_dpp v0, v1, v2, v3 row_share:4 row_mask:0xf bank_mask:0xf
v_fma_f64 v[0:1], v[10:11], v[14:15], v[18:19]
v_fma_mix_f32 v0, -v1, |v2|, v3 op_sel_hi:[1,1,0]
v_fma_mix_f32 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,1,0]
v_fma_mix_f32 v0, v10, v14, v18
v_fma_mixhi_f16 v0, v1, v2, 0 op_sel_hi:[0,1,0]
v_fma_mixhi_f16 v0, v10, v14, v18
v_fma_mixlo_f16 v0, v1, v2, v3
v_fma_mixlo_f16 v0, v10, v14, v18
v_fmaak_f16 v0, v10, v14, 0x1234
v_fmaak_f32 v0, v1, v2, 0x40490fdb
v_fmaak_f32 v0, v10, v14, 0x12345678
v_fmac_dx9_zero_f32 v0, v10, v14
v_fmac_f16 v0, v10, v14
v_fmac_f32 v0, v10, v14
v_fmac_f32_e64 v0, v1, -v2
v_fmamk_f16 v0, v10, 0x1234, v18
v_fmamk_f32 v0, v1, 0x40490fdb, v2
v_fmamk_f32 v0, v10, 0x12345678, v18
v_fract_f16 v0, v10
v_fract_f32 v0, v10
v_fract_f64 v[0:1], v[10:11]
v_frexp_exp_i16_f16 v0, v10
v_frexp_exp_i32_f32 v0, v10
v_frexp_exp_i32_f64 v0, v[10:11]
v_frexp_mant_f16 v0, v10
v_frexp_mant_f32 v0, v10
v_frexp_mant_f64 v[0:1], v[10:11]
v_ldexp_f16 v0, v10, v14
v_ldexp_f32 v0, v1, 5
v_ldexp_f32 v0, v10, v14
v_ldexp_f64 v[0:1], v[10:11], v14
v_ldexp_f64 v[0:1], v[2:3], v4
v_lerp_u8 v0, v10, v14, v18
v_log_f16 v0, v10
v_log_f32 v0, v10
v_lshl_add_u32 v0, v10, v14, v18
v_lshl_or_b32 v0, v10, v14, v18
v_lshlrev_b16 v0, v10, v14
v_lshlrev_b32 v0, v10, v14
v_lshlrev_b64 v[0:1], 2, s[0:1]
v_lshlrev_b64 v[0:1], v10, v[14:15]
v_lshrrev_b16 v0, v10, v14
v_lshrrev_b32 v0, v10, v14
v_lshrrev_b64 v[0:1], v10, v[14:15]
v_mad_i16 v0, v10, v14, v18
v_mad_i32_i16 v0, v10, v14, v18
v_mad_i32_i24 v0, v10, v14, v18
v_mad_i32_i24 v0, v10, v14, v18 clamp
v_mad_i64_i32 v[0:1], s21, v10, v14, v[18:19]
v_mad_u16 v0, v1, v2, v3
v_mad_u16 v0, v10, v14, v18
v_mad_u32_u16 v0, v1, v2, v3 op_sel:[1,0,0,0]
v_mad_u32_u16 v0, v10, v14, v18
v_mad_u32_u24 v0, v10, v14, v18
v_mad_u32_u24 v0, v10, v14, v18 clamp
v_mad_u64_u32 v[0:1], s0, v2, v3, 0x12345
v_mad_u64_u32 v[0:1], s21, v10, v14, v[18:19]
v_max3_f16 v0, v10, v14, v18
v_max3_f32 v0, v10, v14, v18
v_max3_i16 v0, v10, v14, v18
v_max3_i32 v0, v10, v14, v18
v_max3_u16 v0, v10, v14, v18
v_max3_u32 v0, v10, v14, v18
v_max_f16 v0, v10, v14
v_max_f32 v0, v10, v14
v_max_f32_e64 v0, v1, v1 clamp
v_max_f64 v[0:1], v[10:11], v[14:15]
v_max_i16 v0, v10, v14
v_max_i32 v0, v10, v14
v_max_u16 v0, v10, v14
v_max_u32 v0, v10, v14
v_maxmin_f16 v0, v10, v14, v18
v_maxmin_f32 v0, v10, v14, v18
v_maxmin_i32 v0, v10, v14, v18
v_maxmin_u32 v0, v10, v14, v18
v_mbcnt_hi_u32_b32 v0, v10, v14
v_mbcnt_lo_u32_b32 v0, v10, v14
v_med3_f16 v0, v10, v14, v18
v_med3_f32 v0, v10, v14, v18
v_med3_i16 v0, v10, v14, v18
v_med3_i32 v0, v10, v14, v18
v_med3_u16 v0, v10, v14, v18
v_med3_u32 v0, v10, v14, v18
v_min3_f16 v0, v1, v2, v3
v_min3_f16 v0, v10, v14, v18
v_min3_f32 v0, v10, v14, v18
v_min3_i16 v0, v10, v14, v18
v_min3_i32 v0, v10, v14, v18
v_min3_u16 v0, v10, v14, v18
v_min3_u32 v0, v10, v14, v18
v_min_f16 v0, v10, v14
v_min_f32 v0, v10, v14
v_min_f64 v[0:1], v[10:11], v[14:15]
v_min_i16 v0, v10, v14
v_min_i32 v0, v10, v14
v_min_u16 v0, v10, v14
v_min_u32 v0, v10, v14
v_minmax_f16 v0, v10, v14, v18
v_minmax_f32 v0, v10, v14, v18
v_minmax_i32 v0, v10, v14, v18
v_minmax_u32 v0, v10, v14, v18
v_mov_b32 v0, m0
v_mov_b32 v0, src_scc
v_mov_b32 v0, v10
v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0]
v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0] fi:1
v_movreld_b32 v0, v1
v_movrels_b32 v0, v1
v_msad_u8 v0, v10, v14, v18
v_mul_dx9_zero_f32 v0, v10, v14
v_mul_f16 v0, v10, v14
v_mul_f32 v0, 0.15915494, v1
v_mul_f32 v0, v10, v14
v_mul_f32_e64 v0, v1, -|v2| div:2
v_mul_f32_e64 v0, v1, v2 mul:2
v_mul_f64 v[0:1], 0.15915494309189532, v[2:3]
v_mul_f64 v[0:1], v[10:11], v[14:15]
v_mul_hi_i32 v0, v10, v14
v_mul_hi_i32_i24 v0, v10, v14
v_mul_hi_u32 v0, v10, v14
v_mul_hi_u32_u24 v0, v10, v14
v_mul_i32_i24 v0, v10, v14
v_mul_lo_u16 v0, v10, v14
v_mul_lo_u32 v0, v10, v14
v_mul_u32_u24 v0, v10, v14
v_nop
v_not_b16 v0, v10
v_not_b32 v0, v10
v_or3_b32 v0, v10, v14, v18
v_or_b16 v0, v10, v14
v_or_b32 v0, v10, v14
v_pack_b32_f16 v0, v1, v2 op_sel:[1,1,0]
v_pack_b32_f16 v0, v10, v14
v_perm_b32 v0, v10, v14, v18
v_permlane16_b32 v0, v1, s0, s1
v_permlane64_b32 v0, v1
v_permlanex16_b32 v0, v1, -1, s1 op_sel:[1,1]
v_pk_add_f16 v0, v1, 1.0 op_sel_hi:[1,0]
v_pk_add_f16 v0, v10, v14
v_pk_add_i16 v0, v10, v14
v_pk_add_i16 v0, v10, v14 clamp
v_pk_add_u16 v0, v1, 5
v_pk_add_u16 v0, v10, v14
v_pk_add_u16 v0, v10, v14 clamp
v_pk_ashrrev_i16 v0, v10, v14
v_pk_fma_f16 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[0,1,1] neg_lo:[1,0,0] neg_hi:[1,0,0]
v_pk_fma_f16 v0, v10, v14, v18
v_pk_fmac_f16 v0, v10, v14
v_pk_lshlrev_b16 v0, v10, v14
v_pk_lshrrev_b16 v0, v10, v14
v_pk_mad_i16 v0, v10, v14, v18
v_pk_mad_u16 v0, v10, v14, v18
v_pk_max_f16 v0, v10, v14
v_pk_max_i16 v0, v10, v14
v_pk_max_u16 v0, v10, v14
v_pk_min_f16 v0, v10, v14
v_pk_min_i16 v0, v10, v14
v_pk_min_u16 v0, v10, v14
v_pk_mul_f16 v0, v10, v14
v_pk_mul_lo_u16 v0, v10, v14
v_pk_sub_i16 v0, v10, v14
v_pk_sub_i16 v0, v10, v14 clamp
v_pk_sub_u16 v0, v10, v14
v_pk_sub_u16 v0, v10, v14 clamp
v_rcp_f16 v0, v10
v_rcp_f32 v0, v10
v_rcp_f64 v[0:1], v[10:11]
v_rcp_iflag_f32 v0, v10
v_readfirstlane_b32 s0, v1
v_readlane_b32 s0, v1, 31
v_readlane_b32 s0, v1, s2
v_rndne_f16 v0, v10
v_rndne_f32 v0, v10
v_rndne_f64 v[0:1], v[10:11]
v_rsq_f16 v0, v10
v_rsq_f32 v0, v10
v_rsq_f64 v[0:1], v[10:11]
v_sad_hi_u8 v0, v10, v14, v18
v_sad_u16 v0, v10, v14, v18
v_sad_u32 v0, v10, v14, v18
v_sad_u8 v0, v10, v14, v18
v_sat_pk_u8_i16 v0, v10
v_sin_f16 v0, v10
v_sin_f32 v0, v10
v_sqrt_f16 v0, v10
v_sqrt_f32 v0, v10
v_sqrt_f64 v[0:1], v[10:11]
v_sub_co_ci_u32 v0, s21, v10, v14, s20
v_sub_co_u32 v0, s21, v10, v14
v_sub_f16 v0, v10, v14
v_sub_f32 v0, v10, v14
v_sub_nc_i16 v0, v10, v14
v_sub_nc_i16 v0, v10, v14 clamp
v_sub_nc_i32 v0, v10, v14
v_sub_nc_i32 v0, v10, v14 clamp
v_sub_nc_u16 v0, v10, v14
v_sub_nc_u16 v0, v10, v14 clamp
v_sub_nc_u32 v0, v10, v14
v_sub_nc_u32 v0, v10, v14 clamp
v_subrev_co_ci_u32 v0, s21, v10, v14, s20
v_subrev_co_u32 v0, s21, v10, v14
v_subrev_f16 v0, v10, v14
v_subrev_f32 v0, v10, v14
v_subrev_nc_u32 v0, v10, v14
v_subrev_nc_u32 v0, v10, v14 clamp
v_swap_b32 v0, v1
v_trunc_f16 v0, v10
v_trunc_f32 v0, v10
v_trunc_f64 v[0:1], v[10:11]
v_wmma_bf16_16x16x16_bf16 v[0:7], v[8:15], v[16:23], v[0:7]
v_wmma_f16_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7] op_sel:[0,0,1]
v_wmma_f32_16x16x16_bf16 v[0:7], v[8:15], v[16:23], 1.0
v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]
v_wmma_i32_16x16x16_iu4 v[0:7], v[8:9], v[10:11], v[0:7] neg_lo:[1,1,0]
v_wmma_i32_16x16x16_iu8 v[0:7], v[8:11], v[12:15], 0 neg_lo:[1,1,0]
v_wmma_i32_16x16x16_iu8 v[0:7], v[8:11], v[12:15], v[0:7] neg_lo:[1,1,0] clamp
v_writelane_b32 v0, s1, 3
v_xad_u32 v0, v10, v14, v18
v_xnor_b32 v0, v10, v14
v_xor3_b32 v0, v10, v14, v18
v_xor_b16 v0, v10, v14
v_xor_b32 v0, v10, v14
