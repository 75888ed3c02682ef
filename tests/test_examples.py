"""Notebooks and scripts in examples/, with few repeats, on published and on generated data."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from numpy.testing import assert_allclose
from published_files import data_folder

sys.path.append(str(Path(__file__).parents[1] / "examples"))
import microarrays
import rcv1
import report

EXAMPLES = Path(rcv1.__file__).parent
STUDIES = {"rcv1": rcv1, "microarrays": microarrays}
FILES = {
    "rcv1": ["rcv1_subsets_topics.svm.bz2", "rcv1_topics.txt"],
    "microarrays": [
        "Lymphoma96x4026.arff.gz",
        "lymphoma_labels.csv",
        "breast_er_west2001.csv.gz",
        "colon_alon1999.csv.gz",
        "leukemia_golub1999.csv.gz",
    ],
}
REPEATS = {"rcv1": 2, "microarrays": 3}
LONGEST_CELL = 300  # seconds
# Of the error of always giving the same answer; single learners may come near it in a few splits.
CLEARLY_BELOW_CHANCE = 0.8


def environment(study, data, folder):
    """The environment in which a study finds the published files, or none in an empty folder."""
    if data == "published":
        own = {"SPARSEMARGIN_DATA": str(data_folder(*FILES[study]))}
    else:
        caches = dict.fromkeys(["XDG_CACHE_HOME", "SCIKIT_LEARN_DATA"], str(folder))
        # The list of fonts shall not be made anew, as it would in the empty folder.
        own = {"SPARSEMARGIN_DATA": "", "MPLCONFIGDIR": matplotlib.get_cachedir(), **caches}
    return os.environ | own | {report.REPEATS_VARIABLE: str(REPEATS[study])}


@pytest.fixture(params=["published", "generated"])
def data(request):
    return request.param


# -- scripts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("study", STUDIES)
def test_script_prints_a_table_of_errors_below_chance(study, data, tmp_path):
    output = subprocess.run(
        [sys.executable, EXAMPLES / f"{study}.py"],
        env=environment(study, data, tmp_path),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    head, _, table = output.partition("mistakes in training")
    assert ("GENERATED" in head) == (data == "generated")
    assert f"{REPEATS[study]} random splits" in head
    chances = np.array(re.findall(r"([\d.]+)%", head), dtype=float)
    _, _, _, *lines = table.splitlines()
    learners = [re.split(r"\s{2,}", line)[0] for line in lines]
    assert learners == list(STUDIES[study].learners())
    cells = np.array([re.findall(r"([\d.-]+) +([\d.]+)±([\d.]+)", line) for line in lines])
    assert (cells[:-1, :, 0].astype(float) > 0).all()
    assert set(cells[-1, :, 0]) == {"-"}
    errors = cells[:, :, 1].astype(float)
    assert errors.shape == (len(learners), 4)
    assert (errors.mean(axis=0) < CLEARLY_BELOW_CHANCE * chances).all()


# -- notebooks -----------------------------------------------------------------------------------

PROBES = {
    "rcv1": """
found = {
    "origin": stories.origin,
    "chances": {name: np.mean(labels > 0) for name, labels in stories.labels.items()},
    "errors": {name: {learner: np.mean(run.test_errors) for learner, run in runs.items()}
               for name, runs in results.items()},
    "streams": {name: np.transpose(log).tolist() for name, log in streams.items()},
    "curves": {name: [curve.mistakes.tolist(), curve.test_errors.tolist()]
               for name, curve in curves.items()},
    "updates": {name: [model.n_corrections_, model.n_updates_]
                for name, model in variants.items()},
    "terms": terms,
    "words": list(words.values()),
    "share of scipy": np.mean(is_scipy_test > 0),
}
""",
    "microarrays": """
found = {
    "origin": arrays[STUDY].origin,
    "chances": {name: np.minimum(np.mean(a.y > 0), np.mean(a.y < 0))
                for name, a in arrays.items()},
    "errors": {name: {learner: np.mean(run.test_errors) for learner, run in runs.items()}
               for name, runs in results.items()},
    "rules": [np.mean(run.test_errors) for run in rules.values()],
    "differences": [[*case, *test] for case, test in tests.items()],
    "choices": {name: [choice.best.test_errors.mean(), choice.cross_validated.test_errors.mean()]
                for name, choice in choices.items()},
    "curves": [[run.mistakes.tolist() for run in runs] for runs in curves.values()],
    "genes": [[*case, *measured] for case, measured in genes.items()],
    "top": study.genes[strongest_features(weights[STUDY, 7].mean(axis=0), 5)].tolist(),
}
""",
}
PRINT_FOUND = "import json\nprint(json.dumps(found, default=float))"


def run_notebook(study, data, folder):
    """Execute a notebook; return what its probe found at the end."""
    notebook = nbformat.read(EXAMPLES / f"{study}.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(PROBES[study] + PRINT_FOUND))
    client = NotebookClient(
        notebook,
        timeout=LONGEST_CELL,
        resources={"metadata": {"path": str(EXAMPLES)}},
    )
    client.execute(env=environment(study, data, folder))
    *cells, probe = [cell for cell in notebook.cells if cell.cell_type == "code"]
    pictures = [o for cell in cells for o in cell.outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == sum("subplots" in cell.source for cell in cells)
    return json.loads(probe.outputs[0].text)


def assert_tables_are_sane(found, data):
    assert found["origin"].startswith("GENERATED") == (data == "generated")
    for problem, errors in found["errors"].items():
        chance = found["chances"][problem]
        assert 0 < np.mean(list(errors.values())) < CLEARLY_BELOW_CHANCE * chance


def test_rcv1_notebook(data, tmp_path):
    found = run_notebook("rcv1", data, tmp_path)
    assert_tables_are_sane(found, data)
    errors = found["errors"].values()
    for learner in ("HO_2(0.4)", "SO(1)"):
        last, average = (
            np.mean([by_learner[f"{learner}, {hypothesis}"] for by_learner in errors])
            for hypothesis in ("last", "average")
        )
        assert average < last
    for log in found["streams"].values():
        rows, mistakes, _, test_errors = np.transpose(log)
        assert rows[-1] == rcv1.N_TRAIN
        assert (np.diff(mistakes) >= 0).all()
        assert test_errors[-1] < test_errors[0]
    for mistakes, _ in found["curves"].values():
        # Every epoch has fewer than the first.
        assert (np.diff(mistakes, prepend=0)[1:] < mistakes[0]).all()
    mistakes, updates = found["updates"]["HO_2(0.4)"]
    assert mistakes == updates > 1000
    assert found["updates"]["max_updates=500"][1] == 500
    mistakes, updates = found["updates"]["sparse_updates=True"]
    assert 0 < updates < mistakes
    assert all(0 <= agreement <= 1 for agreement, _ in found["terms"].values())
    spread = {name: number for name, (_, number) in found["terms"].items()}
    assert spread["HO_7(0.4), average"] < spread["HO_2(0.4), average"]
    for error, agreement in found["words"]:
        assert error < CLEARLY_BELOW_CHANCE * found["share of scipy"]
        assert 0 < agreement < 1


def test_microarrays_notebook(data, tmp_path):
    found = run_notebook("microarrays", data, tmp_path)
    assert_tables_are_sane(found, data)
    assert len(found["rules"]) == (0 if data == "generated" else 6)
    assert all(0 < error < 0.25 for error in found["rules"])
    for problem, p, difference, p_value, _ in found["differences"]:
        errors = found["errors"][problem]
        assert_allclose(difference, errors[f"HO_{p}(0.4)"] - errors[f"HO_{p}(0)"], atol=1e-12)
        assert 0 < p_value <= 1
    for problem, errors in found["choices"].items():
        assert max(errors) < found["chances"][problem]
    assert (np.diff(found["curves"], axis=-1) >= 0).all()
    for _, group in by_problem(found["genes"]).items():
        # A larger p rests on fewer genes.
        assert (np.diff([number for *_, number in group]) < 0).all()
        assert all(0 < agreement < 1 for *_, agreement, _ in group)
    if data == "generated":
        assert all(gene.startswith("relevant") for gene in found["top"])


def by_problem(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row[0], []).append(row)
    return groups


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_stored_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


# -- what scripts and notebooks share --------------------------------------------------------------


def test_number_of_repeats_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv(report.REPEATS_VARIABLE, raising=False)
    assert report.n_repeats(7) == 7
    monkeypatch.setenv(report.REPEATS_VARIABLE, "12")
    assert report.n_repeats(7) == 12
    for wrong in ("1", "-3", "2.5", "many"):
        monkeypatch.setenv(report.REPEATS_VARIABLE, wrong)
        with pytest.raises(ValueError, match="SPARSEMARGIN_REPEATS must be an integer of 2"):
            report.n_repeats(7)
