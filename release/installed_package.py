"""Run by an interpreter that has the package installed, outside of the project: does it work?

python -I release/installed_package.py

What is to be there, the project's pyproject.toml tells. Nothing but the standard library and what
the package itself needs is imported here.
"""

import importlib
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file

import sparsemargin
from sparsemargin.datasets import make_zipf_text

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def check_names(packages):
    """Each can be imported, or says which extra it needs; what the package offers is there."""
    for name in packages:
        try:
            importlib.import_module(name)
        except ImportError as error:
            if "sparsemargin[" not in str(error):
                raise
            print(f"{name}: {error}")
    for name in sparsemargin.__all__:
        assert callable(getattr(sparsemargin, name)), name


def check_learning(folder):
    """Matrices, files and models agree."""
    X, y = make_zipf_text(3000, 2000, random_state=0)
    dump_svmlight_file(X, y, str(folder / "rows.svm"), zero_based=False)
    loaded, labels = sparsemargin.load_svmlight(folder / "rows.svm", n_features=X.shape[1])
    assert np.array_equal(labels, y)
    for algo in "pnorm", "alma", "romma":
        params = {"algo": algo, "random_state": 0, "max_iter": 1, "shuffle": False}
        model = sparsemargin.fit_csr(loaded, y, **params)
        assert model.score(X, y) > 0.9, algo
        streamed = sparsemargin.fit_svmlight(folder / "rows.svm", **params, cache=False)
        width = streamed.n_features_in_
        assert np.array_equal(streamed.coef_, model.coef_[:, :width]), algo
        sparsemargin.save_model(model, folder / "a.model")
        again = sparsemargin.load_model(folder / "a.model")
        assert np.array_equal(again.decision_function(X), model.decision_function(X)), algo


def main():
    settings = tomllib.loads(PYPROJECT.read_text())
    version, packages = settings["project"]["version"], settings["tool"]["setuptools"]["packages"]
    home = Path(sparsemargin.__file__).resolve()
    assert home.is_relative_to(Path(sys.prefix).resolve()), f"not the installed package: {home}"
    assert sparsemargin.__version__ == version, sparsemargin.__version__
    check_names(packages)
    with tempfile.TemporaryDirectory() as folder:
        check_learning(Path(folder))
    print(f"sparsemargin {version}, {len(packages)} packages: as it should be")


if __name__ == "__main__":
    main()
