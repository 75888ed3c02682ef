"""Models of cells know the scale of their training cells, and convert or refuse others."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from problems.cells import adata_of, counts_of
from problems.command_line import run
from sparsemargin import (
    AROWClassifier,
    Rejector,
    annotate,
    fit_anndata,
    load_model,
    marker_genes,
    save_model,
)
from sparsemargin.cells import source as stream
from sparsemargin.genomes import CellNormalizer

COUNTS, TYPES = counts_of(300, 200)
DENSE = COUNTS.toarray().astype(np.float64)
TOTALS = DENSE.sum(axis=1, keepdims=True)
SHARES = DENSE / TOTALS
FACTORS = np.random.RandomState(0).uniform(0.5, 2, TOTALS.shape)

# Values that can be converted exactly, by their names in warnings.
EXACT = {
    "log1p of counts normalised to a total of 5,000": np.log1p(SHARES * 5000),
    "log1p of counts normalised to a total of 1,000,000": np.log1p(SHARES * 1e6),
    "log1p of counts normalised to a total of 1": np.log1p(SHARES),
    "log2(1 + x) of counts normalised to a total of 1,000,000": np.log2(1 + SHARES * 1e6),
    "log10(1 + x) of counts normalised to a total of 10,000": np.log10(1 + SHARES * 1e4),
    "counts normalised to a total of 1": SHARES,
    "counts normalised to a total of 1,000,000": SHARES * 1e6,
    "log1p of counts": np.log1p(DENSE),
    "log2(1 + x) of counts": np.log2(1 + DENSE),
    # By size factors. No gene of the model is missing, so the totals are known.
    "log2(1 + x) of counts normalised to a total that is not known": np.log2(1 + DENSE / FACTORS),
    "counts normalised to a total that is not known": DENSE / FACTORS,
}
OTHERS = {
    "square roots": np.sqrt(SHARES * 1e4),
    "logarithms of other totals, of some genes": np.log1p(SHARES * 1e6)[:, :100],
    "z-scores": (DENSE - DENSE.mean(axis=0)) / (DENSE.std(axis=0) + 1),
}


def cells(dense, dtype=np.float32):
    adata = adata_of(csr_matrix(np.asarray(dense, dtype)), TYPES[: len(dense)])
    adata.obs["cell_type"] = adata.obs["cell_type"].astype(str)
    return adata


def warned(act, *args, **how):
    """Return the result of a call and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        return act(*args, **how), [str(each.message) for each in found]


@pytest.fixture(scope="module")
def model():
    return fit_anndata(cells(DENSE), "cell_type", random_state=0, max_iter=3, target_sum=1e4)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_on_a_known_scale_are_converted_with_a_warning(model, name, dtype):
    expected = annotate(model, cells(DENSE))
    types, texts = warned(annotate, model, cells(EXACT[name], dtype))
    assert np.array_equal(types.predicted, expected.predicted)
    np.testing.assert_allclose(types.confidence, expected.confidence, atol=1e-4)
    assert texts == [
        f"The AnnData has {name}. They are converted to log1p of counts normalised to a total of "
        "10,000."
    ]


@pytest.mark.parametrize("name", OTHERS)
def test_values_on_other_scales_are_rejected_with_a_remedy(model, name, tmp_path):
    expected = annotate(model, cells(DENSE))
    other = cells(OTHERS[name])
    other.layers["counts"] = COUNTS[:, : other.n_vars].copy()
    with pytest.raises(ValueError, match="The AnnData") as error:
        annotate(model, other)
    assert "layer='counts'" in str(error.value)
    assert "normalize=None" in str(error.value)
    if other.n_vars == COUNTS.shape[1]:
        remedied = annotate(model, other, layer="counts")
        assert np.array_equal(remedied.predicted, expected.predicted)
    assert len(annotate(model, other, normalize=None).predicted) == 300
    other.write_h5ad(tmp_path / "other.h5ad")
    with pytest.raises(ValueError, match=re.escape(str(error.value).removeprefix("The AnnData"))):
        annotate(model, tmp_path / "other.h5ad")


def test_values_on_the_same_scale_are_unchanged():
    for dense in (np.log2(1 + SHARES * 1e6), np.log1p(SHARES * 1e4), SHARES, np.log1p(DENSE)):
        adata = cells(dense)
        assert np.array_equal(CellNormalizer().fit_transform(adata.X).data, adata.X.data)
        model, _ = warned(fit_anndata, adata, "cell_type", random_state=0, max_iter=2)
        types, texts = warned(annotate, model, adata)
        assert texts == []
        expected = model.classifier_.predict_proba(adata.X).max(axis=1)
        np.testing.assert_allclose(types.confidence, expected, rtol=1e-9)


@pytest.mark.parametrize("name", [
    "log2(1 + x) of counts normalised to a total of 1,000,000",
    "counts normalised to a total of 1",
    "log1p of counts normalised to a total of 5,000",
])  # fmt: skip
def test_counts_are_converted_to_the_scale_of_the_model(name, tmp_path):
    with pytest.warns(UserWarning, match=re.escape(f"They are assumed to be {name}, and")):
        model = fit_anndata(cells(EXACT[name]), "cell_type", random_state=0, max_iter=3)
    save_model(model.pipeline_, tmp_path / "types.model")
    expected = annotate(model, cells(EXACT[name]))
    for each in model, load_model(tmp_path / "types.model"):
        types, texts = warned(annotate, each, cells(DENSE))
        assert np.array_equal(types.predicted, expected.predicted)
        np.testing.assert_allclose(types.confidence, expected.confidence, atol=1e-4)
        assert texts == []
    made = model.normalizer_.transform(COUNTS).toarray()
    np.testing.assert_allclose(made, EXACT[name], rtol=1e-5, atol=1e-7)


def test_models_of_other_values_accept_only_such_values(tmp_path):
    roots = OTHERS["square roots"] / 10
    model, texts = warned(fit_anndata, cells(roots), "cell_type", random_state=0, max_iter=2)
    assert "neither counts nor logarithms" in texts[0]
    assert len(annotate(model, cells(roots)).predicted) == 300
    for dense in DENSE, roots * 40, np.log1p(SHARES * 1e4):
        words = "what the model was trained on|but their totals are far from those"
        with pytest.raises(ValueError, match=words):
            annotate(model, cells(dense))
    scaled = OTHERS["z-scores"]
    model = fit_anndata(cells(scaled), "cell_type", normalize=None, random_state=0, max_iter=2)
    save_model(model.pipeline_, tmp_path / "types.model")
    model = load_model(tmp_path / "types.model")
    assert model[0].form_ == "negative"
    assert warned(annotate, model, cells(scaled))[1] == []
    for dense in DENSE, np.log1p(SHARES * 1e4):
        with pytest.raises(ValueError, match="scaled values, some of which are negative"):
            annotate(model, cells(dense))
    assert len(annotate(model, cells(DENSE), normalize=None).predicted) == 300


CHOSEN = [f"GENE{i}" for i in range(0, 200, 3)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("values", [DENSE, *EXACT.values()], ids=["counts", *EXACT])
@pytest.mark.parametrize("some", [False, True])
def test_totals_are_those_of_the_genes_of_the_model(values, some, tmp_path):
    """New cells may have other genes, too, or only those of the model."""
    few = cells(DENSE)[:, CHOSEN].copy()
    how = {"random_state": 0, "max_iter": 3}
    expected = fit_anndata(few, "cell_type", **how)
    model = fit_anndata(cells(DENSE), "cell_type", genes=CHOSEN, **how)
    np.testing.assert_allclose(model.classifier_.coef_, expected.classifier_.coef_, rtol=1e-6)
    save_model(model.pipeline_, tmp_path / "types.model")
    new = cells(values)[:, CHOSEN] if some else cells(values)
    for each in model, expected, load_model(tmp_path / "types.model"):
        types = annotate(each, new.copy())
        np.testing.assert_array_equal(types.predicted, annotate(expected, few).predicted)
        np.testing.assert_allclose(types.confidence, annotate(expected, few).confidence, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_totals_of_normalised_training_cells_are_those_of_all_genes():
    logs = cells(EXACT["log1p of counts normalised to a total of 5,000"])
    model = fit_anndata(logs, "cell_type", genes=CHOSEN, random_state=0, max_iter=3)
    expected = annotate(model, logs)
    types = annotate(model, cells(DENSE))
    np.testing.assert_array_equal(types.predicted, expected.predicted)
    np.testing.assert_allclose(types.confidence, expected.confidence, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.*assumed to be:UserWarning")
def test_counts_are_not_taken_for_logarithms_of_an_unknown_total():
    logs = cells(np.log1p(SHARES * 1e4)[:, :100])
    model = fit_anndata(logs, "cell_type", random_state=0, max_iter=2)
    counts = cells(DENSE[:, :100])
    with pytest.raises(ValueError, match="Normalise and transform the counts as those of") as error:
        annotate(model, counts)
    assert "normalize=None" not in str(error.value)
    _, texts = warned(annotate, model, counts, normalize=None)
    assert "has counts, and the model was trained on log1p of counts" in texts[0]
    assert warned(annotate, model, logs, normalize=None)[1] == []


def test_raw_counts_match_models_of_raw_counts():
    model = fit_anndata(cells(DENSE), "cell_type", normalize=None, random_state=0, max_iter=2)
    assert len(annotate(model, cells(DENSE)).predicted) == 300
    for dense in SHARES, np.log1p(SHARES * 1e4):
        with pytest.raises(ValueError, match="what the model was trained on: counts"):
            annotate(model, cells(dense))


def test_normalize_counts_accepts_estimated_counts(model):
    estimated = DENSE * np.random.RandomState(0).uniform(0.8, 1, DENSE.shape)
    for act in (
        lambda how: annotate(model, cells(estimated), **how),
        lambda how: fit_anndata(cells(estimated * 10), "cell_type", max_iter=1, **how),
    ):
        with pytest.raises(ValueError, match="normalize='counts'"):
            act({})
        act({"normalize": "counts"})
    trained = fit_anndata(cells(estimated), "cell_type", normalize="counts", max_iter=2)
    assert warned(annotate, trained, cells(estimated))[1] == []
    types, texts = warned(annotate, trained, cells(np.log1p(SHARES * 1e6)))
    assert "converted" in texts[0]
    assert np.array_equal(types.predicted, annotate(trained, cells(DENSE)).predicted)
    with pytest.raises(ValueError, match="Leave out normalize='counts', which is for counts"):
        fit_anndata(cells(np.log1p(SHARES * 1e4)), "cell_type", normalize="counts")


def test_genes_selected_after_normalization_are_accepted(model):
    some = np.argsort(-model.normalizer_.deviations_)[:100]
    types, texts = warned(annotate, model, cells(np.log1p(SHARES * 1e4))[:, some].copy())
    assert (types.predicted == TYPES).mean() > 0.9
    assert "a total that is not known. They are taken for log1p of counts normal" in texts[0]
    selected, _ = warned(fit_anndata, cells(np.log1p(SHARES * 1e4))[:, some].copy(), "cell_type",
                         max_iter=2)  # fmt: skip
    assert np.isnan(selected.normalizer_.total_)
    assert warned(annotate, selected, cells(np.log1p(SHARES * 1e4))[:, some].copy())[1] == []
    with pytest.raises(ValueError, match="a total that is not known"):
        annotate(selected, cells(DENSE))


@pytest.mark.parametrize("total", [1e4, "auto", 2000, 9000])
@pytest.mark.parametrize("deep", [0.3, 1, 5])
def test_genes_selected_after_normalization_to_the_usual_total_are_converted(total, deep):
    counts = np.random.RandomState(0).poisson(DENSE * deep).astype(np.float64)
    trained = fit_anndata(cells(counts), "cell_type", random_state=0, target_sum=total)
    some = np.argsort(-trained.normalizer_.deviations_)[:150]
    expected, _ = warned(trained.predict_proba, cells(counts)[:, some].copy())
    logs = np.log1p(counts / counts.sum(axis=1, keepdims=True) * 1e4)
    found, texts = warned(trained.predict_proba, cells(logs)[:, some].copy())
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.95
    usual = total == 1e4
    assert ("a total that is not known, which is taken for 10,000. They are" in texts[0]) != usual


@pytest.mark.parametrize("name", list(EXACT)[:4])
def test_file_blocks_agree_with_cells_in_memory(model, name, tmp_path, monkeypatch):
    cells(EXACT[name]).write_h5ad(tmp_path / "cells.h5ad")
    expected, texts = warned(annotate, model, cells(EXACT[name]))
    for buffered in 500, 5000, 1 << 20:
        monkeypatch.setattr(stream, "_BUFFERED", buffered)
        types, found = warned(annotate, model, tmp_path / "cells.h5ad")
        assert np.array_equal(types.confidence, expected.confidence)
        assert np.array_equal(types.predicted, expected.predicted)
        assert [each.split(" has ")[1] for each in found] == [
            each.split(" has ")[1] for each in texts
        ]


def test_files_on_several_scales_are_converted_to_one(tmp_path):
    half = 150
    pair = [cells(DENSE[:half]), cells(DENSE[half:])]
    pair[1].obs["cell_type"] = TYPES[half:]
    how = {"random_state": 0, "max_iter": 2, "target_sum": 1e4}
    expected = fit_anndata(pair, "cell_type", **how)
    pair[1].X = csr_matrix(np.log1p(SHARES[half:] * 1e6))
    model, texts = warned(fit_anndata, pair, "cell_type", **how)
    assert any("are converted to" in text for text in texts)
    np.testing.assert_allclose(
        model.classifier_.coef_, expected.classifier_.coef_, rtol=1e-3, atol=1e-4
    )
    pair[1].X = csr_matrix(OTHERS["square roots"][half:])
    with pytest.raises(ValueError, match="can't be converted"):
        fit_anndata(pair, "cell_type")
    more = fit_anndata(cells(np.log1p(SHARES * 1e4)), "cell_type", init_model=model, max_iter=1)
    assert more.normalizer_.total_ == 1e4


@pytest.mark.parametrize("n_counts", [1, 150])
def test_counts_among_logarithms_are_reported_with_their_cell(model, n_counts):
    mixed = np.log1p(SHARES * 1e4)
    mixed[-n_counts:] = DENSE[-n_counts:]
    adata = cells(mixed)
    adata.layers["counts"] = COUNTS
    adata.obs["cell_type"] = TYPES
    words = r"cell \d+: values are not whole" if n_counts == 150 else "cell 300: values are whole"
    for act in (lambda **how: annotate(model, adata, **how),
                lambda **how: fit_anndata(adata, "cell_type", max_iter=1, **how)):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            act()
        act(layer="counts")
        act(normalize=None)


def test_pipeline_checks_the_scale_of_matrices(model):
    expected = model.predict(COUNTS)
    for each in model, model.pipeline_:
        with pytest.warns(UserWarning, match="converted"):
            assert np.array_equal(each.predict(csr_matrix(np.log2(1 + SHARES * 1e6))), expected)
    with pytest.raises(ValueError, match=r"X has .* Pass the counts\.$"):
        model.pipeline_.predict(csr_matrix(OTHERS["square roots"]))


def test_pipelines_without_names_of_genes_are_refused_with_a_remedy():
    adata = cells(DENSE)
    pipeline = make_pipeline(CellNormalizer(), AROWClassifier(random_state=0))
    pipeline.fit(adata.X, TYPES)
    with pytest.raises(ValueError, match="without names of genes"):
        annotate(pipeline, adata)
    assert len(marker_genes(pipeline)) > 0
    pipeline.fit(adata.to_df(), TYPES)
    assert np.mean(annotate(pipeline, adata).predicted == TYPES) > 0.9


def test_pipelines_that_are_no_models_of_cells_are_refused():
    adata, steps = cells(DENSE), (LogisticRegression(), Rejector(AROWClassifier(random_state=0)))
    fitted = [make_pipeline(CellNormalizer(), each).fit(adata.to_df(), TYPES) for each in steps]
    for model in *fitted, make_pipeline(CellNormalizer(), AROWClassifier()):
        with pytest.raises(ValueError, match="model must be a fitted CellClassifier"):
            annotate(model, adata)


def test_empty_cells_do_not_change_the_scale_of_the_others(model):
    values = np.log1p(SHARES * 1e4)
    expected = annotate(model, cells(values)).confidence
    for n_full in 100, 0:
        few = np.where(np.arange(len(values))[:, np.newaxis] < n_full, values, 0)
        types, words = warned(annotate, model, cells(few))
        np.testing.assert_allclose(types.confidence[:n_full], expected[:n_full], rtol=1e-6)
        assert not [each for each in words if "converted" in each]


def test_scale_of_a_single_cell_is_detected(model):
    for dense in DENSE[:1], np.log1p(SHARES[:1] * 1e4), np.log2(1 + SHARES[:1] * 1e6):
        types, _ = warned(annotate, model, cells(dense))
        assert types.predicted[0] == annotate(model, cells(DENSE[:1])).predicted[0]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), total=st.floats(0.5, 2e6),
       base=st.sampled_from(["linear", "log1p", "log2", "log10"]))  # fmt: skip
def test_any_total_and_base_is_detected(seed, total, base):
    random = np.random.RandomState(seed)
    counts = random.poisson(random.gamma(0.3, random.uniform(0.5, 20), (40, 300)))
    counts = counts[counts.sum(axis=1) > 0].astype(np.float64)
    normalizer = CellNormalizer().fit(csr_matrix(counts))
    linear = counts / counts.sum(axis=1, keepdims=True) * total
    logs = {"linear": linear, "log1p": np.log1p(linear), "log2": np.log2(1 + linear),
            "log10": np.log10(1 + linear)}[base]  # fmt: skip
    made, _ = warned(normalizer.transform, csr_matrix(logs))
    expected = normalizer.transform(csr_matrix(counts)).toarray()
    np.testing.assert_allclose(made.toarray(), expected, rtol=0.02, atol=1e-3)


def test_command_line_has_an_option_for_the_cell_values(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells(DENSE).write_h5ad("cells.h5ad")
    cells(DENSE * np.random.RandomState(0).uniform(0.8, 1, DENSE.shape)).write_h5ad("near.h5ad")
    run("train", "cells.h5ad", "--label", "cell_type", "-o", "types.model", "-q")
    for command in ("annotate",), ("predict",), ("evaluate", "--label", "cell_type"):
        told = run(*command, "types.model", "near.h5ad", code=1).stderr
        assert "--cell-values counts" in told
        assert "--cell-values none" in told
        for values in "counts", "none":
            done = run(*command, "types.model", "near.h5ad", "--cell-values", values)
            assert done.exit_code == 0
    assert "neither counts nor logarithms" in run("info", "near.h5ad").stdout
    assert run("train", "near.h5ad", "--label", "cell_type", "-o", "b.model", "--cell-values",
               "counts").exit_code == 0  # fmt: skip
