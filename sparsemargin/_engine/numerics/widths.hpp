// Macros that compile loops over contiguous numbers for several SIMD widths; the width is selected
// at run time.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define SM_ALL_WIDTHS __attribute__((target_clones("avx512f", "avx2", "default"), unused))
#else
#define SM_ALL_WIDTHS
#endif

#if defined(__GNUC__) || defined(__clang__)
#define SM_ALWAYS_INLINE inline __attribute__((always_inline, unused))
#define SM_INLINE_LAMBDA __attribute__((always_inline))
// Without `sm_keep`, an empty assembler statement, the compiler may remove calls of a function that
// only prefetches.
#define SM_PREFETCH(p) (__builtin_prefetch(p), sm_keep(p))
#else
#define SM_INLINE_LAMBDA
#define SM_ALWAYS_INLINE inline
#define SM_PREFETCH(p) ((void)0)
#endif
#define SM_INLINE static SM_ALWAYS_INLINE

#if defined(__GNUC__) || defined(__clang__)
SM_INLINE void sm_keep(const void *address) { __asm__ volatile("" : : "r"(address)); }
#endif

// Declares the iterations of the next loop independent, so that the compiler can vectorize it.
#if defined(__clang__)
#define SM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define SM_INDEPENDENT _Pragma("GCC ivdep")
#else
#define SM_INDEPENDENT
#endif

SM_INLINE void sm_prefetch_span(const void *from, const void *to) {
    const char *line = (const char *)from;
    for (; line < (const char *)to; line += 64) SM_PREFETCH(line);
}
