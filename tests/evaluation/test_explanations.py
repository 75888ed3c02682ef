"""Explanations of rows: the contributions of the features add up to the output."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from problems.command_line import run
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    HigherOrderPerceptron,
    PNormPerceptron,
    SecondOrderPerceptron,
    fit_svmlight,
    load_svmlight,
    save_model,
)
from sparsemargin.evaluation import explain_row

N_FEATURES = 30
TEXTS = ["free money, buy now", "money for free", "see you at noon", "noon is fine, see you"]


def rows_and_labels(dtype="f8"):
    random = np.random.RandomState(0)
    X = sp.random(90, N_FEATURES, density=0.3, format="csr", random_state=random, dtype=dtype)
    X.data -= 0.4
    scores = X @ random.standard_normal((N_FEATURES, 3))
    return X, scores


@pytest.mark.parametrize("model", [
    ALMAClassifier(p=6, random_state=0), ALMAClassifier(multi_class="joint", random_state=0),
    PNormPerceptron(p=3, hypothesis="last", normalize_hypotheses=True, random_state=0),
    AROWClassifier(random_state=0),
    HigherOrderPerceptron(solver="implicit", random_state=0),
    HigherOrderPerceptron(p=4, solver="primal", random_state=0),
    SecondOrderPerceptron(solver="implicit", fit_intercept=False, random_state=0),
    LinearSVC(),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_add_up_to_the_decision_value(model, n_classes):
    X, scores = rows_and_labels()
    names = np.array(["a", "b", "c"])
    y = names[np.where(scores[:, 0] > 0, 1, 0) if n_classes == 2 else scores.argmax(axis=1)]
    outputs, coef = model.fit(X, y).decision_function(X), model.coef_
    if n_classes == 2:
        outputs, coef = np.column_stack([-outputs, outputs]), np.vstack([-coef, coef])
    for i in range(10):
        row = X[[i]].toarray()[0]
        assert [why.label for why in explain_row(model, X[[i]])] == model.predict(X[[i]])
        of_one_axis = sp.csr_array(X)[i]
        assert explain_row(model, of_one_axis)[0].output == max(outputs[i])
        for place, label in enumerate(model.classes_):
            (why,) = explain_row(model, row, labels=label)
            assert why.output == pytest.approx(outputs[i, place], rel=1e-12)
            total = why.intercept + why.contributions.sum()
            assert_allclose(total, why.output, rtol=0, atol=1e-14 * abs(why.contributions).sum())
            dense = coef[place] * row
            assert_array_equal(why.contributions, dense[why.columns])
            assert len(why.columns) == np.count_nonzero(dense)
            assert (np.diff(abs(why.contributions)) <= 0).all()
            assert why.names == [str(j) for j in why.columns]


def test_multilabel_rows_are_explained():
    X, scores = rows_and_labels("f4")
    model = ALMAClassifier(random_state=0).fit(X, (scores > 0.5).astype(int))
    outputs = model.decision_function(X)
    n_told = set()
    for i in range(30):
        told = [why.label for why in explain_row(model, X[[i]])]
        ranked = np.argsort(-outputs[i])
        expected = [k for k in ranked if outputs[i, k] >= 0] or ranked[:1].tolist()
        assert told == expected
        n_told.add(len(expected))
        whys = explain_row(model, X[[i]], labels=[2, 0])
        assert [why.label for why in whys] == [2, 0]
        for why in whys:
            total = why.intercept + why.contributions.sum()
            assert total == pytest.approx(outputs[i, why.label], rel=1e-5)
    assert n_told > {1, 2}


def test_text_is_explained_through_its_pipeline():
    model = make_pipeline(TfidfVectorizer(), ALMAClassifier(random_state=0))
    model.fit(TEXTS, ["spam", "spam", "ham", "ham"])
    (why,) = explain_row(model, "the money is free: see it, money lovers")
    assert (why.label, why.names[0]) == ("spam", "money")
    assert sorted(why.names) == ["free", "is", "money", "see"]
    assert why.output == model.decision_function(["the money is free: see it, money lovers"])[0]
    (same,) = explain_row(
        model[-1], model[0].transform(["free money"]), feature_names=model[0], labels=["ham"]
    )
    assert same.output < 0
    assert same.names == ["money", "free"] or same.names == ["free", "money"]
    # Hashed words have only column numbers as names.
    hashed = make_pipeline(HashingVectorizer(n_features=64), ALMAClassifier(random_state=0))
    (why,) = explain_row(hashed.fit(TEXTS, [1, 1, 0, 0]), "money")
    assert why.names == [str(j) for j in why.columns]


def test_row_of_a_data_frame_is_explained():
    text_alone = make_pipeline(TfidfVectorizer(), ALMAClassifier(random_state=0))
    text_alone.fit(TEXTS, ["spam", "spam", "ham", "ham"])
    (expected,) = explain_row(text_alone, "free money")
    (why,) = explain_row(text_alone, np.array(["free money"], dtype=object))
    assert why.names == expected.names
    pandas = pytest.importorskip("pandas")
    (why,) = explain_row(text_alone, pandas.Series(["free money"], index=[7]))
    assert why.names == expected.names
    table = pandas.DataFrame({"text": TEXTS, "length": [len(text) for text in TEXTS]})
    columns = [("words", TfidfVectorizer(), "text"), ("numbers", StandardScaler(), ["length"])]
    model = make_pipeline(ColumnTransformer(columns), ALMAClassifier(random_state=0))
    model.fit(table, [1, 1, 0, 0])
    (expected,), (why,) = (explain_row(model, row) for row in (table.iloc[[1]], table.iloc[1]))
    assert why.names == expected.names
    assert "numbers__length" in why.names
    assert_array_equal(why.contributions, expected.contributions)


LINEAR = PNormPerceptron().fit(np.eye(2), [0, 1])


@pytest.mark.parametrize(("model", "how", "words"), [
    (PNormPerceptron(kernel="rbf").fit(np.eye(2), [0, 1]), {}, "one with kernel='linear' has"),
    (PNormPerceptron(hypothesis="vote").fit(np.eye(2), [0, 1]), {}, "Fit with hypothesis='average"),
    (LINEAR, {"row": np.eye(2)}, r"row must be a single row, got 2.*texts\[i\]"),
    (LINEAR, {"labels": 7}, r"labels: 7 is unknown. Choose among \[0, 1\]"),
    (LINEAR, {"feature_names": ["a"]}, "1 names, but there are 2"),
    (PNormPerceptron(), {}, "not fitted"),
])  # fmt: skip
def test_explain_row_rejects_models_without_weights(model, how, words):
    with pytest.raises(ValueError, match=words):
        explain_row(model, **{"row": np.eye(2)[[0]], **how})


def explained(*args):
    header, *lines = (line.split("\t") for line in run("predict", *args).stdout.splitlines())
    assert header == ["row", "label", "feature", "adds"]
    return [(int(row), label, name, float(value)) for row, label, name, value in lines]


@pytest.mark.parametrize("many", [False, True])
def test_explain_command_agrees_with_explain_row(tmp_path, monkeypatch, many):
    monkeypatch.chdir(tmp_path)
    names = ["a", "b", "(others)", "d d", "e"]
    Path("rows.svm").write_text("x 1:2 2:1 5:3\n# none\ny 2:1 3:2 9:1\nx 1:1 4:1\n" * 5)
    Path("words").write_text("".join(f"{name}\n" for name in names))
    model = fit_svmlight("rows.svm", "alma", multilabel=many, n_features=9, random_state=0)
    model.resize(5)
    model.n_features_in_ = 5
    save_model(model, "a.model")
    X = load_svmlight("rows.svm", multilabel=many)[0][:, :5]
    options = ["--top-k", 2] if many else []
    for k in 1, 5:
        told = explained("a.model", "rows.svm", "--dictionary", "words", *options, "--explain", k)
        expected = []
        for i in range(X.shape[0]):
            of = model.predict_labels(X[[i]], top_k=2)[0] if many else None
            for why in explain_row(model, X[[i]], labels=of, feature_names=names):
                escaped = [re.sub(r"^\(", r"\\(", name) for name in why.names]
                added = why.contributions.tolist()
                parts = [("(output)", why.output), ("(intercept)", why.intercept)]
                parts += list(zip(escaped, added, strict=True))[:k]
                parts += [("(others)", sum(added[k:]))] if len(added) > k else []
                expected += [(i + 1, why.label, *part) for part in parts]
        assert told == expected
    assert len(explained("a.model", "rows.svm", *options, "--explain")) >= len(told)


def test_explain_command_rejects_models_without_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.svm").write_text("x 1:2\ny 2:1\n")
    save_model(PNormPerceptron(kernel="rbf").fit(*load_svmlight("rows.svm")), "a.model")
    for options, code, words in [
        (["--explain"], 1, "one with kernel='linear' has weights"),
        (["--explain", "--scores"], 2, "--scores, --proba and --explain can't be combined"),
        (["--dictionary", "words"], 2, "the features that --explain prints"),
    ]:
        result = run("predict", "a.model", "rows.svm", "-o", "out", *options, code=code)
        assert words in result.stderr
        assert not Path("out").exists()
