"""The loaders of digits and letters: on the registered data, and on small files of their forms."""

import gzip
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import issparse

from papers.data import load_letter, load_mnist, load_usps
from problems.published_files import data_folder
from problems.synthetic_files import GREYS, INK, LETTERS, PACKABLE, hide_copies, write_files

LOADERS = {"mnist": load_mnist, "usps": load_usps, "letter": load_letter}
FIRST_FILE = {"mnist": "train-images-idx3-ubyte", "usps": "zip.train",
              "letter": "letter-recognition.data"}  # fmt: skip
TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = list(PACKABLE)[:4]
PUBLISHED = [f"{name}.gz" for name in PACKABLE]

# -- the registered data -------------------------------------------------------------------------


@pytest.fixture
def published():
    return data_folder(*PUBLISHED)


def unpacked(folder, name):
    return gzip.decompress((folder / f"{name}.gz").read_bytes())


@pytest.mark.parametrize(("subset", "prefix", "n_rows"), [
    ("train", "train", 60_000), ("test", "t10k", 10_000),
])  # fmt: skip
def test_published_mnist_holds_the_bytes_of_the_files(published, subset, prefix, n_rows):
    X, y = load_mnist(subset, return_X_y=True, data_home=published)
    pixels = unpacked(published, f"{prefix}-images-idx3-ubyte")[16:]
    assert X.shape == (n_rows, 784)
    assert X.toarray().astype(np.uint8).tobytes() == pixels
    assert y.astype(np.uint8).tobytes() == unpacked(published, f"{prefix}-labels-idx1-ubyte")[8:]


def test_published_mnist_has_the_known_counts(published):
    counts = {
        subset: np.bincount(load_mnist(subset, return_X_y=True, data_home=published)[1]).tolist()
        for subset in ("train", "test")
    }
    assert counts == {
        "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
    }


def test_published_usps_agrees_with_a_general_reader(published):
    parts = [np.loadtxt(unpacked(published, name).splitlines()) for name in list(PACKABLE)[4:6]]
    table = np.vstack(parts)
    X, y = load_usps("all", return_X_y=True, data_home=published)
    assert_array_equal(X, table[:, 1:])
    assert_array_equal(y, table[:, 0])
    assert X.shape == (7291 + 2007, 256)
    assert (X.min(), X.max()) == (-1, 1)
    train = np.bincount(y[:7291]).tolist()
    assert train == [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]


def test_published_letters_agree_with_a_general_reader(published):
    lines = unpacked(published, "letter-recognition.data").decode().splitlines()
    table = np.genfromtxt(lines, delimiter=",", dtype=str)
    letters = load_letter("all", data_home=published)
    assert letters.data.shape == (20_000, 16)
    assert_array_equal(letters.data, table[:, 1:].astype(float))
    assert_array_equal(letters.target, table[:, 0])
    assert len(load_letter("train", data_home=published).target) == 16_000
    counts = Counter(letters.target.tolist())
    assert sorted(counts) == letters.target_names.tolist()
    assert (min(counts.values()), max(counts.values())) == (734, 813)


# -- what comes back -----------------------------------------------------------------------------


@pytest.fixture
def nowhere(register, monkeypatch, tmp_path):
    """A registry of small files, none of which is to be found yet."""
    register(PACKABLE)
    hide_copies(monkeypatch, tmp_path)
    return tmp_path


@pytest.fixture
def home(nowhere):
    return write_files(nowhere / "home", PACKABLE, PACKABLE)


@pytest.mark.parametrize(("subset", "rows", "digits"), [
    ("train", [0, 1, 2], [7, 0, 9]), ("test", [3, 4], [1, 2]), ("all", range(5), [7, 0, 9, 1, 2]),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mnist_subsets(home, subset, rows, digits, dtype):
    X, y = load_mnist(subset, dtype=dtype, return_X_y=True, data_home=home)
    assert_array_equal(X.toarray(), INK[rows].reshape(-1, 784))
    assert_array_equal(y, digits)
    assert X.dtype == dtype
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.nnz == np.count_nonzero(INK[rows])
    assert X.has_canonical_format


@pytest.mark.parametrize(("subset", "rows", "digits"), [
    ("train", [0, 1, 2], [6, 0, 9]), ("test", [3, 4], [3, 4]), ("all", range(5), [6, 0, 9, 3, 4]),
])  # fmt: skip
def test_usps_subsets(home, subset, rows, digits):
    X, y = load_usps(subset, return_X_y=True, data_home=home)
    assert_array_equal(X, GREYS[rows])
    assert_array_equal(y, digits)


@pytest.mark.parametrize(("subset", "rows"), [
    ("train", slice(0, 1002)), ("test", slice(1002, 5002)), ("all", slice(0, 5002)),
])  # fmt: skip
def test_letter_subsets(home, subset, rows):
    X, y = load_letter(subset, return_X_y=True, data_home=home)
    lines = [line.split(",") for line in LETTERS[rows]]
    assert_array_equal(X, [list(map(float, line[1:])) for line in lines])
    assert_array_equal(y, [line[0] for line in lines])


@pytest.mark.parametrize(("name", "names", "image_shape"), [
    ("mnist", "0123456789", (28, 28)), ("usps", "0123456789", (16, 16)),
    ("letter", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", None),
])  # fmt: skip
def test_bunch(home, name, names, image_shape):
    bunch = LOADERS[name](data_home=home)
    assert bunch.target_names.tolist() == list(names)
    assert bunch.get("image_shape") == image_shape
    assert bunch.frame is None
    assert bunch.target.dtype == ("<U1" if name == "letter" else np.int64)
    if name != "mnist":
        assert bunch.data.dtype == np.float64
        assert bunch.data.flags.c_contiguous
    for part in f"The {name} data", "A publisher", "A licence", f"The {name} paper":
        assert bunch.DESCR.count(part) == 1


def test_letters_have_named_features(home):
    names = load_letter(data_home=home).feature_names
    assert len(names) == len(set(names)) == 16
    assert "feature_names" not in load_usps(data_home=home)


# -- copies in other forms -----------------------------------------------------------------------


def dense(X):
    return X.toarray() if issparse(X) else X


@pytest.mark.parametrize("level", [0, 1, 9])
@pytest.mark.parametrize("load", LOADERS.values())
def test_copies_may_be_packed_in_any_way(nowhere, load, level):
    plain = load(data_home=write_files(nowhere / "plain", PACKABLE, PACKABLE))
    packed = {f"{name}.gz": gzip.compress(text, level) for name, text in PACKABLE.items()}
    found = load(data_home=write_files(nowhere / "packed", packed, packed))
    assert_array_equal(dense(found.data), dense(plain.data))
    assert_array_equal(found.target, plain.target)


def test_a_subset_needs_its_own_files_alone(nowhere):
    tests = write_files(nowhere / "home", [TEST_IMAGES, TEST_LABELS, "zip.test"], PACKABLE)
    assert load_mnist("test", data_home=tests).data.shape == (2, 784)
    assert load_usps("test", data_home=tests).data.shape == (2, 256)
    with pytest.raises(FileNotFoundError, match=f"^{TRAIN_IMAGES}.gz, {TRAIN_LABELS}.gz not found"):
        load_mnist("all", data_home=tests)
    with pytest.raises(FileNotFoundError, match=r"^zip.train.gz not found"):
        load_usps("train", data_home=tests)


@pytest.mark.parametrize("notation", [
    "{:.6f}".format, "{:+.4f}".format, "{:.4e}".format,
    lambda value: "-0" if value == 0 else repr(value),
])  # fmt: skip
def test_usps_numbers_may_be_written_in_any_way(home, notation):
    rows = [line.split() for line in PACKABLE["zip.train"].decode().splitlines()]
    lines = ["\t".join(notation(float(cell)) for cell in row) for row in rows]
    (home / "zip.train").write_text("\r\n".join(lines))
    X, y = load_usps(return_X_y=True, data_home=home)
    assert_array_equal(X, GREYS[:3])
    assert_array_equal(y, [6, 0, 9])


# -- files that are not what they should be ------------------------------------------------------


@pytest.mark.parametrize("name", LOADERS)
def test_missing_files_are_named_with_the_way_to_get_them(nowhere, name):
    with pytest.raises(FileNotFoundError) as caught:
        LOADERS[name](data_home=nowhere)
    message = str(caught.value)
    assert message.startswith(FIRST_FILE[name])
    assert f"data_home: {nowhere}\n" in message
    assert message.endswith(f"python -m sparsemargin.datasets download {name}")


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("spoil", [
    lambda packed: packed[:-9], lambda packed: packed[:40], lambda packed: packed[:2],
    lambda packed: packed[:60] + packed[60:80][::-1] + packed[80:],
    lambda packed: packed[:-8] + b"\0\0\0\0" + packed[-4:],
])  # fmt: skip
def test_damaged_packing_is_refused(nowhere, name, spoil):
    file = f"{FIRST_FILE[name]}.gz"
    packed = {f"{plain}.gz": gzip.compress(text) for plain, text in PACKABLE.items()}
    folder = write_files(nowhere / "my data", packed, packed)
    (folder / file).write_bytes(spoil(packed[file]))
    with pytest.raises(
        ValueError, match=r"is not the registered file: it cannot be unpacked \("
    ) as (caught):
        LOADERS[name](data_home=folder)
    assert str(caught.value).startswith(str(folder / file))
    command = f"python -m sparsemargin.datasets download {name} --to '{folder}'"
    assert str(caught.value).endswith(command)


@pytest.mark.parametrize(("name", "spoil", "complaint"), [
    ("mnist", lambda text: text[:-1], r"it has 2,367 bytes instead of 2,368"),
    ("mnist", lambda text: text[:-1] + b"\7", "its sha256 is"),
    ("letter", lambda text: text.replace(b"A", b"B"), "its sha256 is"),
    ("letter", lambda text: text.replace(b"\n", b"\r\n"), "it has .* bytes instead of"),
    ("usps", lambda text: text.replace(b"0.5000", b"0.5001"), "the sha256 of its numbers is"),
    ("usps", lambda text: text[: len(text) // 2], "the sha256 of its numbers is"),
    ("usps", lambda text: b"", "the sha256 of its numbers is"),
    ("usps", lambda text: b"digit " + text, "does not hold numbers alone .*'digit'"),
])  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_a_wrong_copy_is_refused(home, name, spoil, complaint, packed):
    text = spoil(PACKABLE[FIRST_FILE[name]])
    assert text != PACKABLE[FIRST_FILE[name]]
    (home / FIRST_FILE[name]).write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(ValueError, match=f"is not the registered file: .*{complaint}"):
        LOADERS[name](data_home=home)


# -- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "argument", "value"), [
    *((name, "subset", value) for name in LOADERS for value in ("training", None)),
    *((name, "return_X_y", 1) for name in LOADERS),
    *((name, "data_home", "no/such/folder") for name in LOADERS),
    ("mnist", "dtype", np.uint8), ("mnist", "dtype", "grey"),
])  # fmt: skip
def test_bad_arguments_are_named(home, name, argument, value):
    with pytest.raises(ValueError, match=f"^{argument} must be"):
        LOADERS[name](**{"data_home": home, argument: value})
