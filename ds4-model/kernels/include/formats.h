// How 16 weights at a time come out of each packed format, as four words of signed bytes, a scale and a minimum:
//
//   w[j] = scale · code[j] − minimum
//
// A lane takes a unit: GROUPS groups of 16 out of one block of BYTES bytes that holds UNITS of them. The block lies anywhere in
// shared memory; words are put together from aligned ones. Layouts: ds4-quant/src/format, from which blocks.h is made.
#pragma once
#include "blocks.h"
#include "gpu_port.h"

// Bytes in shared memory, `at` bytes after a word.
template <int ALIGN> struct packed {
    const gp_u32* base;
    gp_u32 at;

    GP_DEV_MEMBER gp_u32 u8(gp_u32 i) const { return ((const gp_u8*)base)[at + i]; }
    GP_DEV_MEMBER gp_u32 u16(gp_u32 i) const {
        if constexpr (ALIGN % 2 == 0) return *(const gp_u16*)((const gp_u8*)base + at + i);
        return u8(i) | u8(i + 1) << 8;
    }
    // N words from byte i on. Where they are not aligned one word more is read: the stage has room for it.
    template <int N> GP_DEV_MEMBER void words(gp_u32 i, gp_u32* out) const {
        gp_u32 from = at + i;
        const gp_u32* w = base + (from >> 2);
        if constexpr (ALIGN % 4 == 0) {
#pragma unroll
            for (int k = 0; k < N; k++) out[k] = w[k];
        } else {
            gp_u32 shift = from & 3, low = w[0];
#pragma unroll
            for (int k = 0; k < N; k++) {
                gp_u32 high = w[k + 1];
                out[k] = gp_align(high, low, shift);
                low = high;
            }
        }
    }
    GP_DEV_MEMBER float f16(gp_u32 i) const { return gp_h2f((gp_u16)u16(i)); }
};

template <int G> struct unit {
    gp_u32 q[G][4];
    float scale[G];
    float min[G];
};

// Half an unsigned E4M3 byte; the invalid 0x7f and above are 0.
GP_DEV float ue4m3(gp_u32 e) {
    float small = (float)e * 0.0009765625f;                      // m · 2^-10
    float big = gp_i2f((gp_i32)((e << 20) + (119u << 23)));      // (8 + m) · 2^(e-11)
    return e >= 0x7f ? 0.0f : e < 8 ? small : big;
}
// Bit j of the low four negates byte j. No byte of `v` is 0 with its sign set, so that no carry leaves its byte.
GP_DEV gp_u32 signed_bytes(gp_u32 v, gp_u32 signs) {
    gp_u32 one = ((signs & 15u) * 0x00204081u) & 0x01010101u;
    return (v ^ (one * 0xffu)) + one;
}
// The eighth sign makes the number of minus signs even.
GP_DEV gp_u32 even_signs(gp_u32 seven) { return seven | (gp_popcount(seven) & 1) << 7; }
// Four 2-bit fields of a byte, one a byte.
GP_DEV gp_u32 spread_2(gp_u32 b) {
    gp_u32 t = (b | b << 12) & 0x000f000fu;
    return (t | t << 6) & 0x03030303u;
}
// Four 3-bit fields of the low 12 bits, one a byte.
GP_DEV gp_u32 spread_3(gp_u32 b) {
    gp_u32 t = (b & 0x3fu) | (b & 0xfc0u) << 10;
    return (t & 0x00070007u) | (t & 0x00380038u) << 5;
}
// Four 6-bit fields of the low 24 bits, one a byte.
GP_DEV gp_u32 spread_6(gp_u32 b) {
    gp_u32 t = (b & 0xfffu) | (b & 0xfff000u) << 4;
    return (t & 0x003f003fu) | (t & 0x0fc00fc0u) << 2;
}
// Four 4-bit codes, one a byte, as levels of a table of 16: positive ones in `p0`, `p1`, those with bit 3 in `n0`, `n1`.
GP_DEV gp_u32 levels_16(gp_u32 codes, gp_u32 p0, gp_u32 p1, gp_u32 n0, gp_u32 n1) {
    gp_u32 sel = codes & 0x07070707u;
    gp_u32 lo = gp_perm(p1, p0, sel), hi = gp_perm(n1, n0, sel);
    return gp_perm(hi, lo, 0x03020100u | (codes & 0x08080808u) >> 1);
}

// Whether both groups of a pair have one scale and one activation scale: their products are added as integers.
struct plain_tables {
    static constexpr gp_u32 TABLE_WORDS = 0;
    GP_DEV_MEMBER static gp_u32 table(gp_u32) { return 0; }
};

struct q8_0 : plain_tables, layout_q8_0 {
    static constexpr int GROUPS = 2, UNITS = 1, ALIGN = 2;
    static constexpr bool PAIRED = true, MIN = false;
    GP_DEV_MEMBER static gp_u32 position(gp_u32, int g) { return (gp_u32)g; }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32, const gp_u32*, unit<2>& u) {
        p.words<4>(Q, u.q[0]);
        p.words<4>(Q + 16, u.q[1]);
        u.scale[0] = u.scale[1] = p.f16(D);
    }
};

struct q4_k : plain_tables, layout_q4_k {
    static constexpr int GROUPS = 2, UNITS = 8, ALIGN = 4;
    static constexpr bool PAIRED = false, MIN = true;
    GP_DEV_MEMBER static gp_u32 position(gp_u32 i, int g) { return 4 * (i >> 1) + 2 * (gp_u32)g + (i & 1); }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32 i, const gp_u32*, unit<2>& u) {
        gp_u32 q[4];
        p.words<4>(QS + 16 * i, q);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            u.q[0][k] = q[k] & 0x0f0f0f0fu;
            u.q[1][k] = (q[k] >> 4) & 0x0f0f0f0fu;
        }
        gp_u32 s[3];
        p.words<3>(S, s);
        float d = p.f16(D), dmin = p.f16(DMIN);
#pragma unroll
        for (int g = 0; g < 2; g++) {
            gp_u32 j = (i & ~1u) + (gp_u32)g, shift = 8 * (j & 3), scale, min;
            if (j < 4) {
                scale = (s[0] >> shift) & 63;
                min = (s[1] >> shift) & 63;
            } else {
                scale = ((s[2] >> shift) & 15) | ((s[0] >> (shift + 6)) & 3) << 4;
                min = ((s[2] >> (shift + 4)) & 15) | ((s[1] >> (shift + 6)) & 3) << 4;
            }
            u.scale[g] = d * (float)scale;
            u.min[g] = dmin * (float)min;
        }
    }
};

struct q2_k : plain_tables, layout_q2_k {
    static constexpr int GROUPS = 4, UNITS = 4, ALIGN = 4;
    static constexpr bool PAIRED = false, MIN = true;
    // Unit i: bytes 16 i of the codes; its groups are the four fields of each.
    GP_DEV_MEMBER static gp_u32 position(gp_u32 i, int g) { return 8 * (i >> 1) + 2 * (gp_u32)g + (i & 1); }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32 i, const gp_u32*, unit<4>& u) {
        gp_u32 q[4];
        p.words<4>(QS + 16 * i, q);
        float d = p.f16(D), dmin = p.f16(DMIN);
#pragma unroll
        for (int g = 0; g < 4; g++) {
#pragma unroll
            for (int k = 0; k < 4; k++) u.q[g][k] = (q[k] >> (2 * g)) & 0x03030303u;
            gp_u32 s = p.u8(SC + position(i, g));
            u.scale[g] = d * (float)(s & 15);
            u.min[g] = dmin * (float)(s >> 4);
        }
    }
};

struct iq2_xxs : layout_iq2_xxs {
    static constexpr int GROUPS = 2, UNITS = 8, ALIGN = 2;
    static constexpr bool PAIRED = true, MIN = false;
    static constexpr gp_u32 TABLE_WORDS = 512;
    GP_DEV_MEMBER static gp_u32 table(gp_u32 i) { return table_iq2_xxs[i]; }
    GP_DEV_MEMBER static gp_u32 position(gp_u32 i, int g) { return 2 * i + (gp_u32)g; }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32 i, const gp_u32* points, unit<2>& u) {
        gp_u32 ab[2];
        p.words<2>(GROUPS_AT + 8 * i, ab);
#pragma unroll
        for (int l = 0; l < 4; l++) {
            gp_u32 at = 2 * ((ab[0] >> (8 * l)) & 255), signs = even_signs((ab[1] >> (7 * l)) & 127);
            u.q[l >> 1][2 * (l & 1)] = signed_bytes(points[at], signs);
            u.q[l >> 1][2 * (l & 1) + 1] = signed_bytes(points[at + 1], signs >> 4);
        }
        u.scale[0] = u.scale[1] = p.f16(D) * 0.125f * (float)(2 * (ab[1] >> 28) + 1);
    }
};

struct iq2_s : layout_iq2_s {
    static constexpr int GROUPS = 2, UNITS = 8, ALIGN = 2;
    static constexpr bool PAIRED = false, MIN = false;
    static constexpr gp_u32 TABLE_WORDS = 2048;
    GP_DEV_MEMBER static gp_u32 table(gp_u32 i) { return table_iq2_s[i]; }
    GP_DEV_MEMBER static gp_u32 position(gp_u32 i, int g) { return 2 * i + (gp_u32)g; }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32 i, const gp_u32* points, unit<2>& u) {
        gp_u32 low, signs;
        p.words<1>(QS + 4 * i, &low);
        p.words<1>(SIGNS + 4 * i, &signs);
        gp_u32 high = p.u8(QH + i), scales = p.u8(SC + i);
#pragma unroll
        for (int l = 0; l < 4; l++) {
            gp_u32 at = 2 * (((low >> (8 * l)) & 255) | ((high >> (2 * l)) & 3) << 8);
            gp_u32 s = signs >> (8 * l);
            u.q[l >> 1][2 * (l & 1)] = signed_bytes(points[at], s);
            u.q[l >> 1][2 * (l & 1) + 1] = signed_bytes(points[at + 1], s >> 4);
        }
        float d = p.f16(D) * 0.125f;
        u.scale[0] = d * (float)(2 * (scales & 15) + 1);
        u.scale[1] = d * (float)(2 * (scales >> 4) + 1);
    }
};

struct iq3_xxs : layout_iq3_xxs {
    static constexpr int GROUPS = 2, UNITS = 8, ALIGN = 2;
    static constexpr bool PAIRED = true, MIN = false;
    static constexpr gp_u32 TABLE_WORDS = 256;
    GP_DEV_MEMBER static gp_u32 table(gp_u32 i) { return table_iq3_xxs[i]; }
    GP_DEV_MEMBER static gp_u32 position(gp_u32 i, int g) { return 2 * i + (gp_u32)g; }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32 i, const gp_u32* points, unit<2>& u) {
        gp_u32 q[2], ss;
        p.words<2>(QS + 8 * i, q);
        p.words<1>(SS + 4 * i, &ss);
#pragma unroll
        for (int l = 0; l < 4; l++) {
            gp_u32 signs = even_signs((ss >> (7 * l)) & 127), pair = q[l >> 1] >> (16 * (l & 1));
            u.q[l >> 1][2 * (l & 1)] = signed_bytes(points[pair & 255], signs);
            u.q[l >> 1][2 * (l & 1) + 1] = signed_bytes(points[(pair >> 8) & 255], signs >> 4);
        }
        u.scale[0] = u.scale[1] = p.f16(D) * 0.25f * (float)(2 * (ss >> 28) + 1);
    }
};

// Blocks of 32: nibbles of 16 bytes, low ones first.
template <class L> GP_DEV void nibbles_32(const gp_u32* q, unit<2>& u, gp_u32 p0, gp_u32 p1, gp_u32 n0, gp_u32 n1) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
        u.q[0][k] = levels_16(q[k] & 0x0f0f0f0fu, p0, p1, n0, n1);
        u.q[1][k] = levels_16((q[k] >> 4) & 0x0f0f0f0fu, p0, p1, n0, n1);
    }
}

struct mxfp4 : plain_tables, layout_mxfp4 {
    static constexpr int GROUPS = 2, UNITS = 1, ALIGN = 1;
    static constexpr bool PAIRED = true, MIN = false;
    GP_DEV_MEMBER static gp_u32 position(gp_u32, int g) { return (gp_u32)g; }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32, const gp_u32*, unit<2>& u) {
        gp_u32 q[4], e = p.u8(E);
        p.words<4>(QS, q);
        nibbles_32<mxfp4>(q, u, 0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu);
        // 2^(e-128), subnormal for 0 and 1
        u.scale[0] = u.scale[1] = gp_i2f((gp_i32)(e < 2 ? 0x00200000u << e : (e - 1) << 23));
    }
};

template <class LAYOUT, bool ONE> struct rocmfp4_any : plain_tables, LAYOUT {
    static constexpr int GROUPS = 2, UNITS = 1, ALIGN = LAYOUT::BYTES % 2 ? 1 : 2;
    static constexpr bool PAIRED = ONE, MIN = false;
    GP_DEV_MEMBER static gp_u32 position(gp_u32, int g) { return (gp_u32)g; }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32, const gp_u32*, unit<2>& u) {
        gp_u32 q[4];
        p.template words<4>(LAYOUT::QS, q);
        nibbles_32<LAYOUT>(q, u, 0x03020100u, 0x0a080604u, 0xfdfeff00u, 0xf6f8fafcu);
        u.scale[0] = ue4m3(p.u8(LAYOUT::E));
        u.scale[1] = ONE ? u.scale[0] : ue4m3(p.u8(LAYOUT::E + 1));
    }
};
struct rocmfp4 : rocmfp4_any<layout_rocmfp4, false> {};
struct rocmfp4_fast : rocmfp4_any<layout_rocmfp4_fast, true> {};

enum fp2_layout { FP2_S40, FP2_TWO_SCALE, FP2_AFFINE };
template <fp2_layout L> struct rocmfp2_any : plain_tables, layout_rocmfp2 {
    static constexpr int GROUPS = 2, UNITS = 1, ALIGN = 2;
    static constexpr bool PAIRED = L == FP2_AFFINE, MIN = L == FP2_AFFINE;
    GP_DEV_MEMBER static gp_u32 position(gp_u32, int g) { return (gp_u32)g; }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32, const gp_u32*, unit<2>& u) {
        gp_u32 q[2];
        p.words<2>(QS, q);
#pragma unroll
        for (int g = 0; g < 2; g++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                gp_u32 codes = spread_2((q[g] >> (8 * k)) & 255);
                if constexpr (L == FP2_S40) codes = gp_perm(0, 0x0401fffcu, codes);
                if constexpr (L == FP2_TWO_SCALE) codes = gp_perm(0, 0x020100ffu, codes);
                u.q[g][k] = codes;
            }
        float first = ue4m3(p.u8(E)), second = ue4m3(p.u8(E + 1));
        u.scale[0] = first;
        u.scale[1] = L == FP2_AFFINE ? first : second;
        u.min[0] = u.min[1] = second;
    }
};
struct rocmfp2_s40 : rocmfp2_any<FP2_S40> {};
struct rocmfp2_two_scale : rocmfp2_any<FP2_TWO_SCALE> {};
struct rocmfp2_affine : rocmfp2_any<FP2_AFFINE> {};

struct rocmfp3 : plain_tables, layout_rocmfp3 {
    static constexpr int GROUPS = 2, UNITS = 1, ALIGN = 2;
    static constexpr bool PAIRED = false, MIN = false;
    GP_DEV_MEMBER static gp_u32 position(gp_u32, int g) { return (gp_u32)g; }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32, const gp_u32*, unit<2>& u) {
        gp_u32 q[3];
        p.words<3>(QS, q);
        gp_u32 twelve[8] = {q[0],
                            q[0] >> 12,
                            q[0] >> 24 | q[1] << 8,
                            q[1] >> 4,
                            q[1] >> 16,
                            q[1] >> 28 | q[2] << 4,
                            q[2] >> 8,
                            q[2] >> 20};
#pragma unroll
        for (int k = 0; k < 8; k++)
            u.q[k >> 2][k & 3] = gp_perm(0xfcfeff00u, 0x04020100u, spread_3(twelve[k] & 0xfffu));
        u.scale[0] = ue4m3(p.u8(E));
        u.scale[1] = ue4m3(p.u8(E + 1));
    }
};

struct rocmfp6 : plain_tables, layout_rocmfp6 {
    static constexpr int GROUPS = 2, UNITS = 1, ALIGN = 2;
    static constexpr bool PAIRED = false, MIN = false;
    GP_DEV_MEMBER static gp_u32 position(gp_u32, int g) { return (gp_u32)g; }
    // The low five bits, negated with bit 5; code 32 is -32.
    GP_DEV_MEMBER static gp_u32 level(gp_u32 codes) {
        gp_u32 one = (codes >> 5) & 0x01010101u, low = codes & 0x1f1f1f1fu;
        gp_u32 zero = ~((low + 0x7f7f7f7fu)) & 0x80808080u; // 0x80 where the low bits are 0
        gp_u32 v = low | ((zero >> 2) & (one << 5));        // 32 for code 32
        return (v ^ (one * 0xffu)) + one;
    }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32, const gp_u32*, unit<2>& u) {
        gp_u32 q[6];
        p.words<6>(QS, q);
#pragma unroll
        for (int g = 0; g < 2; g++) {
            const gp_u32* w = q + 3 * g;
            u.q[g][0] = level(spread_6(w[0] & 0xffffffu));
            u.q[g][1] = level(spread_6((w[0] >> 24 | w[1] << 8) & 0xffffffu));
            u.q[g][2] = level(spread_6((w[1] >> 16 | w[2] << 16) & 0xffffffu));
            u.q[g][3] = level(spread_6(w[2] >> 8));
        }
        u.scale[0] = ue4m3(p.u8(E));
        u.scale[1] = ue4m3(p.u8(E + 1));
    }
};

struct rocmfp8 : plain_tables, layout_rocmfp8 {
    static constexpr int GROUPS = 2, UNITS = 1, ALIGN = 1;
    static constexpr bool PAIRED = true, MIN = false;
    GP_DEV_MEMBER static gp_u32 position(gp_u32, int g) { return (gp_u32)g; }
    GP_DEV_MEMBER static void take(packed<ALIGN> p, gp_u32, const gp_u32*, unit<2>& u) {
        p.words<4>(Q, u.q[0]);
        p.words<4>(Q + 16, u.q[1]);
        u.scale[0] = u.scale[1] = ue4m3(p.u8(E));
    }
};
