"""Run by an interpreter that has the package installed, outside of the project: does it work?

python -I tests/long/installed_package.py

What is to be there, the project's pyproject.toml tells. Nothing but the standard library and what
the package itself needs is imported here.
"""

import importlib
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy as np

import sparsemargin
from sparsemargin.datasets import make_zipf_text

ROOT = Path(__file__).resolve().parents[2]


def check_identity(version):
    """It is the installed one, of this version."""
    home = Path(sparsemargin.__file__).resolve()
    assert home.is_relative_to(Path(sys.prefix).resolve()), f"not the installed package: {home}"
    assert sparsemargin.__version__ == version, sparsemargin.__version__


def check_packages(names):
    """Each can be imported, or says which extra it needs."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            if "sparsemargin[" not in str(error):
                raise
            print(f"{name}: {error}")


def check_names():
    """All that the package offers is there, at the first use too."""
    for name in sparsemargin.__all__:
        assert callable(getattr(sparsemargin, name)), name


def write_svmlight(path, X, y):
    with path.open("w") as file:
        for i, label in enumerate(y):
            row = slice(X.indptr[i], X.indptr[i + 1])
            entries = zip(X.indices[row] + 1, X.data[row].tolist(), strict=True)
            file.write(" ".join([str(label), *(f"{j}:{x!r}" for j, x in entries)]) + "\n")


def check_learning(folder):
    """Matrices, files and models agree."""
    X, y = make_zipf_text(3000, 2000, random_state=0)
    write_svmlight(folder / "rows.svm", X, y)
    for algo in "pnorm", "alma", "romma":
        params = {"algo": algo, "random_state": 0, "max_iter": 1, "shuffle": False}
        model = sparsemargin.fit_csr(X, y, **params)
        assert model.score(X, y) > 0.9, algo
        streamed = sparsemargin.fit_svmlight(folder / "rows.svm", **params, cache=False)
        width = streamed.n_features_in_
        assert np.array_equal(streamed.coef_, model.coef_[:, :width]), algo
        sparsemargin.save_model(model, folder / "a.model")
        again = sparsemargin.load_model(folder / "a.model")
        assert np.array_equal(again.decision_function(X), model.decision_function(X)), algo
    loaded, labels = sparsemargin.load_svmlight(folder / "rows.svm", n_features=X.shape[1])
    assert (loaded != X).nnz == 0
    assert np.array_equal(labels, y)


def main():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    version, names = settings["project"]["version"], settings["tool"]["setuptools"]["packages"]
    check_identity(version)
    check_packages(names)
    check_names()
    with tempfile.TemporaryDirectory() as folder:
        check_learning(Path(folder))
    print(f"sparsemargin {version}, {len(names)} packages: as it should be")


if __name__ == "__main__":
    main()
