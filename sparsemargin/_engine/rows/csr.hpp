// Rows of a CSR matrix, as typed pointers.
#pragma once

#include <cstdint>

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
        return {data + indptr[r], indices + indptr[r], static_cast<int64_t>(indptr[r + 1] - indptr[r])};
    }
};

}  // namespace sparsemargin
