// Rows of weights from the counts of several families of terms, each with its own norm.
//
// A family counts terms directly, or counts words of which each contains several terms, such as the
// character n-grams of the word. The rows of counts of such a family are short. They are the
// product of the rows of words and the matrix of the terms of each word. This product is computed
// row by row, together with the weights, so it is written once in its final form.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace sparsemargin::text {

// Rows of counts. Numbers are those of terms, or of words if there are `items`.
struct Counted {
    const int32_t *counts, *numbers;
    const int64_t *ends;
    // The terms of word i are items[item_ends[i]] to items[item_ends[i + 1] - 1]. May be null.
    const int32_t *items;
    const int64_t *item_ends;
    int64_t last;  // the last entry of the last row

    // Calls `take` with each number of a term in the row and what is added to its count.
    template <class Take>
    void each_term(int64_t row, Take take) const {
        for (int64_t i = ends[row]; i < ends[row + 1]; ++i) {
            const int32_t count = counts[i];
            if (!items) {
                take(numbers[i], count);
                continue;
            }
            __builtin_prefetch(items + item_ends[numbers[std::min(i + AHEAD, last)]]);
            const int32_t *item = items + item_ends[numbers[i]];
            for (const int32_t *stop = items + item_ends[numbers[i] + 1]; item < stop; ++item) {
                take(*item, count);
            }
        }
    }

    static constexpr int64_t AHEAD = 8;
};

// Adds to `n_rows_with` of each term the number of rows that contain it.
inline void count_rows(const Counted &rows, int64_t n_rows, int64_t n_terms, int32_t *n_rows_with) {
    struct Seen {
        uint32_t last, n;  // the last row, counted from 1, and the number of rows
    };
    std::vector<Seen> seen(n_terms);
    for (int64_t row = 0; row < n_rows; ++row) {
        const auto current = static_cast<uint32_t>(row + 1);
        rows.each_term(row, [&](int32_t term, int32_t) {
            Seen &each = seen[term];
            each.n += each.last != current;
            each.last = current;
        });
    }
    for (int64_t i = 0; i < n_terms; ++i) n_rows_with[i] += static_cast<int32_t>(seen[i].n);
}

// Removes items whose `numbers` are negative, and replaces the others by their numbers.
inline void renumber_items(int32_t *items, int64_t *item_ends, int64_t n_words,
                           const int32_t *numbers) {
    int64_t n = 0, start = 0;
    for (int64_t word = 0; word < n_words; ++word) {
        const int64_t end = item_ends[word + 1];
        for (int64_t i = start; i < end; ++i) {
            const int32_t number = numbers[items[i]];
            items[n] = number;
            n += number >= 0;
        }
        start = end;
        item_ends[word + 1] = n;
    }
}

enum class Norm { none, l1, l2 };

// The final columns and weights of a family's terms. Terms with a negative column are left out.
template <class Value>
struct Family {
    Counted rows;
    int64_t n_terms;
    const int32_t *columns;  // if null, the column of a term is its number
    int32_t offset;          // is added to columns
    const Value *idf;        // may be null
};

// Writes rows of weights into arrays with room for `room` entries.
template <class Value>
class Weighing {
  public:
    // `logs` has 1 + log(count) for counts below `n_logs`. Without it, counts are not changed.
    Weighing(const Value *logs, int64_t n_logs, Norm norm)
        : logs_(logs), n_logs_(n_logs), norm_(norm) {}

    // Returns the largest count. If it is not below `n_logs`, the weights are not correct.
    int64_t largest() const { return largest_; }

    // Returns the number of entries, or -1 if there is no room for them.
    int64_t weigh(const std::vector<Family<Value>> &families, int64_t n_rows, int64_t room,
                  int32_t *columns, Value *values, int64_t *ends) {
        std::vector<std::vector<int32_t>> sums(families.size());
        for (size_t i = 0; i < families.size(); ++i) {
            if (families[i].rows.items) sums[i].resize(families[i].n_terms);
        }
        int64_t n = 0;
        for (int64_t row = 0; row < n_rows; ++row) {
            for (size_t i = 0; i < families.size(); ++i) {
                const Counted &rows = families[i].rows;
                const int64_t start = rows.ends[row];
                const int32_t *terms = rows.numbers + start, *counts = rows.counts + start;
                int64_t n_terms = rows.ends[row + 1] - start;
                if (rows.items) {
                    n_terms = add_up(rows, row, sums[i].data());
                    terms = terms_.data();
                    counts = counts_.data();
                }
                const int64_t more = write(families[i], terms, counts, n_terms, room - n,
                                           columns + n, values + n);
                if (more < 0) return -1;
                n += more;
            }
            *ends++ = n;
        }
        return n;
    }

  private:
    // Lists the terms of the words of a row with their counts, in the order of the words. `sums` has
    // a zero for each term.
    int64_t add_up(const Counted &rows, int64_t row, int32_t *sums) {
        int64_t n = 0, most = 1;
        for (int64_t i = rows.ends[row]; i < rows.ends[row + 1]; ++i) {
            most += rows.item_ends[rows.numbers[i] + 1] - rows.item_ends[rows.numbers[i]];
        }
        terms_.clear();
        counts_.clear();
        int32_t *term_at = terms_.extend(most), *count_at = counts_.extend(most);
        rows.each_term(row, [&](int32_t term, int32_t count) {
            const int32_t before = sums[term];
            sums[term] = before + count;
            term_at[n] = term;
            n += before == 0;
        });
        for (int64_t i = 0; i < n; ++i) count_at[i] = std::exchange(sums[term_at[i]], 0);
        return n;
    }

    int64_t write(const Family<Value> &family, const int32_t *terms, const int32_t *counts,
                  int64_t n_terms, int64_t room, int32_t *columns, Value *values) {
        int64_t n = 0;
        for (int64_t i = 0; i < n_terms; ++i) {
            const int32_t column = family.columns ? family.columns[terms[i]] : terms[i];
            if (column < 0) continue;
            if (n == room) return -1;
            columns[n] = column + family.offset;
            const Value weight = weight_of(counts[i]);
            values[n++] = family.idf ? weight * family.idf[terms[i]] : weight;
        }
        normalize(values, n);
        return n;
    }

    Value weight_of(int32_t count) {
        if (!logs_) return static_cast<Value>(count);
        largest_ = std::max<int64_t>(largest_, count);
        return logs_[std::min<int64_t>(count, n_logs_ - 1)];
    }

    // Divides a row by its norm as scikit-learn does.
    void normalize(Value *values, int64_t n) const {
        if (norm_ == Norm::none) return;
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) {
            sum += norm_ == Norm::l1 ? std::fabs(values[i]) : values[i] * values[i];
        }
        if (sum == 0) return;
        if (norm_ == Norm::l2) sum = std::sqrt(sum);
        for (int64_t i = 0; i < n; ++i) values[i] = static_cast<Value>(values[i] / sum);
    }

    const Value *logs_;
    int64_t n_logs_;
    Norm norm_;
    int64_t largest_ = 0;
    Array<int32_t> terms_, counts_;
};

}  // namespace sparsemargin::text
