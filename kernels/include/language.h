// The language that kernels are written in: CUDA C++17 without its library, and these words. nvcc and NVRTC make device code of it, and a host
// compiler makes functions that the emulator runs (kernels/emulator). A kernel includes nothing but this file and files of kernels.
//
//   KERNEL void name(...)       an entry; all names are distinct, parameters are numbers and pointers
//   DEV                         a function of the device, inlined
//   TABLE                       constants that the device can read
//   SHARED(T, name, n)          n elements that the threads of a block share; undefined at first
//   SHARED_DYNAMIC(T, name, n)  the same, of a size that the launch states; at most once in a kernel
//   FIRST_OF_GRID, STEP_OF_GRID the number of this thread among all of the grid, and how many there are
//   BLOCK_BARRIER(), GRID_BARRIER(), WARP_BARRIER()   all threads come here, none may have returned
//   WARP_SHUFFLE(v, lane), WARP_SHUFFLE_XOR(v, mask), WARP_BALLOT(p)   of all lanes of a warp
//   MMA_U8(c, a, b)             c += a * b of bytes without a sign, modulo 2^32, by all lanes of a warp: c is 16 by 8 sums, a is 16 by 32, b is 32 by 8;
//                               a lane has four words of c, four of a and two of b, with g = lane / 4 and t = lane % 4:
//                                 c[r]   row g + 8 * (r / 2), column 2 * t + r % 2
//                                 a[r]   row g + 8 * (r % 2), columns 4 * t + 16 * (r / 2) and three more, first byte lowest
//                                 b[r]   rows 4 * t + 16 * r and three more, first byte lowest, column g
//   copy_async(to, from)        sixteen bytes of device memory to shared memory, in the group that this thread has open
//   copy_group()                ends that group and opens another
//   copy_wait<n>()              all groups of this thread but the last n are there; others see them after a barrier
//   UNROLL, ROLLED             before a loop: all of its steps in a row, or one after the other
//   lop3<imm>(a, b, c)          any function of three bits: imm has its values at 0xf0, 0xcc, 0xaa
//   byte_perm(a, b, s)          bytes of b:a, a nibble of s for each; only bits 0..2 of a nibble are used
//   rotate_right(v, n), swap_bytes(v), load128(p), store128(p, v), multiply_high(a, b) of 64 bits, count_ones(v)
//   atomic_add(p, v), atomic_xor(p, v), atomic_or(p, v), atomic_max(p, v), atomic_add64(p, v)
#pragma once

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

#define KERNEL extern "C" __global__
#define DEV static __device__ __forceinline__
#define TABLE static __device__ const
#define SHARED(T, name, n) __shared__ T name[n]
#define SHARED_DYNAMIC(T, name, n) extern __shared__ __align__(16) T name[]
#define LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")

#define BLOCK_BARRIER() __syncthreads()
#define WARP_BARRIER() __syncwarp()
#define WARP_SHUFFLE(v, lane) __shfl_sync(0xffffffffu, v, lane)
#define WARP_SHUFFLE_XOR(v, mask) __shfl_xor_sync(0xffffffffu, v, mask)
#define WARP_BALLOT(p) __ballot_sync(0xffffffffu, p)
#if !defined(__CUDACC_RTC__)
#include <cooperative_groups.h>
#define GRID_BARRIER() cooperative_groups::this_grid().sync()
#endif

template <u32 IMM> DEV u32 lop3(u32 a, u32 b, u32 c) {
  u32 out;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(out) : "r"(a), "r"(b), "r"(c), "n"(IMM));
  return out;
}
DEV u32 byte_perm(u32 a, u32 b, u32 s) { return __byte_perm(a, b, s); }
DEV u32 rotate_right(u32 v, u32 n) { return __funnelshift_r(v, v, n); }
DEV u32 atomic_add(u32 *p, u32 v) { return atomicAdd(p, v); }
DEV u32 atomic_xor(u32 *p, u32 v) { return atomicXor(p, v); }
DEV u32 atomic_or(u32 *p, u32 v) { return atomicOr(p, v); }
DEV u32 atomic_max(u32 *p, u32 v) { return atomicMax(p, v); }
DEV u64 atomic_add64(u64 *p, u64 v) { return atomicAdd(p, v); }
DEV u64 multiply_high(u64 a, u64 b) { return __umul64hi(a, b); }
DEV u32 count_ones(u32 v) { return __popc(v); }

DEV void MMA_U8(u32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEV void copy_async(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(u32(__cvta_generic_to_shared(to))), "l"(from) : "memory");
}
DEV void copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <u32 N> DEV void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

#else

#include "../emulator/emulator.h"

#define KERNEL extern "C"
#define DEV static inline
#define TABLE static const
#define SHARED(T, name, n)      \
  static const char name##_id = 0; \
  T *const name = static_cast<T *>(emulator::shared(&name##_id, sizeof(T) * (n)))
#define SHARED_DYNAMIC(T, name, n) T *const name = static_cast<T *>(emulator::shared_dynamic(sizeof(T) * (n)))
#define LAUNCH_BOUNDS(threads, blocks)
#define UNROLL
#define ROLLED
#define __restrict__ __restrict

#define EMULATOR_STRING(x) #x
#define EMULATOR_LINE(x) EMULATOR_STRING(x)
#define EMULATOR_SITE __FILE__ ":" EMULATOR_LINE(__LINE__)
#define BLOCK_BARRIER() emulator::barrier(emulator::BLOCK, EMULATOR_SITE)
#define GRID_BARRIER() emulator::barrier(emulator::GRID, EMULATOR_SITE)
#define WARP_BARRIER() emulator::barrier(emulator::WARP, EMULATOR_SITE)
#define WARP_SHUFFLE(v, lane) emulator::shuffle(v, lane, EMULATOR_SITE)
#define WARP_SHUFFLE_XOR(v, mask) emulator::shuffle(v, (threadIdx.x & 31) ^ (mask), EMULATOR_SITE)
#define WARP_BALLOT(p) emulator::ballot(p, EMULATOR_SITE)
#define MMA_U8(c, a, b) emulator::multiply(c, a, b, EMULATOR_SITE)

template <u32 IMM> DEV u32 lop3(u32 a, u32 b, u32 c) {
  u32 out = 0;
  for (u32 k = 0; k < 8; k++)
    if ((IMM >> k) & 1) out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  return out;
}
DEV u32 byte_perm(u32 a, u32 b, u32 s) {
  const u64 both = (static_cast<u64>(b) << 32) | a;
  u32 out = 0;
  for (u32 k = 0; k < 4; k++) out |= static_cast<u32>((both >> (8 * ((s >> (4 * k)) & 7))) & 0xff) << (8 * k);
  return out;
}
DEV u32 rotate_right(u32 v, u32 n) { return (n & 31) ? (v >> (n & 31)) | (v << (32 - (n & 31))) : v; }
DEV u32 atomic_add(u32 *p, u32 v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
DEV u32 atomic_xor(u32 *p, u32 v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); }
DEV u32 atomic_or(u32 *p, u32 v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }
DEV u32 atomic_max(u32 *p, u32 v) {
  u32 old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (old < v && !__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
DEV u64 atomic_add64(u64 *p, u64 v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
DEV u32 count_ones(u32 v) { return static_cast<u32>(__builtin_popcount(v)); }
DEV u64 multiply_high(u64 a, u64 b) {
  __extension__ typedef unsigned __int128 wide;
  return static_cast<u64>((static_cast<wide>(a) * b) >> 64);
}
DEV void copy_async(void *to, const void *from) { emulator::copy(to, from); }
DEV void copy_group() { emulator::copy_group(); }
template <u32 N> DEV void copy_wait() { emulator::copy_wait(N); }

#endif

#define FIRST_OF_GRID (u64(blockIdx.x) * blockDim.x + threadIdx.x)
#define STEP_OF_GRID (u64(gridDim.x) * blockDim.x)

DEV u32 swap_bytes(u32 v) { return byte_perm(v, 0, 0x0123); }
DEV uint4 load128(const uint4 *p) { return *p; }
DEV void store128(uint4 *p, uint4 v) { *p = v; }
