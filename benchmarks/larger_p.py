"""When a larger p pays and when it hurts: ALMA_p(alpha) on RCV1 topics and on artificial targets.

Test errors of `fit_csr` as it comes but for p and alpha, on the ten RCV1 topics
and rows that `defaults.py` reports on, and on the artificial data of the ALMA paper, where 3 or 300
of 300 features are relevant and none or a tenth of the training labels are wrong.

Needs the RCV1 sample in the folder that SPARSEMARGIN_DATA names.

    python benchmarks/larger_p.py [--draws 3] [--out results/larger-p.json]
"""

import argparse
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean

from measure import describe_machine, text_table, write_json
from rcv1_sample import halves, load_topics

from sparsemargin import fit_csr
from sparsemargin.datasets import make_alma_target

NORMS = (2, 3, 4, 6, 10)
ALPHAS = (0.9, 0.8, 0.5)
RCV1 = "RCV1"


def artificial_problems(n_draws: int) -> dict[str, list[tuple]]:
    """Draw the artificial data, `n_draws` times each, by what the table calls them."""
    return {
        f"{n_relevant} of 300, noise {noise:g}": [
            make_alma_target(n_relevant=n_relevant, noise=noise, random_state=seed)[:4]
            for seed in range(n_draws)
        ]
        for n_relevant, noise in product((3, 300), (0.0, 0.1))
    }


def error_on(draws: list[tuple], learn: Callable) -> float:
    """Return the mean test error over draws, in percent."""
    return mean(100 * (1 - learn(X, y).score(X_test, y_test)) for X, y, X_test, y_test in draws)


def main() -> None:
    """Run all settings on all data, print the table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=3, help="of the artificial data (default 3)")
    parser.add_argument("--out", type=Path, default=Path("results/larger-p.json"))
    arguments = parser.parse_args()
    if arguments.draws < 1:
        parser.error("--draws must be at least 1")
    topics = halves(load_topics())[1].sides()
    problems = artificial_problems(arguments.draws)
    rows = []
    for alpha, p in product(ALPHAS, NORMS):
        alma = partial(fit_csr, p=p, alpha=alpha, random_state=0)
        on_text = mean(topics.errors(alma).values())
        rows.append([alpha, p, on_text, *(error_on(each, alma) for each in problems.values())])
    names = [RCV1, *problems]
    print(f"{describe_machine()}\n\nTest error in % of fit_csr(X, y, p=p, alpha=alpha)\n")
    columns = [("alpha", ""), ("p", ""), *((name, ".2f") for name in names)]
    print(text_table(columns, rows))
    entries = [dict(zip(["alpha", "p", *names], row, strict=True)) for row in rows]
    write_json(arguments.out, {"draws": arguments.draws, "errors": entries})


if __name__ == "__main__":
    main()
