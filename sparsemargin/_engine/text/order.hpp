// Sorting of the numbers of a lexicon by their strings, and renumbering of rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
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
        items.push_back({__builtin_bswap64(lexicon.key(i).first), i});
    }
    sort_by_radix(items, 64);
    const auto before = [&lexicon](const Ranked &a, const Ranked &b) {
        return lexicon.string(a.number) < lexicon.string(b.number);
    };
    for (auto first = items.begin(), last = first; first != items.end(); first = last) {
        while (last != items.end() && last->key == first->key) ++last;
        if (last - first > 1) std::sort(first, last, before);
    }
    return items;
}

// Returns the number of words of each n-gram.
inline std::vector<int32_t> lengths(const Lexicon &lexicon) {
    std::vector<int32_t> lengths(lexicon.size(), 1);
    for (uint32_t i = 0; i < lexicon.size(); ++i) {
        if (!lexicon.is_string(i)) lengths[i] = lengths[lexicon.rest(i)] + 1;
    }
    return lengths;
}

// Sorts the numbers that are `wanted` by their strings, and returns how many they are. An n-gram
// follows directly after its prefix without the last word, because a space sorts before all
// characters of words. So the n-grams with a prefix are the children of a node in a tree. The
// position of a child follows from the number of wanted nodes below its earlier siblings.
inline int64_t sort_numbers(const Lexicon &lexicon, const uint8_t *wanted, int32_t *order) {
    const auto n = static_cast<uint32_t>(lexicon.size());
    const std::vector<Ranked> words = sorted_strings(lexicon, wanted);
    std::vector<uint32_t> n_wanted(wanted, wanted + n), position(n);
    for (uint32_t i = n; i-- > 0 && lexicon.has_pairs();) {
        if (!lexicon.is_string(i)) n_wanted[lexicon.rest(i)] += n_wanted[i];
    }
    const auto place = [&](uint32_t i, uint32_t at) {
        if (wanted[i]) order[at] = static_cast<int32_t>(i);
        position[i] = at + wanted[i];  // the position of the first child
    };
    uint32_t end = 0;
    for (const Ranked &word : words) {
        place(word.number, end);
        end += n_wanted[word.number];
    }
    if (!lexicon.has_pairs()) return end;
    // List the pairs in the order of their last words.
    std::vector<uint32_t> ends(n + 1), pairs(n);
    for (uint32_t i = 0; i < n; ++i) {
        if (!lexicon.is_string(i)) ++ends[lexicon.last(i)];
    }
    uint32_t n_pairs = 0;
    for (const Ranked &word : words) n_pairs += std::exchange(ends[word.number], n_pairs);
    for (uint32_t i = 0; i < n; ++i) {
        if (!lexicon.is_string(i)) pairs[ends[lexicon.last(i)]++] = i;
    }
    const std::vector<int32_t> n_words = lengths(lexicon);
    const int32_t longest = *std::max_element(n_words.begin(), n_words.end());
    for (int32_t length = 2; length <= longest; ++length) {
        for (uint32_t k = 0; k < n_pairs; ++k) {
            const uint32_t i = pairs[k];
            if (n_words[i] != length) continue;
            uint32_t &at = position[lexicon.rest(i)];
            place(i, at);
            at += n_wanted[i];
        }
    }
    return end;
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
