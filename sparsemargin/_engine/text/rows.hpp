// Counts of the features of one text, which are read in sorted order, and rows of counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "memory.hpp"

namespace sparsemargin::text {

// Counts by number, with a hierarchy of bits. A bit of the lowest level says that a number has a
// count. A bit of a higher level says that one of 64 bits below it is set. So the numbers with a
// count are read in order without visiting others.
class Counts {
  public:
    // With `once` each number counts 1 at most. Only bits are stored, which fit into the cache. With
    // `listed` numbers are read in the order of their first `add`, and there are no bits. Then
    // counts must be positive.
    explicit Counts(bool once = false, bool listed = false) : once_(once), listed_(listed) {}

    size_t size() const { return n_; }

    // Makes room for numbers below `n`.
    void make_room(size_t n) {
        if (n <= room_) return;
        room_ = n = std::max(n, room_ + room_ / 2);
        if (!once_) counts_.grow_by_zeros(n);
        if (listed_) return list_.reserve(n + 1);
        for (auto &level : levels_) level.grow_by_zeros(n = n / 64 + 1);
    }

    void prefetch(uint32_t number) const {
        if (!listed_) __builtin_prefetch(levels_[0].data() + number / 64);
        if (!once_) __builtin_prefetch(counts_.data() + number);
    }

    // Adds to a count. There is no branch on whether the number is new, because it would be
    // mispredicted often.
    void add(uint32_t number, int32_t by) {
        if (listed_) {
            list_[n_] = static_cast<int32_t>(number);
            n_ += counts_[number] == 0;
            counts_[number] += by;
            return;
        }
        uint64_t &bits = levels_[0][number / 64], &above = levels_[1][number / 4096];
        const uint64_t bit = uint64_t(1) << number % 64;
        if (!once_) counts_[number] += by;
        n_ += !(bits & bit);
        bits |= bit;
        if (!above) mark(number / 4096);
        above |= uint64_t(1) << number / 64 % 64;
    }

    // Calls `take` with each number and its count, in increasing order unless `listed`, and clears
    // them.
    template <class Take>
    void drain(Take take) {
        for (size_t i = 0; listed_ && i < n_; ++i) take(list_[i], std::exchange(counts_[list_[i]], 0));
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

    bool once_, listed_;
    Array<int32_t> counts_, list_;
    Array<uint64_t> levels_[N_LEVELS];
    size_t room_ = 0, n_ = 0;
};

enum class Type { int32, int64, float32, float64 };

inline size_t size_of(Type type) { return type == Type::int32 || type == Type::float32 ? 4 : 8; }

// Rows of counts in CSR form.
struct Rows {
    explicit Rows(Type type) : type(type) { ends.push_back(0); }

    Type type;
    Array<int32_t> columns;
    Array<char> values;
    Array<int64_t> ends;

    // Reserves memory for `n` more entries.
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
