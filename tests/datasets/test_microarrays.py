"""The loaders of microarrays: on the registered data, and on small files of their forms."""

import gzip
from io import StringIO

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from problems.published_files import data_folder
from problems.synthetic_files import BY_HAND, hide_copies, write_files
from sparsemargin.datasets import load_breast_er, load_colon, load_leukemia, load_lymphoma

LOADERS = {
    "breast_er": load_breast_er,
    "colon": load_colon,
    "leukemia": load_leukemia,
    "lymphoma": load_lymphoma,
}
COLON, LEUKEMIA = "colon_alon1999.csv.gz", "leukemia_golub1999.csv.gz"
WEST, GRUVBERGER = "breast_er_west2001.csv.gz", "breast_er_gruvberger2001.csv"
LYMPHOMA, LYMPHOMA_LABELS = "Lymphoma96x4026.arff.gz", "lymphoma_labels.csv"
nan = np.nan

# -- the registered data -------------------------------------------------------------------------


def general_table(name):
    """The cells of a packed table, header included, as NumPy's reader has them."""
    text = gzip.decompress((data_folder(name) / name).read_bytes()).decode()
    return np.genfromtxt(StringIO(text), delimiter=",", dtype=str)


def test_registered_colon_agrees_with_a_general_reader():
    table = general_table(COLON)
    colon = load_colon(data_home=data_folder(COLON))
    assert colon.data.shape == (62, 2000)
    assert_array_equal(colon.data, table[1:, 2:].astype(float))
    assert_array_equal(colon.target == 1, table[1:, 1] == "t")
    assert (colon.target == 1).sum() == 40
    assert colon.feature_names == table[0, 2:].tolist()


@pytest.mark.parametrize(("subset", "n_all", "n_aml"), [
    ("all", 47, 25), ("train", 27, 11), ("test", 20, 14),
])  # fmt: skip
def test_registered_leukemia_agrees_with_a_general_reader(subset, n_all, n_aml):
    table = general_table(LEUKEMIA)
    rows = np.flatnonzero((table[:, 1] == subset) | (subset == "all"))
    rows = rows[rows > 0]
    leukemia = load_leukemia(subset, data_home=data_folder(LEUKEMIA))
    assert leukemia.data.shape == (n_all + n_aml, 7129)
    assert_array_equal(leukemia.data, table[rows, 3:].astype(float))
    assert_array_equal(leukemia.target == 1, table[rows, 2] == "AML")
    assert (leukemia.target == 1).sum() == n_aml
    assert leukemia.feature_names[0] == "AFFX-BioB-5_at"


def test_registered_breast_tumours_agree_with_a_general_reader():
    table = general_table(WEST).astype(float)
    breast = load_breast_er("west2001", data_home=data_folder(WEST))
    assert breast.data.shape == (49, 7129)
    assert_array_equal(breast.data, table[:, :-1])
    assert_array_equal(breast.target, 2 * table[:, -1] - 1)
    assert (breast.target == 1).sum() == 25
    assert breast.source == "west2001"


def test_registered_lymphoma_agrees_with_a_general_reader():
    lines = gzip.decompress((data_folder(LYMPHOMA) / LYMPHOMA).read_bytes()).decode().splitlines()
    rows = [line.split(",") for line in lines[lines.index("@DATA") + 1 :] if line]
    values = [[nan if cell == "?" else float(cell) for cell in row[:-1]] for row in rows]
    folder = data_folder(LYMPHOMA, LYMPHOMA_LABELS)
    lymphoma = load_lymphoma("acl", missing="nan", data_home=folder)
    assert lymphoma.data.shape == (96, 4026)
    assert_array_equal(lymphoma.data, values)
    assert np.isnan(lymphoma.data).sum() == 19_667
    assert_array_equal(lymphoma.target == 1, [row[-1] == "ACL" for row in rows])
    assert lymphoma.feature_names[0] == "GENE1835X"


@pytest.mark.parametrize(("labels", "n_positive"), [
    ("malignant_66", 66), ("malignant_62", 62), ("malignant_72", 72), ("acl", 23),
])  # fmt: skip
def test_registered_lymphoma_under_each_rule(labels, n_positive):
    folder = data_folder(LYMPHOMA, LYMPHOMA_LABELS)
    _, y = load_lymphoma(labels, return_X_y=True, data_home=folder)
    assert (y == 1).sum() == n_positive
    assert (y == -1).sum() == 96 - n_positive


def test_registered_lymphoma_rules_agree_with_the_file_and_with_each_other():
    folder = data_folder(LYMPHOMA, LYMPHOMA_LABELS)
    table = np.genfromtxt(folder / LYMPHOMA_LABELS, delimiter=",", dtype=str)[1:]
    rules = "classes", "malignant_66", "malignant_62", "malignant_72"
    nine, of_66, of_62, of_72 = (load_lymphoma(rule, data_home=folder) for rule in rules)
    assert_array_equal(nine.target_names[nine.target], table[:, 1])
    assert_array_equal(np.bincount(nine.target), [10, 11, 46, 9, 2, 2, 6, 4, 6])
    assert_array_equal(of_66.target == 1, table[:, 3] == "1")
    assert_array_equal(np.flatnonzero(of_66.target != of_62.target), [0, 1, 11, 63])
    assert set(nine.target_names[nine.target[of_66.target != of_72.target]]) == {"TCL"}


# -- what comes back -----------------------------------------------------------------------------


@pytest.fixture
def nowhere(register, monkeypatch, tmp_path):
    """A registry of small files, none of which is to be found yet."""
    register(BY_HAND)
    hide_copies(monkeypatch, tmp_path)
    return tmp_path


@pytest.fixture
def home(nowhere):
    return write_files(nowhere / "home", BY_HAND, BY_HAND)


@pytest.mark.parametrize(("name", "positive"), [
    ("breast_er", "ER+"), ("colon", "tumour"), ("leukemia", "AML"), ("lymphoma", "cancerous"),
])  # fmt: skip
def test_bunch(home, name, positive):
    bunch = LOADERS[name](data_home=home)
    X, y = LOADERS[name](return_X_y=True, data_home=home)
    assert_array_equal(bunch.data, X)
    assert_array_equal(bunch.target, y)
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    assert y.dtype == np.int64
    assert bunch.frame is None
    assert bunch.target_names.tolist()[1] == positive
    for part in f"The {name} data", "A publisher", "A licence", f"The {name} paper":
        assert bunch.DESCR.count(part) == 1


def test_colon(home):
    colon = load_colon(data_home=home)
    assert_array_equal(colon.data, [[1.5, 20], [3, 4000], [5, 6]])
    assert_array_equal(colon.target, [1, -1, 1])
    assert colon.feature_names == ["X1", "X2"]


@pytest.mark.parametrize(("subset", "rows"), [("all", [0, 1, 2]), ("train", [0, 2]), ("test", [1])])
def test_leukemia_subsets(home, subset, rows):
    leukemia = load_leukemia(subset, data_home=home)
    assert_array_equal(leukemia.data, np.array([[-3, 4], [0, 7], [8, -9]])[rows])
    assert_array_equal(leukemia.target, np.array([-1, 1, 1])[rows])
    assert leukemia.feature_names == ["A_at", "B_at"]


@pytest.mark.parametrize(("missing", "filled"), [
    ("nan", [nan, nan, nan]), ("zero", [0, 0, 0]), ("mean", [0.3125, 0.75, 0.625]),
])  # fmt: skip
def test_lymphoma_missing_values(home, missing, filled):
    one, two, three = filled
    expected = [[0.5, two, -1.25], [one, 1, 0], [0.25, 0.5, three], [-1, 2, 0.75], [1.5, -0.5, 3]]
    lymphoma = load_lymphoma(missing=missing, data_home=home)
    assert_array_equal(lymphoma.data, expected)
    assert lymphoma.feature_names == ["GENE1X", "GENE2X", "GENE3X"]


@pytest.mark.parametrize(("labels", "target", "names"), [
    ("malignant_66", [1, 1, -1, -1, 1], ["normal", "cancerous"]),
    ("malignant_62", [-1, 1, -1, -1, 1], ["normal", "cancerous"]),
    ("malignant_72", [1, 1, 1, -1, 1], ["normal", "cancerous"]),
    ("acl", [1, -1, -1, -1, -1], ["nonACL", "ACL"]),
    ("classes", [1, 2, 4, 3, 0], ["CLL", "DLBCL", "FL", "NIL", "TCL"]),
])  # fmt: skip
def test_lymphoma_labels(home, labels, target, names):
    lymphoma = load_lymphoma(labels, data_home=home)
    assert_array_equal(lymphoma.target, target)
    assert lymphoma.target.dtype == np.int64
    assert lymphoma.target_names.tolist() == names


# -- the two sources of the breast tumours -------------------------------------------------------


def gruvberger_lines():
    values = np.random.RandomState(0).randint(-99, 99, size=(58, 3389)) / 8
    labels = np.arange(58) % 3 == 0
    return [
        ",".join([*map(str, row), str(int(label))])
        for row, label in zip(values, labels, strict=True)
    ]


def test_breast_tumours_of_west(home):
    breast = load_breast_er(data_home=home)
    assert breast.source == "west2001"
    assert_array_equal(breast.data, [[10, -2, 3], [40, 50, 60], [-7, 8, 9]])
    assert_array_equal(breast.target, [1, -1, 1])


@pytest.mark.parametrize("source", ["auto", "gruvberger2001"])
def test_breast_tumours_of_gruvberger_go_first(home, source):
    lines = gruvberger_lines()
    (home / GRUVBERGER).write_text("\n".join(lines) + "\n")
    breast = load_breast_er(source, data_home=home)
    assert breast.source == "gruvberger2001"
    assert breast.data.shape == (58, 3389)
    assert_array_equal(np.c_[breast.data, breast.target == 1], np.loadtxt(lines, delimiter=","))
    assert "Gruvberger" in breast.DESCR
    assert load_breast_er("west2001", data_home=home).source == "west2001"


def test_gruvberger_is_looked_for_everywhere(home, monkeypatch, tmp_path):
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / GRUVBERGER).write_text("\n".join(gruvberger_lines()))
    monkeypatch.setenv("SPARSEMARGIN_DATA", str(tmp_path / "named"))
    assert load_breast_er(data_home=home).source == "gruvberger2001"


def test_no_other_source_stands_in_for_one_asked_for_by_name(home):
    with pytest.raises(FileNotFoundError, match=f"^{GRUVBERGER} is neither in .*west2001'$"):
        load_breast_er("gruvberger2001", data_home=home)
    (home / WEST).unlink()
    (home / GRUVBERGER).write_text("\n".join(gruvberger_lines()))
    with pytest.raises(FileNotFoundError, match=f"^{WEST} not found"):
        load_breast_er("west2001", data_home=home)


@pytest.mark.parametrize(("spoil", "complaint"), [
    (lambda lines: lines[:-1], "holds 57 rows instead of 58"),
    (lambda lines: [], "holds 0 rows instead of 58"),
    (lambda lines: ["gene," * 3389 + "class", *lines], "holds 59 rows instead of 58"),
    (lambda lines: ["gene," * 3389 + "1", *lines[1:]], "could not convert string to float: 'gene'"),
    (lambda lines: [lines[0] + ",1", *lines[1:]], "line 1: expected 3390 columns, found 3391"),
    (lambda lines: [*lines, ""], "line 59: expected 3390 columns, found 0"),
    (lambda lines: [lines[0][:-1] + "2", *lines[1:]], "expected classes '0' and '1', found '2'"),
    (lambda lines: ["nan" + lines[0][lines[0].index(",") :], *lines[1:]], "not finite"),
])  # fmt: skip
def test_a_table_of_another_layout_is_refused(home, spoil, complaint):
    (home / GRUVBERGER).write_text("".join(f"{line}\n" for line in spoil(gruvberger_lines())))
    with pytest.raises(ValueError, match=complaint) as caught:
        load_breast_er(data_home=home)
    assert str(caught.value).startswith(str(home / GRUVBERGER))
    assert str(caught.value).endswith("the docstring of load_breast_er gives the layout")


# -- files that are not what they should be ------------------------------------------------------


@pytest.mark.parametrize("name", LOADERS)
def test_missing_files_are_named_with_the_way_to_get_them(nowhere, name):
    with pytest.raises(FileNotFoundError) as caught:
        LOADERS[name](data_home=nowhere)
    message = str(caught.value)
    assert f"data_home: {nowhere}\n" in message
    assert "get them by hand, no address serves these very bytes:" in message
    assert message.endswith("was taken from A source; A recipe")


@pytest.mark.parametrize(("name", "file"), [
    ("breast_er", WEST), ("colon", COLON), ("leukemia", LEUKEMIA), ("lymphoma", LYMPHOMA),
    ("lymphoma", LYMPHOMA_LABELS),
])  # fmt: skip
@pytest.mark.parametrize("spoil", [lambda content: content[:-1], lambda content: content[::-1]])
def test_a_wrong_copy_is_refused(home, name, file, spoil):
    (home / file).write_bytes(spoil(BY_HAND[file]))
    with pytest.raises(ValueError, match=r"is not the registered file: its? ") as caught:
        LOADERS[name](data_home=home)
    assert str(caught.value).startswith(str(home / file))
    assert str(caught.value).endswith(f"{file} was taken from A source; A recipe")


@pytest.mark.parametrize(("name", "file", "old", "new", "complaint"), [
    ("colon", COLON, "1,t,1.5,20", "1,t,1.5", "line 2: expected 4 columns, found 3"),
    ("colon", COLON, "1,t,1.5", "1,t,x", "could not convert string to float: 'x'"),
    ("colon", COLON, "1,t,1.5", "1,t,inf", "not finite"),
    ("colon", COLON, "1,t", "1,T", "expected classes 'n' and 't', found 'T'"),
    ("colon", COLON, "1,t,1.5,20\n", "", "holds 2 rows instead of 3"),
    ("leukemia", LEUKEMIA, "2,test,AML", "2,test,AMX", "expected classes 'ALL' and 'AML', found"),
    ("leukemia", LEUKEMIA, "2,test", "2,text", "expected classes 'test' and 'train', found 'text'"),
    ("breast_er", WEST, "3,1\n", "3,?\n", r"expected classes '0' and '1', found '\?'"),
    ("lymphoma", LYMPHOMA_LABELS, "2,TCL,", "2,", "line 4: expected 5 columns, found 4"),
    ("lymphoma", LYMPHOMA_LABELS, "2,TCL,nonACL,0,0\n", "", "holds 4 rows instead of 5"),
])  # fmt: skip
def test_malformed_files_are_refused(
    register, monkeypatch, tmp_path, name, file, old, new, complaint
):
    """A registry that describes the malformed file lets it through to the parser."""
    packed = file.endswith(".gz")
    text = (gzip.decompress(BY_HAND[file]) if packed else BY_HAND[file]).decode()
    assert old in text
    spoiled = text.replace(old, new, 1).encode()
    contents = BY_HAND | {file: gzip.compress(spoiled) if packed else spoiled}
    register(contents)
    hide_copies(monkeypatch, tmp_path)
    home = write_files(tmp_path / "home", contents, contents)
    with pytest.raises(ValueError, match=complaint) as caught:
        LOADERS[name](data_home=home)
    assert str(caught.value).startswith(str(home / file))


# -- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "argument", "value"), [
    ("leukemia", "subset", "training"), ("leukemia", "subset", None),
    ("breast_er", "source", "west"), ("lymphoma", "labels", "malignant_67"),
    ("lymphoma", "missing", 0), ("lymphoma", "missing", "median"),
    *((name, "return_X_y", 1) for name in LOADERS),
    *((name, "data_home", "no/such/folder") for name in LOADERS),
])  # fmt: skip
def test_bad_arguments_are_named(home, name, argument, value):
    with pytest.raises(ValueError, match=f"^{argument} must be"):
        LOADERS[name](**{"data_home": home, argument: value})
