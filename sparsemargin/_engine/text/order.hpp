// Sorting of the numbers of a lexicon by their strings, and renumbering of rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lexicon.hpp"
#include "memory.hpp"
#include "rows.hpp"

namespace sparsemargin::text {

struct Ranked {
    uint64_t key;
    uint32_t number;
};

// Sorts by keys below 2**bits. The sort is stable.
inline void sort_by_radix(std::vector<Ranked> &items, int bits) {
    constexpr int DIGIT = 11;
    std::vector<Ranked> sorted(items.size());
    for (int shift = 0; shift < bits; shift += DIGIT) {
        size_t starts[(1 << DIGIT) + 1] = {};
        const auto digit = [shift](const Ranked &item) {
            return item.key >> shift & ((1 << DIGIT) - 1);
        };
        for (const Ranked &item : items) ++starts[digit(item) + 1];
        if (items.empty() || starts[digit(items[0]) + 1] == items.size()) continue;
        for (int i = 0; i < 1 << DIGIT; ++i) starts[i + 1] += starts[i];
        for (const Ranked &item : items) sorted[starts[digit(item)]++] = item;
        items.swap(sorted);
    }
}

// Sorts the strings by their first eight bytes, and equal ones by the remaining bytes. Without
// pairs in the lexicon, only strings that are `wanted` are sorted.
inline std::vector<Ranked> sorted_strings(const Lexicon &lexicon, const uint8_t *wanted) {
    std::vector<Ranked> items;
    for (uint32_t i = 0; i < lexicon.size(); ++i) {
        if (!lexicon.is_string(i) || !(wanted[i] || lexicon.has_pairs())) continue;
        uint32_t size;
        const char *p = lexicon.string(i, size);
        items.push_back({__builtin_bswap64(key_of(p, size).first), i});
    }
    sort_by_radix(items, 64);
    const auto before = [&lexicon](const Ranked &a, const Ranked &b) {
        uint32_t size_a, size_b;
        const char *p = lexicon.string(a.number, size_a), *q = lexicon.string(b.number, size_b);
        const uint32_t least = std::min(size_a, size_b);
        const int order = least > 8 ? std::memcmp(p + 8, q + 8, least - 8) : 0;
        return order ? order < 0 : size_a < size_b;
    };
    for (auto first = items.begin(), last = first; first != items.end(); first = last) {
        while (last != items.end() && last->key == first->key) ++last;
        if (last - first > 1) std::sort(first, last, before);
    }
    return items;
}

// Returns the number of words of each n-gram.
inline std::vector<uint8_t> lengths(const Lexicon &lexicon) {
    std::vector<uint8_t> lengths(lexicon.size(), 1);
    for (uint32_t i = 0; i < lexicon.size(); ++i) {
        if (!lexicon.is_string(i)) {
            lengths[i] = static_cast<uint8_t>(std::min(lengths[lexicon.rest(i)] + 1, 255));
        }
    }
    return lengths;
}

// Sorts the numbers that are `wanted` by their strings, and returns how many they are. An n-gram
// follows directly after its prefix without the last word, because a space sorts before all
// characters of words.
inline int64_t sort_numbers(const Lexicon &lexicon, const uint8_t *wanted, int32_t *order) {
    std::vector<Ranked> items = sorted_strings(lexicon, wanted);
    std::vector<uint32_t> rank(lexicon.size()), word_rank;
    const auto rank_items = [&] {
        for (size_t i = 0; i < items.size(); ++i) rank[items[i].number] = static_cast<uint32_t>(i);
    };
    if (lexicon.has_pairs()) {
        rank_items();
        word_rank = rank;
        const size_t n_words = items.size();
        const int word_bits = 64 - __builtin_clzll(n_words + 1);
        const std::vector<uint8_t> n = lengths(lexicon);
        const int longest = *std::max_element(n.begin(), n.end());
        for (int length = 2; length <= longest; ++length) {
            const int bits = word_bits + 64 - __builtin_clzll(items.size());
            items.clear();
            for (uint32_t i = 0; i < lexicon.size(); ++i) {
                if (n[i] < length) items.push_back({uint64_t(rank[i]) << word_bits, i});
                if (n[i] != length) continue;
                const uint64_t rest = rank[lexicon.rest(i)];
                items.push_back({rest << word_bits | (word_rank[lexicon.last(i)] + 1), i});
            }
            sort_by_radix(items, bits);
            rank_items();
        }
    }
    const int32_t *start = order;
    for (const Ranked &item : items) {
        if (wanted[item.number]) *order++ = static_cast<int32_t>(item.number);
    }
    return order - start;
}

// Replaces the columns of rows by their `numbers`, and sorts each row by these.
template <class Value>
void renumber(const int32_t *counted, const int32_t *columns, const int64_t *ends, size_t n_rows,
              const uint32_t *numbers, size_t n_numbers, int32_t *new_columns, Value *values) {
    Counts counts;
    counts.make_room(n_numbers);
    for (size_t row = 0; row < n_rows; ++row) {
        for (int64_t i = ends[row]; i < ends[row + 1]; ++i) {
            counts.add(numbers[columns[i]], counted[i]);
        }
        counts.drain([&](int32_t number, int32_t count) {
            *new_columns++ = number;
            *values++ = static_cast<Value>(count);
        });
    }
}

}  // namespace sparsemargin::text
