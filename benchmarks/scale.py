"""Distributed training, measured: errors, bytes transferred, and time on Dask's workers.

The results are stored in scale.json after each part; parts that are not selected are kept.
`--tables` instead updates the tables of docs/development/scale.md from the figures kept next to
this file; parts of quick runs are ignored. An epoch of 10^9 documents over many workers is
extrapolated from the results of the part `documents`.

    python benchmarks/scale.py [--only level clusters ...] [--quick] [--out results] [--tables]
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from markdown_tables import fill_page, markdown_table, pivot
from matplotlib.figure import Figure
from scale_clusters import of_clusters
from scale_documents import document_costs, documents, of_documents
from scale_problems import (
    CELLS,
    LARGE,
    OF_CELLS,
    PROBLEMS,
    SMALL,
    Learner,
    Problem,
    generated,
    one_topic,
    rcv1,
    rounds_of,
)
from timing import (
    FOLDER,
    describe_machine,
    machine,
    parser_of,
    replace_text,
    show,
)

from papers.curves import scale_epochs
from sparsemargin.distributed import Round
from sparsemargin.distributed.rounds import suits_ring
from sparsemargin.plotting import theme
from sparsemargin.plotting.style import line_style

Parts = dict[str, Any]

FIGURES = FOLDER / "scale.json"
PAGE = FOLDER.parent / "docs" / "development" / "scale.md"
#: The parameters of `fit_csr` and `fit_distributed`, by the names used in reports.
FIRST_ORDER: dict[str, Learner] = {
    f"{name}, p={p}": {"fit_intercept": False, "algo": algo, "p": p}
    for name, algo in (("p-norm", "pnorm"), ("ALMA", "alma"))
    for p in (2, 6)
}
SECOND_ORDER: dict[str, Learner] = {
    "Second-order": {"fit_intercept": False, "algo": "so", "max_updates": None, "alpha": None}
}
N_SHARDS = (1, 2, 4, 8, 16, 32, 64)
RCV1_EPOCHS, LARGE_EPOCHS = 10, 5
# The cost of second-order methods is quadratic in the mistakes.
SECOND_ORDER_EPOCHS = 5


def curve(
    problem: Problem, n_shards: int, learner: Learner, n_epochs: int
) -> list[tuple[float, int]]:
    """The share of wrong predictions after each epoch, and the corrections of the epoch."""

    def take(done: Round) -> tuple[float, int]:
        wrong = done.model().predict(problem.X_test) != problem.y_test
        return float(np.mean(wrong)), sum(done.corrections)

    shards = problem.shards(n_shards)
    return rounds_of(shards, learner, take, max_iter=n_epochs, mixing="uniform", min_rows=1)


def curves(
    problems: Sequence[Problem], learners: dict[str, Learner], n_epochs: int,
    n_shards: Sequence[int],
) -> list[dict[str, Any]]:  # fmt: skip
    """Curves of every learner and number of shards, each the mean over the problems. A model
    depends on the shards, not on where they are stored."""
    entries = []
    for (name, learner), shards in product(learners.items(), n_shards):
        each = [curve(problem, shards, learner, n_epochs) for problem in problems]
        errors, corrections = np.round(np.mean(each, axis=0), 6).T.tolist()
        entries.append({"learner": name, "shards": shards, "errors": errors,
                        "corrections": corrections})  # fmt: skip
    return entries


def of_rcv1(quick: bool) -> Parts:
    """Ten topics of the RCV1 sample; the figures are means over them."""
    problem, topics = rcv1()
    shards = N_SHARDS[:3] if quick else N_SHARDS
    n_epochs = 2 if quick else RCV1_EPOCHS
    columns = range(2 if quick else len(topics))
    alone = [one_topic(problem, column) for column in columns]
    return {
        "topics": topics, "n_train": problem.X.shape[0], "n_test": problem.X_test.shape[0],
        "curves": [
            *curves([problem], FIRST_ORDER, n_epochs, shards),
            *curves(alone, SECOND_ORDER, min(n_epochs, SECOND_ORDER_EPOCHS), shards),
        ],
    }  # fmt: skip


LEVEL_SHARDS = (1, 4, 16, 64)


#: Problems that are also split into more shards.
OF_MANY, MOST_SHARDS = ("zipf", "reviews", "RCV1, rare topics"), 256


def of_level(quick: bool) -> list[dict[str, Any]]:
    """The default learner over growing numbers of shards: mixtures, and the ring where it is
    used."""
    names = list(PROBLEMS)[: 1 if quick else None]
    shards = LEVEL_SHARDS[: 2 if quick else None]
    more = () if quick else (MOST_SHARDS,)
    return [
        entry for name in names
        for entry in level_of(name, (*shards, *(more if name in OF_MANY else ())))
    ]  # fmt: skip


def level_of(name: str, n_shards: Sequence[int] = LEVEL_SHARDS) -> Iterator[dict[str, Any]]:
    """Measure the problem with this name."""
    problem = PROBLEMS[name]()
    n_labels = problem.y.shape[1] if problem.y.ndim > 1 else len(np.unique(problem.y))
    for n in n_shards:
        joined = 1
        for mixing in ("uniform", "ring"):
            # Models of cells are joint, and a ring needs a vector for each label.
            is_for_ring = joined > 1 and n_labels > 2 and name not in CELLS
            is_for_ring = is_for_ring and suits_ring(n_labels, joined)
            if mixing == "ring" and not is_for_ring:
                continue
            given = {"mixing": mixing, "max_iter": "auto"}
            learner = given | {"max_iter": 10} | OF_CELLS if name in CELLS else given
            (*_, last) = rounds_of(problem.shards(n), learner, _level)
            joined = last["joined"]
            wrong = float(np.mean(last["model"].predict(problem.X_test) != problem.y_test))
            yield {
                "data": name, "shards": n, "mixing": mixing, "error": wrong,
                "epochs": last["epoch"], "mixtures": last["mixtures"], "joined": joined,
                "traffic": last["traffic"],
            }  # fmt: skip


def _level(done: Round) -> dict[str, Any]:
    n_shards = len(done.corrections)  # after small shards were joined
    return {"model": done.model(), "epoch": done.epoch, "mixtures": done.mixtures,
            "joined": n_shards,
            "traffic": n_shards * done.bytes_sent + done.bytes_received}  # fmt: skip


def of_generated(quick: bool) -> Parts:
    """Generated rows of 10^8 nonzeros."""
    problem = generated(SMALL if quick else LARGE)
    shards = N_SHARDS[:3] if quick else N_SHARDS
    n_epochs = 2 if quick else LARGE_EPOCHS
    return {
        "n_train": problem.X.shape[0], "n_test": problem.X_test.shape[0],
        "n_features": problem.X.shape[1], "n_entries": problem.X.nnz,
        "curves": curves([problem], FIRST_ORDER, n_epochs, shards),
    }  # fmt: skip


def _header(curve: dict[str, Any]) -> str:
    return "1 shard" if curve["shards"] == 1 else str(curve["shards"])


def _shards(parts: Parts, name: str) -> str:
    errors = lambda curve: f"{100 * curve['errors'][0]:.2f}, {100 * curve['errors'][-1]:.2f}"  # noqa: E731
    found = [curve for curve in parts[name]["curves"] if curve["shards"] in DRAWN_SHARDS]
    return pivot(
        [("test error %", "{learner}"),
         ("after epochs", lambda curve: f"1, {len(curve['errors'])}")],
        "shards",
        [(_header, errors)],
    )(found)  # fmt: skip


def _level_table(parts: Parts) -> str:
    """Errors of the default learner, and the traffic of an epoch. Data whose shards are all joined
    to one are left out."""
    alone = {each["data"]: each for each in parts["level"] if each["shards"] == 1}
    rows = [
        each | {"way": "ring" if each["mixing"] == "ring" else "mixtures",
                "one": 100 * alone[each["data"]]["error"], "percent": 100 * each["error"],
                "megabytes": each["traffic"] / 1e6}
        for each in parts["level"] if each["joined"] > 1
    ]  # fmt: skip
    return pivot(
        [("test error % (MB an epoch)", "{data}"), ("", "{way}"), ("1 shard", "{one:.2f}")],
        "shards",
        [(lambda each: str(each["shards"]), "{percent:.2f} ({megabytes:.0f})")],
    )(rows)


def _clusters(parts: Parts) -> str:
    """CPU seconds of one process, one worker and two workers, for each number of classes."""
    alone, found = dict[int, float](), dict[tuple[Any, ...], dict[int, Any]]()
    for each in parts["clusters"]:
        if "fit_text" in each:
            alone[each["classes"]] = each["fit_text"]
        else:
            key = each["classes"], each["MB"], each["ring"]
            found.setdefault(key, {})[each["workers"]] = each
    rows = [
        (
            f"{classes}{' (ring)' * ring}", f"{size:.0f}",
            "-" if ring else f"{alone[classes]:.1f}", f"{of[1]['each worker'][0]:.1f}",
            f"{max(of[2]['each worker']):.1f}",
            f"{of[2]['client']:.1f}, {of[2]['scheduler']:.1f}",
            f"{of[1]['seconds']:.1f}, {of[2]['seconds']:.1f}",
        )
        for (classes, size, ring), of in found.items()
    ]  # fmt: skip
    names = [
        "classes", "MB", "`fit_text`", "one worker", "the busier of two",
        "their client, scheduler", "by the clock: one, two workers",
    ]  # fmt: skip
    return markdown_table(names, rows)


#: The tables of docs/development/scale.md: their parts, and the functions that make them.
TABLES: dict[str, tuple[str, Callable[[Parts], str]]] = {
    "level": ("level", _level_table), "clusters": ("clusters", _clusters),
    "shards-rcv1": ("rcv1", partial(_shards, name="rcv1")),
    "shards-generated": ("generated", partial(_shards, name="generated")),
    "document-costs": ("documents", document_costs), "documents": ("documents", documents),
}  # fmt: skip


def render(parts: Parts) -> dict[str, str]:
    """Return the tables for which the parts are available, in Markdown."""
    return {name: table(parts) for name, (part, table) in TABLES.items() if part in parts}


DRAWN = {"rcv1": "RCV1, ten topics", "generated": "generated, $10^8$ nonzeros"}
DRAWN_SHARDS = (1, 4, 16, 64)


def draw_pictures(folder: Path) -> None:
    """Draw the picture from the kept figures, on a light and on a dark background."""
    figures = figures_of(FIGURES)
    for ground in ("light", "dark"):
        with theme(ground):
            _draw(figures).savefig(folder / f"scale-{ground}.svg", metadata={"Date": None})


def _draw(figures: dict[str, Any]) -> Figure:
    """Draw test error over epochs: a row for each kind of rows, a panel for each learner."""
    figure = Figure(figsize=(3.1 * len(FIRST_ORDER), 2.9 * len(DRAWN)), layout="constrained")
    panels = figure.subplots(len(DRAWN), len(FIRST_ORDER), squeeze=False)
    for (name, title), row in zip(DRAWN.items(), panels, strict=True):
        for learner, axes in zip(FIRST_ORDER, row, strict=True):
            for curve in figures[name]["curves"]:
                if curve["learner"] == learner and (n := curve["shards"]) in DRAWN_SHARDS:
                    epochs = range(1, len(curve["errors"]) + 1)
                    style = line_style(axes, len(epochs), {"label": f"{n} shard{'s' * (n > 1)}"})
                    axes.plot(epochs, [100 * error for error in curve["errors"]], **style)
            scale_epochs(axes, list(epochs))
            axes.set(title=learner, xlabel="epochs")
        row[0].set_ylabel(f"{title}\ntest error (%)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


PARTS: dict[str, Callable[[bool], Any]] = {
    "level": of_level,
    "documents": of_documents,
    "rcv1": of_rcv1,
    "generated": of_generated,
    "clusters": of_clusters,
}


def write(path: Path, parts: dict[str, Any]) -> None:
    """Write the figures of the parts, one line each if there are several."""
    lines = ",\n".join(f'"{name}": {_lines(part)}' for name, part in parts.items())
    replace_text(path, f'{{"machine": {json.dumps(machine())},\n"parts": {{\n{lines}\n}}}}\n')


def _lines(value: Any) -> str:
    """JSON with each entry of a list on a separate line."""
    if isinstance(value, dict):
        items = (f"{json.dumps(key)}: {_lines(each)}" for key, each in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list) and isinstance(value[0], dict):
        entries = ",\n".join(map(json.dumps, value))
        return f"[\n{entries}\n]"
    return json.dumps(value)


def read(path: Path) -> dict[str, Any]:
    """The parts in a file, if it exists."""
    return json.loads(path.read_text())["parts"] if path.exists() else {}


def figures_of(path: Path) -> dict[str, Any]:
    """The figures without the settings of the measurement."""
    return {name: part["figures"] for name, part in read(path).items()}


def bring_up_to_date(figures: Path) -> None:
    """Keep the figures of full runs, and make the tables of the page."""
    new = {name: part for name, part in read(figures).items() if not part["quick"]}
    if new:
        parts = read(FIGURES) | new
        write(FIGURES, {name: parts[name] for name in PARTS if name in parts})
    fill_page(PAGE, render(figures_of(FIGURES)))


def main() -> None:
    """Measure the selected parts, or make the tables."""
    parser = parser_of(__doc__, "results")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="small sizes: a minute")
    parser.add_argument(
        "--tables", action="store_true", help="make the tables of docs/development/scale.md"
    )
    options = parser.parse_args()
    path = options.out / "scale.json"
    if options.tables:
        bring_up_to_date(path)
        return
    print(describe_machine())
    parts = read(path)
    for name in options.only:
        parts[name] = {"quick": options.quick, "figures": PARTS[name](options.quick)}
        write(path, {each: parts[each] for each in PARTS if each in parts})
        show(name, parts[name])
    print(f"\nwritten: {path}")


if __name__ == "__main__":
    main()
