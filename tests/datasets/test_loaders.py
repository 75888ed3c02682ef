"""The loaders: on the published data where they are at hand, and on small files of that form."""

import socket
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import linprog

import sparsemargin
from papers.data import load_sonar, load_wbc
from problems.published_files import data_folder
from problems.synthetic_files import CONTENTS, MINES, ROCKS, hide_copies, write_files
from sparsemargin.datasets.files import cache_folder

LOADERS = {"sonar": load_sonar, "wbc": load_wbc}
WBC_FILE = "breast-cancer-wisconsin.data"

# -- the published data --------------------------------------------------------------------------


@pytest.fixture
def published():
    return data_folder(*CONTENTS, "sonar.all-data")


def test_published_sonar_agrees_with_the_comma_separated_copy(published):
    """That copy holds the rocks, then the mines."""
    table = np.genfromtxt(published / "sonar.all-data", delimiter=",", dtype=str)
    mines = table[:, -1] == "M"
    X, y = load_sonar("all", return_X_y=True, data_home=published)
    values = table[:, :-1].astype(float)
    assert_array_equal(X, np.vstack([values[mines], values[~mines]]))
    assert_array_equal(y, np.repeat([1, -1], [111, 97]))


def test_published_sonar_splits_by_aspect_angle(published):
    X, y = load_sonar("all", return_X_y=True, data_home=published)
    rows = [row.tobytes() for row in X]
    places = {}
    for subset, n_mines, n_rocks in ("aspect", 49, 55), ("aspect_test", 62, 42):
        part, labels = load_sonar(subset, return_X_y=True, data_home=published)
        places[subset] = [rows.index(row.tobytes()) for row in part]
        assert places[subset] == sorted(places[subset])
        assert_array_equal(labels, np.repeat([1, -1], [n_mines, n_rocks]))
        assert_array_equal(labels, y[places[subset]])
    assert sorted(places["aspect"] + places["aspect_test"]) == list(range(208))


def test_published_wbc_agrees_with_a_general_reader(published):
    table = np.genfromtxt(published / WBC_FILE, delimiter=",", missing_values="?")
    complete = table[~np.isnan(table).any(axis=1)]
    X, y = load_wbc(return_X_y=True, data_home=published)
    assert_array_equal(X, complete[:, 1:-1])
    assert_array_equal(y, complete[:, -1] - 3)
    assert X.shape == (683, 9)
    assert (y == 1).sum() == 239


@pytest.mark.parametrize(("subset", "n_rows", "separable"), [
    ("complete", 683, False), ("separable", 672, True),
])  # fmt: skip
def test_published_wbc_is_separable_without_eleven_rows(published, subset, n_rows, separable):
    X, y = load_wbc(subset, return_X_y=True, data_home=published)
    assert X.shape == (n_rows, 9)
    signed = y[:, None] * np.c_[X, np.ones(n_rows)]
    outcome = linprog(np.zeros(10), A_ub=-signed, b_ub=-np.ones(n_rows), bounds=(None, None))
    assert (outcome.status == 0) == separable


def test_published_wbc_leaves_out_the_rows_that_the_paper_lists(published):
    """Tsampouka & Shawe-Taylor (2006), section 5: positions from 1 among the complete rows."""
    left_out = [2, 4, 191, 217, 227, 245, 252, 286, 307, 420, 475]
    X, y = load_wbc(return_X_y=True, data_home=published)
    kept = [row for row in range(683) if row + 1 not in left_out]
    part, labels = load_wbc("separable", return_X_y=True, data_home=published)
    assert_array_equal(part, X[kept])
    assert_array_equal(labels, y[kept])


# -- what comes back -----------------------------------------------------------------------------


@pytest.fixture
def nowhere(register, monkeypatch, tmp_path):
    """A registry of small files, none of which is to be found yet."""
    register()
    hide_copies(monkeypatch, tmp_path)
    return tmp_path


@pytest.fixture
def home(nowhere):
    return write_files(nowhere / "home")


@pytest.mark.parametrize(("subset", "mines", "rocks"), [
    ("aspect", [0], [1]), ("aspect_test", [1], [0, 2]), ("all", [0, 1], [0, 1, 2]),
])  # fmt: skip
def test_sonar_subsets(home, subset, mines, rocks):
    X, y = load_sonar(subset, return_X_y=True, data_home=home)
    assert_array_equal(X, np.vstack([MINES[mines], ROCKS[rocks]]))
    assert_array_equal(y, np.repeat([1, -1], [len(mines), len(rocks)]))


def test_wbc_takes_the_complete_rows(home):
    X, y = load_wbc(return_X_y=True, data_home=home)
    assert_array_equal(X, [[5, 1, 1, 1, 2, 1, 3, 1, 1], [5, 4, 4, 5, 7, 10, 3, 2, 1],
                           [4, 1, 1, 3, 2, 1, 3, 1, 1]])  # fmt: skip
    assert_array_equal(y, [-1, 1, -1])


@pytest.mark.parametrize(("name", "positive"), [("sonar", "mine"), ("wbc", "malignant")])
def test_bunch(home, name, positive):
    bunch = LOADERS[name](data_home=home)
    X, y = LOADERS[name](return_X_y=True, data_home=home)
    assert_array_equal(bunch.data, X)
    assert_array_equal(bunch.target, y)
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    assert y.dtype == np.int64
    assert bunch.frame is None
    assert bunch.target_names[1] == positive
    for part in f"The {name} data", "A publisher", "A licence", f"The {name} paper":
        assert bunch.DESCR.count(part) == 1


def test_names_of_the_features(home):
    names = load_wbc(data_home=home).feature_names
    assert len(names) == 9
    assert names[5] == "Bare Nuclei"
    assert "feature_names" not in load_sonar(data_home=home)


# -- where files are looked for ------------------------------------------------------------------


def test_folders_are_searched_in_order(nowhere, monkeypatch):
    monkeypatch.setenv("SPARSEMARGIN_DATA", str(nowhere / "named"))
    first, second, third = (nowhere / name for name in ("home", "named", "cache"))
    third.mkdir()
    for folder in third / "sparsemargin", second, first:
        write_files(folder)
        load_wbc(data_home=first if folder == first else None)
        # From here on a copy is found only because an earlier folder holds one.
        (folder / WBC_FILE).write_text("spoiled")
        with pytest.raises(ValueError, match=f"{folder}.* is not the registered file"):
            load_wbc(data_home=first if folder == first else None)


def test_files_of_a_set_may_lie_apart(nowhere, monkeypatch):
    monkeypatch.setenv("SPARSEMARGIN_DATA", str(write_files(nowhere / "named", ["sonar.rocks"])))
    home = write_files(nowhere / "home", ["sonar.mines"])
    assert load_sonar("all", data_home=home).data.shape == (5, 60)


def test_a_tilde_is_the_users_folder(home, monkeypatch):
    monkeypatch.setenv("HOME", str(home.parent))
    load_sonar(data_home="~/home")
    monkeypatch.setenv("SPARSEMARGIN_DATA", "~/home")
    load_sonar()


def test_missing_files_are_named_with_places_and_remedy_and_not_fetched(nowhere, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a loader reached for the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setenv("SPARSEMARGIN_DATA", str(nowhere / "named"))
    home = write_files(nowhere / "home", ["sonar.rocks"])
    with pytest.raises(FileNotFoundError) as caught:
        load_sonar(data_home=home)
    message = str(caught.value)
    assert message.startswith("sonar.mines not found")
    assert f"data_home: {home}\n" in message
    assert f"SPARSEMARGIN_DATA: {nowhere / 'named'} (no such folder)\n" in message
    assert f"cache: {nowhere / 'cache' / 'sparsemargin'} (no such folder)\n" in message
    assert message.endswith("python -m sparsemargin.datasets download sonar")


def test_the_missing_variable_is_told(nowhere):
    with pytest.raises(FileNotFoundError, match="SPARSEMARGIN_DATA: not set\n"):
        load_wbc()


def test_cache_is_the_one_pooch_uses(monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch")
    for base in str(tmp_path), "", "relative":
        monkeypatch.setenv("XDG_CACHE_HOME", base)
        assert cache_folder() == Path(pooch.os_cache("sparsemargin"))
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path(pooch.os_cache("sparsemargin"))


# -- files that are not what they should be ------------------------------------------------------


@pytest.mark.parametrize(("spoil", "found"), [
    (lambda content: content[:-1], r"it has 112 bytes instead of 113"),
    (lambda content: b"", r"it has 0 bytes"),
    (lambda content: content.replace(b",8,", b",9,"), r"its sha256 is [0-9a-f]{64} instead of"),
    (lambda content: content.replace(b"\n", b"\r\n"), r"it has 117 bytes"),
])  # fmt: skip
def test_a_wrong_copy_is_refused(nowhere, spoil, found):
    folder = write_files(nowhere / "my data")
    path = folder / WBC_FILE
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(ValueError, match=found) as caught:
        load_wbc(data_home=folder)
    assert str(caught.value).startswith(f"{path} is not the registered file")
    command = f"python -m sparsemargin.datasets download wbc --to '{folder}'"
    assert str(caught.value).endswith(command)


# -- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("load", LOADERS.values())
@pytest.mark.parametrize(("argument", "value"), [
    ("subset", "none"), ("subset", None), ("subset", np.array(["all", "complete"])),
    ("return_X_y", 1), ("return_X_y", "yes"),
    ("data_home", "no/such/folder"), ("data_home", 7), ("data_home", __file__),
])  # fmt: skip
def test_bad_arguments_are_named(home, load, argument, value):
    with pytest.raises(ValueError, match=f"^{argument} must be"):
        load(**{"data_home": home, argument: value})


def test_loaders_that_have_moved_are_answered_with_their_place():
    told = r"from papers\.data import load_sonar"
    with pytest.warns(FutureWarning, match=told), pytest.raises(ImportError):
        from sparsemargin.datasets import load_sonar  # noqa: F401
    with pytest.warns(FutureWarning, match=told), pytest.raises(AttributeError, match=told):
        _ = sparsemargin.datasets.load_sonar
