"""Conversion of texts to rows of CSR matrices. `scanner.hpp` defines what is counted."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libcpp cimport bool as cpp_bool
from libcpp.string cimport string
from libcpp.vector cimport vector

import os

import numpy as np

cdef extern from "Python.h":
    void* PyUnicode_DATA(object)
    int PyUnicode_KIND(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)

cdef extern from "memory.hpp" namespace "sparsemargin::text" nogil:
    const size_t PADDING

    cppclass Array[T]:
        size_t size()
        T* extend(size_t) except +
        void push_back(T) except +
        T* release() except +

cdef extern from "characters.hpp" namespace "sparsemargin::text" nogil:
    cppclass Document:
        const void* data
        int64_t length
        int width
        cpp_bool lower

cdef extern from "hashes.hpp" namespace "sparsemargin::text" nogil:
    uint64_t* SEEDS

cdef extern from "lexicon.hpp" namespace "sparsemargin::text" nogil:
    const uint32_t NONE

    cppclass CppLexicon "sparsemargin::text::Lexicon":
        size_t size()
        uint32_t insert_term(const char*, uint32_t, cpp_bool) except +
        void spell(uint32_t, string&) except +
        void absorb(const CppLexicon&, Array[uint32_t]&) except +

cdef extern from "rows.hpp" namespace "sparsemargin::text" nogil:
    enum class Type:
        int32
        int64
        float32
        float64

    cppclass Rows:
        Rows(Type) except +
        void reserve(size_t) except +
        Array[int32_t] columns
        Array[char] values
        Array[int64_t] ends

cdef extern from "scanner.hpp" namespace "sparsemargin::text" nogil:
    enum class Analyzer:
        words
        characters
        within_words

    cppclass Settings:
        Analyzer analyzer
        cpp_bool by_spaces, from_two, singles, signs, once, in_order
        int64_t least, most
        uint32_t n_hashed

    cppclass CppScanner "sparsemargin::text::Scanner":
        CppScanner(const Settings&, CppLexicon&, const CppLexicon*, const int32_t*,
                   int64_t) except +
        cpp_bool has_surrogate()
        void scan(const Document*, int64_t, Rows&) except +
        void scan_families(const Document*, int64_t, Rows&, CppScanner&, Rows&) except +
        Array[uint32_t]& ngrams()
        Array[int64_t]& ends_of_ngrams()

cdef extern from "order.hpp" namespace "sparsemargin::text" nogil:
    vector[int32_t] lengths(const CppLexicon&) except +
    int64_t sort_numbers(const CppLexicon&, const uint8_t*, int32_t*) except +


# The seeds are set on import, before the first table is created.
SEEDS[0], SEEDS[1] = np.frombuffer(os.urandom(16), np.uint64)

cdef enum:
    # Largest number of characters of a text. Its bytes, up to four per character, are counted in 32
    # bits.
    LONGEST = 0x3FFFFFF0


#: Characters whose lowercase form depends on their neighbours (capital sigma) or consists of two
#: characters (capital I with a dot).
SPECIAL = "\u03a3\u0130"


cdef class Lexicon:
    """The known features, which are strings or n-grams of strings, with their numbers."""

    cdef CppLexicon known
    cdef object sorted

    def __len__(self):
        return self.known.size()

    def add(self, str term, bint as_words):
        """Add a term and return its number, or None if no text can contain the term.

        With `as_words` the term consists of words separated by spaces.
        """
        text = term.encode("utf-8", "surrogatepass") + bytes(PADDING)
        number = self.known.insert_term(text, <uint32_t> (len(text) - PADDING), as_words)
        return None if number == NONE else number

    def absorb(self, Lexicon other):
        """Add all features of another lexicon, and return the number here of each of them."""
        cdef Array[uint32_t] numbers
        with nogil:
            self.known.absorb(other.known, numbers)
        return array_of(numbers.release(), len(other), np.dtype(np.uint32))

    def lengths(self):
        """Return the number of words of each feature, as int32."""
        cdef vector[int32_t] n = lengths(self.known)
        return np.array(<int32_t[:n.size()]> n.data()) if n.size() else np.empty(0, np.int32)

    def order(self, const uint8_t[::1] wanted=None):
        """Return the numbers for which `wanted` is not 0, in the order of their terms.

        Without `wanted`, all numbers are returned. This result is cached, so that another thread can
        compute it before it is needed.
        """
        cdef int64_t n = len(self)
        cdef int32_t[::1] numbers = np.empty(n, np.int32)
        if wanted is None:
            if self.sorted is None or len(self.sorted) != n:
                self.sorted = self.order(np.ones(n, np.uint8))
            return self.sorted
        if wanted.shape[0] != n:
            raise ValueError(f"{wanted.shape[0]} flags for {n} terms")
        if n:
            with nogil:
                n = sort_numbers(self.known, &wanted[0], &numbers[0])
        return np.asarray(numbers)[:n]

    cdef int spell(self, int32_t number, string& text) except -1:
        if not 0 <= number < <int64_t> self.known.size():
            raise IndexError(f"no term has number {number}")
        self.known.spell(<uint32_t> number, text)
        return 0

    def terms(self, const int32_t[::1] numbers):
        """Return the terms of some numbers as a list of str."""
        cdef string text
        cdef Py_ssize_t i
        terms = [None] * numbers.shape[0]
        for i in range(numbers.shape[0]):
            text.clear()
            self.spell(numbers[i], text)
            terms[i] = text.decode("utf-8", "surrogatepass")
        return terms

    def spelled(self, const int32_t[::1] numbers):
        """Return the terms of some numbers as concatenated UTF-8, and the end of each (int64)."""
        cdef string text
        cdef int64_t[::1] ends = np.empty(numbers.shape[0], np.int64)
        cdef Py_ssize_t i
        for i in range(numbers.shape[0]):
            self.spell(numbers[i], text)
            ends[i] = text.size()
        return np.frombuffer(<bytes> text, np.uint8), np.asarray(ends)

    def add_spelled(self, bytes spelled, const int64_t[::1] ends, bint as_words):
        """Add the terms that `spelled` returned, and return their numbers.

        A term that no text can contain raises a ValueError.
        """
        cdef const uint8_t[::1] text = spelled + bytes(PADDING)
        cdef int32_t[::1] numbers = np.empty(ends.shape[0], np.int32)
        cdef int64_t start = 0
        cdef uint32_t number
        cdef Py_ssize_t i
        for i in range(ends.shape[0]):
            if not start < ends[i] <= len(spelled) or ends[i] - start > LONGEST:
                raise ValueError(f"term {i} does not lie in the text")
            number = self.known.insert_term(<const char*> &text[start],
                                            <uint32_t> (ends[i] - start), as_words)
            if number == NONE:
                raise ValueError(f"term {i} has an empty word")
            start, numbers[i] = ends[i], <int32_t> number
        return np.asarray(numbers)


cdef class Memory:
    """Owner of memory from malloc, which is freed together with the last array that uses it.

    A Cython array would do the same, but it is its own base, so that programs which follow the
    bases of an array, such as joblib, never terminate.
    """

    cdef void* start
    cdef Py_ssize_t size

    def __dealloc__(self):
        free(self.start)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.start, self.size, False, flags)


cdef object array_of(void* start, int64_t n, dtype):
    """Return an array of n values in memory from malloc, without a copy."""
    cdef Memory owner = Memory()
    owner.start, owner.size = start, n * dtype.itemsize
    return np.frombuffer(owner, dtype, n) if n else np.empty(0, dtype)


TYPES = {
    np.dtype(np.int32): <int> Type.int32,
    np.dtype(np.int64): <int> Type.int64,
    np.dtype(np.float32): <int> Type.float32,
    np.dtype(np.float64): <int> Type.float64,
}


cdef class Scanner:
    """Counts the features of texts. Texts may be added in several calls.

    Only one thread may use a scanner at a time. Several scanners may share a lexicon in parallel if
    none of them adds features to it.

    Parameters
    ----------
    dtype : numpy.dtype
        Type of the counts, one of `TYPES`.
    analyzer : {"word", "char", "char_wb"}
    by_spaces : bool
        Whether words are separated by whitespace (True), or consist of letters, digits and "_".
    from_two : bool
        Whether words of one character are ignored.
    singles : bool
        Whether each other character that is no whitespace is a word, too.
    ngram_range : tuple of int
        Smallest and largest length of n-grams, at least 1.
    stop_words : Lexicon, default=None
        Words that are ignored.
    lexicon : Lexicon, default=None
        The numbers of features. None: a new lexicon, to which all features are added.
    columns : array of int32, default=None
        Columns of the numbers of `lexicon`, below `n_columns`, or -1 for features without column,
        followed by one more -1. The values are not checked.
    n_columns : int
        Number of columns.
    n_hashed : int, default=0
        If above 0, the number of columns for hashes, which replace the lexicon.
    signs : bool
        Whether the highest bit of a hash makes the count negative.
    once : bool
        Whether each feature counts 1 at most in a text.
    in_order : bool
        Whether the terms of a row are in the order of the text, see `scan`.
    """

    cdef CppScanner* scanner
    cdef Rows* rows
    cdef readonly Lexicon lexicon
    cdef readonly bint hashes
    cdef object stop_words, columns, dtype
    cdef bint busy

    def __cinit__(self, dtype, *, analyzer="word", bint by_spaces=False, bint from_two=True,
                  bint singles=False, ngram_range=(1, 1), Lexicon stop_words=None,
                  Lexicon lexicon=None, const int32_t[::1] columns=None, int64_t n_columns=0,
                  uint32_t n_hashed=0, bint signs=False, bint once=False, bint in_order=False):
        cdef Settings settings
        cdef const CppLexicon* stop = NULL
        cdef const int32_t* start = NULL
        settings.analyzer = {"word": Analyzer.words, "char": Analyzer.characters,
                             "char_wb": Analyzer.within_words}[analyzer]
        settings.by_spaces = by_spaces or analyzer != "word"
        settings.from_two = from_two
        settings.singles = singles and analyzer == "word"
        settings.least, settings.most = ngram_range
        if settings.least < 1 or n_hashed > 0x7FFFFFFF:
            raise ValueError(f"ngram_range={ngram_range} or n_hashed={n_hashed} is out of range")
        settings.n_hashed = n_hashed
        settings.signs = signs
        settings.once = once
        settings.in_order = in_order
        self.hashes = n_hashed > 0
        self.dtype = np.dtype(dtype)
        self.rows = new Rows(<Type> <int> TYPES[self.dtype])
        if (lexicon is None) != (columns is None):
            raise ValueError("lexicon and columns are given together, or neither is")
        if columns is not None:
            if columns.shape[0] != len(lexicon) + 1 or columns[len(lexicon)] != -1:
                raise ValueError(f"{columns.shape[0]} columns for {len(lexicon)} numbers")
            self.columns = columns  # keeps the memory alive that `start` points to
            start = &columns[0]
        self.lexicon = Lexicon() if lexicon is None else lexicon
        self.stop_words = stop_words
        if stop_words is not None:
            stop = &stop_words.known
        self.scanner = new CppScanner(settings, self.lexicon.known, stop, start, n_columns)

    def __dealloc__(self):
        del self.scanner
        del self.rows

    def scan(self, list texts, const unsigned char[::1] lower, Scanner words=None):
        """Add a row for each text.

        Parameters
        ----------
        texts : list of str
        lower : buffer of bytes
            For each text, whether to convert it to lowercase.
        words : Scanner, default=None
            A scanner of words for the same texts, if this one is of "char_wb". Both have `in_order`
            and collect terms. Rows of this one then count words separated by whitespace instead of
            the n-grams within them, which `take_ngrams` returns.

        Returns
        -------
        bool
            Whether any text so far contained a lone surrogate.
        """
        cdef vector[Document] documents
        cdef Document document
        cdef Py_ssize_t i
        # The copy keeps the texts alive if another thread changes the list.
        texts = list(texts)
        if lower.shape[0] != len(texts):
            raise ValueError(f"{lower.shape[0]} flags for {len(texts)} texts")
        for i in range(len(texts)):
            text = texts[i]
            if not isinstance(text, str):
                raise TypeError(f"texts[{i}] is of {type(text)}")
            document.lower = lower[i]
            if document.lower and PyUnicode_KIND(text) > 1 and (
                    SPECIAL[0] in text or SPECIAL[1] in text):
                text = texts[i] = str.lower(text)
                document.lower = False
            document.data = PyUnicode_DATA(text)
            document.width = PyUnicode_KIND(text)
            document.length = PyUnicode_GET_LENGTH(text)
            if document.length > LONGEST:
                raise ValueError(f"texts[{i}] has more than {LONGEST} characters")
            documents.push_back(document)
        self.count(documents, words)
        return self.scanner.has_surrogate()

    def scan_parts(self, const uint8_t[::1] text, const int64_t[::1] starts,
                   const int64_t[::1] ends, bint lower):
        """Add a row for each part of a UTF-8 text.

        If `lower` is True, the text must not contain characters of `SPECIAL`.
        """
        cdef vector[Document] documents
        cdef Document document
        cdef Py_ssize_t i
        if starts.shape[0] != ends.shape[0]:
            raise ValueError(f"{starts.shape[0]} starts for {ends.shape[0]} ends")
        cdef const uint8_t* begin = &text[0] if text.shape[0] else NULL
        document.lower = lower
        document.width = 0
        for i in range(starts.shape[0]):
            document.length = ends[i] - starts[i]
            if not 0 <= starts[i] <= ends[i] <= text.shape[0] or document.length > LONGEST:
                raise ValueError(f"part {i} does not lie in the text, or is longer than {LONGEST}")
            document.data = begin + starts[i]
            documents.push_back(document)
        self.count(documents, None)

    cdef int count(self, const vector[Document]& documents, Scanner words) except -1:
        if self.busy:
            raise RuntimeError("another thread is using this scanner: give each its own")
        self.busy = True
        try:
            if words is None:
                with nogil:
                    self.scanner.scan(documents.data(), documents.size(), self.rows[0])
            else:
                with nogil:
                    self.scanner.scan_families(documents.data(), documents.size(), self.rows[0],
                                               words.scanner[0], words.rows[0])
        finally:
            self.busy = False
        return PyErr_CheckSignals()

    def reserve(self, size_t n_entries):
        """Reserve memory for entries, because other threads wait while arrays grow."""
        self.rows.reserve(n_entries)

    def take_rows(self, int64_t n_more=0):
        """Return all rows so far and remove them from the scanner.

        The result is a tuple of values, columns (int32) and row pointers (int64). Values and
        columns end with `n_more` additional, uninitialised entries.
        """
        cdef int64_t n, n_ends = self.rows.ends.size()
        self.rows.columns.extend(n_more)
        self.rows.values.extend(n_more * self.dtype.itemsize)
        n = self.rows.columns.size()
        columns = array_of(self.rows.columns.release(), n, np.dtype(np.int32))
        values = array_of(self.rows.values.release(), n, self.dtype)
        ends = array_of(self.rows.ends.release(), n_ends, np.dtype(np.int64))
        self.rows.ends.push_back(0)
        return values, columns, ends

    def take_ngrams(self):
        """Return the n-grams of all words as a tuple of numbers (int32) and ends (int64), and
        remove them. The n-grams of word i are ``numbers[ends[i]:ends[i + 1]]``."""
        cdef int64_t n = self.scanner.ngrams().size(), n_words = self.scanner.ends_of_ngrams().size()
        ngrams = array_of(self.scanner.ngrams().release(), n, np.dtype(np.int32))
        ends = array_of(self.scanner.ends_of_ngrams().release(), n_words, np.dtype(np.int64))
        return ngrams, np.append(np.int64(0), ends)
