// One header for three executions of one kernel source.
//
//   AMD   clang -x hip --offload-arch=gfx11xx   wave32: the product
//   CUDA  clang -x cuda, to PTX without CUDA's toolkit   warp32: the numbers and races on an NVIDIA GPU
//   HOST  g++ or clang++ -x c++   fibers: the numbers in ordinary tests
//
// Kernels use what is declared here and nothing else: GP_KERNEL, GP_SHARED, gp_* functions. No vendor builtin, no inline
// assembly, no other header. 1-D grids of 1-D blocks, block sizes known when compiled, waves of 32 threads, shared memory of
// fixed size, wave operations only where the whole wave takes part. Compiled with -ffp-contract=off: a fused multiply-add is
// written as one, so that sums are bit-equal everywhere.
#pragma once

typedef signed char gp_i8;
typedef unsigned char gp_u8;
typedef short gp_i16;
typedef unsigned short gp_u16;
typedef int gp_i32;
typedef unsigned gp_u32;
typedef unsigned long long gp_u64;

#define GP_WAVE 32u

// 16 bytes that are loaded and stored at once; at addresses that are multiples of 16.
struct alignas(16) gp_u32x4 {
    gp_u32 x[4];
};

#if defined(__AMDGCN__) || (defined(__HIP__) && defined(__clang__))
// ---------------------------------------------------------------- AMD
#define GP_AMD 1
#define GP_KERNEL(name, threads, ...) \
    extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(threads, threads))) void name(__VA_ARGS__)
#define GP_DEV static inline __attribute__((device, always_inline))
#define GP_DEV_MEMBER inline __attribute__((device, always_inline))
#define GP_SHARED static __attribute__((shared))
#define GP_TABLE static __attribute__((device)) const
GP_DEV gp_u32 gp_thread() { return __builtin_amdgcn_workitem_id_x(); }
GP_DEV gp_u32 gp_block() { return __builtin_amdgcn_workgroup_id_x(); }
GP_DEV gp_u32 gp_lane() { return __builtin_amdgcn_mbcnt_lo(~0u, 0u); }
// Orders shared memory of the block. "local": global memory is not waited for.
GP_DEV void gp_sync() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}
// Orders shared and global memory of the block.
GP_DEV void gp_sync_global() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// Orders shared memory of the wave: what one lane wrote, another reads.
GP_DEV void gp_wave_sync() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront", "local");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront", "local");
}
GP_DEV gp_i32 gp_shfl(gp_i32 v, gp_u32 lane) { return __builtin_amdgcn_ds_bpermute((gp_i32)(lane << 2), v); }
template <int M> GP_DEV gp_i32 gp_shfl_xor(gp_i32 v) {
    static_assert(M > 0 && M < 32, "one wave");
    if constexpr (M < 16)
        return __builtin_amdgcn_update_dpp(v, v, 0x160 + M, 0xf, 0xf, true); // DPP row_xmask
    else if constexpr (M == 16)
        return __builtin_amdgcn_permlanex16(v, v, 0x76543210, 0xfedcba98, true, false);
    else
        return gp_shfl(v, gp_lane() ^ M);
}
// A value that all lanes agree on, in a scalar register.
GP_DEV gp_u32 gp_uniform(gp_u32 v) { return (gp_u32)__builtin_amdgcn_readfirstlane((gp_i32)v); }
GP_DEV gp_u32 gp_ballot(bool b) { return (gp_u32)__builtin_amdgcn_ballot_w32(b); }
GP_DEV gp_i32 gp_dot4(gp_i32 a, gp_i32 b, gp_i32 c) { return __builtin_amdgcn_sudot4(true, a, true, b, c, false); }
GP_DEV gp_u32 gp_perm(gp_u32 hi, gp_u32 lo, gp_u32 sel) { return __builtin_amdgcn_perm(hi, lo, sel); }
// Bytes `n`.. of hi:lo, n of 0 to 3.
GP_DEV gp_u32 gp_align(gp_u32 hi, gp_u32 lo, gp_u32 n) { return __builtin_amdgcn_alignbyte(hi, lo, n); }
typedef _Float16 gp_h2v __attribute__((ext_vector_type(2)));
GP_DEV float gp_dot2(gp_u32 a, gp_u32 b, float c) {
    return __builtin_amdgcn_fdot2(__builtin_bit_cast(gp_h2v, a), __builtin_bit_cast(gp_h2v, b), c, false);
}
GP_DEV float gp_h2f(gp_u16 h) { return (float)__builtin_bit_cast(_Float16, h); }
GP_DEV gp_u16 gp_f2h(float f) { return __builtin_bit_cast(gp_u16, (_Float16)f); }
GP_DEV float gp_rint(float f) { return __builtin_rintf(f); }
GP_DEV float gp_exp(float f) { return __builtin_expf(f); }
GP_DEV float gp_log(float f) { return __builtin_logf(f); }
GP_DEV float gp_sqrt(float f) { return __builtin_sqrtf(f); }
GP_DEV gp_u32 gp_popcount(gp_u32 v) { return (gp_u32)__builtin_popcount(v); }
GP_DEV gp_u32 gp_shared_add(gp_u32* at, gp_u32 v) { return __atomic_fetch_add(at, v, __ATOMIC_RELAXED); }
GP_DEV gp_u32x4 gp_load16(const void* at) { return *(const gp_u32x4*)at; }

#elif defined(__CUDACC__) || defined(__CUDA__)
// ---------------------------------------------------------------- CUDA, without its headers
#define GP_CUDA 1
#define GP_KERNEL(name, threads, ...) \
    extern "C" __attribute__((global)) __attribute__((launch_bounds(threads))) void name(__VA_ARGS__)
#define GP_DEV static inline __attribute__((device)) __attribute__((always_inline))
#define GP_DEV_MEMBER inline __attribute__((device)) __attribute__((always_inline))
#define GP_SHARED static __attribute__((shared))
#define GP_TABLE static __attribute__((device)) const
GP_DEV gp_u32 gp_thread() { gp_u32 r; asm("mov.u32 %0, %%tid.x;" : "=r"(r)); return r; }
GP_DEV gp_u32 gp_block() { gp_u32 r; asm("mov.u32 %0, %%ctaid.x;" : "=r"(r)); return r; }
GP_DEV gp_u32 gp_lane() { gp_u32 r; asm("mov.u32 %0, %%laneid;" : "=r"(r)); return r; }
GP_DEV void gp_sync() { asm volatile("bar.sync 0;" ::: "memory"); }
GP_DEV void gp_sync_global() { asm volatile("bar.sync 0;" ::: "memory"); }
GP_DEV void gp_wave_sync() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
GP_DEV gp_i32 gp_shfl(gp_i32 v, gp_u32 lane) {
    gp_i32 r;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(lane));
    return r;
}
template <int M> GP_DEV gp_i32 gp_shfl_xor(gp_i32 v) {
    static_assert(M > 0 && M < 32, "one wave");
    gp_i32 r;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "n"(M));
    return r;
}
GP_DEV gp_u32 gp_uniform(gp_u32 v) { return (gp_u32)gp_shfl((gp_i32)v, 0); }
GP_DEV gp_u32 gp_ballot(bool b) {
    gp_u32 r, v = b;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(r) : "r"(v));
    return r;
}
GP_DEV gp_i32 gp_dot4(gp_i32 a, gp_i32 b, gp_i32 c) {
    gp_i32 r;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
GP_DEV gp_u32 gp_perm(gp_u32 hi, gp_u32 lo, gp_u32 s) { // selector bytes 0 to 7; prmt takes nibbles
    gp_u32 t = s | (s >> 4), n = (t & 0xffu) | ((t >> 8) & 0xff00u), r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(n));
    return r;
}
GP_DEV gp_u32 gp_align(gp_u32 hi, gp_u32 lo, gp_u32 n) {
    gp_u32 r;
    asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(8 * n));
    return r;
}
GP_DEV float gp_h2f(gp_u16 h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
GP_DEV gp_u16 gp_f2h(float f) { gp_u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h; }
GP_DEV float gp_dot2(gp_u32 a, gp_u32 b, float c) {
    c = __builtin_fmaf(gp_h2f((gp_u16)a), gp_h2f((gp_u16)b), c);
    return __builtin_fmaf(gp_h2f((gp_u16)(a >> 16)), gp_h2f((gp_u16)(b >> 16)), c);
}
GP_DEV float gp_rint(float f) { float r; asm("cvt.rni.f32.f32 %0, %1;" : "=f"(r) : "f"(f)); return r; }
GP_DEV float gp_exp2_(float f) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(f)); return r; }
GP_DEV float gp_exp(float f) { // e^f = 2^n 2^r, n whole, the rounding of f/ln 2 taken back
    float n = gp_rint(f * 1.44269504f);
    float r = __builtin_fmaf(n, -0.693145752f, f);
    r = __builtin_fmaf(n, -1.42860677e-6f, r);
    float p;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(p) : "f"(n < -126.0f ? -126.0f : n));
    if (f < -87.3f) return 0.0f;
    return gp_exp2_(r * 1.44269504f) * p;
}
GP_DEV float gp_log(float f) { float r; asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(f)); return r * 0.693147181f; }
GP_DEV float gp_sqrt(float f) { float r; asm("sqrt.rn.f32 %0, %1;" : "=f"(r) : "f"(f)); return r; }
GP_DEV gp_u32 gp_popcount(gp_u32 v) { gp_u32 r; asm("popc.b32 %0, %1;" : "=r"(r) : "r"(v)); return r; }
GP_DEV gp_u32 gp_shared_add(gp_u32* at, gp_u32 v) { return __atomic_fetch_add(at, v, __ATOMIC_RELAXED); }
GP_DEV gp_u32x4 gp_load16(const void* at) {
    gp_u32x4 r;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.x[0]), "=r"(r.x[1]), "=r"(r.x[2]), "=r"(r.x[3]) : "l"(at));
    return r;
}

#else
// ---------------------------------------------------------------- HOST
#define GP_HOST 1
#include "gpu_host.h"
#define GP_KERNEL(name, threads, ...)                                                                              \
    static void name##_body(__VA_ARGS__);                                                                          \
    extern "C" __attribute__((visibility("default"))) const gp_host::Signature name##__signature =                 \
        gp_host::signature_of(name##_body, threads);                                                               \
    extern "C" __attribute__((visibility("default"))) gp_i32 name(                                                 \
        const gp_host::Launch* launch, void** arguments, char* message, gp_u64 room) {                             \
        return gp_host::run(*launch, [&] { gp_host::call(name##_body, arguments); }, message, room);               \
    }                                                                                                              \
    static void name##_body(__VA_ARGS__)
#define GP_DEV static inline __attribute__((always_inline))
#define GP_DEV_MEMBER inline __attribute__((always_inline))
#define GP_SHARED static thread_local
#define GP_TABLE static const
GP_DEV gp_u32 gp_thread() { return gp_host::current->thread; }
GP_DEV gp_u32 gp_block() { return gp_host::block.number; }
GP_DEV gp_u32 gp_lane() { return gp_host::current->thread & 31u; }
GP_DEV void gp_sync() { gp_host::wait(gp_host::AT_BLOCK); }
GP_DEV void gp_sync_global() { gp_host::wait(gp_host::AT_BLOCK); }
GP_DEV void gp_wave_sync() { gp_host::exchange(0); }
GP_DEV gp_i32 gp_shfl(gp_i32 v, gp_u32 lane) { return gp_host::exchange(v)[lane & 31u]; }
template <int M> GP_DEV gp_i32 gp_shfl_xor(gp_i32 v) {
    static_assert(M > 0 && M < 32, "one wave");
    return gp_host::exchange(v)[gp_lane() ^ M];
}
GP_DEV gp_u32 gp_uniform(gp_u32 v) { return (gp_u32)gp_shfl((gp_i32)v, 0); }
GP_DEV gp_u32 gp_ballot(bool b) {
    const gp_i32* all = gp_host::exchange(b);
    gp_u32 r = 0;
    for (gp_u32 i = 0; i < 32; i++) r |= (gp_u32)all[i] << i;
    return r;
}
GP_DEV gp_i32 gp_dot4(gp_i32 a, gp_i32 b, gp_i32 c) {
    for (int i = 0; i < 4; i++) c += (gp_i32)(gp_i8)(a >> 8 * i) * (gp_i32)(gp_i8)(b >> 8 * i);
    return c;
}
GP_DEV gp_u32 gp_perm(gp_u32 hi, gp_u32 lo, gp_u32 s) {
    gp_u64 v = ((gp_u64)hi << 32) | lo;
    gp_u32 r = 0;
    for (int i = 0; i < 4; i++) {
        gp_u32 byte = (s >> 8 * i) & 0xffu;
        if (byte > 7) gp_host::fail("gp_perm: a selector byte above 7");
        r |= (gp_u32)((v >> 8 * byte) & 0xff) << 8 * i;
    }
    return r;
}
GP_DEV gp_u32 gp_align(gp_u32 hi, gp_u32 lo, gp_u32 n) { return (gp_u32)((((gp_u64)hi << 32) | lo) >> (8 * (n & 3))); }
GP_DEV float gp_h2f(gp_u16 h) { return gp_host::half_to_float(h); }
GP_DEV gp_u16 gp_f2h(float f) { return gp_host::float_to_half(f); }
GP_DEV float gp_dot2(gp_u32 a, gp_u32 b, float c) {
    c = __builtin_fmaf(gp_h2f((gp_u16)a), gp_h2f((gp_u16)b), c);
    return __builtin_fmaf(gp_h2f((gp_u16)(a >> 16)), gp_h2f((gp_u16)(b >> 16)), c);
}
GP_DEV float gp_rint(float f) { return __builtin_rintf(f); }
GP_DEV float gp_exp(float f) { return __builtin_expf(f); }
GP_DEV float gp_log(float f) { return __builtin_logf(f); }
GP_DEV float gp_sqrt(float f) { return __builtin_sqrtf(f); }
GP_DEV gp_u32 gp_popcount(gp_u32 v) { return (gp_u32)__builtin_popcount(v); }
GP_DEV gp_u32 gp_shared_add(gp_u32* at, gp_u32 v) { gp_u32 old = *at; *at = old + v; return old; } // fibers take turns
GP_DEV gp_u32x4 gp_load16(const void* at) {
    if ((gp_u64)at & 15) gp_host::fail("gp_load16: an address that is no multiple of 16");
    return *(const gp_u32x4*)at;
}
#endif

// ---------------------------------------------------------------- made of the above, for all three
GP_DEV gp_u32 gp_wave_of_block() { return gp_thread() / GP_WAVE; }
GP_DEV gp_i32 gp_f2i(float f) { gp_i32 i; __builtin_memcpy(&i, &f, 4); return i; }
GP_DEV float gp_i2f(gp_i32 i) { float f; __builtin_memcpy(&f, &i, 4); return f; }
GP_DEV float gp_b2f(gp_u16 b) { return gp_i2f((gp_i32)((gp_u32)b << 16)); }
GP_DEV gp_u16 gp_f2b(float f) { // to nearest, ties to even; a NaN stays one
    gp_u32 u = (gp_u32)gp_f2i(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (gp_u16)((u >> 16) | 64);
    return (gp_u16)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}
GP_DEV float gp_max(float a, float b) { return a > b ? a : b; }
GP_DEV float gp_min(float a, float b) { return a < b ? a : b; }
GP_DEV float gp_abs(float a) { return gp_i2f(gp_f2i(a) & 0x7fffffff); }
// Exclusive or butterfly: the same tree on each lane and each target, so that the sum is bit-equal everywhere.
template <int M> GP_DEV float gp_fxor(float v) { return gp_i2f(gp_shfl_xor<M>(gp_f2i(v))); }
GP_DEV float gp_wave_sum(float v) {
#if defined(GP_HOST)
    return gp_host::wave_reduce(v, [](float a, float b) { return a + b; });
#else
    v += gp_fxor<16>(v); v += gp_fxor<8>(v); v += gp_fxor<4>(v); v += gp_fxor<2>(v); v += gp_fxor<1>(v);
    return v;
#endif
}
GP_DEV float gp_wave_max(float v) {
#if defined(GP_HOST)
    return gp_host::wave_reduce(v, [](float a, float b) { return a > b ? a : b; });
#else
    v = gp_max(v, gp_fxor<16>(v)); v = gp_max(v, gp_fxor<8>(v)); v = gp_max(v, gp_fxor<4>(v));
    v = gp_max(v, gp_fxor<2>(v)); v = gp_max(v, gp_fxor<1>(v));
    return v;
#endif
}
GP_DEV gp_i32 gp_wave_sum_i(gp_i32 v) {
    v += gp_shfl_xor<16>(v); v += gp_shfl_xor<8>(v); v += gp_shfl_xor<4>(v); v += gp_shfl_xor<2>(v); v += gp_shfl_xor<1>(v);
    return v;
}

// Fragments of 16 x 16 x 16 products as RDNA3's wave32 holds them. A: lane l holds row l & 15. B: lane l holds column l & 15;
// both halves of the wave hold the same. C and D: element i of lane l is row 2 i + (l >> 4), column l & 15.
struct gp_frag_h { gp_u32 x[8]; }; // 16 halves
struct gp_frag_b { gp_i32 x[4]; }; // 16 signed bytes
struct gp_acc_f { float x[8]; };
struct gp_acc_i { gp_i32 x[8]; };
#if defined(GP_AMD) && defined(__GFX11__)
typedef _Float16 gp_v16h __attribute__((ext_vector_type(16)));
typedef float gp_v8f __attribute__((ext_vector_type(8)));
typedef int gp_v4i __attribute__((ext_vector_type(4)));
typedef int gp_v8i __attribute__((ext_vector_type(8)));
GP_DEV gp_acc_f gp_wmma_f16(gp_frag_h a, gp_frag_h b, gp_acc_f c) {
    return __builtin_bit_cast(gp_acc_f, __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(
        __builtin_bit_cast(gp_v16h, a), __builtin_bit_cast(gp_v16h, b), __builtin_bit_cast(gp_v8f, c)));
}
GP_DEV gp_acc_i gp_wmma_i8(gp_frag_b a, gp_frag_b b, gp_acc_i c) {
    return __builtin_bit_cast(gp_acc_i, __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(
        true, __builtin_bit_cast(gp_v4i, a), true, __builtin_bit_cast(gp_v4i, b), __builtin_bit_cast(gp_v8i, c), false));
}
#else // the same fragments by shuffles; of halves the order of the sum differs from the hardware's
GP_DEV gp_acc_f gp_wmma_f16(gp_frag_h a, gp_frag_h b, gp_acc_f c) {
    for (gp_u32 i = 0; i < 8; i++)
        for (gp_u32 k = 0; k < 8; k++)
            c.x[i] = gp_dot2((gp_u32)gp_shfl((gp_i32)a.x[k], 2 * i + (gp_lane() >> 4)), b.x[k], c.x[i]);
    return c;
}
GP_DEV gp_acc_i gp_wmma_i8(gp_frag_b a, gp_frag_b b, gp_acc_i c) {
    for (gp_u32 i = 0; i < 8; i++)
        for (gp_u32 k = 0; k < 4; k++) c.x[i] = gp_dot4(gp_shfl(a.x[k], 2 * i + (gp_lane() >> 4)), b.x[k], c.x[i]);
    return c;
}
#endif
