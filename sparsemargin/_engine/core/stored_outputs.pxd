"""Stored outputs for rows before they were used for training (progressive validation).

Outputs of at least the later half of all trials are stored. They are evenly thinned to fit into the
available places.
"""

from libc.stdint cimport int64_t, uint8_t

cdef struct StoredOutputs:
    double* outputs  # n_places x step: outputs of the weight vectors
    uint8_t* positive  # n_places x step: whether the row is positive for the vector
    double* steps  # n_places: factors of the steps of the rows
    Py_ssize_t step  # distance between two places in `outputs` and `positive`
    int64_t n_places  # a power of two, or 0 if nothing is stored
    int64_t ahead  # number of trials of the space that are not counted here
    int64_t stop  # first trial whose row was already used for training


cdef inline int64_t place_of_trial(const StoredOutputs* stored, int64_t trial) noexcept nogil:
    """Return the place of the outputs of a trial, or -1 if they are not stored."""
    cdef int thinning = 0
    if trial >= stored.stop or stored.n_places == 0:
        return -1
    trial -= stored.ahead
    while trial >> thinning >= 2 * stored.n_places:
        thinning += 1
    if trial & ((<int64_t> 1 << thinning) - 1):
        return -1
    return trial >> thinning & (stored.n_places - 1)


cdef inline StoredOutputs stored_outputs_of(outputs) except *:
    """Return pointers to the arrays of a `ProgressiveOutputs`, or no places for None."""
    cdef StoredOutputs stored
    cdef double[:, :] numbers
    cdef uint8_t[:, :] positive
    cdef double[::1] steps
    stored.n_places = 0
    if outputs is None:
        return stored
    numbers, positive, steps = outputs.outputs, outputs.positive, outputs.steps
    stored.outputs, stored.positive, stored.steps = &numbers[0, 0], &positive[0, 0], &steps[0]
    stored.step, stored.n_places = numbers.strides[0] // sizeof(double), numbers.shape[0]
    stored.ahead, stored.stop = outputs.ahead, outputs.stop
    return stored
