"""Learning from files as they are read gives the model of the loaded files, to the bit."""

import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import sparsemargin
from sparsemargin import fit_csr, fit_svmlight, load_model, load_svmlight, save_model
from sparsemargin._engine.kernel import gram_loop as gram
from sparsemargin.datasets import make_zipf_text
from sparsemargin.io import sources
from sparsemargin.io.stream import learn_svmlight

ALGORITHMS = [
    ("perceptron", {}),
    ("pnorm", {"p": 6.0}),
    ("pnorm", {"p": "log", "hypothesis": "last"}),
    ("alma", {}),
    ("alma", {"p": 3.5, "alpha": 0.5, "fit_intercept": True}),
    ("alma", {"normalize": "running", "normalize_hypotheses": True}),
    ("margin", {"margin": 0.5}),
    ("cramma", {"radius": 2.0}),
    ("romma", {"aggressive": True}),
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """A text of some KB is then many blocks; none of the epochs goes by a matrix of dot products,
    which rounds differently."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(gram, "MEMORY", 0)


def write(path, X, y, **settings):
    dump_svmlight_file(X, y, str(path), zero_based=False, **settings)
    return path


@pytest.fixture
def text(tmp_path):
    """A file of 400 rows of two classes; few features in the first ones."""
    X, y = make_zipf_text(400, 3000, mean_nnz=12, random_state=0)
    return write(tmp_path / "two.svm", X, y)


@pytest.fixture
def three_classes(tmp_path):
    X, y = make_zipf_text(400, 3000, mean_nnz=12, n_classes=3, random_state=0)
    return write(tmp_path / "three.svm", X, y)


def same(model, other):
    assert type(model) is type(other)
    np.testing.assert_array_equal(model.classes_, other.classes_)
    assert model.classes_.dtype == other.classes_.dtype
    assert model.n_features_in_ == other.n_features_in_
    assert model.n_iter_ == other.n_iter_
    np.testing.assert_array_equal(model.n_corrections_, other.n_corrections_)
    assert model.coef_.dtype == other.coef_.dtype
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.intercept_, other.intercept_)


# ------------------------------------------------------------------------------ the same model


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["text", "three_classes"])
@pytest.mark.parametrize(("algo", "params"), ALGORITHMS)
def test_equals_a_fit_to_the_loaded_file(request, kind, algo, params, dtype):
    path = request.getfixturevalue(kind)
    X, y = load_svmlight(path, dtype=dtype)
    expected = fit_csr(X, y, algo, max_iter=1, shuffle=False, **params)
    width = {"n_features": X.shape[1]} if params.get("p") == "log" else {}
    same(fit_svmlight(path, algo, dtype=dtype, **width, **params), expected)


@pytest.mark.parametrize(("algo", "params"), [("ho", {"p": 2}), ("ho", {"p": 5}), ("so", {})])
@pytest.mark.parametrize("kind", ["text", "three_classes"])
def test_matrix_perceptrons_equal_a_stream_of_the_loaded_rows(request, kind, algo, params):
    path = request.getfixturevalue(kind)
    X, y = load_svmlight(path)
    model = fit_svmlight(path, algo, max_updates=20, **params)
    expected = type(model)(**model.get_params()).partial_fit(X, y, classes=np.unique(y))
    expected.n_iter_ = 1.0
    same(model, expected)
    np.testing.assert_array_equal(model.n_updates_, expected.n_updates_)


def test_cramma_takes_files_by_the_largest_norm_so_far(text, tmp_path):
    X, y = load_svmlight(text)
    model = fit_svmlight(text, "cramma")
    expected = type(model)(**model.get_params()).partial_fit(X, y, classes=np.unique(y))
    expected.n_iter_ = 1.0
    save_model(model, tmp_path / "a.model")
    for each in (model, load_model(tmp_path / "a.model")):
        same(each, expected)
        assert not hasattr(each, "radius_")


@pytest.mark.parametrize("n_jobs", [1, 2, 3, -1])
def test_threads_change_nothing(text, n_jobs):
    same(fit_svmlight(text, "alma", n_jobs=n_jobs), fit_svmlight(text, "alma"))


@pytest.mark.parametrize("n_bytes", [64, 1000, 1 << 20])
def test_blocks_change_nothing(text, n_bytes, monkeypatch):
    expected = fit_svmlight(text, "pnorm", p=4)
    monkeypatch.setattr(sources, "BLOCK_BYTES", n_bytes)
    same(fit_svmlight(text, "pnorm", p=4), expected)


@pytest.mark.parametrize("line", [2, 40])
def test_what_is_wrong_within_the_first_rows_is_told_by_its_line(line, tmp_path, monkeypatch):
    """They are learned from only when a hundred are there, other text then being in their place."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 16)
    lines = [f"{i % 2} 1:{i}\n" for i in range(150)]
    lines[line - 1] = "7 2:1\n"
    path = tmp_path / "rows.svm"
    path.write_text("".join(lines))
    with pytest.raises(ValueError, match=f"^{path}, line {line}: label 7"):
        fit_svmlight(path, "pnorm", classes=[0, 1])
    lines[line - 1] = "1 900:1\n"
    path.write_text("".join(lines))
    with pytest.raises(ValueError, match=f"^{path}, line {line}.*900"):
        fit_svmlight(path, "pnorm", classes=[0, 1], memory_limit=5000)


def test_known_features_change_nothing_but_their_number(text):
    model, wider = fit_svmlight(text, "alma"), fit_svmlight(text, "alma", n_features=5000)
    assert wider.coef_.shape == (1, 5000)
    np.testing.assert_array_equal(wider.coef_[:, : model.n_features_in_], model.coef_)


def test_several_files_are_one_data_set(text, tmp_path):
    lines = text.read_text().splitlines(keepends=True)
    parts = [tmp_path / f"part-{i}.svm" for i in range(3)]
    for i, part in enumerate(parts):
        part.write_text("".join(lines[i * 150 : (i + 1) * 150]))
    expected = fit_svmlight(text, "alma")
    same(fit_svmlight(parts, "alma"), expected)
    same(fit_svmlight(str(tmp_path / "part-*.svm"), "alma"), expected)


def test_default_is_the_average_of_alma_with_an_intercept(text):
    X, y = load_svmlight(text)
    model = fit_svmlight(text)
    assert model.intercept_scaling_ == pytest.approx(0.1, rel=0.1)
    same(model, fit_csr(X, y, "alma", max_iter=1, shuffle=False))


def test_default_has_no_intercept_beside_a_kernel(text):
    kernel = {"kernel": "rbf", "gamma": 1.0, "max_support": 10_000}
    assert not fit_svmlight(text, **kernel).intercept_.any()
    assert fit_svmlight(text, intercept_scaling=1.0, **kernel).intercept_.all()


def test_the_classifier_is_a_classifier(text):
    X, y = load_svmlight(text)
    model = fit_svmlight(text, "alma", alpha=0.8)
    assert model.get_params()["alpha"] == 0.8
    assert model.score(X, y) > 0.9
    assert sparsemargin.ALMAClassifier(alpha=0.8).fit(X, y).score(X, y) > 0.9
    model.partial_fit(X[:10], y[:10])
    assert model.fit(X, y).n_iter_ == 1


# --------------------------------------------------------------------------------- indices


def test_indices_from_0_are_found_out_however_late(text, tmp_path):
    path = tmp_path / "zero.svm"
    path.write_text(text.read_text() + "1 0:0.5 9:0.5\n")
    X, y = load_svmlight(path)
    same(fit_svmlight(path, "alma"), fit_csr(X, y, "alma", max_iter=1, shuffle=False))
    assert fit_svmlight(path, "alma").n_features_in_ == fit_svmlight(text).n_features_in_ + 1
    model = fit_svmlight(path, "alma", n_features=3001)
    assert model.n_features_in_ == 3001


def test_index_0_where_there_is_no_room_for_it(tmp_path):
    path = tmp_path / "zero.svm"
    path.write_text("1 1:1 3:1\n-1 2:1\n1 0:1\n")
    with pytest.raises(ValueError, match="index 3 is beyond n_features=3, as index 0 occurs"):
        fit_svmlight(path, n_features=3)


def test_hashed_features(text):
    X, y = load_svmlight(text, hash_bits=7)
    model = fit_svmlight(text, "alma", hash_bits=7)
    assert model.n_features_in_ == 128
    same(model, fit_csr(X, y, "alma", max_iter=1, shuffle=False))


def test_an_index_beyond_memory_is_refused_with_its_line(tmp_path):
    path = tmp_path / "far.svm"
    path.write_text("1 1:1\n-1 2:1\n1 5:1 4000000000:1\n")
    with pytest.raises(ValueError, match=r"far.svm, line 3.*4000000000.*memory_limit.*hash_bits"):
        fit_svmlight(path)
    with pytest.raises(ValueError, match=r"line 3, column 7.*beyond n_features=9"):
        fit_svmlight(path, n_features=9)
    with pytest.raises(ValueError, match=r"line 3.*memory_limit has room for.*250,000 features"):
        fit_svmlight(path, n_features=1 << 33, memory_limit=10**6)
    with pytest.raises(
        ValueError, match=r"67,108,864 features take .* more than memory_limit=1,000,0"
    ):
        fit_svmlight(path, hash_bits=26, memory_limit=10**6)
    assert fit_svmlight(path, hash_bits=10).n_features_in_ == 1024


# ---------------------------------------------------------------------------------- labels


def test_a_class_that_comes_late_begins_learning_again(three_classes, tmp_path):
    X, y = load_svmlight(three_classes)
    order = np.argsort(y, kind="stable")
    path = write(tmp_path / "sorted.svm", X[order], y[order])
    X, y = load_svmlight(path)
    expected = fit_csr(X, y, "alma", max_iter=1, shuffle=False)
    same(fit_svmlight(path, "alma"), expected)
    same(fit_svmlight(path, "alma", classes=[0, 1, 2]), expected)


def test_labels_that_are_no_classes(text, tmp_path):
    one = tmp_path / "one.svm"
    one.write_text("1 1:1\n1 2:1\n")
    with pytest.raises(ValueError, match=r"one.svm has one class only, \[1.0\]"):
        fit_svmlight(one)
    one.write_text("0.5 1:1\n1.25 2:1\n")
    with pytest.raises(ValueError, match=r"one.svm has labels such as 0.5, which are not classes"):
        fit_svmlight(one)
    one.write_text("-1 1:1\n1 2:1\n\n# nothing\n7 3:1\n")
    with pytest.raises(ValueError, match=r"one.svm, line 5: label 7 is none of the classes"):
        fit_svmlight(one, classes=[-1, 1])


def test_words_are_classes(tmp_path):
    path = tmp_path / "words.svm"
    path.write_text("spam 1:1\nham 2:1\nspam 1:1 3:1\n")
    X, y = load_svmlight(path)
    same(fit_svmlight(path, "alma"), fit_csr(X, y, "alma", max_iter=1, shuffle=False))


@pytest.mark.parametrize("positive", [1, "1", "word"])
def test_one_label_against_the_rest(tmp_path, positive):
    path = tmp_path / "many.svm"
    path.write_text("1,word 1:1 2:1\n2 2:1\n 3:1\nword,2,1 1:1 3:1\n2,3 2:2 3:1\n")
    X, labels = load_svmlight(path, multilabel=True)
    wanted = "word" if positive == "word" else "1"
    y = np.where([wanted in row for row in labels], 1.0, -1.0)
    model = fit_svmlight(path, "alma", positive=positive)
    same(model, fit_csr(X, y, "alma", max_iter=1, shuffle=False))


# ---------------------------------------------------------------------------------- epochs


@pytest.mark.parametrize(("algo", "params"), [("alma", {}), ("pnorm", {"p": 4.0})])
@pytest.mark.parametrize("kind", ["text", "three_classes"])
def test_epochs_in_order_equal_those_of_a_fit(request, kind, algo, params):
    path = request.getfixturevalue(kind)
    X, y = load_svmlight(path)
    expected = fit_csr(X, y, algo, max_iter=4, shuffle=False, **params)
    model = fit_svmlight(path, algo, max_iter=4, shuffle=False, **params)
    assert path.with_name(path.name + ".smcache").exists()
    same(model, expected)
    same(fit_svmlight(path, algo, max_iter=4, shuffle=False, **params), expected)


def test_shuffled_epochs_depend_on_the_seed_alone(text, tmp_path):
    fit = [
        fit_svmlight(text, "alma", max_iter=3, random_state=seed, cache=cache, n_jobs=n_jobs)
        for seed, cache, n_jobs in [
            (0, None, 1), (0, None, 2), (0, tmp_path / "other.cache", 2), (1, None, 1)
        ]
    ]  # fmt: skip
    same(fit[1], fit[0])
    same(fit[2], fit[0])
    assert not np.array_equal(fit[3].coef_, fit[0].coef_)


def test_until_an_epoch_makes_no_correction(tmp_path):
    path = tmp_path / "separable.svm"
    path.write_text("1 1:1 2:0.5\n-1 2:1\n1 1:1 3:1\n")
    X, y = load_svmlight(path)
    expected = fit_csr(X, y, "perceptron", max_iter=None, shuffle=False, hypothesis="last")
    params = {"shuffle": False, "hypothesis": "last"}
    same(fit_svmlight(path, "perceptron", max_iter=None, **params), expected)
    average = fit_svmlight(path, "perceptron", max_iter=50, shuffle=False)
    same(average, fit_csr(X, y, "perceptron", max_iter=50, shuffle=False))


def test_a_cache_is_made_anew_when_the_file_changes(text):
    first = fit_svmlight(text, "alma", max_iter=2, random_state=0)
    text.write_text("".join(text.read_text().splitlines(keepends=True)[:300]))
    second = fit_svmlight(text, "alma", max_iter=2, random_state=0)
    assert not np.array_equal(first.coef_.sum(), second.coef_.sum())
    X, y = load_svmlight(text)
    expected = fit_csr(X, y, "alma", max_iter=2, shuffle=False)
    same(fit_svmlight(text, "alma", max_iter=2, shuffle=False), expected)


def test_an_error_leaves_no_cache(tmp_path):
    path = tmp_path / "bad.svm"
    path.write_text("1 1:1\n-1 2:1\n1 x:1\n")
    with pytest.raises(ValueError, match="line 3"):
        fit_svmlight(path, max_iter=2)
    assert list(tmp_path.iterdir()) == [path]


# ------------------------------------------------------------------------------ going on


def test_going_on_equals_one_file(text, tmp_path):
    lines = text.read_text().splitlines(keepends=True)
    first, second = tmp_path / "first.svm", tmp_path / "second.svm"
    first.write_text("".join(lines[:250]))
    second.write_text("".join(lines[250:]))
    earlier = fit_svmlight(first, "alma", p=3)
    before = earlier.coef_.copy()
    later = fit_svmlight(second, init_model=earlier)
    same(later, fit_svmlight(text, "alma", p=3))
    np.testing.assert_array_equal(earlier.coef_, before)
    with pytest.raises(ValueError, match="pass none with it"):
        fit_svmlight(second, "alma", init_model=earlier)
    with pytest.raises(ValueError, match="not learned anything"):
        fit_svmlight(second, init_model=sparsemargin.ALMAClassifier())


def test_ctrl_c_keeps_what_was_learned(text):
    moments = []

    def interrupt(moment):
        moments.append(moment)
        if moment.rows > 100:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="Interrupted after .* rows of epoch 1"):
        learner = learn_svmlight(text, "alma", report=interrupt)
    X, y = load_svmlight(text)
    n_rows = moments[-1].rows
    expected = fit_csr(X[:n_rows], y[:n_rows], "alma", max_iter=1, shuffle=False)
    n_features = learner.n_features_in_
    np.testing.assert_array_equal(learner._space.weights()[:, :-1], expected.coef_[:, :n_features])


# -------------------------------------------------------------------------------- reports


@pytest.mark.parametrize("kind", ["text", "three_classes"])
@pytest.mark.parametrize(("algo", "p"), [("alma", 2.0), ("pnorm", 4.0), ("perceptron", None)])
def test_one_step_ahead_error(request, kind, algo, p):
    path = request.getfixturevalue(kind)
    X, y = load_svmlight(path)
    params = {"intercept_scaling": 1.0} | ({} if p is None else {"p": p})
    moments = []
    learn_svmlight(path, algo, report=moments.append, hypothesis="last", **params)
    model = type(fit_csr(X, y, algo, max_iter=1, **params))(hypothesis="last", **params)
    if algo == "perceptron":
        model.set_params(normalize=False)
    wrong = 0
    for i in range(X.shape[0]):
        guess = model.predict(X[i])[0] if i else [1.0, 0.0][kind == "three_classes"]
        wrong += guess != y[i]
        model.partial_fit(X[i], y[i : i + 1], classes=np.unique(y))
    assert moments[-1].mistakes == wrong
    assert moments[-1].rows == X.shape[0]
    assert moments[-1].consumed == moments[-1].size == path.stat().st_size
    assert moments[-1].features == X.shape[1]


def test_matrix_perceptrons_know_it_for_two_classes(text, three_classes):
    for path in text, three_classes:
        moments = []
        learner = learn_svmlight(path, "so", max_updates=10, report=moments.append)
        expected = learner.n_corrections_ if path == text else None
        assert moments[-1].mistakes == expected


def test_verbose_tells_how_far_it_is(text, capsys):
    fit_svmlight(text, "alma", verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].split()[:3] == ["rows", "epoch", "features"]
    assert 3 < len(lines) < 12


# -------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("algo", "params", "message"),
    [
        ("alma", {"hypothesis": "vote"}, "hypothesis='vote' keeps a log.*load_svmlight"),
        ("alma", {"hypothesis": "random"}, "hypothesis='random' keeps a log"),
        ("alma", {"soft_margin": 1.0}, "soft_margin=1.0 gives every row a coordinate"),
        ("margin", {"tol": 0.1}, "tol=0.1 needs passes over all rows"),
        ("alma", {"max_corrections": 5}, "max_corrections=5 ends a fit"),
        ("alma", {"max_iter": 0.5}, "max_iter=0.5 ends within rows not yet counted"),
        ("alma", {"p": "log"}, "p='log' is 2 ln n_features: pass n_features"),
        ("alma", {"normalize": "max"}, "normalize='running'"),
        ("alma", {"class_weight": "balanced"}, "Pass the weights as a dict"),
        ("alma", {"alpha": 2}, "'alpha' parameter of ALMAClassifier must be a float in the range"),
        (
            "alma",
            {"beta": 2},
            "for algo='alma'. It is a parameter of 'cramma'. Known are: B, C",
        ),
        ("almighty", {}, "Unknown algo='almighty'"),
        (
            "ho",
            {"max_updates": None},
            "max_updates=None keeps the rows of all mistakes.*max_updates=1000",
        ),
        ("so", {"max_updates": None}, "max_updates=None"),
        ("ho", {"max_updates": 9, "solver": "primal"}, "solver='primal' needs the number"),
        ("maxmargin", {}, "'maxmargin' keeps a number for every row"),
        (None, {"n_features": 5, "hash_bits": 3}, "exclude each other"),
        (None, {"max_iter": 2, "cache": False}, "Pass cache=PATH"),
    ],
)
def test_what_cannot_stream_is_refused_with_the_way_out(text, algo, params, message):
    with pytest.raises(ValueError, match=message):
        fit_svmlight(text, algo, **params)


def test_files_without_anything_to_learn_from(tmp_path):
    path = tmp_path / "nothing.svm"
    path.write_text("")
    with pytest.raises(ValueError, match=r"nothing.svm has no rows\. svmlight lines are"):
        fit_svmlight(path)
    path.write_text("# only\n\n# comments\n")
    with pytest.raises(ValueError, match="has no rows"):
        fit_svmlight(path)
    path.write_text("1\n-1\n")
    with pytest.raises(ValueError, match="labels but no features"):
        fit_svmlight(path)


def test_a_pipe_that_would_be_read_twice_is_named(text, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    told = re.escape(f"{tmp_path / 'pipe'} can be read only once. Pass cache=PATH")
    with pytest.raises(ValueError, match=told):
        fit_svmlight([text, tmp_path / "pipe"], max_iter=2)


def test_standard_input_is_read_once(text):
    script = (
        "import sys, sparsemargin\n"
        "model = sparsemargin.fit_svmlight('-', 'alma', **eval(sys.argv[1]))\n"
        "print(repr(float(model.coef_.sum())))"
    )

    def run(params, content):
        command = [sys.executable, "-c", script, params]
        return subprocess.run(command, input=content, capture_output=True)

    content = text.read_bytes()
    expected = repr(float(fit_svmlight(text, "alma").coef_.sum()))
    assert run("{}", content).stdout.decode().strip() == expected
    told = run("{'max_iter': 2}", content).stderr
    assert b"<standard input> can be read only once. Pass cache=PATH" in told
    one_class = b"1 1:1\n" * 100
    assert b"Pass all labels there will be as classes" in run("{}", one_class).stderr


def test_lines_of_a_report_go_where_they_are_told(text):
    from sparsemargin.io.report import Lines

    out = io.StringIO()
    learn_svmlight(text, "alma", report=Lines(out))
    assert out.getvalue().count("\n") > 3


def test_a_fit_without_end_is_told_of_at_most_twice_a_second_after_ten_epochs():
    from sparsemargin.io.report import Lines
    from sparsemargin.io.stream import Moment

    out = io.StringIO()
    report = Lines(out)
    for epoch in range(1, 1011):
        moment = Moment(
            epoch, consumed=9, size=9, rows=1, features=1, corrections=1, mistakes=0,
            seconds=epoch / 1000,
        )  # fmt: skip
        report(moment)
    epochs = [int(line.split()[1]) for line in out.getvalue().splitlines()[1:]]
    assert epochs == [*range(1, 11), 510, 1010]


# ------------------------------------------------------------- what once went wrong


def refit(model, X, y):
    return type(model)(**model.get_params()).partial_fit(X, y, classes=np.unique(y))


@pytest.mark.parametrize("solver", ["primal", "auto"])
@pytest.mark.parametrize(("algo", "p"), [("ho", 2), ("ho", 4), ("so", None)])
def test_an_n_by_n_matrix_grows_with_the_features(tmp_path, algo, p, solver):
    """Index N where n_features=N: there is one column more until it is known that 0 never comes."""
    path = tmp_path / "noisy.svm"
    draw = np.random.RandomState(0).randint
    lines = [f"{draw(2)} {draw(1, 31)}:1 {draw(31, 61)}:0.5\n" for _ in range(2000)]
    path.write_text("".join(lines))
    X, y = load_svmlight(path)
    params = {"max_updates": 600, "solver": solver} | ({} if p is None else {"p": p})
    model = fit_svmlight(path, algo, n_features=X.shape[1], **params)
    expected = refit(model, X, y)
    assert model.solver_ == expected.solver_ == "primal"
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8, atol=1e-10)
    model.partial_fit(X[:200], y[:200])
    expected.partial_fit(X[:200], y[:200])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8, atol=1e-10)
    wide = tmp_path / "wide.svm"
    wide.write_text("1 1:1 100:2\n0 5:1 90:3\n" * 20)
    further = fit_svmlight(wide, init_model=model)
    assert further.n_features_in_ == 100
    X, y = load_svmlight(wide)
    expected._space.resize(100)
    expected.n_features_in_ = 100
    expected.partial_fit(X, y)
    np.testing.assert_allclose(further.coef_, expected.coef_, rtol=1e-8, atol=1e-10)
    wide.write_text("1 1:1 20000:2\n0 5:1 90:3\n")
    with pytest.raises(ValueError, match="n x n matrix over 30000 features would take"):
        fit_svmlight(wide, init_model=model)


def test_going_on_with_what_was_set_since_is_refused(text, tmp_path):
    X, y = load_svmlight(text)
    model = fit_csr(X, y, "alma", hypothesis="vote").set_params(hypothesis="average")
    with pytest.raises(ValueError, match="init_model can't go on with another hypothesis"):
        fit_svmlight(text, init_model=model)


def test_a_fit_from_scratch_forgets_how_files_were_read(text, tmp_path):
    path = tmp_path / "zero.svm"
    path.write_text("1 0:1 1:2\n-1 1:1 2:1\n" * 10)
    model = fit_svmlight(path, "perceptron")
    assert model._reading["zero_based"]
    model.fit(*load_svmlight(text))
    assert not hasattr(model, "_reading")


def test_a_pattern_leaves_caches_out(text, tmp_path):
    pattern = str(tmp_path / "two*")
    first = fit_svmlight(pattern, "alma", max_iter=2, random_state=0)
    assert len(list(tmp_path.iterdir())) == 2
    same(fit_svmlight(pattern, "alma", max_iter=2, random_state=0), first)


def test_a_weight_for_a_class_that_comes_late(tmp_path):
    path = tmp_path / "late.svm"
    path.write_text("1 1:1\n-1 2:1\n" * 1000 + "2 3:1\n")
    X, y = load_svmlight(path)
    params = {"class_weight": {2: 5.0}}
    expected = fit_csr(X, y, "perceptron", max_iter=1, shuffle=False, **params)
    same(fit_svmlight(path, "perceptron", **params), expected)


def test_names_of_features_end_where_a_file_has_more(text, tmp_path):
    model = sparsemargin.ALMAClassifier().fit(np.eye(2), [0, 1])
    model.feature_names_in_ = np.array(["a", "b"], dtype=object)
    path = tmp_path / "more.svm"
    path.write_text("0 1:1\n1 5:1\n")
    further = fit_svmlight(path, init_model=model)
    assert not hasattr(further, "feature_names_in_")
    sparsemargin.save_model(further, tmp_path / "a.model")


def test_more_trials_than_can_be_counted(tmp_path):
    path = tmp_path / "few.svm"
    path.write_text("1 1:1\n-1 2:1\n" * 20)
    with pytest.raises(ValueError, match="more trials than can be counted"):
        fit_svmlight(path, "perceptron", max_iter=10**17)


def test_memory_is_asked_for_only_where_it_is_allowed(text):
    with pytest.raises(
        ValueError, match=r"100,000,000,000 features take .* more than memory_limit"
    ):
        fit_svmlight(text, "perceptron", n_features=10**11)


def test_equal_labels_are_equal_however_written(tmp_path):
    path = tmp_path / "mixed.svm"
    path.write_text("+1 1:1\nspam 2:1\n")
    model = fit_svmlight(path, "perceptron")
    path.write_text("1 1:1\nspam 2:1\n1.0 1:1\n")
    assert fit_svmlight(path, init_model=model).classes_.tolist() == ["+1", "spam"]
    assert fit_svmlight(path, "alma", classes={"1", "spam"}).classes_.tolist() == ["1", "spam"]
    with pytest.raises(ValueError, match=r"positive must be a label"):
        fit_svmlight(path, positive=[1])


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_nothing_is_learned_beyond_the_first_error(tmp_path, n_jobs):
    path = tmp_path / "wrong.svm"
    lines = [f"{(-1) ** i} {i % 7 + 1}:1" for i in range(6000)]
    for line in (700, 1200, 1201, 4000):
        lines[line - 1] = "1 1:x"
    path.write_text("\n".join(lines))
    rows = []
    with pytest.raises(ValueError, match=r"wrong.svm, line 700, column 3"):
        learn_svmlight(path, "alma", n_jobs=n_jobs, report=lambda moment: rows.append(moment.rows))
    assert not rows or rows[-1] < 700
    with pytest.raises(ValueError, match=r"wrong.svm, line 700, column 3"):
        load_svmlight(path, n_jobs=n_jobs, multilabel=True)


def test_bytes_of_a_file_named_twice_count_twice(text):
    moments = []
    learn_svmlight([text, text], "alma", report=moments.append)
    assert moments[-1].consumed == moments[-1].size == 2 * text.stat().st_size
