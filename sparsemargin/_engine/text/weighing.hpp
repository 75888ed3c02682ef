// Computes rows of weights from the counts of families of terms. Each family has its own norm.
//
// A family has counts of terms, or of words that contain several terms each (character n-grams).
// The counts of these terms are the product of the rows of words and the matrix of the terms in
// each word. The product is computed row by row and written once, with the weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace sparsemargin::text {

// Rows of counts. `numbers` are numbers of words if there are `items`, else numbers of terms.
struct Counted {
    const int32_t *counts, *numbers;
    const int64_t *ends;
    // The terms of word i are items[item_ends[i]] to items[item_ends[i + 1] - 1]. May be null.
    const int32_t *items;
    const int64_t *item_ends;
    int64_t last;  // index of the last entry of the last row

    // Calls `take` with each term in the row and the number to add to its count.
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

// The final columns and weights of a family's terms. Terms with a negative column are left out.
template <class Value>
struct Family {
    Counted rows;
    int64_t n_terms;
    const int32_t *columns;  // may be null without items: the column of a term is its number
    const Value *idf;        // may be null without items
    int32_t offset;          // added to each column
};

// Writes rows of weights into arrays with room for `room` entries.
template <class Value>
class Weighing {
  public:
    // `logs` has 1 + log(count) for counts below `n_logs`. Without it, counts are not changed.
    // The norm is 1 or 2, or 0 for none.
    Weighing(const Value *logs, int64_t n_logs, int norm)
        : logs_(logs), n_logs_(n_logs), norm_(norm) {}

    // The largest count that is not below `n_logs`; the weights are then wrong. 0 if there is none.
    int64_t largest = 0;

    // Returns the number of entries, or -1 if there is no room for them.
    int64_t weigh(const std::vector<Family<Value>> &families, int64_t n_rows, int64_t room,
                  int32_t *columns, Value *values, int64_t *ends) {
        std::vector<std::vector<Term>> terms(families.size());
        for (size_t i = 0; i < families.size(); ++i) {
            for (int64_t term = 0; families[i].rows.items && term < families[i].n_terms; ++term) {
                terms[i].push_back({0, families[i].columns[term], families[i].idf[term]});
            }
        }
        int64_t n = 0;
        for (int64_t row = 0; row < n_rows; ++row) {
            for (size_t i = 0; i < families.size(); ++i) {
                const Family<Value> &family = families[i];
                const int64_t more =
                    family.rows.items
                        ? add_up(family, row, terms[i].data(), room - n, columns + n, values + n)
                        : write(family, row, room - n, columns + n, values + n);
                if (more < 0) return -1;
                normalize(values + n, more);
                n += more;
            }
            *ends++ = n;
        }
        return n;
    }

  private:
    // All numbers of a term are in one cache line.
    struct alignas(16) Term {
        int32_t sum, column;
        Value idf;
    };

    // Adds up the counts of the terms in the words of a row. Writes the terms in the order of the
    // words.
    int64_t add_up(const Family<Value> &family, int64_t row, Term *terms, int64_t room,
                   int32_t *columns, Value *values) {
        const Counted &rows = family.rows;
        int64_t n = 0, most = 1;
        for (int64_t i = rows.ends[row]; i < rows.ends[row + 1]; ++i) {
            most += rows.item_ends[rows.numbers[i] + 1] - rows.item_ends[rows.numbers[i]];
        }
        listed_.clear();
        int32_t *listed = listed_.extend(most);
        rows.each_term(row, [&](int32_t number, int32_t count) {
            Term &term = terms[number];
            listed[n] = number;
            n += term.sum == 0;
            term.sum += count;
        });
        int64_t n_kept = 0;
        for (int64_t i = 0; i < n; ++i) {
            Term &term = terms[listed[i]];
            const int32_t count = std::exchange(term.sum, 0);
            if (term.column < 0) continue;
            if (n_kept == room) return -1;
            columns[n_kept] = term.column + family.offset;
            values[n_kept++] = weight_of(count) * term.idf;
        }
        return n_kept;
    }

    int64_t write(const Family<Value> &family, int64_t row, int64_t room, int32_t *columns,
                  Value *values) {
        const Counted &rows = family.rows;
        int64_t n = 0;
        for (int64_t i = rows.ends[row]; i < rows.ends[row + 1]; ++i) {
            const int32_t term = rows.numbers[i];
            const int32_t column = family.columns ? family.columns[term] : term;
            if (column < 0) continue;
            if (n == room) return -1;
            columns[n] = column + family.offset;
            const Value weight = weight_of(rows.counts[i]);
            values[n++] = family.idf ? weight * family.idf[term] : weight;
        }
        return n;
    }

    Value weight_of(int32_t count) {
        if (!logs_) return static_cast<Value>(count);
        if (count >= n_logs_) {
            largest = std::max<int64_t>(largest, count);
            return 0;
        }
        return logs_[count];
    }

    // Divides a row by its norm. Four partial sums are 4 times faster than one sum.
    void normalize(Value *values, int64_t n) const {
        if (!norm_) return;
        double sums[4] = {};
        const auto add = [&](int64_t i, int at) {
            sums[at] += norm_ == 1 ? std::fabs(values[i]) : values[i] * values[i];
        };
        int64_t i = 0;
        for (; i + 4 <= n; i += 4) add(i, 0), add(i + 1, 1), add(i + 2, 2), add(i + 3, 3);
        for (; i < n; ++i) add(i, 0);
        const double sum = sums[0] + sums[1] + (sums[2] + sums[3]);
        if (sum == 0) return;
        const double factor = 1 / (norm_ == 2 ? std::sqrt(sum) : sum);
        for (i = 0; i < n; ++i) values[i] = static_cast<Value>(values[i] * factor);
    }

    const Value *logs_;
    int64_t n_logs_;
    int norm_;
    Array<int32_t> listed_;
};

}  // namespace sparsemargin::text
