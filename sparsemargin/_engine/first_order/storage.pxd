"""Where the coordinates of the labels' vectors stand: densely, or in tiles."""

from libc.stdint cimport int32_t, uint16_t
from libcpp.vector cimport vector

from sparsemargin._engine.rows.types cimport index_t

cdef extern from "tiles.hpp" namespace "sparsemargin":
    const Py_ssize_t TILE  # labels side by side in a tile

cdef struct Block:  # of labels, with arrays of its own
    void* t
    void* g
    void* acc
    uint16_t* synced  # flushes that acc has taken in
    Py_ssize_t used  # tiles
    Py_ssize_t room

cdef struct Places:
    Py_ssize_t width  # numbers from a coordinate's first to the next one's
    Py_ssize_t n_blocks
    int32_t* tiles  # n_coordinates x n_blocks: a coordinate's tile; NULL: held densely
    Block* blocks


cdef inline Py_ssize_t block_of(const Places* places, Py_ssize_t label) noexcept nogil:
    return label // TILE if places.tiles != NULL else 0


cdef inline Py_ssize_t place_of(const Places* places, Py_ssize_t coordinate,
                                Py_ssize_t label) noexcept nogil:
    """Where a label's number stands in the arrays of its block."""
    if places.tiles == NULL:
        return coordinate * places.width + label
    return (<Py_ssize_t> places.tiles[coordinate * places.n_blocks + label // TILE] * TILE
            + label % TILE)


cdef class Storage:
    cdef Places places
    cdef readonly Py_ssize_t n_coordinates
    cdef readonly Py_ssize_t n_labels
    cdef readonly dict arrays
    cdef readonly object tiles
    cdef vector[Block] blocks
    cdef take(self, dict arrays, tiles)
    cdef point(self, Py_ssize_t block)
    cdef int open_tiles(self, Py_ssize_t label, const index_t* columns, Py_ssize_t nnz,
                        bint bias) except -1 nogil
