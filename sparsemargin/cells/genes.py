"""The genes of files of cells, and how they are matched by name with those of a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np

from sparsemargin._checks import check_choice
from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.rows.counts import LEFT_OUT, NO_GENE
from sparsemargin.files.sources import open_sources
from sparsemargin.genomes.cells import CellNormalizer, Values
from sparsemargin.readers.cell_files import Cells, cells_of, open_cells, warn_of_left_out

#: How names of genes are compared: as they are, in capitals, or without an Ensembl version.
Match = Literal["exact", "case", "version"]

_VERSION = re.compile(r"^(ENS[A-Z]*\d+)\.\d+$")

# Least share of the variance of the training cells, that of genes that new cells have. With a
# random tenth of the genes of pancreas cells, 68 to 88 % of the types are right instead of 98 %;
# with a third of the genes of blood progenitors it is 26 to 44 % instead of 66 %.
_LEAST_SHARE = 0.25

# With a smaller share the warning says what to do. Genes that scanpy's filter_genes removes, as
# hardly any cell has them, take away less.
_COMPLETE_SHARE = 0.9


@dataclass(frozen=True)
class CellForm:
    """How cells are read.

    `layer` is a matrix other than X, `var` the column that names genes, `match` how names are
    compared, and `values` what values are that a model is asked about.
    """

    layer: str | None = None
    var: str | None = None
    match: Match = "exact"
    values: Values = "auto"

    @contextmanager
    def open(self, what: Any) -> Iterator[list[Cells]]:
        """The cells of an AnnData, of files, or of a list of either."""
        check_choice("match", self.match, get_args(Match))
        if self.values is not None:
            check_choice("normalize", self.values, ("auto", "counts"))
        with ExitStack() as files:
            found = list[Cells]()
            for each in what if isinstance(what, list | tuple) else [what]:
                is_file = not hasattr(each, "obs_names")
                for one in open_sources(each) if is_file else [each]:
                    found.append((open_cells if is_file else cells_of)(one, self.layer, self.var))
                    files.callback(found[-1].close)
            if not found:
                raise ValueError("There are no cells: the list of files is empty.")
            yield found

    def names_of(self, cells: Any) -> list[Any]:
        """The names of genes. None for other features. A ValueError where a name comes twice."""
        names: list[Any] = list(map(str, cells.genes))
        if cells.is_gene is not None:
            names = [n if is_one else None for n, is_one in zip(names, cells.is_gene, strict=True)]
        repeated = _repeated(name for name in names if name is not None)
        if repeated:
            remedy = "adata.var_names_make_unique()"
            if self.var is not None:
                remedy = f"adata.var_names = adata.var[{self.var!r}].astype(str) and {remedy}"
                remedy += ", and leave var out"
            raise ValueError(
                f"{cells.name} has several genes {repeated[0]!r}, and genes are matched by their "
                f"names. Call {remedy}."
            )
        return names

    def genes_of(self, cells: Any) -> dict[str, Any]:
        """The genes by what is compared of their names: of several the first."""
        names = [name for name in self.names_of(cells) if name is not None]
        found: dict[str, Any] = {}
        for key, name in zip(names_by(names, self.match), names, strict=True):
            found.setdefault(key, name)
        return found


def names_by(genes: Iterable[Any], match: Match) -> list[str]:
    """What is compared of the names of genes."""
    names = list(map(str, genes))
    if match == "case":
        return [name.upper() for name in names]
    return [_VERSION.sub(r"\1", name) for name in names] if match == "version" else names


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def first_of(genes: Iterable[Any]) -> str:
    """The first three names."""
    return ", ".join(map(repr, islice(genes, 3)))


def genes_of(cells: list[Any], wanted: Any, form: CellForm) -> np.ndarray:
    """The genes of the model: those of all files, of any file ("union"), or those given."""
    warn_of_left_out(cells)
    named = [form.genes_of(each) for each in cells]
    every: dict[str, Any] = {}
    for each in named:
        every |= {key: gene for key, gene in each.items() if key not in every}
    shared = [key for key in every if all(key in each for each in named)]
    if wanted is not None and not isinstance(wanted, str):
        genes = np.array(list(map(str, wanted)), dtype=object)
        keys = names_by(genes, form.match)
        if twice := _repeated(keys):
            raise ValueError(f"genes has {twice[0]!r} several times. Name each gene once.")
        n_known = sum(key in every for key in keys)
        if not n_known:
            raise ValueError(f"None of the {len(genes):,} genes is in {cells[0].name}.")
        if n_known < len(genes):
            warn_user(f"{len(genes) - n_known:,} of {len(genes):,} genes are in no file.")
        return genes
    check_choice("genes", wanted or "union", ("union", "intersection"))
    if len(shared) < len(every):
        warn_user(f"{len(shared):,} of {len(every):,} genes are in all of the files.")
    if not shared:
        raise ValueError(
            f"{cells[0].name} and the other files share no gene: {first_of(cells[0].genes)}, and "
            f"{first_of(cells[-1].genes)}. Name them by another column: var=NAME."
        )
    return np.array([every[key] for key in (every if wanted == "union" else shared)], dtype=object)


def columns_in(cells: Cells, genes: np.ndarray, form: CellForm) -> np.ndarray:
    """Match the columns of a file with genes by name.

    A column with the very name of a gene is that gene. Of the other columns the first one whose
    name compares equal is. Others count for the totals of cells only.

    Parameters
    ----------
    cells : Cells
    genes : ndarray of str objects
    form : CellForm

    Returns
    -------
    ndarray of int32, shape (n_columns,)
        The number of the gene, `LEFT_OUT` or `NO_GENE`.

    Raises
    ------
    ValueError
        If no column is a gene.
    """
    names = form.names_of(cells)
    at = {str(name): i for i, name in enumerate(genes)}
    columns = np.array([NO_GENE if name is None else at.get(name, LEFT_OUT) for name in names],
                       dtype=np.int32)  # fmt: skip
    if form.match != "exact":
        _match_others(cells, names, genes, columns, form.match)
    if (columns < 0).all():
        raise ValueError(
            f"{cells.name} has none of the {len(genes):,} genes, {first_of(genes)}, but "
            f"{first_of(cells.genes)}. {_remedy(cells, genes, form)}"
        )
    return columns


def _match_others(
    cells: Cells, names: list[Any], genes: np.ndarray, columns: np.ndarray, match: Match
) -> None:
    """Match the columns whose names are not those of genes, in place."""
    found = set(columns.tolist())
    free: dict[str, int] = {}
    keys = names_by(genes, match)
    for i, key in enumerate(keys):
        if i not in found:
            free.setdefault(key, i)
    known, second = set(keys), list[str]()
    for column in np.flatnonzero(columns == LEFT_OUT).tolist():
        key = names_by([names[column]], match)[0]
        columns[column] = free.pop(key, LEFT_OUT)
        if columns[column] == LEFT_OUT and key in known:
            second.append(names[column])
    if second:
        warn_user(
            f"{cells.name} has {len(second):,} genes whose names compare equal to that of another "
            f"of its genes, by match={match!r}, and count for the totals of cells only: "
            f"{first_of(second)}{', ...' * (len(second) > 3)}."
        )


def _remedy(cells: Cells, genes: np.ndarray, form: CellForm) -> str:
    """A column of var, or a way to compare names, by which more genes are found."""
    wanted = {match: set(names_by(genes, match)) for match in get_args(Match)}
    n_found = len(wanted[form.match].intersection(names_by(cells.genes, form.match)))
    found = [(n_found, 0, True, "")]
    for column, names in {form.var: cells.genes, **cells.namings()}.items():
        for match in get_args(Match):
            given = [f"pass match={match!r}"] * (match != form.match)
            if column is None and form.var is not None:
                given.append(f"leave out var={form.var!r}")
            elif column != form.var:
                given.append(f"pass var={column!r}")
            n_found = len(wanted[match].intersection(names_by(names, match)))
            found.append((n_found, -len(given), column == form.var, " and ".join(given)))
    n_found, *_, best = max(found)
    if best:
        return f"{best[0].upper()}{best[1:]}: so {n_found:,} genes are found."
    return (
        "No column of var has more of them. Train a model on the genes of these cells: "
        "fit_anndata(..., genes=list(adata.var_names))."
        if n_found
        else "Name the genes as those of the model: var=NAME is a column of var with other names."
    )


def check_shared(
    cells: Cells, columns: np.ndarray, how: CellNormalizer, form: CellForm
) -> float:  # fmt: skip
    """Check that cells have enough of the genes of a model.

    Returns
    -------
    float
        The weight of confidences, from 0 to 1: the square root of the share of the variance of the
        training cells that the genes have which are there.

    Raises
    ------
    ValueError
        If the share is too small.

    Warns
    -----
    UserWarning
        If genes are missing.
    """
    genes = how.feature_names_in_
    is_missing = np.ones(len(genes), dtype=bool)
    is_missing[columns[columns >= 0]] = False
    variances = how.deviations_**2
    total = float(variances.sum())
    share = float(variances[~is_missing].sum()) / total if total else 1 - float(is_missing.mean())
    weight = sqrt(share)
    missing = genes[is_missing]
    if not len(missing):
        return 1.0
    lacks = (
        f"{cells.name} lacks {len(missing):,} of the {len(genes):,} genes of the model, which "
        f"count as 0: {first_of(missing)}{', ...' * (len(missing) > 3)}."
    )
    if share >= _COMPLETE_SHARE:
        warn_user(lacks)
        return weight
    lacks += f" The others have {100 * share:.0f} % of the variance of the training cells"
    if share < _LEAST_SHARE:
        raise ValueError(
            f"{lacks}, and less than {100 * _LEAST_SHARE:.0f} % is too little to tell types. "
            f"{_remedy(cells, genes, form)}"
        )
    warn_user(
        f"{lacks}, so confidences are lowered by {100 * (1 - weight):.0f} %. "
        f"{_remedy(cells, genes, form)}"
    )
    return weight
