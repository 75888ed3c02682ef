// The counts of one text, which leave sorted, and the rows they make.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memory.hpp"

namespace sparsemargin::text {

// A count for each number, and a bit for each that has one; a bit above for each 64 bits of which
// one is set, and so on: the numbers that are set are read in order without a look at others.
class Counts {
  public:
    // With `once` every number counts 1, however often it is added: bits alone stay in the cache.
    explicit Counts(bool once = false) : once_(once) {}

    size_t size() const { return n_; }

    // Numbers below `n` may be counted.
    void make_room(size_t n) {
        if (n <= room_) return;
        room_ = n = std::max(n, room_ + room_ / 2);
        if (!once_) counts_.grow_by_zeros(n);
        for (auto &level : levels_) level.grow_by_zeros(n = n / 64 + 1);
    }

    void prefetch(uint32_t number) const {
        __builtin_prefetch(levels_[0].data() + number / 64);
        if (!once_) __builtin_prefetch(counts_.data() + number);
    }

    // Without a branch on whether it is the number's first: nothing tells that beforehand.
    void add(uint32_t number, int32_t by) {
        uint64_t &bits = levels_[0][number / 64], &above = levels_[1][number / 4096];
        const uint64_t bit = uint64_t(1) << number % 64;
        if (!once_) counts_[number] += by;
        n_ += !(bits & bit);
        bits |= bit;
        if (!above) mark(number / 4096);
        above |= uint64_t(1) << number / 64 % 64;
    }

    // Gives each number and its count, in order, and forgets them.
    template <class Take>
    void drain(Take take) {
        for (size_t top = 0; top < levels_[N_LEVELS - 1].size(); ++top) {
            drain_level<N_LEVELS - 1>(top, take);
        }
        n_ = 0;
    }

  private:
    static constexpr int N_LEVELS = 4;

    void mark(size_t number) {
        for (int level = 2; level < N_LEVELS; ++level, number /= 64) {
            levels_[level][number / 64] |= uint64_t(1) << number % 64;
        }
    }

    template <int LEVEL, class Take>
    void drain_level(size_t at, Take &take) {
        uint64_t bits = levels_[LEVEL][at];
        if (!bits) return;
        levels_[LEVEL][at] = 0;
        for (; bits; bits &= bits - 1) {
            const size_t below = at * 64 + __builtin_ctzll(bits);
            if constexpr (LEVEL == 0) {
                take(static_cast<int32_t>(below), once_ ? 1 : counts_[below]);
                if (!once_) counts_[below] = 0;
            } else {
                drain_level<LEVEL - 1>(below, take);
            }
        }
    }

    bool once_;
    Array<int32_t> counts_;
    Array<uint64_t> levels_[N_LEVELS];
    size_t room_ = 0, n_ = 0;
};

enum class Type { int32, int64, float32, float64 };

inline size_t size_of(Type type) { return type == Type::int32 || type == Type::float32 ? 4 : 8; }

// Rows end to end.
struct Rows {
    explicit Rows(Type type) : type(type) { ends.push_back(0); }

    Type type;
    Array<int32_t> columns;
    Array<char> values;
    Array<int64_t> ends;

    // Room for more entries, to be written to or not.
    void reserve(size_t n) {
        columns.reserve(columns.size() + n);
        values.reserve(values.size() + n * size_of(type));
    }

    void add(Counts &counts) {
        switch (type) {
            case Type::int32: return add_as<int32_t>(counts);
            case Type::int64: return add_as<int64_t>(counts);
            case Type::float32: return add_as<float>(counts);
            case Type::float64: return add_as<double>(counts);
        }
    }

  private:
    template <class Value>
    void add_as(Counts &counts) {
        const size_t n = counts.size();
        int32_t *column = columns.extend(n);
        auto *value = reinterpret_cast<Value *>(values.extend(n * sizeof(Value)));
        counts.drain([&](int32_t number, int32_t count) {
            *column++ = number;
            *value++ = static_cast<Value>(count);
        });
        ends.push_back(static_cast<int64_t>(columns.size()));
    }
};

}  // namespace sparsemargin::text
