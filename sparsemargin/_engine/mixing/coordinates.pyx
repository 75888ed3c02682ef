"""Numbers of vectors by sorted keys. A key is the place of a number in a flat array of shape
(n_coordinates, n_vectors)."""

from libc.math cimport fabs, frexp, ldexp, pow
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine.rows.csr cimport index_t, state_t

cdef extern from "mixing/merge.hpp" namespace "sparsemargin" nogil:
    cppclass Keys[K]:
        const K* keys
        int64_t n

    cppclass Valued[K, V](Keys[K]):
        const V* values

    cppclass Prior[K, T](Keys[K]):
        const T* means
        const T* variances

    cppclass Changed[K, T](Keys[K]):
        const T* values
        const double* ratio

    cppclass Evidence[K, T](Keys[K]):
        const T* steps
        const T* gains

    cppclass Numbers:
        Numbers()
        Numbers(int64_t) except +
        void add(int64_t)
        int64_t rank()
        int64_t rank_of(int64_t)
        void list(int64_t*)

    int64_t merge_means "sparsemargin::merge_values"[K, T](
        Valued[K, double], Valued[K, T], vector[Changed[K, T]]&, int64_t, const double*, double, K*, T*) except +
    int64_t merge_posteriors "sparsemargin::merge_evidence"[K, T](
        Prior[K, T], vector[Evidence[K, T]]&, const double*, K*, T*, T*) except +
    cppclass Copied[T]:
        const T* values
        T* array

    void spread_values[K, T](
        const int64_t*, int64_t, int64_t, int64_t, const K*, int64_t, vector[Copied[T]]&)

    cppclass Trained[T]:
        const T* t
        const T* variances
        const T* means_before
        const T* variances_before
        const double* scale
        int64_t n_coordinates, n_vectors, t_step, variances_step
        int64_t evidence[K](const int64_t*, int64_t, K*, T*, T*) except +


cdef class ColumnSet:
    """The columns, below n_columns, that occur in rows.

    `add` adds the column indices of rows. `close` returns the sorted columns, int64. After that,
    `positions` maps column indices to positions among these columns.
    """

    cdef Numbers numbers

    def __init__(self, Py_ssize_t n_columns):
        self.numbers = Numbers(n_columns)

    def add(self, const index_t[::1] indices):
        cdef Py_ssize_t i
        with nogil:
            for i in range(indices.shape[0]):
                self.numbers.add(indices[i])

    def close(self):
        columns = np.empty(self.numbers.rank(), np.int64)
        cdef int64_t[::1] found = columns
        if len(columns):
            self.numbers.list(&found[0])
        return columns

    def positions(self, const index_t[::1] indices):
        positions = np.empty(indices.shape[0], np.int32 if index_t is int32_t else np.int64)
        cdef index_t[::1] found = positions
        cdef Py_ssize_t i
        with nogil:
            for i in range(indices.shape[0]):
                found[i] = <index_t> self.numbers.rank_of(indices[i])
        return positions


cdef of_size(array, Py_ssize_t n):
    """The first n numbers, copied if the array is at least twice as long."""
    return array[:n] if 2 * n > len(array) else array[:n].copy()


def spread(const int64_t[::1] columns, Py_ssize_t hole, Py_ssize_t width,
           const index_t[::1] keys, values, state_t[:, ::1] arrays):
    """Copy values whose keys belong to some columns to an array of shape (n_columns + 1, width).

    Row `hole` is left out; the columns after it have the next rows. Columns and keys are sorted.
    `values` is a list of arrays, and `arrays` has a flat array for each of them.
    """
    cdef vector[Copied[state_t]] copied
    cdef Copied[state_t] one
    cdef const state_t[::1] numbers
    cdef Py_ssize_t i = 0
    if (arrays.shape[0] != len(values) or arrays.shape[1] != (len(columns) + 1) * width
            or not 0 <= hole <= len(columns)):
        raise ValueError("The arrays do not belong together.")
    if not (len(keys) and len(columns)):
        return
    for numbers in values:
        if len(numbers) != len(keys):
            raise ValueError("The arrays do not belong together.")
        one.values, one.array = &numbers[0], &arrays[i, 0]
        copied.push_back(one)
        i += 1
    with nogil:
        spread_values(&columns[0], len(columns), hole, width, &keys[0], len(keys), copied)


def evidence_of(const int64_t[::1] columns, Py_ssize_t hole, const index_t[::1] no_keys,
                const state_t[:, :] t, const double[::1] scale, const state_t[:, :] variances,
                const state_t[:, ::1] means_before, const state_t[:, ::1] variances_before):
    """The changes of coordinates whose variances a shard has changed.

    Parameters
    ----------
    columns : ndarray of shape (n_coordinates - 1,), int64
        The columns of the coordinates, without that at the position `hole`, which is left out.
    no_keys : ndarray of shape (0,)
        An array of the dtype that keys have.
    t, variances : ndarray of shape (n_coordinates, n_vectors)
        The state; the means are ``t * scale``. The numbers of a coordinate are adjacent.
    scale : ndarray of shape (n_vectors,)
    means_before, variances_before : ndarray of shape (n_coordinates, n_vectors)
        The numbers before. A variance of 0 stands for 1.

    Returns
    -------
    keys : ndarray of shape (n_changed,)
    steps, gains : ndarray of shape (n_changed,)
        The changes of the means times the precisions, and the increases of the precisions.
    """
    cdef Trained[state_t] of
    cdef Py_ssize_t n = t.shape[0], n_vectors = t.shape[1]
    if not (n == variances.shape[0] == means_before.shape[0] == variances_before.shape[0]
            == columns.shape[0] + 1 > 1 and 0 < n_vectors == variances.shape[1]
            == means_before.shape[1] == variances_before.shape[1] == scale.shape[0]
            and t.strides[1] == variances.strides[1] == sizeof(state_t) and 0 <= hole < n):
        raise ValueError("The arrays do not belong together.")
    of.t, of.variances, of.scale = &t[0, 0], &variances[0, 0], &scale[0]
    of.means_before, of.variances_before = &means_before[0, 0], &variances_before[0, 0]
    of.n_coordinates, of.n_vectors = n, n_vectors
    of.t_step = t.strides[0] // <Py_ssize_t> sizeof(state_t)
    of.variances_step = variances.strides[0] // <Py_ssize_t> sizeof(state_t)
    dtype = np.float32 if state_t is float else np.float64
    keys = np.empty(n * n_vectors, np.asarray(no_keys).dtype)
    steps, gains = np.empty(n * n_vectors, dtype), np.empty(n * n_vectors, dtype)
    cdef index_t[::1] of_keys = keys
    cdef state_t[::1] of_steps = steps, of_gains = gains
    with nogil:
        n = of.evidence(&columns[0], hole, &of_keys[0], &of_steps[0], &of_gains[0])
    return of_size(keys, n), of_size(steps, n), of_size(gains, n)


def merge_values(const index_t[::1] keys, const double[::1] started,
                 const index_t[::1] carried_keys, const state_t[::1] carried, shards,
                 const double[::1] total, double share):
    """Mix values of shards.

    Parameters
    ----------
    keys, started : ndarray of shape (n_keys,)
        Sorted keys, and the values with which all shards began. They are 0 for other keys.
    carried_keys, carried : ndarray of shape (n_carried,)
        Sorted keys, and numbers that are added to the result.
    shards : list of (keys, values, ratio)
        Sorted keys and values of each shard. For any other key, the value of the shard is the
        started value times the ratio of the key's vector; `ratio` has the shape (n_vectors,).
    total : ndarray of shape (n_vectors,)
        Sum of the ratios of all shards, times the share.
    share : float
        Factor of the value of a shard.

    Returns
    -------
    keys, values : ndarray
        For each key, the carried number plus the sum of the values of all shards times the share.
    """
    cdef vector[Changed[index_t, state_t]] changed
    cdef Changed[index_t, state_t] one
    cdef Valued[index_t, double] before
    cdef Valued[index_t, state_t] more
    cdef const index_t[::1] some
    cdef const state_t[::1] values
    cdef const double[::1] ratio
    cdef Py_ssize_t n_vectors = len(total), most = len(keys) + len(carried)
    before.n, more.n = len(keys), len(carried)
    if before.n:
        before.keys, before.values = &keys[0], &started[0]
    if more.n:
        more.keys, more.values = &carried_keys[0], &carried[0]
    for some, values, ratio in shards:
        if len(some):
            one.keys, one.n, one.values, one.ratio = &some[0], len(some), &values[0], &ratio[0]
            changed.push_back(one)
            most += len(some)
    new_keys = np.empty(max(1, most), np.asarray(keys).dtype)
    new_values = np.empty(max(1, most), np.asarray(carried).dtype)
    cdef index_t[::1] out_keys = new_keys
    cdef state_t[::1] out = new_values
    with nogil:
        most = merge_means(before, more, changed, n_vectors, &total[0], share, &out_keys[0],
                           &out[0])
    return of_size(new_keys, most), of_size(new_values, most)


def merge_evidence(const index_t[::1] keys, const state_t[::1] means, const state_t[::1] variances,
                   shards, const double[::1] tempered):
    """Multiply the posteriors of shards.

    Parameters
    ----------
    keys, means, variances : ndarray of shape (n_keys,)
        Sorted keys, and the prior of all shards. Means of other keys are 0. A variance of 0 stands
        for 1.
    shards : list of (keys, steps, gains)
        Sorted keys of each shard, the changes of its means times its precisions, and the increases
        of its precisions.
    tempered : ndarray of shape (n_shards + 1,)
        ``tempered[n]`` is the weight of the evidence of n shards.

    Returns
    -------
    keys, means, variances : ndarray
    """
    cdef vector[Evidence[index_t, state_t]] evidence
    cdef Evidence[index_t, state_t] one
    cdef Prior[index_t, state_t] prior
    cdef const index_t[::1] some
    cdef const state_t[::1] steps, gains
    cdef Py_ssize_t most = len(keys)
    prior.n = len(keys)
    if len(keys):
        prior.keys, prior.means, prior.variances = &keys[0], &means[0], &variances[0]
    for some, steps, gains in shards:
        if len(some):
            one.keys, one.n, one.steps, one.gains = &some[0], len(some), &steps[0], &gains[0]
            evidence.push_back(one)
            most += len(some)
    new_keys = np.empty(max(1, most), np.asarray(keys).dtype)
    new_means, new_variances = (np.empty(max(1, most), np.asarray(means).dtype) for _ in range(2))
    cdef index_t[::1] out_keys = new_keys
    cdef state_t[::1] out_means = new_means, out_variances = new_variances
    with nogil:
        most = merge_posteriors(prior, evidence, &tempered[0], &out_keys[0], &out_means[0],
                                &out_variances[0])
    return of_size(new_keys, most), of_size(new_means, most), of_size(new_variances, most)


def powers_of(const index_t[::1] keys, const state_t[::1] values, Py_ssize_t n_vectors, double p):
    """Return the binary exponent of the largest magnitude of each vector, and the sum of the p-th
    powers of its magnitudes divided by this power of 2."""
    exponents, powers = np.zeros(n_vectors, np.int64), np.zeros(n_vectors)
    cdef int64_t[::1] exponent = exponents
    cdef double[::1] power = powers, peak = np.zeros(n_vectors)
    cdef Py_ssize_t i, v
    cdef double size
    cdef int of_peak
    with nogil:
        for i in range(keys.shape[0]):
            v = keys[i] % n_vectors
            peak[v] = max(peak[v], fabs(values[i]))
        for v in range(n_vectors):
            frexp(peak[v], &of_peak)
            exponent[v] = of_peak
        for i in range(keys.shape[0]):
            v = keys[i] % n_vectors
            size = ldexp(fabs(values[i]), -<int> exponent[v])
            power[v] += size * size if p == 2.0 else pow(size, p)
    return exponents, powers
