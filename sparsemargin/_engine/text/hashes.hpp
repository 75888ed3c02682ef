// Hash functions. Table hashes are seeded, so that nobody can prepare texts whose words collide.
// MurmurHash3 computes the columns of hashed features.
#pragma once

#include <cstdint>
#include <cstring>

#include "memory.hpp"

namespace sparsemargin::text {

// Random seeds, drawn once per process before the first table is created.
inline uint64_t SEEDS[2] = {0x9E3779B97F4A7C15, 0xD1B54A32D192ED03};

inline uint64_t folded(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Key of a table: a string of bytes. `first` contains its first eight bytes, padded with zeros.
struct Key {
    const char *start;
    uint32_t size;
    uint64_t first;
    uint64_t hash;
};

// Eight bytes from `start` must be readable, even if the key is shorter.
inline Key key_of(const char *start, uint32_t size) {
    constexpr uint64_t ODD = 0xA0761D6478BD642F;
    // There is no branch on sizes up to 8, because it would be mispredicted often.
    const int unused = size < 8 ? 64 - 8 * static_cast<int>(size) : 0;
    const uint64_t first = load_word(start) << unused >> unused;
    uint64_t hash = SEEDS[1] + size * ODD;
    if (size > 8) {
        for (uint32_t i = 8; i + 8 < size; i += 8) {
            hash = folded(load_word(start + i) ^ SEEDS[0], hash ^ ODD);
        }
        hash = folded(load_word(start + size - 8) ^ SEEDS[0], hash ^ ODD);
    }
    return {start, size, first, folded(first ^ SEEDS[0], hash)};
}

inline uint64_t hash_of_pair(uint64_t pair) { return folded(pair ^ SEEDS[0], SEEDS[1]); }

inline uint32_t rotated(uint32_t x, int by) { return x << by | x >> (32 - by); }

// MurmurHash3 with 32 bits and seed 0, on little-endian words of four bytes. All sizes up to 24
// take the same number of steps, and surplus steps are discarded, because a branch on the size
// would be mispredicted often. `size` + PADDING bytes from `p` must be readable.
inline uint32_t murmur(const char *p, uint32_t size) {
    constexpr uint32_t FIRST = 0xCC9E2D51, SECOND = 0x1B873593;
    const auto mixed = [](uint32_t block) { return rotated(block * FIRST, 15) * SECOND; };
    const auto next = [&mixed](uint32_t hash, uint32_t block) {
        return rotated(hash ^ mixed(block), 13) * 5 + 0xE6546B64;
    };
    uint32_t hash = 0;
    if (size <= 24) {
        for (uint32_t i = 0; i < 24; i += 4) {
            const uint32_t further = next(hash, static_cast<uint32_t>(load_word(p + i)));
            hash = i + 4 <= size ? further : hash;
        }
    } else {
        for (uint32_t i = 0; i + 4 <= size; i += 4) {
            hash = next(hash, static_cast<uint32_t>(load_word(p + i)));
        }
    }
    const uint64_t last = load_word(p + size / 4 * 4) & ((uint64_t(1) << 8 * (size % 4)) - 1);
    hash ^= mixed(static_cast<uint32_t>(last)) ^ size;
    hash = (hash ^ hash >> 16) * 0x85EBCA6B;
    hash = (hash ^ hash >> 13) * 0xC2B2AE35;
    return hash ^ hash >> 16;
}

}  // namespace sparsemargin::text
