"""Outputs kept of rows that were not yet learned from: those of the later half of all trials,
thinned to as many as there are places."""

from libc.stdint cimport int64_t, uint8_t

cdef struct Kept:
    double* outputs  # n_places x step, of labels
    uint8_t* positive  # likewise
    double* steps  # n_places, what multiplies those of the rows
    Py_ssize_t step
    int64_t n_places  # a power of two; 0: nothing is kept
    int64_t ahead  # trials that the space has made beside those that are counted here
    int64_t stop  # the trial from which on rows have been learned from before


cdef inline int64_t place_of(const Kept* kept, int64_t trial) noexcept nogil:
    """Where the outputs of a trial are kept; -1: nowhere."""
    cdef int thinning = 0
    if trial >= kept.stop or kept.n_places == 0:
        return -1
    trial -= kept.ahead
    while trial >> thinning >= 2 * kept.n_places:
        thinning += 1
    if trial & ((<int64_t> 1 << thinning) - 1):
        return -1
    return trial >> thinning & (kept.n_places - 1)


cdef inline Kept kept_of(outputs) except *:
    """The places of a `ProgressiveOutputs`, None: there are none."""
    cdef Kept kept
    cdef double[:, :] numbers
    cdef uint8_t[:, :] positive
    cdef double[::1] steps
    kept.n_places = 0
    if outputs is None:
        return kept
    numbers, positive, steps = outputs.outputs, outputs.positive, outputs.steps
    kept.outputs, kept.positive, kept.steps = &numbers[0, 0], &positive[0, 0], &steps[0]
    kept.step, kept.n_places = numbers.strides[0] // sizeof(double), numbers.shape[0]
    kept.ahead, kept.stop = outputs.ahead, outputs.stop
    return kept
