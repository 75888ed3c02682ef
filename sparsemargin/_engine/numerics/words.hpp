// Eight bytes as one little-endian number on any machine.
#pragma once

#include <cstdint>
#include <cstring>

namespace sparsemargin {

inline uint64_t load_word(const char *p) {
    uint64_t word;
    std::memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

inline void store_word(char *p, uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    std::memcpy(p, &word, 8);
}

}  // namespace sparsemargin
