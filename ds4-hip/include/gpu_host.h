// The HOST branch of gpu_port.h: runs a kernel on the CPU.
//
// One OS thread runs one block at a time. Each GPU thread is a fiber that runs until it needs others: at a block barrier, at a
// wave operation, or at its end. Blocks are dealt to the OS threads by a counter. Shared memory is `static thread_local`, right
// because a block never leaves its OS thread. A wave operation that not the whole wave takes part in, a barrier that not the
// whole block comes to, and a check of the kernel's own end the launch with a message.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>
#if defined(__F16C__)
#include <immintrin.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace gp_host {

struct Launch {
    uint32_t grid, block, threads;
};
struct Signature {
    uint32_t arguments;
    uint32_t block; // threads of a block, as the kernel was compiled for
    uint32_t bytes[24];
};
template <class... A> constexpr Signature signature_of(void (*)(A...), uint32_t block) {
    static_assert(sizeof...(A) <= 24, "arguments of a kernel");
    return Signature{sizeof...(A), block, {uint32_t(sizeof(A))...}};
}
template <class... A, size_t... I> void call_with(void (*f)(A...), void** p, std::index_sequence<I...>) {
    f(*static_cast<std::remove_reference_t<A>*>(p[I])...);
}
template <class... A> void call(void (*f)(A...), void** p) { call_with(f, p, std::index_sequence_for<A...>{}); }

enum State : uint8_t { READY, AT_WAVE, AT_BLOCK, DONE };
struct Fiber {
    uint32_t thread;
    State state;
    uint8_t phase;
    void* sp;
    char* stack;
#if !defined(__x86_64__)
    ucontext_t context;
#endif
};
struct Wave {
    int32_t slot[2][32];
    float reduced[2];
    bool have[2];
};
struct Body { // a closure without std::function's indirection
    void (*call)(void*);
    void* of;
};
struct Block {
    uint32_t number, size;
    Fiber* fibers;
    Wave* waves;
    const Body* body;
    void* scheduler;
    const char* failed;
#if !defined(__x86_64__)
    ucontext_t context;
#endif
};
static thread_local Fiber* current;
static thread_local Block block;
constexpr size_t STACK = 64 * 1024 + 320; // the odd part keeps the tops of stacks out of the same cache sets

#if defined(__x86_64__) // callee-saved registers only
__attribute__((naked, noinline)) static void swap_stack(void** save, void* to) {
    asm("push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15; mov %rsp,(%rdi); mov %rsi,%rsp;"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; pop %rcx; jmp *%rcx");
}
static void entry() {
    block.body->call(block.body->of);
    current->state = DONE;
    void* dead;
    swap_stack(&dead, block.scheduler);
    __builtin_trap();
}
static inline void start(Fiber& f) {
    void** s = (void**)(((uintptr_t)f.stack + STACK) & ~(uintptr_t)15);
    *--s = nullptr;
    *--s = (void*)entry;
    for (int i = 0; i < 6; i++) *--s = nullptr;
    f.sp = s;
}
static inline void resume(Fiber& f) {
    current = &f;
    swap_stack(&block.scheduler, f.sp);
}
static inline void leave() { swap_stack(&current->sp, block.scheduler); }
#else
static void entry() {
    block.body->call(block.body->of);
    current->state = DONE;
    swapcontext(&current->context, &block.context);
}
static inline void start(Fiber& f) {
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack;
    f.context.uc_stack.ss_size = STACK;
    f.context.uc_link = nullptr;
    makecontext(&f.context, entry, 0);
}
static inline void resume(Fiber& f) {
    current = &f;
    swapcontext(&block.context, &f.context);
}
static inline void leave() { swapcontext(&current->context, &block.context); }
#endif

static inline void wait(State s) {
    current->state = s;
    leave();
}
// Ends the launch. The fiber is never resumed.
static inline void fail(const char* what) {
    block.failed = what;
    wait(DONE);
}
// Give a value to the wave and take everybody's. Two buffers suffice: no lane passes exchange k + 1 before all have read k.
static inline const int32_t* exchange(int32_t v) {
    Fiber* c = current;
    Wave& w = block.waves[c->thread >> 5];
    uint8_t p = c->phase ^= 1;
    w.slot[p][c->thread & 31] = v;
    w.have[p] = false;
    wait(AT_WAVE);
    return w.slot[p];
}
// The butterfly's tree, once a wave.
template <class Op> inline float wave_reduce(float v, Op op) {
    int32_t bits;
    memcpy(&bits, &v, 4);
    exchange(bits);
    Wave& w = block.waves[current->thread >> 5];
    uint8_t p = current->phase;
    if (!w.have[p]) {
        float t[32];
        memcpy(t, w.slot[p], sizeof t);
        for (int m = 16; m; m >>= 1)
            for (int i = 0; i < m; i++) t[i] = op(t[i], t[i + m]);
        w.reduced[p] = t[0];
        w.have[p] = true;
    }
    return w.reduced[p];
}

static inline float half_to_float(uint16_t h) {
#if defined(__F16C__)
    return _cvtsh_ss(h);
#else
    uint32_t s = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023, u;
    float f;
    if (e == 0) {
        f = (float)m / 16777216.0f;
        memcpy(&u, &f, 4);
        u |= s;
    } else
        u = s | (e == 31 ? 0x7f800000u | m << 13 : (e + 112) << 23 | m << 13);
    memcpy(&f, &u, 4);
    return f;
#endif
}
static inline uint16_t float_to_half(float f) {
#if defined(__F16C__)
    return _cvtss_sh(f, 0);
#else
    uint32_t u;
    memcpy(&u, &f, 4);
    uint16_t s = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    if (u > 0x7f800000) return s | 0x7e00;
    if (u >= 0x477ff000) return s | 0x7c00;
    if (u < 0x38800000) {
        float a;
        memcpy(&a, &u, 4);
        return s | (uint16_t)(int)__builtin_rintf(a * 16777216.0f);
    }
    return s | (uint16_t)((u - 0x38000000 + 0xfff + (u >> 13 & 1)) >> 13);
#endif
}

// Run one block; what went wrong, or null.
inline const char* run_block(uint32_t number, uint32_t size, Fiber* f, Wave* w, const Body& body) {
    block.number = number;
    block.size = size;
    block.fibers = f;
    block.waves = w;
    block.body = &body;
    block.failed = nullptr;
    for (uint32_t i = 0; i < size; i++) {
        f[i].thread = i;
        f[i].state = READY;
        f[i].phase = 0;
        start(f[i]);
    }
    for (;;) {
        uint32_t live = 0, at_block = 0;
        for (uint32_t first = 0; first < size; first += 32) {
            uint32_t end = first + 32 < size ? first + 32 : size;
            for (;;) { // run this wave until it needs the block
                uint32_t wave_live = 0, wave_at_wave = 0, wave_at_block = 0;
                for (uint32_t i = first; i < end; i++) {
                    if (f[i].state == READY) resume(f[i]);
                    if (block.failed) return block.failed;
                    wave_live += f[i].state != DONE;
                    wave_at_wave += f[i].state == AT_WAVE;
                    wave_at_block += f[i].state == AT_BLOCK;
                }
                if (wave_at_wave) {
                    if (wave_at_wave != end - first)
                        return "a wave operation that not all lanes of the wave take part in";
                    for (uint32_t i = first; i < end; i++) f[i].state = READY;
                    continue;
                }
                live += wave_live;
                at_block += wave_at_block;
                break;
            }
        }
        if (!live) return nullptr;
        if (at_block != size) return "a block barrier that not all threads of the block come to";
        for (uint32_t i = 0; i < size; i++) f[i].state = READY;
    }
}

// Run a launch; 0, or 1 with a message.
template <class F> int32_t run(const Launch& l, F f, char* message, uint64_t room) {
    std::atomic<uint32_t> next{0};
    std::atomic<bool> stop{false};
    std::mutex saying;
    Body body{[](void* of) { (*static_cast<F*>(of))(); }, &f};
    auto work = [&] {
        std::vector<Fiber> fibers(l.block);
        std::vector<Wave> waves((l.block + 31) / 32);
        std::unique_ptr<char[]> stacks(new char[STACK * l.block]);
        for (uint32_t i = 0; i < l.block; i++) fibers[i].stack = stacks.get() + i * STACK;
        uint32_t b;
        while (!stop && (b = next.fetch_add(1, std::memory_order_relaxed)) < l.grid) {
            const char* what = run_block(b, l.block, fibers.data(), waves.data(), body);
            if (what && !stop.exchange(true)) {
                std::lock_guard<std::mutex> one(saying);
                snprintf(message, room, "block %u: %s", b, what);
            }
        }
    };
    uint32_t n = l.threads < l.grid ? l.threads : l.grid;
    std::vector<std::thread> threads;
    for (uint32_t i = 1; i < n; i++) threads.emplace_back(work);
    work();
    for (auto& t : threads) t.join();
    return stop;
}

} // namespace gp_host
