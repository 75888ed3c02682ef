"""Files are loaded as CSR matrices, like scikit-learn does and beyond. Errors name their place."""

import gzip
import io
import os
import random
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from depth import some
from problems.command_line import process
from problems.sources import standard_input
from problems.svmlight_checks import try_to_scan
from problems.svmlight_texts import plain_options, random_text
from sparsemargin.datasets import make_zipf_text
from sparsemargin.files import sources
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.readers import load_svmlight as svmlight
from sparsemargin.readers.load_svmlight import load_svmlight


def write(folder, content, name="text.svm"):
    (folder / name).write_bytes(content)
    return folder / name


def assert_same(loaded, expected):
    """The results are identical to those of scikit-learn, to the bit."""
    (X, *labels), (X_expected, *labels_expected) = loaded, expected
    assert (X.shape, X.dtype) == (X_expected.shape, X_expected.dtype)
    for name in "data", "indices", "indptr":
        assert_array_equal(getattr(X, name), getattr(X_expected, name))
    assert_array_equal(np.signbit(X.data), np.signbit(X_expected.data))
    assert X.has_canonical_format
    fits = X.shape[1] <= 2**31 - 1
    assert X.indices.dtype == X.indptr.dtype == (np.int32 if fits else np.int64)
    for ours, theirs in zip(labels, labels_expected, strict=True):
        assert type(ours) is type(theirs)
        if isinstance(ours, list):
            assert ours == theirs
        else:
            assert ours.dtype == theirs.dtype
            assert_array_equal(ours, theirs)


def as_sklearn(content, **how):
    return load_svmlight_file(io.BytesIO(content), **how)


@pytest.mark.filterwarnings("ignore:.* has labels but no features")
def test_random_files_agree_with_scikit_learn(tmp_path, monkeypatch):
    n_equal = 0
    for seed in range(some(1200, 20_000)):
        source = random.Random(seed)
        options = plain_options(source)
        text = random_text(source, options)
        how = {"dtype": options.dtype, "multilabel": options.multilabel,
               "n_features": source.choice([None, 2**31 - 1]),
               "zero_based": source.choice(["auto", options.least == 0])}  # fmt: skip
        try:
            expected = as_sklearn(text, **how)
        except (ValueError, OverflowError):
            continue
        if refusal := try_to_scan(text, replace(options, base=0, least=0))[0]:
            assert refusal[0] in {"not_finite", "nul", "overlong"}
        elif expected[0].shape[0]:
            monkeypatch.setattr(sources, "BLOCK_BYTES", source.randint(1, 200))
            path = write(tmp_path, source.choice([bytes, gzip.compress])(text))
            assert_same(load_svmlight(path, n_jobs=source.randint(1, 3), **how), expected)
            n_equal += 1
    assert n_equal > 300


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A file of 1 MB, its text, and what scikit-learn reads from it. Random comments and queries
    make estimates that are made before scanning too large."""
    X, y = make_zipf_text(2000, 5000, mean_nnz=60, random_state=0)
    plain = io.BytesIO()
    dump_svmlight_file(X, y, plain, zero_based=False, comment="a: b")
    rng = random.Random(0)
    ends = [b"\n", b"\n", b" # 1:1\n", b"\n\n# :::\n"]
    text = b"".join(line[:-1] + rng.choice(ends) for line in plain.getvalue().splitlines(True))
    return write(tmp_path_factory.mktemp("corpus"), text), text, as_sklearn(text)


@pytest.mark.parametrize(
    ("n_jobs", "block_bytes", "pack"),
    [
        (None, 1 << 12, bytes), (1, 1 << 12, gzip.compress), (2, 1 << 12, bytes),
        (3, 1 << 12, gzip.compress), (-1, 1 << 17, bytes), (1, 1 << 20, bytes),
    ],
)  # fmt: skip
def test_number_of_threads_does_not_change_the_rows(corpus, monkeypatch, n_jobs, block_bytes, pack):
    path, text, expected = corpus
    monkeypatch.setattr(sources, "BLOCK_BYTES", block_bytes)
    assert_same(load_svmlight(path, n_jobs=n_jobs), expected)
    with standard_input(pack(text)):
        assert_same(load_svmlight(["-"], n_jobs=n_jobs), expected)


PEAKS = """
import resource, sys
import scipy.sparse
from sparsemargin.readers.load_svmlight import load_svmlight
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
small, large, n_jobs = sys.argv[1:]
load_svmlight(small, n_jobs=int(n_jobs))
before = peak()
X, y = load_svmlight(large, n_jobs=int(n_jobs))
size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
print(size, (peak() - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
@pytest.mark.parametrize("n_jobs", some([2], [1, 2]))
def test_loading_needs_memory_for_the_result_only(corpus, tmp_path, n_jobs):
    large = write(tmp_path, corpus[1] * 30)
    told, err = process(corpus[0], large, n_jobs, start=("-c", PEAKS)).communicate()
    size, needed = map(int, told.split())
    assert size > 25 << 20, err
    # Allowance: a page of the largest size at the end of each array, and memory for the threads.
    assert needed < size + (12 << 20)


def test_several_files_form_one_data_set(tmp_path):
    parts = [b"1 2:3\n-1 1:4", b"", b"# nothing\n", b"1 7:0.5 # last\n2 0:1\n", b"1 3:1"]
    for i, part in enumerate(parts):
        write(tmp_path, gzip.compress(part) if i % 3 == 0 else part, f"part-{i}.svm")
    assert_same(load_svmlight(tmp_path / "part-*.svm"), as_sklearn(b"\n".join(parts)))
    paths = [tmp_path / "part-4.svm", tmp_path / "part-0.svm"]
    assert_same(load_svmlight(paths), as_sklearn(parts[4] + b"\n" + parts[0]))
    # Rows without features are a matrix without entries.
    with pytest.warns(UserWarning, match=r"text\.svm has labels but no features"):
        loaded = load_svmlight(write(tmp_path, b"1\n-1\n"))
    assert_same(loaded, as_sklearn(b"1\n-1\n"))


def opened_in_every_way(path, text):
    yield path.open("rb")
    yield path.open("rb", buffering=0)
    yield gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(text)))
    yield io.BytesIO(gzip.compress(text))
    yield SimpleNamespace(read=io.BytesIO(text).read)


def test_open_files_agree_with_scikit_learn(corpus):
    path, text, expected = corpus
    for file in opened_in_every_way(path, text):
        assert_same(load_svmlight(file), expected)
        assert not getattr(file, "closed", False)
    with path.open("rb") as file:
        assert_same(load_svmlight(file.fileno()), expected)
        os.fstat(file.fileno())
        # The file is read from its current position.
        start = file.seek(text.index(b"\n", len(text) // 2) + 1)
        assert_same(load_svmlight(file), as_sklearn(text[start:]))
        file.seek(start)
        assert_same(load_svmlight([path, file]), as_sklearn(text + text[start:]))
    for file in path.open(), io.StringIO("1 1:1\n"):
        with pytest.raises(ValueError, match="is open as text, and bytes are read"):
            load_svmlight(file)
    with pytest.raises(ValueError, match=r"^<BytesIO>, line 2, column 3: 'x'"):
        load_svmlight(io.BytesIO(b"1 1:1\n1 x\n"))


@pytest.mark.filterwarnings("ignore:.* has labels but no features")
def test_errors_in_standard_input_name_the_line(corpus):
    content = corpus[1] + b"1 2:3\n1 2:three\n"
    n_lines = len(content.splitlines())
    place = f"^<standard input>, line {n_lines}, column 3: '2:three'"
    with standard_input(content), pytest.raises(ValueError, match=place):
        load_svmlight("-")
    # The place of an index is not named, because that would require a second pass.
    told = "^<standard input>: index 3 is beyond n_features=3, since indices count from 0"
    with standard_input(b"1 3:1\n1 0:1\n"), pytest.raises(ValueError, match=told):
        load_svmlight("-", n_features=3)


def test_words_are_read_as_labels(tmp_path, monkeypatch):
    """Equal numbers are one label, written as the first of them, for any number of threads."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 1)
    path = write(tmp_path, "1.0 1:1\nspam 2:1\n+1 1:1\nà 1:1\n1 3:1\nspam 1:1\n".encode())
    for n_jobs in 1, 2, 3:
        y = load_svmlight(path, n_jobs=n_jobs)[1]
        assert y.tolist() == ["1.0", "spam", "1.0", "à", "1.0", "spam"]
    y = load_svmlight(write(tmp_path, b"b,a,b 1:1\n2:1\n\nc\n"), multilabel=True)[1]
    assert y == [("a", "b", "b"), (), ("c",)]


@pytest.mark.parametrize(
    ("text", "columns", "index_type"),
    [
        (b"1 2147483647:1\n", [2**31 - 2], np.int32),
        (b"1 2147483648:1\n", [2**31 - 1], np.int64),
        (b"1 2147483646:1 0:1\n", [0, 2**31 - 2], np.int32),
        (b"1 2147483647:1 0:1\n", [0, 2**31 - 1], np.int64),
        (b"1 2147483648:1 0:1\n", [0, 2**31], np.int64),
        (b"1 1:1\n1 9223372036854775806:1\n", [0, 2**63 - 3], np.int64),
        (b"1 9223372036854775806:1\n1 0:1\n", [2**63 - 2, 0], np.int64),
    ],
)
def test_indices_are_int64_only_if_needed(tmp_path, text, columns, index_type):
    X, _ = load_svmlight(write(tmp_path, text))
    assert X.indices.tolist() == columns
    assert X.shape[1] == max(columns) + 1
    assert X.indices.dtype == X.indptr.dtype == index_type


@pytest.mark.parametrize(("text", "how", "words"), [
    (b"1 2:3\n\n1 3,5 2:1\n", {}, "line 3, column 3: '3,5' is not index:value"),
    (b"1 2:3\n 3:4\n", {}, "line 2, column 2: '3:4' is a feature, but the line has no label"),
    (b"1 2:3\n1,2 3:4\n", {}, "line 2, column 1: '1,2' is more than one label. Pass multilabel"),
    (b"1 word:1\n", {}, "column 3: 'word:1' has an index that is not a whole number"),
    (b"1 -1:1\n", {}, "column 3: '-1:1' has a negative index"),
    (b"1 0:1\n", {"zero_based": False}, "column 3: '0:1' has index 0 .* Pass zero_based=True"),
    (b"1 4:1\n", {"n_features": 3}, "'4:1' has an index beyond n_features=3.* allowed is 3"),
    (b"1 3:1\n", {"n_features": 3, "zero_based": True}, "'3:1' has .* n_features=3.* allowed is 2"),
    (b"1 9223372036854775807:1\n", {}, "has an index above"),
    (b"1 1:" + b"9" * 5000, {}, r"column 3: '1:9{38}\.\.\.' is too long for a number"),
    (b"1 1:\xff\n", {}, r"column 3: '1:\\\\xff' has a value that is not a number"),
    (b"1 1:nan\n", {}, "column 3: '1:nan' is not finite. Impute"),
    (b"1 1:1e39\n", {"dtype": np.float32}, "'1:1e39' is too large for float32. Pass dtype"),
    (b"1 1:1\x00\n", {}, "a NUL byte. Is the file binary"),
    (b"sepal,petal\n5.1,3.5\n", {}, "line 1, column 1: .* looks like comma-separated values, but"),
    (b"5.1 3.5 1\n", {}, "line 1, column 5: '3.5' .* looks like a table. Svmlight lines"),
    (b"spam\tHello, you\n", {}, "line 1, column 6: .* looks like tab-separated values, but"),
    (b'{"label": 1, "text": "a b"}\n', {}, "line 1, .* looks like JSON, but svm"),
    (b'[\n  {"label": 1}\n]\n', {}, "line 2, .* looks like JSON, but svm"),
    (b"[spam] 1:x\n", {}, "'1:x' has a value that is not a number. Values are decimal"),
    (b"1 |f a:0.5\n", {}, "column 3: '|f' .* Vowpal Wabbit's format; svmlight lines"),
    (b"\n# comment\n", {}, r"text\.svm has no rows"),
])  # fmt: skip
def test_errors_name_the_line_and_column(tmp_path, text, how, words):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=words) as caught:
        load_svmlight(path, **how)
    assert str(caught.value).startswith(str(path))


def test_feature_names_need_hashing(tmp_path):
    path = write(tmp_path, b"1 goal:0.5 7:2 goal:1\n-1 caf\xc3\xa9:3 8:1\n")
    X, _ = load_svmlight(path, hash_bits=20)
    numbers, _ = load_svmlight(write(tmp_path, b"1 7:2\n-1 8:1\n", "n.svm"), hash_bits=20)
    # Numbers have the same columns as in a file without names.
    assert X.shape == (2, 2**20)
    assert X.sum() - numbers.sum() == 4.5
    assert X[0, numbers.indices[0]] == 2
    assert X[1, numbers.indices[1]] == 1
    assert sorted(X.data) == [1, 1.5, 2, 3]
    with pytest.raises(ValueError, match=r"line 1, column 3: 'goal:0.5' .* Pass hash_bits=20"):
        load_svmlight(path)
    with pytest.raises(ValueError, match=r"line 1, column 3: ':1' has nothing before its colon"):
        load_svmlight(write(tmp_path, b"1 :1\n"), hash_bits=20)


@pytest.mark.parametrize(("n_jobs", "pack"), [(1, bytes), (2, gzip.compress), (3, bytes)])
def test_first_error_is_reported_with_its_line(corpus, tmp_path, monkeypatch, n_jobs, pack):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 10_000)
    lines = corpus[1].splitlines(True)
    for wrong in 400, 407, 1500:
        lines.insert(wrong, b"1 2:3 4:five\n")
    content = pack(b"".join(lines))
    # The first error is also named if the end of the file is missing.
    for end in len(content), -4:
        path = write(tmp_path, content[:end])
        with pytest.raises(ValueError, match=f"^{path}, line 401, column 7: '4:five'"):
            load_svmlight([corpus[0], path], n_jobs=n_jobs)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"dtype": int}, "dtype must be"),
        ({"zero_based": 1}, "zero_based must be True, False or 'auto', got 1"),
        ({"multilabel": "no"}, "multilabel must be True or False"),
        ({"n_features": 0}, "n_features must be an integer of at least 1"),
        ({"hash_bits": 32}, "hash_bits must be an integer from 1 to 31"),
        ({"hash_bits": 3, "n_features": 8}, "n_features=8 and hash_bits=3 exclude each other"),
        ({"n_jobs": 0}, "n_jobs must be a whole number but 0"),
    ],
)
def test_invalid_arguments_are_named(tmp_path, how, words):
    with pytest.raises(ValueError, match=words):
        load_svmlight(write(tmp_path, b"1 2:3\n"), **how)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_file_that_changes_during_reading_is_rejected(tmp_path, monkeypatch, n_jobs):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 1000)
    path, take = write(tmp_path, b"1 2:3\n" * 2000), LabelTable.take

    def late(*args):
        path.write_bytes(b"1 2:4\n" * 2001)
        return take(*args)

    monkeypatch.setattr(LabelTable, "take", late)
    with pytest.raises(ValueError, match=r"text\.svm changed while it was read"):
        load_svmlight(path, n_jobs=n_jobs)


@pytest.mark.parametrize("spare", [1.05, 1e15])
def test_rows_may_differ_in_length(tmp_path, monkeypatch, spare):
    """Memory is allocated according to the first block, unless the estimate exceeds what is
    available."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 100)
    monkeypatch.setattr(svmlight, "_SPARE", spare)
    short, long = b"1 1:1\n" * 40, b"-1 " + b" ".join(b"%d:2" % i for i in range(1, 400)) + b"\n"
    for content in short + long * 9 + short, long + short * 9, b"1\n" * 200 + long:
        assert_same(load_svmlight(write(tmp_path, content)), as_sklearn(content))
