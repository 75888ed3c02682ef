"""Commands on files of cells."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("anndata", reason="anndata is not installed")

from problems.cells import adata_of, counts_of, pd, write_matrix
from problems.command_line import run
from sparsemargin import annotate, fit_anndata, load_model, save_model


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    adata_of(*counts_of()).write_h5ad("cells.h5ad")
    return "cells.h5ad"


def test_cell_commands_train_and_predict(path):
    assert run("train", path, "--label", "cell_type", "-o", "types.model").exit_code == 0
    model, expected = load_model("types.model"), fit_anndata(path, "cell_type", random_state=0)
    assert np.array_equal(model.classifier_.coef_, expected.classifier_.coef_)
    told = annotate(model, path)
    lines = run("predict", "types.model", path).stdout.split()
    assert lines == told.predicted.tolist()
    assert run("annotate", "types.model", path, "-o", "types.tsv").exit_code == 0
    table = pd.read_csv("types.tsv", sep="\t")
    assert table["predicted"].tolist() == lines
    printed = run("annotate", "types.model", path, "--threshold", "1").stdout.splitlines()
    assert printed[0] == "cells\tpredicted\tconfidence"
    assert "unassigned" in printed[1]
    figures = json.loads(
        run("evaluate", "types.model", path, "--label", "cell_type", "--json").stdout
    )
    assert figures["rows"] == 300
    assert figures["accuracy"] > 0.95
    strongest = json.loads(run("inspect", "types.model", "--json").stdout)["strongest"]
    assert strongest[0]["for"][0]["feature"].startswith("GENE")
    assert "GENE" in run("predict", "types.model", path, "--explain", "2").stdout
    more = run("train", path, "--label", "cell_type", "--init", "types.model", "-o", "more.model")
    assert more.exit_code == 0


def test_batch_option_changes_the_confidence(path):
    how = "train", path, "--label", "cell_type", "-o", "types.model"
    assert run(*how, "--batch", "cell_type").exit_code == 0
    kept = annotate(load_model("types.model"), path).confidence
    assert run(*how).exit_code == 0
    assert kept.mean() < annotate(load_model("types.model"), path).confidence.mean()
    assert "no column 'x' in obs" in run(*how, "--batch", "x", code=1).stderr


def test_10x_folders_are_detected_as_cells(path):
    X, types = counts_of()
    barcodes = [f"cell{i}" for i in range(300)]
    Path("run").mkdir()
    write_matrix("run/", X, [f"GENE{j}" for j in range(80)], barcodes)
    lines = [f"{name}\t{kind}\n" for name, kind in zip(barcodes, types, strict=True)]
    Path("types.tsv").write_text("".join(lines))
    assert run("train", "run", "--label", "types.tsv", "-o", "types.model").exit_code == 0
    told = run("train", "run", "--label", "types.tsv", "-o", "types.tsv", code=2).stderr
    assert "-o types.tsv and --label types.tsv are one file" in told
    assert len(run("annotate", "types.model", "run").stdout.splitlines()) == 301
    assert "cells    300" in run("info", "run").stdout


def test_info_describes_cell_files(path):
    told = run("info", path).stdout
    for words in ("cells    300", "genes    80", "values   counts", "obs      cell_type"):
        assert words in told


def test_info_counts_the_types_of_cells(path):
    told = run("info", path, "--label", "cell_type").stdout
    counts = pd.Series(counts_of()[1]).value_counts()
    assert f"types    {counts.index[0]} ({counts.iloc[0]})" in told
    [figures] = json.loads(run("info", path, "--label", "cell_type", "--json").stdout)["files"]
    assert {each["label"]: each["rows"] for each in figures["labels"]} == counts.to_dict()
    assert "no column 'x' in obs" in run("info", path, "--label", "x", code=1).stderr
    assert "types" not in run("info", path).stdout.replace("cell_type", "")


def test_swapped_model_and_file_are_reported(path):
    fit_model = "train", path, "--label", "cell_type", "-o", "types.model"
    assert run(*fit_model).exit_code == 0
    for command in ("annotate",), ("predict",), ("evaluate", "--label", "cell_type"):
        told = run(*command, path, "types.model", code=2).stderr
        assert f"MODEL comes first: sparsemargin {command[0]} types.model cells.h5ad" in told
    told = run("annotate", "types.model", path, "-o", "types.h5ad", code=1).stderr
    assert "Name it .tsv or .csv" in told
    lines = run("annotate", "types.model", path, path).stdout.splitlines()
    assert lines[0] == "file\tcells\tpredicted\tconfidence"


def test_evaluate_takes_the_label_column_of_the_model(path):
    run("train", path, "--label", "cell_type", "-o", "types.model")
    told = run("evaluate", "types.model", path).stdout
    assert told == run("evaluate", "types.model", path, "--label", "cell_type").stdout
    # A table of labels is not opened because a model names it.
    Path("kinds").write_text("barcode\tkind\n")
    run("train", path, "--label", "cell_type", "-o", "types.model")
    model = load_model("types.model").set_params(label="kinds")
    save_model(model, "types.model")
    assert "no column 'label'" in run("evaluate", "types.model", path, code=1).stderr


def test_usage_errors_are_reported(path):
    told = run("train", path, "-o", "x.model", code=1)
    assert told.exit_code == 1
    assert "has no column 'label' in obs. There are: cell_type. Pass" in told.stderr
    (text := Path("text.svm")).write_text("1 1:1\n2 2:1\n")
    assert (
        "--layer needs files of cells"
        in run("train", str(text), "--layer", "x", "-o", "m", code=2).stderr
    )
    for option, value in ("--batch", "x"), ("--target-sum", "100"):
        told = run("train", str(text), option, value, "-o", "m", code=2).stderr
        assert f"{option} needs files of cells" in told
    assert "can't be read together" in run("train", str(text), path, "-o", "m", code=2).stderr
    assert run("train", str(text), "-o", "text.model").exit_code == 0
    told = run("predict", "text.model", path, code=2).stderr
    assert "text.model was not trained on cells, but " in told
    assert "Pass a model and files of the same kind." in " ".join(told.split())
    assert "is not a file of cells" in run("annotate", "text.model", str(text), code=2).stderr
