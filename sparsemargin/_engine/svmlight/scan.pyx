"""Parsing of svmlight text into CSR rows; `scanner.hpp` defines the syntax."""

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

# Listed here so that a change of these headers triggers a rebuild.
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
    """Text that is rejected.

    Attributes
    ----------
    code : str
        The error, by its name in `Code` of text.hpp.
    offset : int
        Offset of the offending token in bytes.
    length : int
        Length of the token in bytes.
    """

    def __init__(self, code, offset, length):
        super().__init__(f"{code} at byte {offset}")
        self.code = code
        self.offset = offset
        self.length = length


cdef class ScannedRows:
    """The rows parsed from one text: see `Scanner.scan`."""

    cdef readonly object data, indices, indptr, labels, label_start
    cdef readonly int64_t n_rows, n_lines, lowest, highest


cdef const char* start_of(const unsigned char[::1] text, int64_t stop) except NULL:
    if not 0 <= stop <= text.shape[0] - READABLE:
        raise ValueError(f"text of {text.shape[0]} bytes must be {READABLE} longer than "
                         f"stop={stop}")
    return <const char*> &text[0]


cdef class Scanner:
    """Scans several texts, and numbers the labels of all of them.

    Only one thread may use a scanner at a time; different scanners are independent.

    Parameters
    ----------
    dtype : numpy.float32 or numpy.float64
        Dtype of the values: the nearest double, converted to the nearest float if required.
    base : {0, 1}, default=0
        Column = index in the text - base.
    least : {0, 1}, default=0
        Smallest valid index. With base=1 and least=0, index 0 becomes column -1.
    max_index : int
        Largest valid index in the text.
    multilabel : bool, default=False
        Whether labels are separated by commas, and may be missing.
    hash_bits : int, default=0
        If above 0 (up to 31): the column is that many high bits of the hash of the index
        (the finalizer of splitmix64), for any `base` and `least`. Indices may then be names: a
        token that is not an integer is replaced by the lower 63 bits of its 64-bit FNV-1a hash.
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

    def labels_from(self, int64_t first):
        """The labels from id `first` on: a list of their first spellings, in which bytes that are
        not UTF-8 are escaped, and a list of numbers, NaN for words."""
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
            Complete lines up to `stop`, the last one with or without its end, followed by at least
            PADDING bytes of any content.
        stop : int
            Offset of the end of the lines.

        Returns
        -------
        rows : ScannedRows
            The arrays belong to the scanner, and are valid until the next scan.

            data : array of `dtype`; indices, indptr : arrays of int32, or of int64 if a column
            needs it
                The rows in canonical format: columns increase, and the values of repeated indices
                are summed in float64 in the order of occurrence.
            labels : array of int32
                Number of the label of every row; with `multilabel`, those of all rows concatenated.
            label_start : array of int64, shape (n_rows + 1,), or None
                With `multilabel`: start of the labels of each row.
            n_rows, n_lines : int
            lowest, highest : int
                Smallest and largest index in the text; 2**63 - 1 and -1 if there are none.

        Raises
        ------
        ScanError
            At the first syntax error.
        """
        start_of(text, stop)  # raises before memory is allocated
        if stop // 4 < LARGEST_INT32:
            try:
                return self._scan_into(text, stop, np.dtype(np.int32))
            except ScanError as error:
                if error.code != WIDE:
                    raise
        return self._scan_into(text, stop, np.dtype(np.int64))

    def _scan_into(self, const unsigned char[::1] text, int64_t stop, column):
        """Scan into arrays that are large enough for any text of this length."""
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
        """A reusable array, replaced if it is too short; unused memory is never touched."""
        array = self.arrays.get((name, dtype))
        if array is None or len(array) < size:
            array = self.arrays[name, dtype] = np.empty(size, dtype)
        return array


def scan_lines(Scanner self, const unsigned char[::1] text, int64_t stop, value_t[::1] data,
               index_t[::1] indices, index_t[::1] ends, label_arrays):
    """Scan into arrays that are large enough for any text of this length.

    `label_arrays` are those for labels and for the end of each row's labels. Returns the numbers of
    rows, entries and labels.
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
