"""Models in files: all of a model comes back, and damaged files and failed writes do no harm."""

import errno
import io
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import Perceptron

from problems.hostile import loaded_or_refused, opened, rewritten
from problems.models import HYPOTHESES, MODELS, assert_same, fit, make_problem, outputs
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    SecondOrderPerceptron,
    fit_svmlight,
    write_readable,
)
from sparsemargin.io import files
from sparsemargin.io._values import OWN_TYPES
from sparsemargin.io.model_files import load_model, read_summary, save_model


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def through_a_file(model, path):
    save_model(model, path)
    return load_model(path)


# -- what comes back ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_a_loaded_model_is_the_saved_one_and_learns_on_to_the_bit(
    name, hypothesis, dtype, n_classes, way, path
):
    X, y = make_problem(n_classes=n_classes, dtype=dtype)
    model = MODELS[name](hypothesis=hypothesis, random_state=0)
    if way == "fit":
        fit(model, X[:50], y[:50])
    else:
        model.partial_fit(X[:50], y[:50], classes=np.arange(n_classes))
    loaded = through_a_file(model, path)
    assert_same(loaded, model)
    assert outputs(loaded, X) == outputs(model, X)
    first = path.read_bytes()
    save_model(loaded, path)
    assert path.read_bytes() == first
    for each in model, loaded:
        each.partial_fit(X[50:], y[50:])
    assert_same(loaded, model)
    assert outputs(loaded, X) == outputs(model, X)


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_warm_start_goes_on_from_a_file(name, hypothesis, n_classes, path):
    X, y = make_problem(n_classes=n_classes)
    model = MODELS[name](
        hypothesis=hypothesis, fit_intercept=False, random_state=0, warm_start=True, max_iter=2
    )
    loaded = through_a_file(fit(model, X, y), path)
    assert_same(fit(loaded, X, y), fit(model, X, y))


def test_a_model_from_before_there_was_a_parameter_goes_on(path, tmp_path):
    X, y = make_problem(n_classes=3)
    model = PNormPerceptron(warm_start=True, max_iter=2, random_state=0).fit(X, y)
    del model._structure["multi_class"]
    loaded = through_a_file(model, path)
    text = tmp_path / "rows.svm"
    dump_svmlight_file(X, y, str(text), zero_based=False)
    fit_svmlight(text, init_model=loaded)
    np.testing.assert_array_equal(loaded.fit(X, y).coef_, clone(model).fit(X, y).fit(X, y).coef_)
    with pytest.raises(ValueError, match="can't go on with another multi_class"):
        loaded.set_params(multi_class="joint").fit(X, y)


def test_files_written_before_types_had_other_names_are_read():
    assert OWN_TYPES.keys() >= {
        "LinearSpace", "JointSpace", "KernelSpace", "DualSpaces", "LabelSpaces", "FirstOrderRule",
        "Outcome", "SoftMargin", "RandomState",
    }  # fmt: skip


@pytest.mark.parametrize("estimator", [ALMAClassifier, MaxMarginClassifier])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_certificates_multipliers_and_slack_come_back(estimator, n_classes, path):
    X, y = make_problem(n_classes=n_classes)
    model = estimator(
        hypothesis="last", soft_margin=1.0, keep_history=True, tol=0.3, warm_start=True,
        max_iter=4, random_state=0,
    )  # fmt: skip
    loaded = through_a_file(fit(model, X, y), path)
    assert len(loaded.history_["n_iter"]) == len(model.history_["n_iter"]) > 1
    assert_same(loaded.history_, model.history_)
    assert_same(loaded.margin_, model.margin_)
    assert_same(loaded.objective_, model.objective_)
    assert_same(fit(loaded, X, y), fit(model, X, y))
    assert loaded.margin_ is not None


def test_sums_that_are_pending_come_back(path):
    X, y = make_problem(400)
    model = PNormPerceptron(p=32.0, random_state=0).partial_fit(X, y, classes=[0, 1])
    assert model._space.per_label("flushes").max() > 0
    loaded = through_a_file(model, path)
    for each in model, loaded:
        each.partial_fit(X, 1 - y)
    assert_same(loaded, model)


CLASSES = {
    "int": np.array([-5, 7]),
    "int8": np.array([-5, 0, 7], dtype=np.int8),
    "float": np.array([-1.0, 2.0, 3.0]),
    "bool": np.array([False, True]),
    "text": np.array(["ham", "spam", "süß"]),
    "text objects": np.array(["", "ham", "\ud800 spam"], dtype=object),
    "bytes": np.array([b"a", b"bc"]),
    "big-endian text": np.array(["ham", "spam"], dtype=">U4"),
}


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_classes_of_any_type_come_back(classes, path):
    X, y = make_problem(n_classes=len(classes))
    model = PNormPerceptron(random_state=0).partial_fit(X, classes[y], classes=classes)
    loaded = through_a_file(model, path)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.classes_.dtype == model.classes_.dtype.newbyteorder("=")
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    "params",
    [
        {"class_weight": {0: 2.0, 1: 1}},
        {"class_weight": {0.0: np.float32(2.0), np.int64(1): 1.0}},
        {"class_weight": "balanced"},
        {"alpha": np.float64(0.7), "max_iter": np.int32(3)},
        {"p": "log", "shuffle": np.True_},
    ],
)
def test_parameters_come_back_with_their_types(params, path):
    model = ALMAClassifier(random_state=0)
    fit(model, *make_problem())
    loaded = through_a_file(model.set_params(**params), path)
    assert_same(loaded.get_params(), model.get_params())


def test_classes_that_are_words_have_weights(path):
    X, y = make_problem()
    words = np.array(["ham", "spam"])[y]
    model = ALMAClassifier(class_weight={"ham": 2.0, "a\tb": 1.0, "spam": 0.5}).fit(X, words)
    assert_same(through_a_file(model, path), model)


@pytest.mark.parametrize("drawn", [0, 7])
def test_a_random_state_goes_on_where_it_was(drawn, path):
    X, y = make_problem()
    random = np.random.RandomState(3)
    random.standard_normal(drawn)
    model = ALMAClassifier(random_state=random).fit(X, y)
    loaded = through_a_file(model, path)
    assert_same(fit(loaded, X, y), fit(model, X, y))


def test_a_threshold_beyond_all_floats_comes_back(path):
    model = CRAMMAClassifier(beta=1e200, radius=1e200, delta=0.0, eta0=1e150)
    loaded = through_a_file(fit(model, *make_problem()), path)
    assert model._rule.__getstate__()["margin"] == np.inf
    assert_same(loaded, model)


def test_names_of_features_and_sparse_coefficients_come_back(path):
    X, y = make_problem()
    model = PNormPerceptron().fit(X, y).sparsify()
    model.feature_names_in_ = np.array([f"wörd {i}" for i in range(25)], dtype=object)
    loaded = through_a_file(model, path)
    assert_same(loaded.feature_names_in_, model.feature_names_in_)
    assert sp.issparse(loaded.coef_)


# -- the file -------------------------------------------------------------------------------------


@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_the_same_model_gives_the_same_bytes(hypothesis, tmp_path):
    X, y = make_problem()
    saved = []
    for name in "first", "second":
        model = ALMAClassifier(hypothesis=hypothesis, random_state=0).fit(X, y)
        save_model(model, tmp_path / name)
        saved.append((tmp_path / name).read_bytes())
    assert saved[0] == saved[1]


@pytest.mark.parametrize("model", [ALMAClassifier(), PNormPerceptron(p=4), HigherOrderPerceptron()])
def test_weights_that_are_mostly_zero_take_the_room_of_the_others(model, path):
    X, y = make_problem()
    wide = sp.hstack([X, sp.csr_matrix((80, 100_000))], format="csr")
    loaded = through_a_file(model.fit(wide, y), path)
    assert_same(loaded, model)
    assert path.stat().st_size < 40_000
    full = ALMAClassifier().fit(X, y)
    save_model(full, path)
    assert not any(name.endswith(".places") for name in np.load(path).files)


def test_a_negative_zero_comes_back(path):
    X, y = make_problem()
    X = sp.hstack([X, sp.csr_matrix((80, 1000))], format="csr")
    model = ALMAClassifier().fit(X, y)
    feature = int(np.flatnonzero(model._space.t == 0)[0])
    model._space.t[feature] = -0.0
    loaded = through_a_file(model, path)
    assert "_space.t.places" in np.load(path).files
    assert np.signbit(loaded._space.t[feature])
    assert_same(loaded, model)


def test_numpy_looks_into_a_model_file(path):
    X, y = make_problem()
    model = ALMAClassifier().fit(X, y)
    save_model(model, path)
    with np.load(path, allow_pickle=False) as contents:
        assert contents["_space.t"].tobytes() == model._space.t.tobytes()
        assert b'"class": "ALMAClassifier"' in contents["model.json"]


@pytest.mark.parametrize("model", [PNormPerceptron(hypothesis="vote"), SecondOrderPerceptron()])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_summary_tells_of_the_model(model, n_classes, path):
    X, y = make_problem(n_classes=n_classes)
    words = np.array(["a", "b", "c"])[y]
    save_model(model.fit(X, words), path)
    summary = read_summary(path)
    assert summary.pop("n_bytes") > 0
    assert summary.pop("library")
    assert summary == {
        "class": type(model).__name__,
        "settings": model.get_params(),
        "classes": ["a", "b", "c"][:n_classes],
        "many_labels": False,
        "n_features": 25,
        "n_iter": model.n_iter_,
        "n_trials": 80 * model.max_iter,
        "n_corrections": np.asarray(model.n_corrections_).tolist(),
    }


WITHOUT_SKLEARN = """
import sys, types
package = types.ModuleType("sparsemargin")
package.__path__ = [sys.argv[1]]
sys.modules["sparsemargin"] = package
from sparsemargin.io.model_files import read_summary
print(read_summary(sys.argv[2])["class"], "sklearn" in sys.modules, "scipy" in sys.modules)
"""


def test_a_summary_takes_no_scikit_learn(path):
    save_model(ALMAClassifier().fit(*make_problem()), path)
    package = Path(files.__file__).parent.parent
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT_SKLEARN, package, path], capture_output=True, text=True
    )
    assert told.stdout.split() == ["ALMAClassifier", "False", "False"], told.stderr


# -- what is refused ------------------------------------------------------------------------------


class Sub(ALMAClassifier):
    pass


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ALMAClassifier(), "This ALMAClassifier has learned nothing yet"),
        (Perceptron(), r"holds a classifier of sparsemargin, got sklearn.*Perceptron"),
        (Sub(), r"holds a classifier of sparsemargin, got test_model_files\.Sub"),
        (None, "holds a classifier of sparsemargin, got builtins.NoneType"),
    ],
)
def test_only_fitted_models_of_the_library_are_saved(model, message, path):
    with pytest.raises(ValueError, match=message):
        save_model(model, path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"note": {"by": print}}, "note.by is of type builtins.builtin_function_or_method"),
        ({"note": [1, {2, 3}]}, "note.1 is of type builtins.set"),
        ({"note": np.array(["2020-01-01"], "M8[D]")}, "note is an array of type datetime64"),
        ({"note": np.array([1, None])}, "note is an array of other objects than text"),
        ({"note": np.longdouble(1)}, "note is an array of type"),
        ({"random_state": np.random.RandomState(np.random.PCG64(0))}, "over PCG64 has no place"),
        ({"n_features_in_": 24}, "'n_features_in_' is not a whole number from 25 to 25"),
    ],
)
def test_what_has_no_place_in_a_file_is_named(attributes, message, path):
    save_model(fit(ALMAClassifier(), *make_problem()), path)
    before = path.read_bytes()
    model = fit(ALMAClassifier(), *make_problem())
    for name, value in attributes.items():
        setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        save_model(model, path)
    assert path.read_bytes() == before


def npz():
    buffer = io.BytesIO()
    np.savez(buffer, model=np.zeros(3))
    return buffer.getvalue()


OTHER_FILES = {
    "empty": b"",
    "text": b"+1 1:0.5 2:0.25\n" * 20,
    "pickle": pickle.dumps(ALMAClassifier()),
    "npz": npz(),
    "archive": b"PK\x03\x04",
}


@pytest.mark.parametrize("load", [load_model, read_summary])
@pytest.mark.parametrize("contents", OTHER_FILES.values(), ids=OTHER_FILES)
def test_other_files_are_no_model_files(load, contents, path):
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=f"^{path}: This is not a model file"):
        load(path)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.model"):
        load_model(tmp_path / "nowhere.model")
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        load_model(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"nowhere/a\.model"):
        save_model(ALMAClassifier().fit(*make_problem()), tmp_path / "nowhere" / "a.model")


def test_a_file_cut_anywhere_is_refused(path):
    save_model(ALMAClassifier(hypothesis="vote").fit(*make_problem()), path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 64), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=f"^{path}: This (is not a|model file was cut short)"):
            load_model(path)


def test_a_file_with_a_changed_bit_is_refused_or_the_same(path):
    """As where a member's date has changed, which nothing reads."""
    model = PNormPerceptron(hypothesis="last").fit(*make_problem(n=5))
    save_model(model, path)
    n_refused, whole = 0, path.read_bytes()
    random = np.random.RandomState(0)
    # All bytes of the archive's ends, and some between.
    places = {
        *range(100),
        *range(len(whole) - 200, len(whole)),
        *random.randint(len(whole), size=500),
    }
    for at in places:
        bit = random.randint(8)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        loaded, refusal = loaded_or_refused(path)
        if loaded is None:
            assert refusal.startswith(f"{path}: ")
            n_refused += 1
        else:
            assert_same(loaded, model)
    assert n_refused > len(places) / 2


# -- writes that fail -----------------------------------------------------------------------------


@pytest.fixture
def old_and_new(path):
    """A saved model, and one that is to take its place."""
    X, y = make_problem()
    old = ALMAClassifier(random_state=0).fit(X, y)
    save_model(old, path)
    return old, PNormPerceptron(hypothesis="vote", random_state=0).fit(X, y)


def assert_untouched(old, path):
    assert_same(load_model(path), old)
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk_leaves_the_old_model(old_and_new, path):
    old, new = old_and_new
    save_model(new, path.with_name("new"))
    length = path.with_name("new").stat().st_size
    path.with_name("new").unlink()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in [*range(0, length, 4096), length - 1]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
        try:
            with pytest.raises(OSError, match=f"File too large: '{path}'"):
                save_model(new, path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert_untouched(old, path)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_call_leaves_the_old_model(call, old_and_new, path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    old, new = old_and_new
    with monkeypatch.context() as patch:
        patch.setattr(files.os, call, fail)
        with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
            save_model(new, path)
    assert_untouched(old, path)


def test_a_killed_writer_leaves_one_of_the_two_models(old_and_new, path):
    pauses = np.random.RandomState(0).uniform(0.001, 0.03, 25)
    for pause in pauses:
        child = os.fork()
        if child == 0:
            while True:
                for model in old_and_new:
                    save_model(model, path)
        time.sleep(pause)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        loaded = load_model(path)
        assert_same(loaded, next(m for m in old_and_new if type(m) is type(loaded)))


def test_reading_errors_are_no_damage(path, monkeypatch):
    save_model(ALMAClassifier().fit(*make_problem()), path)

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(zipfile, "ZipFile", fail)
    with pytest.raises(OSError, match="Input/output error"):
        load_model(path)


# -- files of the format before -------------------------------------------------------------------


def in_format_2(entry, arrays):
    """An entry of the document as format 2 had it; arrays of text are taken to pieces."""
    if isinstance(entry, float) and not np.isfinite(entry):
        return {"float": repr(entry)}
    if isinstance(entry, list):
        return [in_format_2(each, arrays) for each in entry]
    if not isinstance(entry, dict):
        return entry
    if entry.keys() == {"texts"}:
        name = entry["texts"]
        texts = [t.encode("utf-8", "surrogatepass") for t in json.loads(arrays.pop(name).tobytes())]
        arrays[f"{name}.utf8"] = np.frombuffer(b"".join(texts), np.uint8)
        arrays[f"{name}.ends"] = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return {"strings": [f"{name}.utf8", f"{name}.ends"]}
    if entry.keys() == {"array"} and arrays[entry["array"]].ndim == 0:
        return {"scalar": entry["array"]}
    return {name: in_format_2(each, arrays) for name, each in entry.items()}


@pytest.mark.parametrize(
    "model",
    [
        CRAMMAClassifier(
            beta=1e200, radius=1e200, delta=0.0, eta0=1e150, hypothesis="vote", max_iter=3
        ),
        ALMAClassifier(alpha=np.float64(0.7), class_weight={"a\tb": 2.0}),
        HigherOrderPerceptron(p=3.0, random_state=np.random.RandomState(0)),
    ],
)
def test_files_of_format_2_are_read(model, path):
    X, y = make_problem()
    model.fit(X, np.array(["a\tb", "\ud800 spam"], object)[y])
    save_model(model, path)
    document, arrays = opened(path)
    document = in_format_2(document, arrays) | {"version": 2}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", json.dumps(document, allow_nan=False))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as stream:
                np.save(stream, array)
        archive.comment = b"sparsemargin model, sha256 " + b"0" * 64
    loaded = load_model(path)
    assert_same(loaded, model)
    assert outputs(loaded, X) == outputs(model, X)


def test_files_of_format_1_are_refused_with_what_to_do(path):
    save_model(ALMAClassifier().fit(*make_problem()), path)
    document, arrays = opened(path)
    rewritten(path, document | {"version": 1}, arrays)
    with pytest.raises(ValueError, match=f"^{path}: This model file has format 1.*Train it again"):
        load_model(path)


def test_a_model_takes_the_place_of_no_pipe(tmp_path):
    X, y = make_problem()
    model, pipe = PNormPerceptron(random_state=0).fit(X, y), tmp_path / "pipe"
    os.mkfifo(pipe)
    for write in (save_model, lambda fitted, path: write_readable(path, fitted)):
        with pytest.raises(OSError, match="pipe is no regular file"):
            write(model, pipe)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]
