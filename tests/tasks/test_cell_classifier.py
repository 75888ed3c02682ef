"""CellClassifier as a scikit-learn estimator, for AnnData, DataFrames, matrices and files."""

import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, classification_report
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from problems.cells import adata_of, counts_of, pd, write_10x
from sparsemargin import (
    AROWClassifier,
    CellClassifier,
    annotate,
    fit_anndata,
    load_model,
    marker_genes,
    save_model,
)
from sparsemargin.kernels import RBF

COUNTS, TYPES = counts_of(300, 200)
GENES = [f"GENE{j}" for j in range(200)]
FRAME = pd.DataFrame(COUNTS.toarray(), columns=GENES)
DENSE = COUNTS.toarray().astype(np.float64)
SHARES = DENSE / DENSE.sum(axis=1, keepdims=True)
NEW = CellClassifier(random_state=0, max_iter=3)


def cells(X=COUNTS, **obs):
    adata = adata_of(csr_matrix(X, copy=True), TYPES[: X.shape[0]], **obs)
    adata.obs["cell_type"] = adata.obs["cell_type"].astype(str)
    return adata


@pytest.fixture(scope="module")
def model():
    return clone(NEW).fit(cells())


# Checks that fail by design, and why.
EXPECTED_FAILURES = {
    "check_class_weight_classifiers": "negative numbers are no counts",
    "check_methods_subset_invariance": "random numbers are on no scale that could be recognised",
    "check_decision_proba_consistency": "negative numbers are no counts",
}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [CellClassifier(), CellClassifier(normalize=None)],
    expected_failed_checks=lambda estimator: {
        name: reason for name, reason in EXPECTED_FAILURES.items()
        if (name, estimator.normalize)
        not in {("check_methods_subset_invariance", "log1p"),
                ("check_class_weight_classifiers", None),
                ("check_decision_proba_consistency", None)}
    },
)  # fmt: skip
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


def test_cells_in_any_form_give_the_same_model(tmp_path):
    adata, new = cells(), clone(NEW).set_params(params={"shuffle": False})
    adata.write_h5ad(tmp_path / "cells.h5ad")
    model = clone(new).fit(adata)
    for given in (
        (tmp_path / "cells.h5ad",), ([str(tmp_path / "cells.h5ad")],), (adata, TYPES),
        (FRAME, TYPES), (COUNTS, TYPES), (COUNTS.toarray(), list(TYPES)),
        (FRAME.set_axis(adata.obs_names), adata.obs["cell_type"]),
    ):  # fmt: skip
        each = clone(new).fit(*given)
        assert np.array_equal(each.classifier_.coef_, model.classifier_.coef_)
        assert each.classes_.tolist() == ["A", "B", "C"]
    assert list(model.pipeline_.named_steps) == ["normalizer", "classifier"]
    assert model.genes_.tolist() == model.feature_names_in_.tolist() == GENES
    assert model.n_features_in_ == 200


@pytest.mark.parametrize("kind", ["AnnData", "file", "frame", "matrix", "dense"])
def test_cells_in_any_form_get_the_same_predictions(model, tmp_path, kind):
    adata = cells()[:, ::-1].copy()
    adata.write_h5ad(tmp_path / "cells.h5ad")
    X = {"AnnData": adata, "file": tmp_path / "cells.h5ad", "frame": FRAME.iloc[:, ::-1],
         "matrix": COUNTS, "dense": DENSE}[kind]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(model.predict(X), model.pipeline_.predict(COUNTS))
        expected = model.pipeline_.predict_proba(COUNTS)
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)
        expected = model.pipeline_.decision_function(COUNTS)
        np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-4)
    assert model.score(X, TYPES) == np.mean(model.predict(COUNTS) == TYPES)


def test_two_classes_have_one_output():
    model = clone(NEW).fit(COUNTS, TYPES == "A")
    assert model.classes_.tolist() == [False, True]
    assert model.decision_function(COUNTS).shape == (300,)
    assert model.predict(COUNTS).dtype == bool
    numbers = clone(NEW).fit(COUNTS, np.where(TYPES == "A", 7, 2))
    assert numbers.predict(COUNTS).dtype.kind == "i"
    assert cross_val_score(NEW, COUNTS, TYPES == "A", cv=3).mean() > 0.9


def test_parameters_reach_the_steps():
    given = {"algo": "arow", "max_iter": 2, "class_weight": "balanced", "target_sum": 500.0,
             "random_state": 3, "params": {"r": 0.5, "shuffle": False}}  # fmt: skip
    model = CellClassifier(**given).fit(COUNTS, TYPES)
    assert type(model.classifier_) is AROWClassifier
    told = model.classifier_.get_params()
    expected = {"max_iter": 2, "class_weight": "balanced", "random_state": 3, "r": 0.5}
    assert {name: told[name] for name in expected} == expected
    assert model.normalizer_.total_ == 500
    same = fit_anndata(cells(), "cell_type", "arow", max_iter=2, class_weight="balanced", r=0.5,
                       target_sum=500.0, random_state=3, shuffle=False)  # fmt: skip
    assert same.get_params() == {**model.get_params(), "label": "cell_type"}
    assert np.array_equal(same.classifier_.coef_, model.classifier_.coef_)
    further = CellClassifier(max_iter=1, params={"init_model": same}).fit(cells())
    assert further.classifier_.n_corrections_.sum() >= model.classifier_.n_corrections_.sum()
    assert further.n_iter_ == 1
    longer = CellClassifier(algo="pnorm", params={"normalize": False}).fit(COUNTS, TYPES)
    assert longer.classifier_.normalize is False
    assert CellClassifier().set_params(target_sum="median").target_sum == "median"


def test_copies_predict_the_same(model):
    for copy in pickle.loads(pickle.dumps(model)), clone(model).fit(cells()):
        assert np.array_equal(copy.predict_proba(FRAME), model.predict_proba(FRAME))
    with pytest.raises(NotFittedError):
        clone(model).predict(FRAME)
    with pytest.raises(NotFittedError):
        clone(model).annotate(cells())
    told = Parallel(n_jobs=2)(delayed(model.predict)(each) for each in (COUNTS, FRAME))
    assert np.array_equal(*told)


def test_threads_may_predict_at_once(model):
    expected = model.predict_proba(FRAME)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda i: model.predict_proba(FRAME.iloc[i : i + 1]), range(100)):
            row = int(np.abs(expected - found).sum(axis=1).argmin())
            np.testing.assert_allclose(found[0], expected[row], rtol=1e-6)


@pytest.mark.parametrize("kind", ["matrix", "dense", "frame", "AnnData"])
def test_cross_validation(kind):
    X = {"matrix": COUNTS, "dense": DENSE, "frame": FRAME, "AnnData": cells()}[kind]
    expected = cross_val_score(NEW, COUNTS, TYPES, cv=3)
    np.testing.assert_allclose(cross_val_score(NEW, X, TYPES, cv=3), expected, atol=0.02)
    assert (cross_val_predict(NEW, X, TYPES, cv=3, method="predict_proba").argmax(axis=1)
            == np.unique(TYPES, return_inverse=True)[1]).mean() > 0.9  # fmt: skip
    if hasattr(X, "obs_names"):
        assert cross_val_score(NEW, X, cv=3).mean() > 0.9


def test_searches_calibration_and_stacking():
    grid = {"target_sum": [10.0, "median"], "params": [{"alpha": 0.5}, None]}
    search = GridSearchCV(NEW, grid, cv=3).fit(COUNTS, TYPES)
    assert search.best_score_ > 0.9
    assert set(marker_genes(search, top=1)["type"]) == set("ABC")
    assert np.array_equal(annotate(search.best_estimator_, cells_named_by_numbers()).predicted,
                          search.predict(COUNTS))  # fmt: skip
    calibrated = CalibratedClassifierCV(NEW, cv=3).fit(COUNTS, TYPES)
    np.testing.assert_allclose(calibrated.predict_proba(COUNTS).sum(axis=1), 1)
    stack = StackingClassifier([("cells", NEW), ("arow", AROWClassifier())], cv=3)
    assert stack.fit(COUNTS, TYPES).score(COUNTS, TYPES) > 0.9


def cells_named_by_numbers():
    adata = cells()
    adata.var_names = [str(j) for j in range(adata.n_vars)]
    return adata


# Values on other scales that are converted exactly.
CONVERTED = {
    "counts": DENSE, "log1p of 5,000": np.log1p(SHARES * 5000),
    "log1p of 1e6": np.log1p(SHARES * 1e6),
    "log2 of 1e6": np.log2(1 + SHARES * 1e6), "log2 of counts": np.log2(1 + DENSE),
    "shares": SHARES,
}  # fmt: skip
Z_SCORES = (DENSE - DENSE.mean(axis=0)) / (DENSE.std(axis=0) + 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scale", CONVERTED)
def test_values_on_other_scales_are_converted(model, scale):
    X = CONVERTED[scale]
    expected = model.predict_proba(COUNTS)
    for each in X, csr_matrix(X), pd.DataFrame(X, columns=GENES).iloc[:, ::-1], cells(X):
        np.testing.assert_allclose(model.predict_proba(each), expected, atol=1e-3)
        assert np.array_equal(model.predict(each), model.predict(COUNTS))
    if scale != "counts":
        with pytest.warns(UserWarning, match="are converted to log1p of counts normalised to"):
            model.predict(X)


@pytest.mark.parametrize("make", [np.asarray, partial(pd.DataFrame, columns=GENES), cells],
                         ids=["matrix", "DataFrame", "AnnData"])  # fmt: skip
@pytest.mark.parametrize("values", [Z_SCORES, np.sqrt(SHARES)], ids=["z-scores", "square roots"])
def test_values_that_cannot_be_converted_are_refused(model, make, values):
    X = make(values)
    if hasattr(X, "obs_names"):
        X.layers["counts"] = COUNTS.copy()
    for act in model.predict, model.predict_proba, model.decision_function, model.evaluate:
        given = (TYPES,) if act == model.evaluate else ()
        with pytest.raises(ValueError, match=r"scaled|neither counts nor logarithms") as error:
            act(X, *given)
        assert "Pass the counts" in str(error.value)
        assert "normalize=None takes values as they are" in str(error.value)
        act(X, *given, normalize=None)
        if hasattr(X, "obs_names"):
            assert "layer='counts'" in str(error.value)
            act(X, *given, layer="counts")


def test_missing_genes_lower_probabilities(model):
    few = FRAME[GENES[:150]]
    with pytest.warns(UserWarning, match="X lacks 50 of the 200 genes"):
        told = model.predict_proba(few)
    assert told.max(axis=1).mean() < model.predict_proba(FRAME).max(axis=1).mean()
    with pytest.raises(ValueError, match=r"match='case'\. Then 200 genes are found"):
        model.predict(FRAME.rename(columns=str.lower))
    other = model.predict(FRAME.rename(columns=str.lower), match="case")
    assert np.array_equal(other, model.predict(FRAME))


def test_cells_without_counts_have_equal_probabilities(model):
    X = DENSE.copy()
    X[5] = 0
    np.testing.assert_allclose(model.predict_proba(X)[5], 1 / 3)
    with pytest.warns(UserWarning, match="1 cells have no counts of the genes of the model"):
        assert model.predict(X)[5] in model.classes_


def test_repeated_gene_of_a_table_is_named_with_a_remedy(model):
    twice = FRAME.rename(columns={"GENE1": "GENE0"})
    for act in (lambda X: clone(NEW).fit(X, TYPES), model.predict):
        with pytest.raises(
            ValueError, match=r"several columns with the name 'GENE0'.*X\.T\.groupby"
        ):
            act(twice)
    merged = clone(NEW).fit(twice.T.groupby(level=0).sum().T, TYPES)
    assert len(merged.genes_) == 199


def test_annotation_is_written_to_the_cells(model):
    adata = cells()
    types = model.annotate(adata)
    assert list(adata.obs) == ["cell_type", "sparsemargin", "sparsemargin_confidence"]
    assert adata.obs["sparsemargin"].dtype == "category"
    assert adata.obs["sparsemargin"].tolist() == types.predicted.tolist()
    assert list(adata.obsm) == []
    model.annotate(adata, key_added="found", proba=True, threshold=0.99)
    table = adata.obsm["found_proba"]
    np.testing.assert_allclose(table.to_numpy(), model.predict_proba(adata), atol=1e-12)
    assert list(table) == ["A", "B", "C"]
    assert table.index.equals(adata.obs_names)
    assert np.array_equal(table.max(axis=1), adata.obs["found_confidence"])
    unsure = adata.obs["found_confidence"] < 0.99
    assert ((adata.obs["found"] == "unassigned") == unsure).all()
    assert 0 < unsure.sum() < 300


def test_the_layer_and_names_of_the_model_are_used_again():
    adata = cells(np.log1p(SHARES * 1e6))
    adata.layers["counts"] = COUNTS.copy()
    adata.var["symbol"] = adata.var_names.str.lower()
    model = clone(NEW).set_params(layer="counts", var="symbol").fit(adata)
    assert model.genes_[0] == "gene0"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(model.annotate(adata).predicted, model.predict(adata))
    del adata.layers["counts"]
    with pytest.raises(ValueError, match=r"no layer 'counts'.*layer=None reads X"):
        model.predict(adata)
    with pytest.warns(UserWarning, match="converted"):
        model.annotate(adata, layer=None)


def test_evaluation_by_type(model, tmp_path):
    adata = cells()[:100].copy()
    adata.obs["cell_type"] = np.roll(TYPES[:100], 1)
    report = classification_report(adata.obs["cell_type"], model.predict(adata), output_dict=True)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    for given in (adata,), (tmp_path / "cells.h5ad",), (FRAME[:100], np.roll(TYPES[:100], 1)):
        table = model.evaluate(*given)
        assert list(table) == ["precision", "recall", "f1", "support", "predicted"]
        assert table.index.name == "type"
        for kind in "ABC":
            expected = {"f1" if k == "f1-score" else k: v for k, v in report[kind].items()}
            assert table.loc[kind].drop("predicted").to_dict() == pytest.approx(expected)
        assert model.score(*given) == pytest.approx(report["accuracy"])
    adata.obs["cell_type"] = np.where(np.arange(100) < 50, "Z", TYPES[:100])
    right = accuracy_score(adata.obs["cell_type"], model.predict(adata))
    assert model.score(adata) == model.score(adata, adata.obs["cell_type"]) == pytest.approx(right)
    with pytest.warns(UserWarning, match="50 of 100 cells have types that the model lacks: Z"):
        table = model.evaluate(adata)
    assert table["support"].sum() == 50
    assert table["predicted"].sum() == 100
    report = classification_report(adata.obs["cell_type"], model.predict(adata), output_dict=True,
                                   zero_division=0)  # fmt: skip
    for kind in "ABC":
        assert table.loc[kind, "precision"] == pytest.approx(report[kind]["precision"])
        assert table.loc[kind, "recall"] == pytest.approx(report[kind]["recall"])
    with pytest.raises(ValueError, match="sample_weight needs y"):
        model.score(adata, sample_weight=np.ones(100))
    lone = CellClassifier(params={"positive": "B"}, max_iter=1).fit(cells())
    assert lone.evaluate(cells()).index.tolist() == ["-1", "1"]


def test_tables_of_labels_are_given_to_evaluate(model, tmp_path):
    adata = cells()
    adata.write_h5ad(tmp_path / "cells.h5ad")
    adata.obs["cell_type"].to_csv(tmp_path / "types.csv")
    expected = model.evaluate(adata)
    series = adata.obs["cell_type"]
    for table in series[::-1], series.to_dict(), tmp_path / "types.csv":
        assert model.evaluate(tmp_path / "cells.h5ad", table).equals(expected)
        assert model.score(tmp_path / "cells.h5ad", table) == model.score(adata)
    assert model.evaluate(adata, series.to_dict()).equals(expected)
    with pytest.raises(ValueError, match="a path, a dict or a pandas Series"):
        model.evaluate(tmp_path / "cells.h5ad", TYPES)


def test_labels_in_another_order_than_the_cells_are_reported(model):
    adata = cells()
    with pytest.warns(UserWarning, match=r"Pass y\.loc\[adata\.obs_names\]"):
        clone(NEW).fit(adata, adata.obs["cell_type"][::-1])
    with pytest.warns(UserWarning, match="labels are used by position"):
        model.score(adata, adata.obs["cell_type"][::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(NEW).fit(adata, adata.obs["cell_type"][::-1].loc[adata.obs_names])
        clone(NEW).fit(adata, pd.Series(TYPES))


def test_advice_for_missing_labels_suits_an_anndata():
    adata, y = cells(), np.where(np.arange(300) == 7, None, TYPES)
    with pytest.raises(ValueError, match=r"y\[7\] is None: .*X\[keep\]"):
        clone(NEW).fit(adata, y)
    keep = pd.notna(np.array(y, dtype=object))
    clone(NEW).fit(adata[keep], np.asarray(y)[keep])
    masked = np.ma.masked_array(np.arange(300) % 2, mask=np.arange(300) == 5)
    with pytest.raises(ValueError, match=r"then X\[keep\] \(numpy\.asarray\(X\)\[keep\] if X is a"):
        clone(NEW).fit(adata, masked)


def test_keyword_arguments_of_all_methods(model):
    lower = FRAME.rename(columns=str.lower)
    assert model.score(lower, TYPES, match="case") == model.score(FRAME, TYPES)
    with pytest.raises(TypeError, match=r"layer, var, match, normalize\. threshold is an argument "
                       "of annotate"):  # fmt: skip
        model.predict(FRAME, threshold=0.5)
    with pytest.raises(TypeError, match="'treshold' is not one of the keyword arguments"):
        model.evaluate(FRAME, TYPES, treshold=0.5)
    with pytest.raises(ValueError, match="layer must be a str or None"):
        model.predict(cells(), layer=["counts"])
    for X in FRAME, COUNTS:
        with pytest.raises(ValueError, match="call predict or predict_proba"):
            model.annotate(X)


def test_confusion_is_drawn_by_scikit_learn(model):
    pytest.importorskip("matplotlib").use("Agg")
    from sklearn.metrics import ConfusionMatrixDisplay

    display = ConfusionMatrixDisplay.from_estimator(model, cells(), TYPES)
    assert display.confusion_matrix.sum() == 300


def test_10x_files_take_their_labels_from_a_table(tmp_path):
    path, barcodes = tmp_path / "cells.h5", [f"cell{i}-1" for i in range(300)]
    write_10x(path, COUNTS, GENES, barcodes)
    labels = dict(zip(barcodes[:250], TYPES[:250], strict=True))
    with pytest.warns(UserWarning, match="left out"):
        model = CellClassifier(labels, max_iter=2).fit(path)
    with pytest.warns(UserWarning, match="left out"):
        assert model.evaluate(path)["support"].sum() == 250
    with pytest.warns(UserWarning, match="left out"):
        assert model.score(path) > 0.9


def test_batches_may_have_the_name_of_an_argument():
    adata = cells()
    adata.obs["y"] = adata.obs["donor"] = np.arange(adata.n_obs) % 3
    found = [CellClassifier(batch=name, random_state=0).fit(adata, adata.obs["cell_type"])
             for name in ("y", "donor")]  # fmt: skip
    np.testing.assert_array_equal(*(each.predict_proba(adata) for each in found))


def test_batches_of_a_data_frame_are_named_by_its_index():
    frame = FRAME.set_axis([f"c{i}" for i in range(300)])
    batch = pd.Series(np.arange(300) % 4, index=frame.index).astype(str)
    model = clone(NEW).set_params(batch=batch, algo="arow").fit(frame, TYPES)
    assert (model.predict_proba(frame) != clone(NEW).set_params(algo="arow").fit(frame, TYPES)
            .predict_proba(frame)).any()  # fmt: skip


BAD = {
    "y is None": (lambda: NEW.fit(COUNTS), "Pass the type of each cell, too"),
    "y for a file": (lambda: NEW.fit("cells.h5ad", TYPES), "Leave it out: label names the types"),
    "length": (lambda: NEW.fit(COUNTS, TYPES[:10]), "inconsistent numbers of samples: .*300.*10"),
    "label": (lambda: CellClassifier("kind").fit(cells()), "'kind' in obs. There are: cell_type"),
    "twice": (lambda: CellClassifier(params={"max_iter": 3}).fit(cells()),
              r"params has 'max_iter'.*CellClassifier\(max_iter=...\)"),
    "unknown": (lambda: CellClassifier(params={"q": 3}).fit(cells()), "q"),
    "init": (lambda: CellClassifier(params={"init_model": AROWClassifier().fit(COUNTS, TYPES)})
             .fit(cells()), "init_model must be a fitted CellClassifier"),
    "target": (lambda: CellClassifier(target_sum="mean").fit(cells()), "target_sum"),
    "genes": (lambda: CellClassifier(genes=["a"]).fit(cells()), "1 of 1 genes are in no file"),
    "one type": (lambda: NEW.fit(COUNTS, ["A"] * 300), "class"),
    "missing": (lambda: NEW.fit(COUNTS, [None, *TYPES[1:]]), "y"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    act, words = BAD[name]
    with pytest.raises(ValueError, match=words):
        act()


def test_bad_cells_are_refused_with_remedies(model):
    with pytest.raises(ValueError, match="X has 199 features, but CellClassifier is expecting 200"):
        model.predict(COUNTS[:, 1:])
    with pytest.warns(UserWarning, match="lacks 1 of the 200 genes"):
        model.predict(FRAME.iloc[:, 1:])
    with pytest.raises(ValueError, match=r"proba=True writes to adata.obsm.*call predict_proba"):
        model.annotate("cells.h5ad", proba=True)
    for wrong in "fit_anndata", AROWClassifier().fit(COUNTS, TYPES):
        with pytest.raises(ValueError, match="must be a fitted CellClassifier"):
            annotate(wrong, cells())
    params = {"kernel": RBF(gamma=0.1, max_support=200)}
    kernel = clone(NEW).set_params(algo="perceptron", params=params).fit(cells())
    assert not hasattr(kernel, "predict_proba")
    assert kernel.score(cells()) > 0.8
    with pytest.raises(AttributeError, match="CalibratedClassifierCV"):
        annotate(kernel, cells())


def test_the_median_total_is_stored_with_the_model(tmp_path):
    adata = cells()
    model = clone(NEW).fit(adata)
    median = np.median(DENSE.sum(axis=1))
    assert model.normalizer_.total_ == pytest.approx(median, rel=0.02)
    many = clone(NEW).set_params(target_sum="median").fit(COUNTS * 100, TYPES)
    assert many.normalizer_.total_ == pytest.approx(100 * median, rel=0.02)
    assert clone(NEW).fit(COUNTS * 100, TYPES).normalizer_.total_ == 1e4
    logs = np.log1p(SHARES * model.normalizer_.total_)
    np.testing.assert_allclose(model.normalizer_.transform(COUNTS).toarray(), logs, rtol=1e-5)
    other = model.predict_proba(cells(DENSE * 2))  # twice as many molecules, of the same shares
    np.testing.assert_allclose(other, model.predict_proba(adata), atol=1e-5)


def test_ten_lines_of_the_guide(tmp_path, monkeypatch):
    pytest.importorskip("scanpy", reason="scanpy is not installed")
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    cells().write_h5ad("atlas.h5ad")
    cells()[:, ::-1].copy().write_h5ad("new.h5ad")
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "cells.md").read_text()
    code, *_ = (part for part in re.findall(r"```python\n(.*?)```", guide, re.S) if "dot" in part)
    assert len(re.findall(r"^\S.*", code, re.M)) <= 10
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, names)
    assert (names["adata"].obs["sparsemargin"].astype(str) == TYPES).mean() > 0.9
    assert "rank_genes_groups" in names["adata"].uns


def test_loaded_model_opens_no_table_of_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts, types = [[9, 0, 1], [8, 1, 1], [0, 9, 1], [1, 9, 0]] * 5, ["B", "B", "T", "T"] * 5
    model = CellClassifier("secret", random_state=0, params={"cache": "c"}).fit(counts, types)
    model.batch = "secret"
    save_model(model, tmp_path / "m.model")
    loaded = load_model(tmp_path / "m.model")
    assert (loaded.label, loaded.batch, loaded.params) == ("secret", "secret", {})
    (tmp_path / "secret").write_text("a,b\n")
    adata = pytest.importorskip("anndata").AnnData(np.array(counts, dtype=np.float32))
    for call in (loaded.score, loaded.evaluate, loaded.fit):
        with pytest.raises(ValueError, match="loaded model has no table of labels"):
            call(adata)
    assert loaded.score(counts, types) == 1
    adata.obs["kind"] = types
    assert loaded.score(adata, "kind") == 1
    values = model.saved_wrapper()[1]
    for changed in ({"params": {"cache": "c"}}, {"params": 3}, {"label": 3}, {"layer": 3}):
        with pytest.raises(ValueError, match="CellClassifier"):
            CellClassifier.restored(model.pipeline_, {**values, **changed})


def test_annotate_reads_as_the_model_does():
    anndata = pytest.importorskip("anndata")
    counts, types = np.array([[9, 0, 1], [8, 1, 1], [0, 9, 1], [1, 9, 0]] * 5), list("BBTT") * 5
    adata = anndata.AnnData(np.zeros((20, 3), np.float32), layers={"counts": counts})
    adata.var["symbol"], adata.obs["kind"] = ["a", "b", "c"], types
    model = CellClassifier("kind", layer="counts", var="symbol", random_state=0).fit(adata)
    adata.var_names = ["x", "y", "z"]
    assert annotate(model, adata).predicted.tolist() == types
    markers = marker_genes(model, adata, top=1)
    assert set(markers["gene"]) <= {"x", "y", "z"}
    for bad in ({"key_added": 3}, {"min_share": 0.5}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            annotate(model, adata, **bad)


def test_weights_of_truth_values_are_those_of_the_classes():
    adata = cells()
    adata.obs["is_a"] = TYPES == "A"
    model = CellClassifier("is_a", class_weight={True: 2.0}, max_iter=2, random_state=0).fit(adata)
    assert model.classifier_.class_weight == {True: 2.0}
    rows = model.normalizer_.transform(adata.X)
    clone(model.classifier_).fit(rows, adata.obs["is_a"].to_numpy())
