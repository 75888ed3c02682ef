"""Where the coordinates of the labels' vectors stand: densely, or in tiles.

Densely, the labels of a coordinate stand side by side, for a row's scores to be summed for all of
them at once. Where that would take too much, every block of 16 labels has tiles instead, one for
each coordinate that a correction of these labels has touched; tile 0 stands for all the others
and stays 0. Reading makes no tile, and the numbers are the same either way, to the bit.
"""

from libc.stdint cimport int32_t, uint16_t, uintptr_t

import numpy as np

from sparsemargin._engine.rows.types cimport index_t

from sparsemargin._engine.state import array_of, require, require_within, writable

#: Bytes that the state of all labels may take before it is held in tiles.
DENSE_BYTES = 1 << 29

#: Labels of a tile.
TILE_LABELS = TILE

# Bytes of a cache line; from so many labels on, those of a coordinate fill whole ones.
cdef enum:
    LINE = 64
    FEWEST_PADDED = 64
    COPIED_AT_ONCE = 4096  # rows


def address(array):
    return array.__array_interface__["data"][0]


def zeros(size, dtype):
    """Zeros that begin at a cache line."""
    dtype = np.dtype(dtype)
    raw = np.zeros(size + LINE // dtype.itemsize, dtype)
    start = -(address(raw) // dtype.itemsize) % (LINE // dtype.itemsize)
    return raw[start:start + size]


cdef Py_ssize_t blocks_for(Py_ssize_t n_labels):
    return (n_labels + TILE - 1) // TILE


cdef Py_ssize_t padded(Py_ssize_t n_labels):
    return n_labels if n_labels < FEWEST_PADDED else blocks_for(n_labels) * TILE


cdef class Storage:
    """Coordinates of the labels' vectors.

    Parameters
    ----------
    n_coordinates, n_labels : int
    dtypes : dict of str to dtype
        Of what there is of each coordinate: "t"; "g", unless it is t itself; "acc" and "synced"
        where there is an average.

    Attributes
    ----------
    arrays : dict of str to list of ndarray
        By block: one, of shape (n_coordinates * width,), where the numbers are held densely.
    tiles : ndarray of shape (n_coordinates * n_blocks,), int32; or None
        The tile of each coordinate in each block.
    """

    def __init__(self, Py_ssize_t n_coordinates, Py_ssize_t n_labels, dict dtypes):
        self.n_coordinates, self.n_labels = n_coordinates, n_labels
        if are_tiled(n_coordinates, n_labels, dtypes):
            n_blocks = blocks_for(n_labels)
            arrays = {name: [zeros(TILE, dtype) for _ in range(n_blocks)]
                      for name, dtype in dtypes.items()}
            self.take(arrays, np.zeros(n_coordinates * n_blocks, np.int32))
        else:
            size = n_coordinates * padded(n_labels)
            self.take({name: [zeros(size, dtype)] for name, dtype in dtypes.items()}, None)

    cdef take(self, dict arrays, tiles):
        """Take these arrays for the numbers."""
        cdef Py_ssize_t block
        cdef int32_t[::1] view
        self.arrays, self.tiles = arrays, tiles
        self.places.tiles = NULL
        if tiles is not None:
            view = tiles
            self.places.tiles = &view[0]
        self.places.n_blocks = len(arrays["t"])
        self.places.width = (len(arrays["t"][0]) // self.n_coordinates if tiles is None
                             else TILE)
        self.blocks.resize(self.places.n_blocks)
        self.places.blocks = self.blocks.data()
        for block in range(self.places.n_blocks):
            self.blocks[block].used = len(arrays["t"][block]) // TILE
            self.point(block)

    cdef point(self, Py_ssize_t b):
        """Point to the arrays of a block."""
        cdef Block* block = &self.blocks[b]
        at = {name: address(arrays[b]) for name, arrays in self.arrays.items()}
        block.t = <void*> <uintptr_t> at["t"]
        block.g = <void*> <uintptr_t> at.get("g", at["t"])
        block.acc = <void*> <uintptr_t> at.get("acc", 0)
        block.synced = <uint16_t*> <uintptr_t> at.get("synced", 0)
        block.room = len(self.arrays["t"][b]) // TILE

    @property
    def nbytes(self):
        """Bytes of the numbers held, room not counted that none has been written to."""
        held = sum(numbers.nbytes for _, part in self.held() for numbers in part.values())
        return held + (0 if self.tiles is None else self.tiles.nbytes)

    # ----------------------------------------------------------------------------------- tiles

    cdef int open_tiles(self, Py_ssize_t label, const index_t* columns, Py_ssize_t nnz,
                        bint bias) except -1 nogil:
        """Let all coordinates of an augmented row have tiles of their own in the label's block."""
        cdef Py_ssize_t b = label // TILE, n_blocks = self.places.n_blocks, j
        cdef Block* block = &self.blocks[b]
        cdef Py_ssize_t most = block.used + nnz + 1
        cdef int32_t* tile
        if most > block.room:
            with gil:
                self.widen(b, most)
        for j in range(nnz + (1 if bias else 0)):
            tile = self.places.tiles + b
            tile += (columns[j] if j < nnz else self.n_coordinates - 1) * n_blocks
            if tile[0] == 0:
                tile[0] = <int32_t> block.used
                block.used += 1
        return 0

    def widen(self, Py_ssize_t b, Py_ssize_t most):
        """Give a block room for so many tiles; at once for all there can be, where the system lends
        memory that is not written to."""
        try:
            wider = self.rooms(b, max(most, self.n_coordinates + 1))
        except MemoryError:
            wider = self.rooms(b, most + most // 4)
        for name, arrays in self.arrays.items():
            if name != "synced" or arrays[b].any():
                wider[name][:len(arrays[b])] = arrays[b]
            arrays[b] = wider[name]
        self.point(b)

    def rooms(self, Py_ssize_t b, Py_ssize_t n):
        return {name: zeros(n * TILE, arrays[b].dtype) for name, arrays in self.arrays.items()}

    # ------------------------------------------------------------------------ seen from Python

    def parts(self):
        """What is held of which coordinates and labels.

        Yields
        ------
        coordinates : ndarray or slice
        labels : slice
        numbers : dict of str to ndarray of shape (n_coordinates, n_labels) of the part
            Views where the numbers are held densely, else copies.
        """
        cdef Py_ssize_t b, n = self.n_labels
        if self.tiles is None:
            shape = self.n_coordinates, self.places.width
            yield slice(None), slice(0, n), {
                name: arrays[0].reshape(shape)[:, :n] for name, arrays in self.arrays.items()
            }
            return
        for b in range(self.places.n_blocks):
            tiles = self.tiles.reshape(self.n_coordinates, self.places.n_blocks)[:, b]
            coordinates, = tiles.nonzero()
            labels = slice(b * TILE, min((b + 1) * TILE, n))
            yield coordinates, labels, {
                name: arrays[b].reshape(-1, TILE)[tiles[coordinates], :labels.stop - labels.start]
                for name, arrays in self.arrays.items()
            }

    def seen_as(self, Py_ssize_t n_coordinates, Py_ssize_t n_labels):
        """The same arrays, which are dense and without padding, as those of so many coordinates
        and labels."""
        cdef Storage other = Storage.__new__(Storage)
        other.n_coordinates, other.n_labels = n_coordinates, n_labels
        other.take(self.arrays, None)
        return other

    def holding(self, arrays):
        """Other numbers, one array a block, in the same places."""
        cdef Storage other = Storage.__new__(Storage)
        other.n_coordinates, other.n_labels = self.n_coordinates, self.n_labels
        other.take({"t": arrays}, self.tiles)
        return other

    def held(self):
        """The numbers there are, tiles that are not yet used left out.

        Yields
        ------
        labels : slice
        numbers : dict of str to ndarray of shape (n_entries, n_labels)
            Views; of a tile as wide as it is.
        """
        if self.tiles is None:
            (_, labels, numbers), = self.parts()
            yield labels, numbers
            return
        for b in range(self.places.n_blocks):
            used = self.blocks[b].used
            yield slice(b * TILE, (b + 1) * TILE), {
                name: arrays[b][:used * TILE].reshape(used, TILE)
                for name, arrays in self.arrays.items()
            }

    @property
    def n_held(self):
        """Numbers held for each label, on average."""
        if self.tiles is None:
            return self.n_coordinates
        return sum(self.blocks[b].used for b in range(self.places.n_blocks)) * TILE // self.n_labels

    def moved(self, Py_ssize_t n_coordinates, Py_ssize_t first, Py_ssize_t kept,
              Py_ssize_t n_last):
        """The numbers of `kept` coordinates from `first` on, and of the `n_last` last ones, and
        zeros between; what is left out must be 0. Negative: behind so many zeros."""
        cdef Py_ssize_t start = max(-first, 0)
        first = max(first, 0)
        cdef Storage fresh = Storage.__new__(Storage)
        fresh.n_coordinates, fresh.n_labels = n_coordinates, self.n_labels

        def table(old):
            new = zeros(n_coordinates * old.shape[1], old.dtype).reshape(n_coordinates, -1)
            new[start:start + kept] = old[first:first + kept]
            new[n_coordinates - n_last:] = old[self.n_coordinates - n_last:]
            return new

        if self.tiles is not None:
            tiles = table(self.tiles.reshape(self.n_coordinates, self.places.n_blocks)).ravel()
            fresh.take(self.arrays, tiles)
            for b in range(self.places.n_blocks):
                fresh.blocks[b].used = self.blocks[b].used
            return fresh
        dtypes = {name: arrays[0].dtype for name, arrays in self.arrays.items()}
        dense = {name: table(arrays[0].reshape(self.n_coordinates, self.places.width))
                 for name, arrays in self.arrays.items()}
        if are_tiled(n_coordinates, self.n_labels, dtypes):
            arrays, tiles = cut(dense, self.n_labels)
            fresh.take(arrays, tiles)
        else:
            fresh.take({name: [array.ravel()] for name, array in dense.items()}, None)
        return fresh

    def state(self):
        """What `restored` takes: the arrays without what is padding or room."""
        if self.tiles is None:
            shape = self.n_coordinates, self.places.width
            arrays = {name: blocks[0].reshape(shape)[:, :self.n_labels].ravel()
                      for name, blocks in self.arrays.items()}
            return {**arrays, "tiles": None, "used": None}
        used = np.array([self.blocks[b].used for b in range(self.places.n_blocks)], np.int64)
        arrays = {name: np.concatenate([block[:n * TILE]
                                        for block, n in zip(blocks, used, strict=True)])
                  for name, blocks in self.arrays.items()}
        return {**arrays, "tiles": self.tiles, "used": used}

    @staticmethod
    def restored(state, Py_ssize_t n_coordinates, Py_ssize_t n_labels, dict dtypes):
        """The numbers that `state` gave.

        Raises
        ------
        ValueError
            If the state is damaged.
        """
        cdef Storage fresh = Storage.__new__(Storage)
        fresh.n_coordinates, fresh.n_labels = n_coordinates, n_labels
        for name in ("g", "acc", "synced"):
            require(name in dtypes or state.get(name) is None or len(state[name]) == 0,
                    f"{name!r} is not of a model like this")
        require(state.get("tiles") is None or n_labels > TILE, "'tiles' are of too few labels")
        if state.get("tiles") is None:
            arrays = {name: [padded_array(array_of(state, name, dtype,
                                                   (n_coordinates * n_labels,)), n_labels)]
                      for name, dtype in dtypes.items()}
            fresh.take(arrays, None)
            return fresh
        n_blocks = blocks_for(n_labels)
        used = array_of(state, "used", np.int64, (n_blocks,))
        require_within("used", used, 1, n_coordinates + 1)
        tiles = copied(array_of(state, "tiles", np.int32, (n_coordinates * n_blocks,)),
                       n_blocks, n_blocks)
        by_block = tiles.reshape(n_coordinates, n_blocks)
        require((by_block.min(axis=0) >= 0).all() and (by_block.max(axis=0) < used).all(),
                "'tiles' holds what is none of the tiles")
        cuts = np.cumsum(used[:n_blocks - 1]) * TILE
        arrays = {}
        for name, dtype in dtypes.items():
            array = array_of(state, name, dtype, (int(used.sum()) * TILE,))
            arrays[name] = [copied(block, TILE, TILE) for block in np.split(array, cuts)]
            require(not any(block[:TILE].any() for block in arrays[name]),
                    f"the first tiles of {name!r} are not 0")
        fresh.take(arrays, tiles)
        return fresh


def are_tiled(n_coordinates, n_labels, dtypes):
    """Whether the numbers would take too much densely."""
    n_bytes = n_coordinates * n_labels * sum(np.dtype(kind).itemsize for kind in dtypes.values())
    return n_labels > TILE and n_bytes > DENSE_BYTES


def padded_array(array, Py_ssize_t n_labels):
    """The numbers of that many labels a coordinate, padded."""
    cdef Py_ssize_t width = padded(n_labels)
    if width == n_labels:
        return writable(array)
    return copied(array, n_labels, width)


def copied(array, Py_ssize_t n_columns, Py_ssize_t width):
    """A copy of rows of that many numbers, in rows of that width; where there are but zeros, none
    are written, which would take memory."""
    fresh = zeros(len(array) // n_columns * width, array.dtype)
    old, new = array.reshape(-1, n_columns), fresh.reshape(-1, width)
    for start in range(0, len(old), COPIED_AT_ONCE):
        some = old[start:start + COPIED_AT_ONCE]
        if some.view(f"u{some.itemsize}").any():
            new[start:start + COPIED_AT_ONCE, :n_columns] = some
    return fresh


def cut(dense, Py_ssize_t n_labels):
    """Arrays and table of the tiles that dense arrays come to, of shape (n_coordinates, width)."""
    n_blocks = blocks_for(n_labels)
    tiles = np.zeros((len(dense["t"]), n_blocks), np.int32)
    arrays = {name: [] for name in dense}
    for b in range(n_blocks):
        labels = slice(b * TILE, min((b + 1) * TILE, n_labels))
        held = np.flatnonzero(
            np.any([array[:, labels].any(axis=1) for array in dense.values()], axis=0))
        tiles[held, b] = np.arange(1, len(held) + 1)
        for name, array in dense.items():
            block = zeros((len(held) + 1) * TILE, array.dtype)
            block.reshape(-1, TILE)[1:, :labels.stop - labels.start] = array[held, labels]
            arrays[name].append(block)
    return arrays, tiles.ravel()
