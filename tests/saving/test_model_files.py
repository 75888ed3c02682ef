"""Saving a model and loading it restores its complete state."""

import errno
import os
import pickle
import zipfile
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp

from depth import pairwise
from problems.hostile import assert_refused
from problems.models import (
    HYPOTHESES,
    MODELS,
    assert_same,
    fit,
    hypothesis_of,
    make_problem,
    outputs,
)
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    ROMMAClassifier,
    SecondOrderPerceptron,
    fit_svmlight,
    write_readable,
)
from sparsemargin.files.archive import Archive
from sparsemargin.saving.model_files import read_summary, save_model
from sparsemargin.saving.values import OWN_TYPES
from sparsemargin.tasks.load_model import load_model

X2, Y2 = make_problem()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def again(model, path):
    save_model(model, path)
    return load_model(path)


@pytest.mark.parametrize(
    ("name", "hypothesis", "dtype", "n_classes", "way"),
    pairwise(list(MODELS), HYPOTHESES, ["f4", "f8"], [2, 3], ["fit", "partial_fit", "warm start"]),
)
def test_loaded_model_predicts_and_trains_bitwise_equally(
    name, hypothesis, dtype, n_classes, way, path
):
    X, y = make_problem(n_classes=n_classes, dtype=dtype)
    warm = {"warm_start": True, "max_iter": 2, "fit_intercept": False} if "warm" in way else {}
    hypothesis = hypothesis_of(MODELS[name], hypothesis)
    model = MODELS[name](hypothesis=hypothesis, random_state=0, **warm)
    if way == "partial_fit":
        model.partial_fit(X[:50], y[:50], classes=np.arange(n_classes))
    else:
        fit(model, X[:50], y[:50])
    loaded = again(model, path)
    assert_same(loaded, model)
    assert outputs(loaded, X) == outputs(model, X)
    first = path.read_bytes()
    save_model(loaded, path)
    assert path.read_bytes() == first
    for each in model, loaded:
        fit(each, X[:50], y[:50]) if warm else each.partial_fit(X[50:], y[50:])
    assert_same(loaded, model)
    assert outputs(loaded, X) == outputs(model, X)


def test_stored_type_names_are_stable():
    spaces = {"LinearSpace", "JointSpace", "KernelSpace", "DualSpaces", "FeatureSpaces"}
    assert OWN_TYPES.keys() >= {*spaces, "FirstOrderRule", "FitResult", "SoftMargin", "RandomState"}


@pytest.mark.parametrize(
    ("estimator", "n_classes"), [(ROMMAClassifier, 3), (MaxMarginClassifier, 2)]
)
def test_certificates_multipliers_and_slack_are_restored(estimator, n_classes, path):
    X, y = make_problem(n_classes=n_classes)
    soft = {"hypothesis": "last", "soft_margin": 1.0, "tol": 0.3, "random_state": 0}
    model = estimator(**soft, warm_start=True, max_iter=4)
    loaded = again(fit(model, X, y), path)
    assert len(loaded.history_["n_iter"]) > 1
    assert_same(loaded, model)
    assert_same(fit(loaded, X, y), fit(model, X, y))
    assert loaded.margin_ is not None


CLASSES = {
    "int8": np.array([-5, 0, 7], dtype=np.int8),
    "float": np.array([-1.0, 2.0, 3.0]),
    "bool": np.array([False, True]),
    "text": np.array(["ham", "spam", "süß"]),
    "text objects": np.array([" ", "ham", "\ud800 spam"], dtype=object),
    "bytes": np.array([b"a", b"bc"]),
    "big-endian text": np.array(["ham", "spam"], dtype=">U4"),
}


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_classes_of_any_type_are_restored(classes, path):
    X, y = make_problem(n_classes=len(classes))
    model = PNormPerceptron(random_state=0).partial_fit(X, classes[y], classes=classes)
    loaded = again(model, path)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.classes_.dtype == model.classes_.dtype.newbyteorder("=")
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


def with_pending_sums():
    X, y = make_problem(400)
    model = PNormPerceptron(p=32.0, random_state=0).partial_fit(X, y, classes=[0, 1])
    assert model.space.per_vector("flushes").max() > 0
    return model


def beyond_all_floats():
    model = CRAMMAClassifier(beta=1e200, radius=1e200, delta=0.0, eta0=1e150)
    assert fit(model, X2, Y2).fitted.rule.__getstate__()["margin"] == np.inf
    return model


def with_names():
    model = PNormPerceptron().fit(X2, Y2).sparsify()
    model.feature_names_in_ = np.array([f"wörd {i}" for i in range(25)], dtype=object)
    return model


def drawing():
    random = np.random.RandomState(3)
    random.standard_normal(7)  # After an odd number of draws, the generator holds the next one.
    return with_parameters(random_state=random)


def with_parameters(**params):
    return ALMAClassifier(random_state=0).fit(X2, Y2).set_params(**params)


def with_a_negative_zero():
    model = ALMAClassifier().fit(sp.hstack([X2, sp.csr_matrix((80, 1000))], format="csr"), Y2)
    model.space.t[np.flatnonzero(model.space.t == 0)[0]] = -0.0
    return model


BY_NUMPY = {0.0: np.float32(2.0), np.int64(1): 1.0}
WORDS = np.array(["ham", "spam"])[Y2]
BY_WORD = {"ham": 2.0, "a\tb": 1.0, "spam": 0.5}
UNUSUAL = {
    "weights of ints": lambda: with_parameters(class_weight={0: 2.0, 1: 1}, p="log"),
    "weights of numpy": lambda: with_parameters(class_weight=BY_NUMPY, max_iter=np.int32(3)),
    "balanced weights": lambda: with_parameters(class_weight="balanced", shuffle=np.True_),
    "weights of words": lambda: ALMAClassifier(class_weight=BY_WORD).fit(X2, WORDS),
    "random state": drawing,
    "infinite threshold": beyond_all_floats,
    "pending sums": with_pending_sums,
    "names and sparse coefficients": with_names,
    "a negative zero": with_a_negative_zero,
}


@pytest.mark.parametrize("make", UNUSUAL.values(), ids=UNUSUAL)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rare_attributes_are_restored(make, path):
    model = make()
    loaded = again(model, path)
    assert_same(loaded, model)
    assert sp.issparse(loaded.coef_) == sp.issparse(model.coef_)
    X, y = make_problem(400, n=model.n_features_in_, seed=1)
    for each in model, loaded:
        each.partial_fit(X, each.classes_[y])
    assert_same(loaded, model)


@pytest.mark.parametrize("model", [ALMAClassifier(), PNormPerceptron(p=4), HigherOrderPerceptron()])
def test_sparse_weights_take_little_space(model, path):
    wide = sp.hstack([X2, sp.csr_matrix((80, 100_000))], format="csr")
    loaded = again(model.fit(wide, Y2), path)
    assert_same(loaded, model)
    assert path.stat().st_size < 40_000
    narrow = again(ALMAClassifier().fit(X2, Y2), path)
    with np.load(path, allow_pickle=False) as contents:
        assert contents["space.t"].tobytes() == narrow.space.t.tobytes()


@pytest.mark.parametrize(
    ("model", "n_classes"), [(PNormPerceptron(hypothesis="vote"), 3), (SecondOrderPerceptron(), 2)]
)
def test_summary_describes_the_model(model, n_classes, path):
    X, y = make_problem(n_classes=n_classes)
    save_model(model.fit(X, np.array(["a", "b", "c"])[y]), path)
    summary = read_summary(path)
    assert summary.pop("library")
    assert summary == {
        "class": type(model).__name__, "settings": model.get_params(),
        "classes": ["a", "b", "c"][:n_classes], "many_labels": False, "n_features": 25,
        "n_iter": model.n_iter_, "n_trials": 80 * model.max_iter,
        "n_corrections": np.asarray(model.n_corrections_).tolist(),
    }  # fmt: skip


class Sub(ALMAClassifier):
    pass


UNSAVED = [
    (ALMAClassifier(), "This ALMAClassifier is not fitted"),
    (Sub(), r"holds a classifier of sparsemargin, got .*test_model_files\.Sub"),
    (None, "holds a classifier of sparsemargin, got builtins.NoneType"),
    ("note", "by me", "attribute .note., which a model file can.t hold"),
    ("class_weight", {0: 1.0, frozenset({1}): 2.0}, "is of type builtins.frozenset"),
    ("class_weight", {0: 1.0, (1, np.longdouble(1)): 2.0}, "is an array of type"),
    ("random_state", np.random.RandomState(np.random.PCG64(0)), "with the generator PCG64"),
    ("alpha", 7.0, "The 'alpha' parameter of ALMAClassifier must be"),
]


@pytest.mark.parametrize("case", UNSAVED)
def test_unsupported_contents_are_named(case, path):
    path.write_bytes(b"before")
    *what, message = case
    model = what[0]
    if len(what) > 1:
        setattr(model := ALMAClassifier().fit(X2, Y2), *what)
    with pytest.raises(ValueError, match=message):
        save_model(model, path)
    assert path.read_bytes() == b"before"


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"there is no folder {tmp_path}/no. Make it first"):
        save_model(ALMAClassifier().fit(X2, Y2), tmp_path / "no" / "a.model")


def test_other_files_are_rejected_as_models(path):
    np.savez(path.with_suffix(".npz"), model=np.zeros(3))
    others = [b"", b"+1 1:0.5\n" * 40, pickle.dumps(ALMAClassifier()), b"PK\x03\x04"]
    for contents in *others, path.with_suffix(".npz").read_bytes():
        path.write_bytes(contents)
        assert_refused(path, "This is not a model file")


def test_system_errors_are_not_reported_as_damage(tmp_path, monkeypatch):
    model, path, pipe = ALMAClassifier().fit(X2, Y2), tmp_path / "a.model", tmp_path / "pipe"
    save_model(model, path)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.model"):
        load_model(tmp_path / "nowhere.model")
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        load_model(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"nowhere/a\.model"):
        save_model(model, tmp_path / "nowhere" / "a.model")
    os.mkfifo(pipe)
    text = tmp_path / "text.svm"
    text.write_text("1 1:1\n-1 2:1\n")
    for write in save_model, lambda model, path: write_readable(path, model):
        with pytest.raises(OSError, match="pipe is not a regular file"):
            write(model, pipe)
    assert sorted(os.listdir(tmp_path)) == ["a.model", "pipe", "text.svm"]
    for read in load_model, lambda pipe: fit_svmlight(text, cache=pipe):
        with pytest.raises(ValueError, match=r"pipe.* is (not a model file|not a regular file)"):
            read(pipe)
    monkeypatch.setattr(Archive, "copy", Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        load_model(path)
    error = OSError(errno.EIO, "Input/output error")
    monkeypatch.setattr(zipfile, "ZipFile", Mock(side_effect=error))
    with pytest.raises(OSError, match="Input/output error"):
        load_model(path)
