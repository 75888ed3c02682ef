"""svmlight text made rows of CSR matrices; `scanner.hpp` says what the text may hold."""

from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cpp_bool
from libcpp.string cimport string

import numpy as np

from sparsemargin._engine.rows.csr cimport index_t, value_t

cdef extern from "text.hpp" namespace "sparsemargin" nogil:
    const int64_t READABLE "sparsemargin::PADDING"

    enum class Code:
        none
        needs_wide_columns
        no_room

    const char* name_of(Code)

# Named so that a change of theirs is compiled.
cdef extern from "numbers.hpp":
    pass
cdef extern from "entries.hpp":
    pass
cdef extern from "sorting.hpp":
    pass

cdef extern from "labels.hpp" namespace "sparsemargin" nogil:
    cppclass LabelTable:
        int64_t size()
        const string& text(int64_t)
        double number(int64_t)

cdef extern from "scanner.hpp" namespace "sparsemargin" nogil:
    cppclass Options:
        int64_t base, least, max_index
        cpp_bool multilabel
        int hash_bits

    cppclass ParsedRows[Value, Column]:
        Value* data
        Column* indices
        Column* ends
        int32_t* labels
        int64_t* label_ends
        int64_t row_room, entry_room, row, entry, label

    cppclass ScanResult:
        Code code
        int64_t offset, length, lines, lowest, highest

    cppclass LineReader "sparsemargin::Scanner":
        LineReader(const Options&) except +
        const LabelTable& labels()
        ScanResult scan[Value, Column](const char*, int64_t, ParsedRows[Value, Column]&) except +

PADDING = READABLE

cdef enum:
    LARGEST_INT32 = 0x7FFFFFFF

cdef str WIDE = name_of(Code.needs_wide_columns).decode()


class ScanError(Exception):
    """Text that is refused.

    Attributes
    ----------
    code : str
        What is wrong, as `Code` in text.hpp calls it.
    offset : int
        Bytes from the start of the text to the offending token.
    length : int
        Its bytes.
    """

    def __init__(self, code, offset, length):
        super().__init__(f"{code} at byte {offset}")
        self.code = code
        self.offset = offset
        self.length = length


cdef class ScannedRows:
    """ParsedRows of one text: see `Scanner.scan`."""

    cdef readonly object data, indices, indptr, labels, label_start
    cdef readonly int64_t n_rows, n_lines, lowest, highest


cdef const char* start_of(const unsigned char[::1] text, int64_t stop) except NULL:
    if not 0 <= stop <= text.shape[0] - READABLE:
        raise ValueError(f"text of {text.shape[0]} bytes must be {READABLE} longer than "
                         f"stop={stop}")
    return <const char*> &text[0]


cdef class Scanner:
    """Scans one text after the other and numbers the labels through all of them.

    Only one thread may use it at a time; scanners side by side don't wait for one another.

    Parameters
    ----------
    dtype : numpy.float32 or numpy.float64
        Type of the values: the nearest double, and the nearest float of that.
    base : {0, 1}, default=0
        Column = index as written - base.
    least : {0, 1}, default=0
        Smallest index that is not refused. With base=1 and least=0, index 0 is column -1.
    max_index : int
        Largest index, as written, that is not refused.
    multilabel : bool, default=False
        Whether labels are separated by commas, and may be missing.
    hash_bits : int, default=0
        Above 0, up to 31: column = that many highest bits of the index's hash, the finaliser of
        splitmix64, whatever `base` and `least` are. Indices may then be names, too: what is no
        integer stands for the lower 63 bits of its bytes' FNV-1a hash of 64.
    """

    cdef LineReader* reader
    cdef Options options
    cdef ScanResult result
    cdef object dtype, arrays
    cdef bint busy

    def __cinit__(self, dtype, *, int64_t base=0, int64_t least=0, int64_t max_index,
                  bint multilabel=False, int hash_bits=0):
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {self.dtype}")
        if base not in (0, 1) or least not in (0, 1):
            raise ValueError(f"base and least must be 0 or 1, got {base} and {least}")
        if max_index < 0:
            raise ValueError(f"max_index must not be negative, got {max_index}")
        if not 0 <= hash_bits <= 31:
            raise ValueError(f"hash_bits must be at most 31, got {hash_bits}")
        self.options.base = 0 if hash_bits else base
        self.options.least = 0 if hash_bits else least
        self.options.max_index = max_index
        self.options.multilabel = multilabel
        self.options.hash_bits = hash_bits
        self.reader = new LineReader(self.options)
        self.arrays = {}

    def __dealloc__(self):
        del self.reader

    @property
    def n_labels(self):
        """Number of distinct labels so far."""
        return self.reader.labels().size()

    @property
    def label_texts(self):
        """Every label as it was first written, by id; bytes that aren't UTF-8 are escaped."""
        return self.labels_from(0)[0]

    @property
    def label_numbers(self):
        """Every label as a number, by id; NaN for words."""
        return self.labels_from(0)[1]

    def labels_from(self, int64_t first):
        """`label_texts` and `label_numbers` from id `first` on."""
        cdef int64_t i, n = self.n_labels
        if first < 0:
            raise ValueError(f"first={first} is negative")
        texts = [self.reader.labels().text(i).decode("utf-8", "surrogateescape")
                 for i in range(first, n)]
        return texts, [self.reader.labels().number(i) for i in range(first, n)]

    def scan(self, const unsigned char[::1] text, int64_t stop):
        """Scan a text.

        Parameters
        ----------
        text : buffer of bytes
            Complete lines up to `stop`, the last one with or without its end, then PADDING bytes
            or more, whatever they are.
        stop : int
            Where the lines end.

        Returns
        -------
        rows : ScannedRows
            Its arrays are this scanner's own: they hold until the next scan.

            data : array of `dtype`; indices, indptr : arrays of int32, or of int64 where a column
                needs it
                The rows in canonical format: columns increase; those of repeated indices hold
                the sum, taken in float64 in the order of occurrence.
            labels : array of int32
                Number of every row's label; with `multilabel`, those of all rows end to end.
            label_start : array of int64, shape (n_rows + 1,), or None
                With `multilabel`: where each row's labels start.
            n_rows, n_lines : int
            lowest, highest : int
                Of the indices as written; 2**63 - 1 and -1 where there are none.

        Raises
        ------
        ScanError
            At the first place where the text can't be understood.
        """
        start_of(text, stop)  # raises before room is made
        if stop // 4 < LARGEST_INT32:
            try:
                return self._scan_into(text, stop, np.dtype(np.int32))
            except ScanError as error:
                if error.code != WIDE:
                    raise
        return self._scan_into(text, stop, np.dtype(np.int64))

    def _scan_into(self, const unsigned char[::1] text, int64_t stop, column):
        """Scan into arrays with room for the densest text there could be."""
        cdef ScannedRows rows = ScannedRows()
        cdef int64_t n_marks = (stop + 1) // 2, n_entries = (stop + 1) // 4
        cdef int64_t row, entry, label
        data = self._array("data", n_entries, self.dtype)
        indices = self._array("indices", n_entries, column)
        indptr = self._array("indptr", n_marks + 1, column)
        labels = self._array("labels", n_marks, np.dtype(np.int32))
        label_start = self._array("label_start", n_marks + 1, np.dtype(np.int64))
        indptr[0] = label_start[0] = 0
        row, entry, label = scan_lines(
            self, text, stop, data, indices, indptr[1:], (labels, label_start[1:])
        )
        rows.data = data[:entry]
        rows.indices = indices[:entry]
        rows.indptr = indptr[:row + 1]
        rows.labels = labels[:label]
        rows.label_start = label_start[:row + 1] if self.options.multilabel else None
        rows.n_rows = row
        rows.n_lines = self.result.lines
        rows.lowest = self.result.lowest
        rows.highest = self.result.highest
        return rows

    def _array(self, name, int64_t size, dtype):
        """One of the arrays, made anew where it is too short; what isn't written costs nothing."""
        array = self.arrays.get((name, dtype))
        if array is None or len(array) < size:
            array = self.arrays[name, dtype] = np.empty(size, dtype)
        return array


def scan_lines(Scanner self, const unsigned char[::1] text, int64_t stop, value_t[::1] data,
               index_t[::1] indices, index_t[::1] ends, label_arrays):
    """Scan into arrays that have room for the densest text there could be.

    `label_arrays` are those of labels and of where each row's end. Returns how many rows, entries
    and labels there are.
    """
    cdef const char* start = start_of(text, stop)
    cdef ParsedRows[value_t, index_t] rows
    cdef int32_t[::1] labels = label_arrays[0]
    cdef int64_t[::1] label_ends = label_arrays[1]
    if self.busy:
        raise RuntimeError("another thread is using this scanner: give each its own")
    rows.data = &data[0] if data.shape[0] else NULL
    rows.indices = &indices[0] if indices.shape[0] else NULL
    rows.ends = &ends[0] if ends.shape[0] else NULL
    rows.labels = &labels[0] if labels.shape[0] else NULL
    rows.label_ends = &label_ends[0] if label_ends.shape[0] else NULL
    rows.row_room = min(ends.shape[0], labels.shape[0])
    rows.entry_room = min(data.shape[0], indices.shape[0])
    if index_t is int32_t:
        rows.entry_room = min(rows.entry_room, LARGEST_INT32)
    rows.row = rows.entry = rows.label = 0
    self.busy = True
    try:
        with nogil:
            self.result = self.reader.scan(start, stop, rows)
    finally:
        self.busy = False
    if self.result.code == Code.no_room:
        raise ValueError("the arrays have no room for all rows and entries of the text")
    if self.result.code != Code.none:
        raise ScanError(name_of(self.result.code).decode(), self.result.offset,
                        self.result.length)
    return rows.row, rows.entry, rows.label
