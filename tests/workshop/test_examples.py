"""Notebooks and scripts in examples/, in the quick form, on published data where they are there."""

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

sys.path.append(str(Path(__file__).parents[2] / "examples"))
import report

EXAMPLES = Path(report.__file__).parent
STORIES = ("rcv1_subsets_topics.svm.bz2", "rcv1_topics.txt")
FILES = {
    "rcv1": STORIES,
    "microarrays": (
        "Lymphoma96x4026.arff.gz",
        "lymphoma_labels.csv",
        "breast_er_west2001.csv.gz",
        "colon_alon1999.csv.gz",
        "leukemia_golub1999.csv.gz",
    ),
    "mnist": (
        "train-images-idx3-ubyte.gz",
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    ),
    "max_margin": ("sonar.mines", "sonar.rocks"),
    "choosing_p_and_alpha": STORIES,
}
LONGEST_CELL = 300  # seconds
# Of the error of always giving the same answer; single learners may come near it in a few splits.
CLEARLY_BELOW_CHANCE = 0.8


def has_data(name):
    """Tell whether the published files of an example are at hand; if not, it generates its data."""
    folder = os.environ.get("SPARSEMARGIN_DATA")
    return bool(folder) and all(Path(folder, file).exists() for file in FILES.get(name, ()))


def environment(folder, *, published):
    """The environment of a quick run that finds the published files, or is kept from them."""
    quick = os.environ | {report.QUICK_VARIABLE: "1"}
    if published:
        return quick
    caches = dict.fromkeys(["XDG_CACHE_HOME", "SCIKIT_LEARN_DATA"], str(folder))
    # The list of fonts shall not be made anew, as it would in the empty folder.
    own = {"SPARSEMARGIN_DATA": "", "MPLCONFIGDIR": matplotlib.get_cachedir(), **caches}
    return quick | own


# -- scripts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("study", "n_learners", "repeats"), [("rcv1", 13, 2), ("microarrays", 9, 3)]
)
def test_script_prints_a_table_of_errors_below_chance(study, n_learners, repeats, tmp_path):
    output = subprocess.run(
        [sys.executable, EXAMPLES / f"{study}.py"],
        env=environment(tmp_path, published=False),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    head, _, table = output.partition("mistakes in training")
    assert "GENERATED" in head
    assert f"{repeats} random splits" in head
    chances = np.array(re.findall(r"([\d.]+)%", head), dtype=float)
    _, _, _, *lines = table.splitlines()
    names = [re.split(r"\s{2,}", line)[0] for line in lines]
    assert len(set(names)) == n_learners
    assert names[-1] == "LinearSVC"
    cells = np.array([re.findall(r"([\d.-]+) +([\d.]+)±([\d.]+)", line) for line in lines])
    assert (cells[:-1, :, 0].astype(float) > 0).all()
    assert set(cells[-1, :, 0]) == {"-"}
    errors = cells[:, :, 1].astype(float)
    assert errors.shape == (n_learners, 4)
    assert (errors.mean(axis=0) < CLEARLY_BELOW_CHANCE * chances).all()


def test_demo_begins_with_the_calls_of_a_user(tmp_path):
    output = subprocess.run(
        [sys.executable, EXAMPLES / "demo.py"],
        env=environment(tmp_path, published=False),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    head, *tables = re.split(r"^ +error %.*\n-+\n", output, flags=re.MULTILINE)
    guess = float(re.search(r"always answering \w+: ([\d.]+) %", head)[1])
    calls, algorithms = (
        {name: float(error) for name, error in re.findall(r"^(\S.+?) {2,}([\d.]+) ", table, re.M)}
        for table in tables
    )
    ours, matrix, svc, sgd = calls
    assert ours == "fit_csr(X, y)"
    assert matrix == 'fit_csr(X, y, algo="ho", p=7)'
    assert svc.startswith("LinearSVC()")
    assert sgd.startswith("SGDClassifier(average=True)")
    assert all(0 < error < CLEARLY_BELOW_CHANCE * guess for error in calls.values())
    assert abs(calls[ours] - calls[svc]) < 5
    assert sum(name.startswith(("Perceptron", "ALMA")) for name in algorithms) == 12
    assert (tmp_path / "demo-margins.png").stat().st_size > 10_000


# -- notebooks -----------------------------------------------------------------------------------

PICTURES = {
    "getting_started": 3,
    "rcv1": 5,
    "microarrays": 3,
    "mnist": 4,
    "max_margin": 3,
    "svmlight_files": 1,
    "choosing_p_and_alpha": 4,
}
PROBES = {
    "getting_started": """
found = {
    "scores": [guess, model.score(X_test, libraries[test]), peer.score(X_test, libraries[test])],
    "panels": [axes.get_title() for axes in words.ax_],
    "lines": [line.get_label() for line in margins.lines_],
    "tags": [sorted(row) for row in tagger.predict_labels(rows, top_k=3)],
    "tagged": tagged,
    "errors": errors,
    "same": bool((again.predict(X_test) == model.predict(X_test)).all()),
}
""",
    "rcv1": """
found = {
    "origin": stories.origin,
    "chances": {name: np.mean(labels > 0) for name, labels in stories.labels.items()},
    "errors": {name: {learner: np.mean(run.test_errors) for learner, run in runs.items()}
               for name, runs in results.items()},
    "streams": {name: np.transpose(log).tolist() for name, log in streams.items()},
    "drawn": [axes.get_xlabel() for axes in display.ax_],
    "curves": {name: run.mistakes.tolist() for name, [run] in curves.curves.items()},
    "updates": {name: [model.n_corrections_, model.n_updates_]
                for name, model in variants.items()},
    "terms": {name: [t.agreement, t.effective_numbers.mean()] for name, t in terms.items()},
    "words": list(words.values()),
    "share of scipy": np.mean(is_scipy_test == "scipy"),
    "n_train": rcv1.N_TRAIN,
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
    "genes": [[*case, g.agreement, g.effective_numbers.mean()] for case, g in genes.items()],
    "top": study.genes[np.argsort(-genes[STUDY, 7].frequencies)[:3]].tolist(),
}
""",
    "mnist": """
found = {
    "origin": digits.origin,
    "measured": measured,
    "hypotheses": {name: line.get_ydata().tolist() for name, line in errors.lines_.items()},
    "pools": [pools, pool_errors],
    "misread": [read[worst].tolist(), digits.y_test[worst].tolist()],
}
""",
    "max_margin": """
found = {
    "origin": origin,
    "curve": [certificate.margins.tolist(), certificate.upper_bounds.tolist()],
    "rivals": {name: [m.margin_, m.margin_upper_bound_] for name, m in rivals.items()},
    "lowest": {d: float(c.thresholds[0]) for d, c in margins.distributions.items()},
    "soft": [float(np.mean(model.predict(X) != y)) for model in soft],
    "norms": [[m.margin_ / m.margin_upper_bound_, 1 - m.score(*sparse[2:]), np.sort(np.abs(
        m.coef_[0]))[-3:].sum() / np.abs(m.coef_[0]).sum()] for m in by_norm.values()],
}
""",
    "svmlight_files": """
found = {"once": once, "several": several, "same": bool(same), "hashed": hashed, "message": message}
""",
    "choosing_p_and_alpha": """
found = {
    "kind": kind,
    "origin": stories.origin,
    "trades": [[[q.p, q.alpha, q.mistakes.mean(), q.accuracies.mean()] for q in t.points]
               for t in trades.values()],
    "crossings": list(crossings.values()),
    "strongest": [bar.get_width() for bar in strongest.bars_[0]],
    "errors": [found.tolist() for found in errors.values()],
    "chosen": [search.best_params_["p"] for search in searches.values()],
}
""",
}
PRINT_FOUND = "import json\nprint(json.dumps(found, default=float))"


@pytest.fixture
def run_notebook(tmp_path):
    return lambda name: execute(name, tmp_path)


def execute(name, folder):
    """Run a notebook; return what its probe found at the end, and what its cells printed, by id."""
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(PROBES[name] + PRINT_FOUND))
    client = NotebookClient(
        notebook,
        timeout=LONGEST_CELL,
        resources={"metadata": {"path": str(EXAMPLES)}},
    )
    client.execute(env=environment(folder, published=has_data(name)))
    *cells, probe = [cell for cell in notebook.cells if cell.cell_type == "code"]
    pictures = [o for cell in cells for o in cell.outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == PICTURES[name]
    printed = {cell.id: "".join(o.get("text", "") for o in cell.outputs) for cell in cells}
    assert "A QUICK run" in printed[cells[0].id]
    found = json.loads(probe.outputs[0].text)
    if "origin" in found:
        stands_in = found["origin"].startswith(("GENERATED", "SMALL"))
        assert stands_in == (not has_data(name))
    return found, printed


def test_getting_started_notebook(run_notebook):
    found, _ = run_notebook("getting_started")
    guess, own, peer = found["scores"]
    assert own > guess + 0.1
    assert abs(own - peer) < 0.05
    assert [title.split()[-1] for title in found["panels"]] == ["numpy", "scipy", "sklearn"]
    assert found["lines"] == ["sparsemargin", "LinearSVC"]
    assert all(len(tags) == 3 for tags in found["tags"])
    assert 0.4 < found["tagged"] < 1
    assert found["errors"][-1] < found["errors"][0]
    assert found["same"]


def assert_tables_are_sane(found):
    for problem, errors in found["errors"].items():
        chance = found["chances"][problem]
        assert 0 < np.mean(list(errors.values())) < CLEARLY_BELOW_CHANCE * chance


def test_rcv1_notebook(run_notebook):
    found, _ = run_notebook("rcv1")
    assert_tables_are_sane(found)
    errors = found["errors"].values()
    for learner in ("HO_2(0.4)", "SO(1)"):
        last, average = (
            np.mean([by_learner[f"{learner}, {hypothesis}"] for by_learner in errors])
            for hypothesis in ("last", "average")
        )
        assert average < last
    assert found["drawn"] == ["rows seen", "rows seen"]
    for log in found["streams"].values():
        rows, mistakes, test_errors = np.transpose(log)
        assert rows[-1] == found["n_train"]
        assert (np.diff(mistakes) >= 0).all()
        assert test_errors[-1] < test_errors[0]
    for mistakes in found["curves"].values():
        # Every epoch has fewer than the first.
        assert (np.diff(mistakes, prepend=0)[1:] < mistakes[0]).all()
    mistakes, updates = found["updates"]["HO_2(0.4)"]
    assert mistakes == updates > 500
    assert found["updates"]["max_updates=500"][1] == 500
    mistakes, updates = found["updates"]["sparse_updates=True"]
    assert 0 < updates < mistakes
    assert all(0 <= agreement <= 1 for agreement, _ in found["terms"].values())
    spread = {name: number for name, (_, number) in found["terms"].items()}
    assert spread["HO_7(0.4), average"] < spread["HO_2(0.4), average"]
    for error, agreement in found["words"]:
        assert error < CLEARLY_BELOW_CHANCE * found["share of scipy"]
        assert 0 < agreement < 1


def test_microarrays_notebook(run_notebook):
    found, _ = run_notebook("microarrays")
    assert_tables_are_sane(found)
    assert len(found["rules"]) == (6 if has_data("microarrays") else 0)
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
    if not has_data("microarrays"):
        assert all(gene.startswith("relevant") for gene in found["top"])


def by_problem(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row[0], []).append(row)
    return groups


def test_mnist_notebook(run_notebook):
    found, _ = run_notebook("mnist")
    errors = {name: error for name, (_, _, error, _) in found["measured"].items()}
    assert all(0 < error < 0.25 for error in errors.values())
    assert errors["ALMA, three passes"] < errors["ALMA, one pass"]
    mean = {name: np.mean(values) for name, values in found["hypotheses"].items()}
    assert max(mean["average"], mean["vote"], mean["last"]) < mean["random"]
    if has_data("mnist"):
        assert max(mean["average"], mean["vote"]) < mean["last"]
    pools, pool_errors = found["pools"]
    # The largest pool holds all that a fit without a bound keeps.
    assert pools[-1] == found["measured"]["ALMA, one pass"][3]
    assert pool_errors[-1] == errors["ALMA, one pass"] < pool_errors[0]
    assert (np.diff(found["misread"], axis=0) != 0).all()


def test_max_margin_notebook(run_notebook):
    found, _ = run_notebook("max_margin")
    margins, bounds = np.array(found["curve"])
    assert (margins <= bounds).all()
    assert (np.diff(bounds) <= 0).all()
    reached, largest = found["rivals"]["MaxMargin, tol = 0.01"]
    assert reached >= 0.99 * largest
    assert all(margin <= largest * (1 + 1e-9) for margin, _ in found["rivals"].values())
    for alpha in (0.9, 0.5):
        assert found["rivals"][f"ALMA, alpha = {alpha}"][0] >= (1 - alpha) * reached
    for name, lowest in found["lowest"].items():
        assert_allclose(lowest, found["rivals"][name][0], rtol=1e-6)
    assert found["soft"][0] == 0
    proven, errors, weight = np.transpose(found["norms"])
    assert (proven >= 0.9).all()
    assert (np.diff(errors) < 0).all()
    assert (np.diff(weight) > 0).all()


def test_svmlight_files_notebook(run_notebook):
    found, printed = run_notebook("svmlight_files")
    assert found["once"] > 0.8
    assert abs(found["several"] - found["once"]) < 0.03
    assert found["same"]
    assert found["hashed"][-1] > found["hashed"][0] + 0.1
    assert found["message"].startswith("broken.svm, line 2, column 9")
    assert found["message"] in " ".join(printed["errors-shell"].split())
    assert "exit code 1" in printed["errors-shell"]
    # The shell's model is that of the call.
    assert f"{100 * found['once']:.2f} %" in printed["evaluate"]
    assert "one-step-ahead error" in printed["train"]
    assert '"accuracy"' in printed["pipe"]


def test_choosing_notebook(run_notebook):
    found, _ = run_notebook("choosing_p_and_alpha")
    assert found["kind"] == (
        "news stories" if has_data("choosing_p_and_alpha") else "generated text"
    )
    for points in found["trades"]:
        _, _, corrections, _ = np.array(points).reshape(3, 3, 4).T
        # Along each line alpha falls.
        assert (np.diff(corrections, axis=0) > 0).all()
    sparse, dense = found["crossings"]
    assert sparse[-1] < sparse[0] / 2
    assert dense[0] < dense[-1] / 2
    weights = np.abs(found["strongest"])
    assert weights[2] > 2 * weights[3]
    few, many, few_wrong, many_wrong, text = np.array(found["errors"])
    for errors in (few, few_wrong):
        assert errors[:, 2:].min() < errors[:, 0].min() / 2
    assert few_wrong.argmin() // 4 == 2
    for errors in (many, many_wrong, text):
        assert errors.argmin() % 4 <= 1
    assert found["chosen"][0] >= 6
    assert found["chosen"][1] <= 3


def test_every_notebook_is_run_and_listed():
    names = {path.stem for path in EXAMPLES.glob("*.ipynb")}
    assert names == set(PROBES) == set(PICTURES)
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"[`{name}.ipynb`]({name}.ipynb)" in listed for name in names)
    pages = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^notebooks/(\w+)$", pages, flags=re.MULTILINE)) == names


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_stored_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    text = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for target in re.findall(r"\]\((\w+\.ipynb)\)", text):
        assert (EXAMPLES / target).exists()


# -- what scripts and notebooks share --------------------------------------------------------------


def test_size_of_a_run_comes_from_the_environment(monkeypatch):
    for full in ("", "0"):
        monkeypatch.setenv(report.QUICK_VARIABLE, full)
        assert report.sized(50, quick=3) == 50
    monkeypatch.delenv(report.QUICK_VARIABLE)
    assert report.sized(50, quick=3) == 50
    monkeypatch.setenv(report.QUICK_VARIABLE, "1")
    assert report.sized(50, quick=3) == 3
    monkeypatch.setenv(report.QUICK_VARIABLE, "yes")
    with pytest.raises(ValueError, match="SPARSEMARGIN_QUICK must be 1 for a quick run, or 0"):
        report.sized(50, quick=3)
