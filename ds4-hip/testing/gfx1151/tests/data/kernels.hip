// Kernels of the kind the product has, small: reductions across a wave and a block, integer dots, codebooks, matrix tiles.
typedef unsigned u32;
typedef unsigned short u16;
typedef float v8f __attribute__((ext_vector_type(8)));
typedef int v8i __attribute__((ext_vector_type(8)));
typedef int v4i __attribute__((ext_vector_type(4)));
typedef _Float16 v16h __attribute__((ext_vector_type(16)));
#define KERNEL extern "C" __attribute__((global)) void
#define DEV static inline __attribute__((device)) __attribute__((always_inline))
DEV u32 tid() { return __builtin_amdgcn_workitem_id_x(); }
DEV u32 block() { return __builtin_amdgcn_workgroup_id_x(); }
DEV void sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
template <int M> DEV int lane_xor(int v) {
  if constexpr (M == 16) return __builtin_amdgcn_permlanex16(v, v, 0x76543210, 0xfedcba98, true, false);
  else return __builtin_amdgcn_update_dpp(v, v, 0x160 + M, 0xf, 0xf, true);
}
template <int M> DEV float lane_xor_f(float v) { return __builtin_bit_cast(float, lane_xor<M>(__builtin_bit_cast(int, v))); }
DEV float wave_sum(float v) {
  v += lane_xor_f<16>(v); v += lane_xor_f<8>(v); v += lane_xor_f<4>(v); v += lane_xor_f<2>(v); v += lane_xor_f<1>(v);
  return v;
}

// out[b] = sum of x[b*n .. b*n+n]; 4 waves, lane sums, butterfly, LDS. block 128
KERNEL block_sum(const float* x, float* out, u32 n) {
  static __attribute__((shared)) float part[4];
  float sum = 0;
  for (u32 i = tid(); i < n; i += 128) sum += x[block() * n + i];
  sum = wave_sum(sum);
  if (tid() % 32 == 0) part[tid() / 32] = sum;
  sync();
  if (tid() == 0) out[block()] = part[0] + part[1] + part[2] + part[3];
}

// y[r] = sum over blocks of 32 of d[r][b] * (q[r][b] . p[b]) * s[b]; one wave a row, one block of weights a lane. block 64
KERNEL matvec(const u32* w, const u32* x, float* y, u32 rows, u32 blocks) {
  u32 row = block() * 2 + tid() / 32, lane = tid() % 32;
  if (row >= rows) return;
  float sum = 0;
  for (u32 b = lane; b < blocks; b += 32) {
    const u32 *q = w + (row * blocks + b) * 9, *p = x + b * 9;
    int dot = 0;
    for (u32 k = 0; k < 8; k++) dot = __builtin_amdgcn_sudot4(true, q[1 + k], true, p[1 + k], dot, false);
    sum = __builtin_fmaf(__builtin_bit_cast(float, q[0]) * __builtin_bit_cast(float, p[0]), (float)dot, sum);
  }
  sum = wave_sum(sum);
  if (lane == 0) y[row] = sum;
}

// Codes of 4 bits to bytes of a table of 8, four at a time. block 32
KERNEL codebook(const u32* codes, u32* out, u32 n) {
  u32 i = block() * 32 + tid();
  if (i >= n) return;
  u32 c = codes[i] & 0x07070707;
  out[i] = __builtin_amdgcn_perm(0x7f503010, 0xfbe0c081, c);
}

#ifdef PLANT_ROW
#define ROW ((l + 1) & 15)
#else
#define ROW (l & 15)
#endif
// 16x16 tiles, k = 16: A rows of 16 bytes, B columns of 16 bytes. block 32
KERNEL tile_i8(const v4i* a, const v4i* b, int* out) {
  u32 l = tid();
  v8i c = {};
  c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, a[ROW], true, b[l & 15], c, false);
  for (u32 i = 0; i < 8; i++) out[(2 * i + l / 16) * 16 + l % 16] = c[i];
}
KERNEL tile_f16(const v16h* a, const v16h* b, float* out) {
  u32 l = tid();
  v8f c = {};
  c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a[ROW], b[l & 15], c);
  for (u32 i = 0; i < 8; i++) out[(2 * i + l / 16) * 16 + l % 16] = c[i];
}

// Each thread's value goes to the thread opposite, through LDS; any block size up to 256.
KERNEL reverse(const u32* x, u32* out) {
  static __attribute__((shared)) u32 all[256];
  u32 n = ((const __attribute__((address_space(4))) u16*)__builtin_amdgcn_implicitarg_ptr())[6];
  all[tid()] = x[block() * n + tid()];
  sync();
  out[block() * n + tid()] = all[n - 1 - tid()];
}

// Counts of the low 4 bits, in LDS and then in memory. block 64
KERNEL histogram(const u32* x, u32* counts, u32 n) {
  static __attribute__((shared)) u32 local[16];
  if (tid() < 16) local[tid()] = 0;
  sync();
  for (u32 i = block() * 64 + tid(); i < n; i += 128) __atomic_fetch_add(&local[x[i] & 15], 1u, __ATOMIC_RELAXED);
  sync();
  if (tid() < 16) __atomic_fetch_add(&counts[tid()], local[tid()], __ATOMIC_RELAXED);
}

// out = a / b, sqrt(|a|), (half) a * b widened, floor(a) as integer. block 32
KERNEL floats(const float* x, float* out, u32 n) {
  u32 i = block() * 32 + tid();
  if (i >= n) return;
  float a = x[2 * i], b = x[2 * i + 1];
  out[4 * i] = a / b;
  out[4 * i + 1] = __builtin_sqrtf(__builtin_fabsf(a));
  out[4 * i + 2] = (float)(_Float16)(a * b);
  out[4 * i + 3] = (float)(int)__builtin_floorf(a);
}

// A sum over a table in constant memory, f64 division, 64-bit arithmetic. block 32
static __attribute__((constant)) const u32 TABLE[8] = {3, 1, 4, 1, 5, 9, 2, 6};
KERNEL wide(const double* x, double* out, u32 n) {
  u32 i = block() * 32 + tid();
  if (i >= n) return;
  unsigned long long k = 0x100000001ull * i + TABLE[i & 7];
  out[2 * i] = x[2 * i] / x[2 * i + 1];
  out[2 * i + 1] = (double)(k % 1000003u);
}

// What the compiler makes long sequences of: divisions, 64-bit arithmetic, bit counts, bytes. block 32
typedef unsigned long long u64;
KERNEL integers(const u32* x, u32* out, u32 n) {
  u32 i = block() * 32 + tid();
  if (i >= n) return;
  u32 a = x[2 * i], b = x[2 * i + 1] | 1;
  u64 p = ((u64)a << 32 | b) / (u64)(b >> 3 | 5), q = (u64)((long long)((u64)b << 32 | a) % (long long)(int)(a | 3));
  out[8 * i] = a / b;
  out[8 * i + 1] = a % b;
  out[8 * i + 2] = (u32)((int)a / (int)b);
  out[8 * i + 3] = (u32)p ^ (u32)(p >> 32);
  out[8 * i + 4] = (u32)q ^ (u32)(q >> 32);
  out[8 * i + 5] = __builtin_popcount(a) + 100 * __builtin_clz(b) + 10000 * __builtin_ctz(a | 64) + __builtin_bswap32(b);
  out[8 * i + 6] = (a >> (b & 31) | a << ((32 - b) & 31)) + ((int)a >> 7) + (u32)(signed char)a * (u32)(u16)b;
  out[8 * i + 7] = __builtin_bitreverse32(a) ^ (a < b ? a : b) ^ (u32)((int)a > (int)b ? (int)a : (int)b);
}

// A register chosen at run time, a switch in a loop. block 32
typedef u32 v8u __attribute__((ext_vector_type(8)));
KERNEL indexed(const u32* x, u32* out, u32 n) {
  u32 l = tid();
  v8u v;
  for (u32 i = 0; i < 8; i++) v[i] = x[l * 8 + i];
  u32 sum = v[n & 7];
  v[(n >> 3) & 7] = 1000 + l;
  for (u32 i = 0; i < n; i++) switch ((x[i] + l) & 3) {
    case 0: sum += i; break;
    case 1: sum ^= v[i & 7]; break;
    case 2: sum *= 3; break;
    default: sum -= 7;
  }
  out[l] = sum;
}
