// Rows of a CSR matrix as typed pointers, and branch-free checks of their values and columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "../numerics/widths.hpp"

namespace sparsemargin {

template <class V, class I>
struct Row {
    const V *values;
    const I *columns;
    int64_t nnz;
};

template <class V, class I>
struct Rows {
    const V *data;
    const I *indices;
    const I *indptr;
    int64_t n;
    int64_t n_features;

    Row<V, I> at(int64_t r) const {
        return {data + indptr[r], indices + indptr[r], int64_t{indptr[r + 1]} - indptr[r]};
    }
};

template <class V, class I>
SM_INLINE void prefetch_row(const Row<V, I> &row) {
    sm_prefetch_span(row.values, row.values + row.nnz);
    sm_prefetch_span(row.columns, row.columns + row.nnz);
}

// The checks collect errors in the sign bit of a value that is combined over all entries. Integer
// operations without branches let the compiler use vector instructions.
template <class U>
SM_INLINE bool sign(U bits) {
    return bits >> (8 * sizeof(U) - 1);
}

template <class I>
SM_INLINE bool in_range(const I *columns, int64_t nnz, int64_t n_features) {
    // The sign bit is set in a negative column, and in the difference to the last column if the
    // column is too large.
    using U = std::make_unsigned_t<std::remove_const_t<I>>;
    const U last = static_cast<U>(std::min(n_features - 1, int64_t{std::numeric_limits<I>::max()}));
    U wrong = 0;
    for (int64_t j = 0; j < nnz; ++j) wrong |= U(columns[j]) | (last - U(columns[j]));
    return !sign(wrong);
}

template <class I>
SM_INLINE bool is_rising(const I *columns, int64_t nnz) {
    using U = std::make_unsigned_t<std::remove_const_t<I>>;
    U falling = 0;
    for (int64_t j = 0; j + 1 < nnz; ++j) falling |= U(columns[j + 1]) - U(columns[j]) - 1;
    return !sign(falling);
}

// Bits that detect repeated columns of a row. Each column sets the bit of its index modulo the
// number of bits. All bits are cleared after each row.
class ColumnMarks {
    std::vector<uint8_t> bytes;  // with longer words, columns would wait for each other's writes

    template <class I>
    uint64_t place(I column) const {
        return static_cast<uint64_t>(column) & (8 * bytes.size() - 1);
    }

   public:
    int64_t size() const { return 8 * static_cast<int64_t>(bytes.size()); }

    void grow(int64_t n_bits) { bytes.resize(n_bits / 8); }  // n_bits is a power of two

    // Returns whether two columns of a row set the same bit.
    template <class I>
    bool meet(const I *columns, int64_t nnz) {
        unsigned met = 0;
        for (int64_t j = 0; j < nnz; ++j) {
            const uint64_t at = place(columns[j]);
            const unsigned bit = 1u << at % 8, before = bytes[at / 8];
            met |= before & bit;
            bytes[at / 8] = static_cast<uint8_t>(before | bit);
        }
        for (int64_t j = 0; j < nnz; ++j) bytes[place(columns[j]) / 8] = 0;
        return met != 0;
    }
};

// Cython 3.2 names const types as template arguments, so that V can be const float.
template <class V>
constexpr bool IS_FLOAT = std::is_same_v<std::remove_const_t<V>, float>;
template <class V>
using Bits = std::conditional_t<IS_FLOAT<V>, uint32_t, uint64_t>;
template <class V>
constexpr int MANTISSA = IS_FLOAT<V> ? 23 : 52;

template <class V>
SM_INLINE Bits<V> bits_of(V value) {
    Bits<V> bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

template <class V>
SM_INLINE bool all_finite(const V *values, int64_t nnz) {
    // Adding one to an exponent field of all ones carries into the sign bit.
    constexpr Bits<V> one = Bits<V>{1} << MANTISSA<V>;
    constexpr Bits<V> field = ~Bits<V>{0} / 2 / one * one;
    Bits<V> carry = 0;
    for (int64_t j = 0; j < nnz; ++j) carry |= (bits_of(values[j]) & field) + one;
    return !sign(carry);
}

// Returns the number of nonzero values if all of them are between 2**-plain and 2**plain in
// magnitude, else -1.
template <class V>
SM_INLINE int64_t count_plain(const V *values, int64_t nnz, int plain) {
    constexpr Bits<V> middle = IS_FLOAT<V> ? 127 : 1023, most = ~Bits<V>{0} / 2;
    Bits<V> wide = 0, count = 0;
    for (int64_t j = 0; j < nnz; ++j) {
        Bits<V> bits = bits_of(values[j]) & most, exponent = bits >> MANTISSA<V>;
        Bits<V> some = bits + most;  // the sign bit is set if the value is not 0
        wide |= ((exponent - (middle - plain)) | (middle + plain - exponent)) & some;
        count += sign(some);
    }
    return sign(wide) ? -1 : static_cast<int64_t>(count);
}

}  // namespace sparsemargin
