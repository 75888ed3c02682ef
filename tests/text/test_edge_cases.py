"""Edge cases: long texts, many words, threads, Ctrl-C, too little memory."""

import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread, Timer

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import text as theirs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from depth import some
from problems.csr import assert_identical
from sparsemargin import AROWClassifier, fit_text, load_model, save_model
from sparsemargin import text as ours
from sparsemargin._engine.text.counting import Lexicon
from sparsemargin.text import analysis, vectorizers
from sparsemargin.text.pipeline import Pipeline as QuickPipeline

NAMES = ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer")
TEXTS = ["free money now", "see you now", "money, money", "you see the süß plan"] * 3
Y = ["spam", "ham"] * 6


@pytest.mark.parametrize("name", NAMES)
def test_word_of_a_million_letters(name):
    texts = ["x" * 10**6, "ß" * 10**6 + " x", "a b " * 5, "x" * (10**6 - 1) + "y"]
    for options in {}, {"ngram_range": (1, 2)}:
        X = getattr(ours, name)(**options).fit_transform(texts)
        assert_identical(X, getattr(theirs, name)(**options).fit_transform(texts))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_millions_of_words(n_jobs):
    n = some(10**5, 10**7)
    texts = [" ".join(f"w{i:x}" for i in range(k, n, 100)) for k in range(100)]
    vectorizer = ours.CountVectorizer(n_jobs=n_jobs)
    X = vectorizer.fit_transform([*texts, "w0 w1 w1"])
    assert X.shape == (101, n)
    assert X.sum() == n + 3
    assert vectorizer.transform(["w1 w0 w1"]).data.tolist() == [1, 2]


def test_ngrams_of_more_than_255_words():
    words = np.random.default_rng(0).choice(["aa", "bb", "cc"], (3, 290))
    texts = [" ".join(row) for row in words.tolist()]
    vectorizers = [each.CountVectorizer(ngram_range=(1, 280)) for each in (ours, theirs)]
    X, Y = (each.fit_transform(texts) for each in vectorizers)
    assert_identical(X, Y)
    names, expected = (each.get_feature_names_out().tolist() for each in vectorizers)
    assert names == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_int64_indices_are_kept(name, n_jobs, monkeypatch):
    plain = vectorizers.matrix_of

    def wide(*arguments):
        X = plain(*arguments)
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        return X

    # A matrix that needs 64-bit indices would not fit into memory, so they are simulated.
    monkeypatch.setattr(vectorizers, "matrix_of", wide)
    monkeypatch.setattr(vectorizers, "ENTRIES", 3)
    monkeypatch.setattr(analysis, "ENTRIES", 3)
    X = getattr(ours, name)(n_jobs=n_jobs).fit_transform(TEXTS)
    assert X.indices.dtype == X.indptr.dtype == np.int64
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    assert_identical(X, getattr(theirs, name)().fit_transform(TEXTS))


def test_verbose_prints_progress(monkeypatch, capsys):
    monkeypatch.setattr(analysis, "SECONDS", -1.0)
    ours.HashingVectorizer().transform(TEXTS)
    assert capsys.readouterr().out == ""
    ours.HashingVectorizer(verbose=1).transform(TEXTS)
    assert capsys.readouterr().out == "[HashingVectorizer] texts read: 12\n"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_list_changed_by_another_thread(n_jobs):
    kept = [f"word{i} again" for i in range(20_000)]
    texts, done = list(kept), Event()

    def change():
        while not done.is_set():
            del texts[100:]
            texts.extend(kept[100:])

    changing = Thread(target=change)
    changing.start()
    try:
        for _ in range(5):
            X = ours.HashingVectorizer(n_jobs=n_jobs, norm=None).transform(texts)
            assert X.shape[0] <= len(kept)
            assert (np.abs(X).sum(axis=1) == 2).all()
    finally:
        done.set()
        changing.join()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_a_scan(n_jobs):
    texts = ["some words of a text that is read again and again"] * 10**6
    vectorizer = ours.CountVectorizer(n_jobs=n_jobs).fit(TEXTS)
    before = vectorizer.transform(TEXTS)
    timer = Timer(0.05, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(map(vectorizer.transform, [texts] * 1000))
    assert_identical(vectorizer.transform(TEXTS), before)


@pytest.mark.skipif(sys.platform != "linux", reason="others set no such limit")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizers take memory, too")
def test_memory_error_is_raised():
    code = """
import resource
from pathlib import Path
from sparsemargin.text import CountVectorizer
texts = ["".join(f" {i}x{k}" for i in range(5_000)) for k in range(300)]
vectorizer = CountVectorizer().fit(texts[:2])
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + (60 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for n_jobs in 1, 2:
    try:
        vectorizer.set_params(n_jobs=n_jobs).fit(texts)
    except MemoryError:
        print(vectorizer.set_params(n_jobs=1).fit_transform(texts[:1]).nnz)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "5000\n" * 2, done.stderr


def test_threads_share_one_loaded_pipeline(tmp_path):
    texts = [f"{text} {i % 7}x" for i, text in enumerate(TEXTS * 50)]
    save_model(fit_text(texts, Y * 50, random_state=0), tmp_path / "a.model")
    model = load_model(tmp_path / "a.model")
    expected = load_model(tmp_path / "a.model").decision_function(texts)

    def ask(i):
        return np.array([model.decision_function([texts[(i + j) % len(texts)]]) for j in range(40)])

    with ThreadPoolExecutor(8) as threads:
        for i, outputs in enumerate(threads.map(ask, range(32))):
            assert outputs.ravel().tobytes() == np.roll(expected, -i)[:40].tobytes()
    assert model.predict(texts).tolist() == Y * 50


def test_pipeline_is_of_scikit_learn():
    model = fit_text(TEXTS, Y, random_state=0).pipeline_
    assert isinstance(model, Pipeline)
    plain = Pipeline(model.steps)
    assert repr(model) == repr(plain)
    assert model.predict(TEXTS).tolist() == plain.predict(TEXTS).tolist()
    for copied in pickle.loads(pickle.dumps(model)), clone(model).fit(TEXTS, Y):
        assert isinstance(copied, QuickPipeline)
        assert copied.predict(TEXTS).tolist() == plain.predict(TEXTS).tolist()
    with pytest.raises(NotFittedError):
        clone(model).predict(TEXTS)
    with pytest.raises(TypeError, match="unexpected"):
        model.predict(TEXTS, unexpected=1)
    pipeline = QuickPipeline(
        make_pipeline("passthrough", ours.CountVectorizer(), AROWClassifier()).steps
    )
    grid = GridSearchCV(pipeline, {"arowclassifier__r": [0.1, 1]}, cv=2).fit(TEXTS, Y)
    assert grid.predict(TEXTS).tolist() == grid.best_estimator_[1:].predict(TEXTS).tolist()


def test_terms_of_empty_words_are_not_found():
    lexicon = Lexicon()
    assert [lexicon.add(term, True) for term in ("a  b", " a", "")] == [None] * 3
    with pytest.raises(ValueError, match="term 1 has an empty word"):
        lexicon.add_spelled(b"a ba  b", np.array([3, 7]), True)
