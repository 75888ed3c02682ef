"""Model files with valid checksums and invalid contents are refused and never cause a crash."""

import copy
import os
import subprocess
import sys
import tracemalloc
from functools import cache
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from depth import some
from problems.command_line import run
from problems.hostile import assert_refused, at, contents_of, opened, rewritten
from problems.models import fit, make_problem, widened
from sparsemargin import (
    ALMAClassifier,
    HigherOrderPerceptron,
    MaxMarginClassifier,
    Rejector,
    SecondOrderPerceptron,
    fit_csr,
)
from sparsemargin._engine.first_order import vector_blocks
from sparsemargin._engine.first_order.vector_blocks import VectorBlocks
from sparsemargin.kernels import RBF, Polynomial
from sparsemargin.models import ALGORITHMS
from sparsemargin.saving.model_files import read_summary, save_model
from sparsemargin.tasks.load_model import load_model


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


X, Y = make_problem(n_classes=3)


# Places in the document, and models. Each entry of `CHANGES` names a model, a place in the document
# or an array, the new value, and the expected message.
LINEAR = ("state", "space", "LinearSpace")
TOGETHER = ("state", "space", "JointSpace")
SPACE = ("state", "space", "FeatureSpaces", "spaces", 0, "dict")
SETTINGS = (*SPACE, "settings", "dict")
RANDOM = ("parameters", "random_state", "RandomState")
POOL = ("state", "space", "KernelSpace")
KERNEL = (*POOL, "kernel", "dict")
# Without an intercept a model has as many coordinates as features.
PLAIN = {"fit_intercept": False, "random_state": 0}
average = ALMAClassifier(**PLAIN)
vote = ALMAClassifier(hypothesis="vote", **PLAIN)
joint = ALMAClassifier(multi_class="joint", **PLAIN)
ho = HigherOrderPerceptron(p=3, solver="implicit", **PLAIN)
so = SecondOrderPerceptron(solver="implicit", **PLAIN)
dual = SecondOrderPerceptron(kernel=RBF(0.5), random_state=0)
primal = SecondOrderPerceptron(solver="primal", **PLAIN)
drawing = ALMAClassifier(random_state=np.random.RandomState(0))
poly = ALMAClassifier(kernel=Polynomial(gamma=0.5, coef0=1.0), random_state=0)
wide = clone(poly)
rbf_vote = ALMAClassifier(kernel="rbf", hypothesis="vote", random_state=0)
given = ALMAClassifier(kernel="precomputed", random_state=0)
rejector = Rejector(average, max_error=0.9)


def learned(model):
    rows = X[:50]
    if model is wide:
        rows = widened(rows)
    elif model is given:
        rows = (rows @ rows.T).toarray()
    return fit(model, rows, Y[:50])


def put(place, value):
    """Return a function that copies an array and changes the entry at `place`."""

    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


def cut(array):
    return array[1:]


CHANGES = [
    (average, (*LINEAR, "n_vectors"), 4, "is not an array of float32|is not an array of float64"),
    (average, (*LINEAR, "n_coordinates"), 26, "'t' is not an array"),
    (average, (*LINEAR, "n_coordinates"), 2**62, "'n_coordinates' is not a whole number"),
    (average, (*LINEAR, "p"), 3.0, "it has no 'g'|'g' is not an array"),
    (average, (*LINEAR, "p"), 1.0, "'p' is not a number from 2 to 64"),
    (average, (*LINEAR, "trials"), 2**63, "'trials' is not a whole number"),
    (average, (*LINEAR, "averaged"), False, "'acc' is not of a model like this"),
    (average, (*LINEAR, "averaged"), 1, "'averaged' is not True or False"),
    (average, (*LINEAR, "log"), {"dict": {}}, "it has no 'columns'"),
    (average, "space.t", cut, "'t' is not an array"),
    (average, "space.t", lambda t: t.astype("i8"), "'t' is not of a type"),
    (average, "space.acc", lambda acc: acc.astype("f4"), "'acc' is not an array of float64"),
    (average, "space.synced", put(0, 1), "'synced' holds 1, more flushes than there were"),
    (average, "progress.outputs", put(0, np.nan), "'outputs' holds nan"),
    (average, "class_weight", lambda weight: weight[:, :2], "'class_weight' is not an array"),
    (average, "classes", lambda classes: classes[:2], "'space' is not of 1 vectors"),
    (average, "classes", put(0, 2), "'classes' do not rise"),
    (average, "classes", lambda c: c.astype("u1").view(bool), "'classes' holds what is no bool"),
    (average, "classes", lambda c: (c + 0x10FFFE).astype("u4").view("U1"), "holds what is no <U1"),
    (average, ("state", "rule"), None, "'rule' is of another type"),
    (average, ("state", "rule", "FirstOrderRule", "kind"), 6, "'kind' is not a whole number"),
    (average, ("state", "rule", "FirstOrderRule", "scaling"), -1, "'scaling' is not a whole"),
    (average, ("state", "space"), {"SoftMargin": {}}, "has no 'objective'"),
    (average, ("state", "space"), {"os.system": "echo"}, "there is no type 'os.system'"),
    (average, ("state", "slice_seed"), -1, "'slice_seed' is not a whole number"),
    (average, ("state", "structure", "dict", "hypothesis"), "vote", "has another hypothesis"),
    (average, ("class",), "SecondOrderPerceptron", "'space' is none of SecondOrderPerceptron"),
    (average, ("class",), "OneClassSVM", "there is no classifier 'OneClassSVM'"),
    (vote, "space.log.row", put(0, 50), "'row' holds 50"),
    (vote, "space.log.row", put(0, -1), "'row' holds -1"),
    (vote, "space.log.vector", put(0, 3), "'vector' holds 3"),
    (vote, "space.log.columns", put(0, 25), "'columns' holds 25"),
    (vote, "space.log.start", put(0, -1), "'start' holds -1"),
    (vote, "space.log.values", cut, "'values' is not an array"),
    # Only arrays that models save sparsely may be sparse. Here the zeros would take memory.
    (vote, (*LINEAR, "log", "dict", "values"), {"sparse": ["a", "b", 9]}, "no type 'sparse'"),
    (vote, "space.log.unit", cut, "'unit' is not an array"),
    (vote, "space.log.row_start", put(1, 2**40), "'row_start' falls"),
    (vote, "space.log.row_start", put(-1, 7), "'row_start' does not lead from 0"),
    (vote, "space.log.row_start", put(0, 1), "'row_start' does not lead from 0"),
    (vote, "space.log.row_start", lambda start: start[:0], "'row_start' does not lead from 0"),
    (joint, (*TOGETHER, "n_classes"), 2, "'n_classes' is not a whole number from 3"),
    (joint, (*TOGETHER, "n_classes"), 4, "'n_coordinates' are not as many for each class"),
    (joint, (*TOGETHER, "n_classes"), 5, "'space' is not of 3 vectors"),
    (joint, (*TOGETHER, "n_vectors"), 3, "is not an array of float32|is not an array of float64"),
    (joint, (*TOGETHER, "bias"), 1.0, "it is not of a joint machine"),
    (joint, (*TOGETHER, "slack"), 1.0, "it is not of a joint machine"),
    (joint, (*TOGETHER, "rho"), -1.0, "'rho' is not a number"),
    (joint, "space.t", cut, "'t' is not an array"),
    (joint, ("class",), "MarginPerceptron", "'space' is none of MarginPerceptron"),
    (ho, (*SETTINGS, "n_features"), 26, "'met' is not an array"),
    (ho, (*SETTINGS, "bias"), 1.0, "its spaces are not alike|'met' is not an array"),
    (ho, (*SETTINGS, "p"), 1e300, "its settings are out of range|not alike"),
    (ho, (*SETTINGS, "room"), 2**62, "'room' is not a whole number"),
    (ho, (*SETTINGS, "primal_room"), 2**31, "'primal_room' is not a whole number"),
    (ho, (*SETTINGS, "c"), "x", "its settings are no settings|not alike"),
    (ho, (*SPACE, "n_met"), 27, "'n_met' is not a whole number"),
    (ho, (*SPACE, "n_met"), 25, "has not the numbers up to 24"),
    (ho, (*SPACE, "begin"), 2**40, "'begin' is not a whole number"),
    (ho, (*SPACE, "corrections"), 1, "'updates' is not a whole number from 0 to 1"),
    (ho, (*SPACE, "primal"), True, "'primal' is not what 'solver' says"),
    (ho, "space.spaces.0.met", put(3, 26), "'met' has not the numbers up to 25, each once"),
    (ho, "space.spaces.0.met", put(3, -1), "'met' has not the numbers"),
    (ho, "space.spaces.0.met", put([3, 4], 5), "'met' has not the numbers"),
    (ho, "space.spaces.0.rows.columns", put(0, 26), "'columns' holds 26"),
    (ho, "space.spaces.0.rows.columns", put(0, -(2**31)), "'columns' holds -2147483648"),
    (ho, "space.spaces.0.rows.start", put(1, 10**6), "'start' falls"),
    (ho, "space.spaces.0.rows.values", cut, "'values' is not an array"),
    (ho, "space.spaces.0.links", cut, "'links' is not an array"),
    (ho, "space.spaces.0.rates", cut, "'rates' is not an array"),
    (ho, "space.spaces.0.u", lambda u: np.concatenate([u, u]), "'u' is too long"),
    (ho, "space.spaces.0.w", cut, "'w' is not an array"),
    (ho, "space.spaces.0.v", lambda v: v.astype("f4"), "'v' is not an array"),
    (ho, "space.spaces.0.matrix", lambda _: np.zeros((2, 2)), "'matrix' is not an array"),
    (ho, "space.spaces.0.mistakes", cut, "'mistakes' is not an array"),
    (ho, ("state", "space", "FeatureSpaces", "kind"), "SecondOrderSpace", "are no settings"),
    (ho, ("state", "space", "FeatureSpaces", "kind"), "os", "there is no space 'os'"),
    (ho, ("state", "space", "FeatureSpaces", "spaces"), [], "it has no spaces"),
    (so, "space.spaces.0.factor", cut, "'factor' is not an array"),
    (so, "space.spaces.0.forward", cut, "'forward' is not an array"),
    (so, "space.spaces.0.total", cut, "'total' is not an array"),
    (dual, "space.spaces.0.slots", lambda p: np.repeat(p[:1], len(p)), "hold a row twice"),
    (primal, (*SPACE, "primal"), False, "'primal' is not what 'solver' says"),
    (primal, "space.spaces.0.matrix", cut, "'matrix' is not an array"),
    (drawing, (*RANDOM, "pos"), 625, "'pos' is not a whole number from 0 to 624"),
    (average, ("parameters", "n_jobs"), np.nan, r"was written by sparsemargin .* 'n_jobs'"),
    (average, ("state", "form"), "rows", "'form' is no form of labels"),
    (average, ("state", "form"), ["lists"], "'form' is no form of labels"),
    (average, ("state", "form"), {"array": "class_weight"}, "uses it twice"),
    (ho, ("state", "form"), "lists", "'space' is of rows with one class each"),
    (average, ("parameters", "colour"), "red", r"was written by sparsemargin .* 'colour'"),
    (average, ("state", "n_iter"), -1.0, "'n_iter' is not a number"),
    (average, ("state", "typical_weight"), 0.0, "'typical_weight' is not a number"),
    (average, ("state", "constants"), [], "'constants' is of another type"),
    (average, ("state", "trials_per_epoch"), -1, "'trials_per_epoch' is not a whole number"),
    (average, ("state", "result"), "none", "'result' is of another type"),
    (average, ("state", "last_rows"), {"tuple": [1, 2]}, "'last_rows' is of another type"),
    (average, ("state", "reading"), {"dict": {}}, "it has no 'zero_based'"),
    (average, ("state", "feature_names"), 3, "'feature_names' is not an array"),
    (poly, (*POOL, "n_features"), 24, "'n_features_in_' is not|'matrix' is not an array"),
    (poly, (*POOL, "n_vectors"), 4, "is not an array|not of 3 vectors"),
    (poly, (*POOL, "max_support"), 0, "'max_support' is not a whole number"),
    (poly, (*POOL, "rows_taken"), -1, "'rows_taken' is not a whole number"),
    (poly, (*KERNEL, "kind"), "os", "there is no kernel 'os'"),
    (poly, (*KERNEL, "kind"), "CallableKernel", "it has no 'function'"),
    (poly, (*KERNEL, "kind"), "PrecomputedKernel", "'matrix' is not an array of int64"),
    (poly, (*KERNEL, "degree"), 0, "'degree' is not a whole number"),
    (poly, (*KERNEL, "degree"), 2**31, "'degree' is not a whole number"),
    (poly, (*KERNEL, "gamma"), 0.0, "'gamma' is not a number"),
    (poly, (*KERNEL, "gamma"), np.inf, "'gamma' is not a number"),
    (poly, (*KERNEL, "coef0"), 0.0, "'matrix' is not an array"),
    (poly, (*KERNEL, "coef0"), np.nan, "'coef0' is not a number"),
    (poly, (*KERNEL, "dense"), False, "it has no 'indices'"),
    (poly, ("parameters", "kernel", "Polynomial", "degree"), 0, "'degree' parameter of Polynomial"),
    (poly, ("parameters", "kernel", "Polynomial"), {}, "its kernel has other parameters"),
    (wide, (*KERNEL, "dense"), True, "it has no 'matrix'"),
    (poly, "space.support.matrix", cut, "'matrix' is not an array"),
    (poly, "space.support.matrix", lambda m: m.astype("i8"), "'matrix' is not of a type"),
    (poly, "space.support.lengths", cut, "is not an array"),
    (poly, "space.support.lengths", put(0, np.nan), "'lengths' are out of range"),
    (poly, "space.support.squares", put(0, -1.0), "'squares' are out of range"),
    (wide, "space.support.indices", put(0, 3025), "'indices' holds 3025"),
    (wide, "space.support.indices", put(0, -1), "'indices' holds -1"),
    (wide, "space.support.indices", lambda i: i.astype("i4"), "'indices' is not an array"),
    (wide, "space.support.data", cut, "'data' is not an array"),
    (wide, "space.support.ends", put(0, 10**6), "'ends' falls"),
    (wide, "space.support.ends", put(-1, 7), "'ends' does not lead from 0"),
    (poly, "space.t", lambda t: t[:, 1:], "'t' is not an array"),
    (poly, "space.t", lambda t: t.astype("f4"), "'t' is not an array"),
    (poly, "space.acc", lambda acc: acc[:, :0], "'acc' is not an array"),
    (poly, "space.origin", cut, "'origin' is not an array"),
    (poly, "space.passed_over", put(0, -1), "'passed_over' holds -1"),
    (poly, "space.vectors.corrections", put(0, 2**62), "'corrections' holds"),
    (rbf_vote, "space.log.row", put(0, 10**6), "'row' holds"),
    (rbf_vote, "space.log.row", put(0, -1), "'row' holds -1"),
    (rbf_vote, "space.log.vector", put(0, 3), "'vector' holds 3"),
    (rbf_vote, (*POOL, "log"), None, "has another hypothesis"),
    (given, "space.support.matrix", put(0, 80), "'matrix' holds 80"),
    (given, "space.support.matrix", put(0, -1), "'matrix' holds -1"),
    (poly, ("class",), "SecondOrderPerceptron", "'space' is none of SecondOrder"),
    (rejector, ("wrappers",), {"dict": {}}, "'wrappers' is of another type"),
    (rejector, ("wrappers",), [None], "a NoneType is where names should be"),
    (rejector, ("wrappers", 0, "class"), 3, "'class' is of another type"),
    (rejector, ("wrappers", 0, "values"), [], "'values' is of another type"),
    (rejector, ("wrappers", 0, "values"), {"Rejector": {}}, "there is no type 'Rejector'"),
]


@cache
def sound(learned_by):
    return contents_of(learned(learned_by))


def test_rewritten_contents_give_the_same_model(path):
    """Arrays in the other byte order are also accepted."""
    save_model(learned(average), path)
    before = path.read_bytes()
    document, arrays = sound(average)
    rewritten(path, document, arrays)
    assert path.read_bytes() == before
    turned = {name: array.astype(array.dtype.newbyteorder()) for name, array in arrays.items()}
    rewritten(path, document, turned)
    save_model(load_model(path), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("model", "place", "change", "message"), CHANGES)
def test_invalid_contents_are_rejected_by_name(model, place, change, message, path):
    document, arrays = copy.deepcopy(sound(model))
    if isinstance(place, str):
        arrays[place] = change(arrays[place])
    else:
        at(document, place[:-1])[place[-1]] = change
    rewritten(path, document, arrays)
    # Arrays that are no longer used in the document are ignored.
    for load in load_model, read_summary:
        with pytest.raises(ValueError, match=f"^{path}.*({message})"):
            load(path)


def test_other_formats_classes_and_label_forms_are_rejected(path):
    document, arrays = sound(average)
    for changes, message in (
        ({"version": 7, "library": "3.1"}, "format 7, of sparsemargin 3.1; .* format 1. Update"),
        ({"class": "x" * 10**6}, "there is no classifier 'x{3,1000}(?!x)"),
    ):
        rewritten(path, document | changes, arrays)
        assert_refused(path, message)
    document, arrays = contents_of(ALMAClassifier().fit(X, np.eye(3, dtype=int)[Y][:, :2]))
    document["state"]["form"] = None
    rewritten(path, document, arrays)
    assert_refused(path, "'space' is not of 1 vectors")


def test_model_that_states_more_weights_than_memory_is_named(path):
    document, arrays = copy.deepcopy(sound(average))
    at(document, LINEAR)["n_coordinates"] = 2**54
    rewritten(path, document, arrays)
    assert "not enough memory" in run("inspect", path, code=1).stderr.replace("\n", " ")
    with pytest.raises(MemoryError) as caught:
        load_model(path)
    assert caught.value.__notes__ == [f"This happened while {path} was loaded."]


def test_sparse_arrays_are_checked(path):
    wide_rows = make_problem(n=3000)[0]
    document, arrays = contents_of(ALMAClassifier(**PLAIN).fit(wide_rows[:3], [0, 1, 1]))
    for name, change, message in (
        ("indices", put(0, -1), "'indices' holds -1"),
        ("indices", put(0, 3001), "'indices' holds 3001"),
        ("indices", lambda indices: indices.astype("i8"), "'indices' is not an array of int32"),
        ("indices", cut, "'values' is not an array of float64 of shape"),
        ("values", cut, "'values' is not an array of float64 of shape"),
        ("values", lambda values: values.astype("f4"), "'.*' is not an array of float32"),
        ("values", lambda values: values.astype("i8"), "'t' is not of a type"),
    ):
        array = f"space.t.{name}"
        rewritten(path, document, {**arrays, array: change(arrays[array])})
        assert_refused(path, message)


LOADING = """
import sys
from sparsemargin.saving.model_files import load_learner
def peak():
    # What getrusage tells begins with the parent's.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
for path in sys.argv[1:]:
    before = peak()
    load_learner(path)
    print((peak() - before) << 10)
"""


def far_apart(n_rows, n_features):
    """Return rows with one feature each, spread over all columns."""
    columns = np.arange(n_rows) * (n_features // n_rows)
    return sp.csr_matrix((np.ones(n_rows), columns, np.arange(n_rows + 1)), (n_rows, n_features))


def wide_model(n_labels, n_features):
    return fit_csr(far_apart(n_labels, n_features), np.arange(n_labels), "perceptron")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told in another way here")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizers take memory, too")
def test_small_file_of_a_wide_model_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_blocks, "DENSE_BYTES", 1 << 40)
    paths = [tmp_path / name for name in ("wide", "padded", "in blocks")]
    try:
        padded = ALMAClassifier(hypothesis="last")
        padded.partial_fit(far_apart(8, 10**6), np.arange(8), classes=np.arange(65))
        models = [wide_model(2, 5 * 10**7), padded]
        monkeypatch.undo()
        models.append(wide_model(17, 10**7))
    except MemoryError:
        pytest.skip("This system lends no memory before it is written to.")
    assert [isinstance(model.space, VectorBlocks) for model in models] == [False, False, True]
    for model, path in zip(models, paths, strict=True):
        save_model(model, path)
        assert path.stat().st_size < 42_000
    run = subprocess.run([sys.executable, "-c", LOADING, *paths], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    # Each nonzero feature takes one page of memory in each array, and a page may have 2 MB.
    assert all(int(taken) < 100 << 20 for taken in run.stdout.split()), run.stdout


def test_inspect_does_not_copy_wide_weights(path):
    n_features = 10**6
    save_model(wide_model(2, n_features), path)
    tracemalloc.start()
    try:
        run("inspect", path)
        # Memory is needed for the two vectors of the model, the weights computed from them, and a
        # mask of finite weights.
        assert tracemalloc.get_traced_memory()[1] < 4 * 8 * n_features
    finally:
        tracemalloc.stop()


AGAIN = {"warm_start": True, "max_iter": 2, "random_state": 0}
SOFT = {"hypothesis": "last", "soft_margin": 1.0, **AGAIN}
WITH_SLOTS = [
    ALMAClassifier(kernel="rbf", **AGAIN),
    HigherOrderPerceptron(kernel="rbf", solver="dual", **AGAIN),
]


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        *product(
            [ALMAClassifier(**SOFT), MaxMarginClassifier(**SOFT)], [cut], ["'row_state' is not"]
        ),
        *product(WITH_SLOTS, [cut, lambda kept: kept.astype("i4")], ["'slots' is not an array"]),
        *product(WITH_SLOTS, [put(0, 80), put(0, -2)], ["'slots' holds"]),
    ],
)
def test_kept_row_states_are_checked_on_repeated_rows(model, change, message, path):
    document, arrays = contents_of(learned(model))
    rewritten(path, document, {**arrays, "last_rows.1.0": change(arrays["last_rows.1.0"])})
    with pytest.raises(ValueError, match=message):
        learned(load_model(path))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "algo", some(["arow", "pnorm", "so"], [name for name in ALGORITHMS if name != "maxmargin"])
)
def test_commands_report_invalid_model_states(algo, path, tmp_path):
    """Each attribute is replaced by other values, which are refused or harmless."""
    text = tmp_path / "few.svm"
    text.write_text("1 1:1 3:1\n-1 2:1\n1 1:1 4:1\n" * 5)
    run("train", text, "-o", path, "--algo", algo, "-q", "--n-features", 4)
    document, arrays = opened(path)
    junk = some([2.5, "x", {"dict": {"hash_bits": 3}}], [None, True, -1, [], {"tuple": [1, 2]}])
    commands = (
        ("inspect", path),
        ("predict", path, text),
        ("train", text, "-o", path, "--init", path),
    )
    for name, value in product(document["state"], junk):
        for command in commands:
            rewritten(path, document | {"state": document["state"] | {name: value}}, arrays)
            told = run(*command, code=None)
            assert "inside sparsemargin" not in told.stderr, (name, value, told.stderr)
