"""Randomly changed files of cells are read, or refused by an error that names the file."""

import warnings

import numpy as np
import pytest
from click.testing import CliRunner

from problems.damaged_cells import FORMS, change, copied, write_sound
from sparsemargin import annotate, fit_anndata, save_model
from sparsemargin._engine.rows.csr import bad_pointer
from sparsemargin.cli.app import main

pytestmark = pytest.mark.filterwarnings("ignore")

# Number of inputs for each form of file. They take about 20 s in total.
N_INPUTS = 20

#: Errors that labels may also cause with an undamaged file.
OF_LABELS = "one class only", "is missing for"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        types = write_sound(folder)
        labels = {form: "cell_type" if "h5ad" in form or "zarr" in form else types
                  for form in FORMS}  # fmt: skip
        models = {form: fit_anndata(folder / form, labels[form], max_iter=1) for form in FORMS}
    return folder, labels, models


def refusal(act):
    """Return the error that a call raises, or "". Only ValueError and OSError are allowed."""
    try:
        act()
    except (ValueError, OSError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("form", FORMS)
def test_damaged_cell_files_are_read_or_named(sound, tmp_path, form):
    folder, labels, models = sound
    refused = 0
    # Stores of zarr 3 take four times as long to open as other files.
    for seed in range(N_INPUTS // 3 if form == "cells3.zarr" else N_INPUTS):
        random = np.random.RandomState(seed)
        path = copied(folder / form, tmp_path / form)
        done = [change(path, random) for _ in range(random.randint(1, 3))]
        for act in (
            lambda path=path: fit_anndata(path, labels[form], max_iter=1),
            lambda path=path: annotate(models[form], path),
        ):
            error = refusal(act)
            known = not error or any(words in error for words in OF_LABELS)
            assert known or str(path) in error, (seed, done, error)
            assert "\n" not in error, (seed, done, error)
            refused += bool(error)
    assert refused


@pytest.mark.parametrize("form", FORMS)
def test_commands_report_damaged_files_in_one_line(sound, tmp_path, form):
    folder, labels, models = sound
    save_model(models[form].pipeline_, tmp_path / "model")
    label = labels[form]
    if isinstance(label, dict):
        label = str(tmp_path / "types.tsv")
        lines = [f"{cell}\t{each}\n" for cell, each in labels[form].items()]
        (tmp_path / "types.tsv").write_text("".join(lines))
    for seed in range(100, 108):
        random = np.random.RandomState(seed)
        path, model = copied(folder / form, tmp_path / form), str(tmp_path / "model")
        done = change(path, random)
        for command in (
            ["info", path],
            ["train", path, "--label", label, "-o", tmp_path / "new", "--epochs", "1", "-q"],
            ["annotate", model, path, "-o", tmp_path / "types"],
            ["evaluate", model, path, "--label", label],
        ):
            result = CliRunner().invoke(main, [*map(str, command)])
            assert result.exit_code in (0, 1, 2), (seed, done)
            assert "inside sparsemargin" not in result.output, (seed, done, result.output)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_cells_without_row_pointers_are_refused(sound, tmp_path, dtype):
    assert bad_pointer(np.zeros(0, dtype), 0) == 0
    folder, labels, _ = sound
    path = copied(folder / "cells.h5ad", tmp_path / "cells.h5ad")
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "r+") as file:
        del file["X/indptr"]
        file["X/indptr"] = np.zeros(0, dtype)
    with pytest.raises(ValueError, match="rows do not divide its values"):
        fit_anndata(path, labels["cells.h5ad"])
