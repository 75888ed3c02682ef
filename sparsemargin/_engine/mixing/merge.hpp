// Merges of sorted keys with values. A key is the place of a number in an array of shape
// (n_coordinates, n_vectors).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace sparsemargin {

// Keys whose sums are held at once. They take 128 kB, which fits into the L2 cache.
constexpr int64_t BLOCK = 1 << 12;

inline int count_bits(uint64_t word) {
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int)((word * 0x0101010101010101u) >> 56);
}

// The place of the lowest bit that is set in a word other than 0.
inline int lowest_bit(uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_ctzll(word);
#else
    return count_bits((word & (0 - word)) - 1);
#endif
}

// Sorted keys of an array. The first `used` keys have been merged.
template <class K> struct Keys {
    const K *keys = nullptr;
    int64_t n = 0, used = 0;

    int64_t next() const { return used < n ? (int64_t)keys[used] : INT64_MAX; }

    // Marks the next keys, those below first + BLOCK, by their place, key - first, and calls
    // take(i, place) for each.
    template <class Take> void use(int64_t first, uint64_t *marks, Take take) {
        const K *at = keys;
        const int64_t last = n;
        int64_t i = used;
        for (; i < last; i++) {
            const int64_t place = (int64_t)at[i] - first;
            if (place >= BLOCK) break;
            marks[place / 64] |= (uint64_t)1 << (place % 64);
            take(i, place);
        }
        used = i;
    }
};

template <class K, class V> struct Valued : Keys<K> {
    const V *values = nullptr;
};

// A prior: a mean and a variance for each key.
template <class K, class T> struct Prior : Keys<K> {
    const T *means = nullptr, *variances = nullptr;
};

// The changed values of a shard. Its other values are the started ones times a ratio per vector.
template <class K, class T> struct Changed : Keys<K> {
    const T *values = nullptr;
    const double *ratio = nullptr;
};

// The changes of a shard's means times its precisions, and the increases of its precisions.
template <class K, class T> struct Evidence : Keys<K> {
    const T *steps = nullptr, *gains = nullptr;
};

// Calls take(first, marks) for each BLOCK of keys that the shards or others have, and then
// give(key, place) for each key that was marked, in order. `others` returns the next other key.
template <class K, class Shard, class Others, class Take, class Give>
void sweep(const std::vector<Shard> &shards, Others others, Take take, Give give) {
    std::vector<uint64_t> marks(BLOCK / 64);
    for (;;) {
        int64_t first = others();
        for (const auto &each : shards) first = std::min(first, each.next());
        if (first == INT64_MAX) return;
        take(first, marks.data());
        for (int64_t w = 0; w < BLOCK / 64; w++) {
            for (uint64_t word = marks[w]; word; word &= word - 1) {
                const int64_t place = w * 64 + lowest_bit(word);
                give((K)(first + place), place);
            }
            marks[w] = 0;
        }
    }
}

// For each key, `carried` plus the sum of the values of all shards times `share`. All shards began
// with the value `started`. A shard that has not changed a key has the value ratio * started, and
// `total` is the sum of share * ratio over all shards, so that the result is carried + total *
// started + the sum of share * (value - ratio * started) over the shards that have changed the key.
// Returns the number of keys written.
template <class K, class T>
int64_t merge_values(Valued<K, double> started, Valued<K, T> carried,
                     std::vector<Changed<K, T>> &shards, int64_t n_vectors, const double *total,
                     double share, K *keys, T *values) {
    struct Sum {
        double from, sum;
        T more;
    };
    std::vector<Sum> sums(BLOCK);
    Sum *const at = sums.data();
    int64_t n = 0;
    sweep<K>(
        shards, [&] { return std::min(started.next(), carried.next()); },
        [&](int64_t first, uint64_t *marks) {
            const double *const from = started.values;
            const T *const more = carried.values;
            started.use(first, marks, [=](int64_t i, int64_t place) { at[place].from = from[i]; });
            carried.use(first, marks, [=](int64_t i, int64_t place) { at[place].more = more[i]; });
            for (auto &each : shards) {
                const K *const own = each.keys;
                const T *const value = each.values;
                const double *const ratio = each.ratio;
                const K modulus = (K)n_vectors;
                each.use(first, marks, [=](int64_t i, int64_t place) {
                    const double times = ratio[modulus == 1 ? 0 : own[i] % modulus];
                    at[place].sum += share * ((double)value[i] - times * at[place].from);
                });
            }
        },
        [&](K key, int64_t place) {
            const double times = total[n_vectors == 1 ? 0 : key % (K)n_vectors];
            Sum &of = at[place];
            keys[n] = key;
            values[n++] = (T)(of.more + of.from * times + of.sum);
            of = Sum();
        });
    return n;
}

// The product of the shards' posteriors, where tempered[n] weights the evidence of n shards. A
// variance of 0 stands for 1. Returns the number of keys written.
template <class K, class T>
int64_t merge_evidence(Prior<K, T> prior, std::vector<Evidence<K, T>> &shards,
                       const double *tempered, K *keys, T *new_means, T *new_variances) {
    struct Sum {
        double steps, gains;
        T mean, variance;
        uint32_t n_shards;
    };
    std::vector<Sum> sums(BLOCK);
    Sum *const at = sums.data();
    int64_t n = 0;
    sweep<K>(
        shards, [&] { return prior.next(); },
        [&](int64_t first, uint64_t *marks) {
            const T *const means = prior.means, *const variances = prior.variances;
            prior.use(first, marks, [=](int64_t i, int64_t place) {
                at[place].mean = means[i];
                at[place].variance = variances[i];
            });
            for (auto &each : shards) {
                const T *const steps = each.steps, *const gains = each.gains;
                each.use(first, marks, [=](int64_t i, int64_t place) {
                    Sum &of = at[place];
                    of.steps += steps[i];
                    of.gains += gains[i];
                    of.n_shards++;
                });
            }
        },
        [&](K key, int64_t place) {
            Sum &of = at[place];
            double mean = of.mean, variance = of.variance;
            if (of.n_shards) {
                const double power = tempered[of.n_shards];
                const double precision =
                    (variance > 0.0 ? 1.0 / variance : 1.0) + power * of.gains;
                const double least = std::numeric_limits<T>::min();  // because 0 means 1
                const double inverse = 1.0 / precision;
                mean += power * of.steps * inverse;
                variance = std::max(inverse, least);
            }
            keys[n] = key;
            new_means[n] = (T)mean;
            new_variances[n++] = (T)variance;
            of = Sum();
        });
    return n;
}

// Values of keys, and the array of shape (n_columns + 1, width) to which some are copied.
template <class T> struct Copied {
    const T *values = nullptr;
    T *array = nullptr;
};

// Copies the values whose keys belong to the columns. Row `hole` of the arrays is left out.
template <class K, class T>
void spread_values(const int64_t *columns, int64_t n_columns, int64_t hole, int64_t width,
                   const K *keys, int64_t n_keys, const std::vector<Copied<T>> &numbers) {
    int64_t i = 0;
    for (int64_t c = 0; c < n_columns && i < n_keys; c++) {
        const int64_t first = columns[c] * width, row = (c + (c >= hole)) * width;
        if ((int64_t)keys[i] < first) {
            int64_t step = 1;
            while (i + step < n_keys && (int64_t)keys[i + step] < first) step *= 2;
            i = std::lower_bound(keys + i + step / 2, keys + std::min(i + step, n_keys), first) -
                keys;
        }
        for (; i < n_keys && (int64_t)keys[i] < first + width; i++) {
            for (const auto &each : numbers) each.array[row + (keys[i] - first)] = each.values[i];
        }
    }
}

// Means (`t * scale`) and variances after training, and both before it. `t_step` and
// `variances_step` are the distances between the numbers of two coordinates.
template <class T> struct Trained {
    const T *t, *variances, *means_before, *variances_before;
    const double *scale;
    int64_t n_coordinates, n_vectors, t_step, variances_step;

    // Stores the keys of the changed variances, the changes of the means times the precisions, and
    // the increases of the precisions. The coordinate `hole` has no column. Returns their number.
    template <class K>
    int64_t evidence(const int64_t *columns, int64_t hole, K *keys, T *steps, T *gains) const {
        struct Place {
            int64_t coordinate, vector;
        };
        // The changed places of some coordinates are listed first: a branch for each number would
        // often be predicted wrongly.
        const int64_t at_once = std::max<int64_t>(1, BLOCK / n_vectors);
        std::vector<Place> places(at_once * n_vectors + 1);
        Place *const found = places.data();
        int64_t n = 0;
        for (int64_t first = 0; first < n_coordinates; first += at_once) {
            int64_t n_found = 0;
            for (int64_t j = first; j < std::min(first + at_once, n_coordinates); j++) {
                if (j == hole) continue;
                const T *now = variances + j * variances_step;
                const T *before = variances_before + j * n_vectors;
                for (int64_t l = 0; l < n_vectors; l++) {
                    found[n_found] = {j, l};
                    n_found += now[l] != before[l];
                }
            }
            for (int64_t i = 0; i < n_found; i++, n++) {
                const int64_t j = found[i].coordinate, l = found[i].vector;
                const int64_t at = j * n_vectors + l;
                const double precision = 1.0 / variances[j * variances_step + l];
                const double before = variances_before[at] > 0 ? variances_before[at] : 1.0;
                const T mean = (T)(t[j * t_step + l] * scale[l]);
                keys[n] = (K)(columns[j - (j > hole)] * n_vectors + l);
                gains[n] = (T)(precision - 1.0 / before);
                steps[n] = (T)(((double)mean - means_before[at]) * precision);
            }
        }
        return n;
    }
};

// A set of numbers below n, and their ranks in increasing order.
class Numbers {
    struct Word {
        uint64_t bits = 0;
        int64_t before = 0;  // how many numbers the words before this one have
    };
    std::vector<Word> words;

  public:
    explicit Numbers(int64_t n = 0) : words(n / 64 + 1) {}

    void add(int64_t number) { words[number >> 6].bits |= (uint64_t)1 << (number & 63); }

    int64_t rank() {
        int64_t n = 0;
        for (Word &word : words) {
            word.before = n;
            n += count_bits(word.bits);
        }
        return n;
    }

    int64_t rank_of(int64_t number) const {
        const Word &word = words[number >> 6];
        const uint64_t below = ((uint64_t)1 << (number & 63)) - 1;
        return word.before + count_bits(word.bits & below);
    }

    void list(int64_t *numbers) const {
        for (size_t w = 0; w < words.size(); w++)
            for (uint64_t word = words[w].bits; word; word &= word - 1)
                *numbers++ = (int64_t)w * 64 + lowest_bit(word);
    }
};

}  // namespace sparsemargin
