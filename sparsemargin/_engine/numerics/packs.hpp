// The numbers of a few labels that stand side by side, worked on at once.
#pragma once

#include <cstring>

#include "widths.hpp"

// Packs are handed over within functions only, as all that take them are inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace sparsemargin {

// The numbers of W labels.
template <int W, class T>
struct PackOf {
    typedef T type __attribute__((vector_size(W * sizeof(T))));
};
template <int W, class T>
using Pack = typename PackOf<W, T>::type;

template <int W, class T>
SM_INLINE Pack<W, T> load(const T *from) {
    Pack<W, T> pack;
    std::memcpy(&pack, from, sizeof pack);
    return pack;
}

template <int W, class T>
SM_INLINE void store(T *to, const Pack<W, T> &pack) {
    std::memcpy(to, &pack, sizeof pack);
}

template <int W, class T, class From>
SM_INLINE Pack<W, T> as(const From &pack) {
    return __builtin_convertvector(pack, Pack<W, T>);
}

}  // namespace sparsemargin
