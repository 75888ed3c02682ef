"""Genes of files of cells, and their matching by name with the genes of a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np

from sparsemargin._checks import check_choice
from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.rows.counts import LEFT_OUT, NO_GENE
from sparsemargin._shown import first_three
from sparsemargin.cells.labels import different_names
from sparsemargin.files.sources import open_sources
from sparsemargin.genomes.cells import CellNormalizer, Values
from sparsemargin.readers.cell_columns import MISSING_NAME
from sparsemargin.readers.cell_files import Cells, cells_of, open_cells, warn_of_left_out

#: Comparison of gene names: exact, ignoring case, or ignoring the version of Ensembl identifiers.
Match = Literal["exact", "case", "version"]

_VERSION = re.compile(r"^(ENS[A-Z]*\d+)\.\d+$")

# Least share of the variance of the training cells that the genes of new cells must have. With
# random genes that have 34 % of it, the accuracy of blood progenitors is 28 to 50 % instead of
# 70 %, and their mean confidence 21 to 33 %. The accuracy of pancreas cells is 90 to 94 % instead
# of 97 %, and their mean confidence 46 to 54 %. Highly variable genes are worse: 1,000 of them have
# 30 % of the variance of blood progenitors, and give an accuracy of 14 to 20 %, with a mean
# confidence of 38 to 50 %.
_LEAST_SHARE = 1 / 3

# Least fraction of the genes of the smallest training file that must be in all files, unless
# `genes` is given.
_FEW_SHARED = 0.1

# Another column of var or `match` is suggested if it matches this many times as many genes.
_FAR_MORE = 1.5

# If new cells have genes with less than this share of the variance, confidences are lowered, and a
# warning names a remedy. Genes that scanpy's filter_genes removes, because they occur in few cells,
# have less than a tenth of the variance.
_COMPLETE_SHARE = 0.9


@dataclass(frozen=True)
class CellForm:
    """Settings for reading cells.

    `layer` names a matrix other than X, `var` is the column of var that names the genes, `match`
    specifies how names are compared, and `values` how the values of new cells are interpreted.
    """

    layer: str | None = None
    var: str | None = None
    match: Match = "exact"
    values: Values = "auto"

    @contextmanager
    def open(self, what: Any) -> Iterator[list[Cells]]:
        """Open the cells of an AnnData, of files, or of a list of these or of open `Cells`."""
        check_choice("match", self.match, get_args(Match))
        if self.values is not None and self.values not in ("auto", "counts"):
            raise ValueError(f"normalize must be 'auto', 'counts' or None, got {self.values!r}.")
        for name, value in (("layer", self.layer), ("var", self.var)):
            if not isinstance(value, str | None):
                raise ValueError(f"{name} must be a str or None, got {value!r}.")
        with ExitStack() as files:
            found = list[Cells]()
            for each in what if isinstance(what, list | tuple) else [what]:
                if isinstance(each, Cells):
                    found.append(each)
                    files.callback(each.close)
                    continue
                is_file = not hasattr(each, "obs_names")
                for one in open_sources(each) if is_file else [each]:
                    found.append((open_cells if is_file else cells_of)(one, self.layer, self.var))
                    files.callback(found[-1].close)
            if not found:
                raise ValueError("There are no cells: the list of files is empty.")
            yield found

    def names_of(self, cells: Any) -> list[Any]:
        """Return the name of each gene, and None for each feature that is not a gene. Raise a
        ValueError if a name occurs more than once."""
        names: list[Any] = list(map(str, cells.genes))
        if cells.is_gene is not None:
            names = [n if is_one else None for n, is_one in zip(names, cells.is_gene, strict=True)]
        repeated = _repeated(name for name in names if name is not None)
        if repeated:
            remedy = "adata.var_names_make_unique()"
            if self.var is not None or repeated[0] == MISSING_NAME:
                column = "var_names" if self.var is None else f"var[{self.var!r}]"
                # With pandas 3, astype(str) keeps missing names.
                named = f"adata.{column}.astype(str).fillna({MISSING_NAME!r})"
                remedy = f"adata.var_names = {named} and {remedy}"
                remedy += "" if self.var is None else ", and leave var out"
            raise ValueError(
                f"{cells.name} has several genes with the name {repeated[0]!r}. Genes are matched "
                f"by name, so names must differ. Call {remedy}."
            )
        return names

    def genes_of(self, cells: Any) -> dict[str, Any]:
        """Return a dict from compared names to genes. Of equal names, the first gene is used."""
        names = [name for name in self.names_of(cells) if name is not None]
        found: dict[str, Any] = {}
        for key, name in zip(names_by(names, self.match), names, strict=True):
            found.setdefault(key, name)
        return found


def names_by(genes: Iterable[Any], match: Match) -> list[str]:
    """Return the names of genes in the form in which they are compared."""
    names = list(map(str, genes))
    if match == "case":
        return [name.upper() for name in names]
    return [_VERSION.sub(r"\1", name) for name in names] if match == "version" else names


def _first_genes(genes: np.ndarray) -> str:
    return first_three(repr(str(gene)) for gene in genes)


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def checked_genes(wanted: Any) -> list[str] | str | None:
    """Return the checked argument `genes`: names, "union", "intersection" or None."""
    if wanted is None or isinstance(wanted, str):
        check_choice("genes", "union" if wanted is None else wanted, ("union", "intersection"))
        return wanted
    names = list(wanted) if isinstance(wanted, Iterable) else []
    if not names or isinstance(names[0], bool | np.bool_):
        raise ValueError(
            "genes must be 'union', 'intersection' or names of genes, got "
            f"{type(wanted).__name__}. For the highly variable genes, pass "
            "adata.var_names[adata.var.highly_variable]."
        )
    return list(map(str, names))


def genes_of(cells: list[Any], wanted: Any, form: CellForm) -> np.ndarray:
    """Return the genes for a new model, and warn of genes that are not in all files.

    `wanted` is "union" for the genes of any file, "intersection" or None for the genes that all
    files share, or a list of names. A ValueError is raised if no gene is shared, or, for None, if
    few genes are.
    """
    warn_of_left_out(cells)
    wanted = checked_genes(wanted)
    named = [form.genes_of(each) for each in cells]
    every: dict[str, Any] = {}
    for each in named:
        every |= {key: gene for key, gene in each.items() if key not in every}
    shared = [key for key in every if all(key in each for each in named)]
    if isinstance(wanted, list):
        return _named_genes(cells, wanted, set(every), form)
    if len(shared) < len(every):
        least = 1.0 if wanted else max(1.0, _FEW_SHARED * min(map(len, named)))
        _report_shared(cells, len(shared), len(every), least, form)
    return np.array([every[key] for key in (every if wanted == "union" else shared)], dtype=object)


def _named_genes(cells: list[Any], genes: list[str], known: set[str], form: CellForm) -> np.ndarray:
    """Return the genes named by the user. Of names that compare equal, the first is kept. Warn of
    genes that are in no file. Raise a ValueError if no gene is found, or if few are and other
    settings find far more."""
    if twice := _repeated(genes):
        raise ValueError(f"genes has {twice[0]!r} several times. Name each gene once.")
    by_key: dict[str, str] = {}
    for key, gene in zip(names_by(genes, form.match), genes, strict=True):
        by_key.setdefault(key, gene)
    if n_same := len(genes) - len(by_key):
        warn_user(
            f"Names in genes that compare equal to an earlier one, by match={form.match!r}, are "
            f"left out: {n_same:,}."
        )
    n_known = len(by_key.keys() & known)
    if n_known < len(by_key):
        advice = _advice_for_files(cells, set.union, n_known, form, genes)
        message = f"{len(by_key) - n_known:,} of {len(by_key):,} genes are in no file.{advice}"
        if not n_known or (advice and n_known < _FEW_SHARED * len(by_key)):
            missing = np.array([gene for key, gene in by_key.items() if key not in known])
            raise ValueError(
                f"{message} The missing ones are {_first_genes(missing)}. {cells[0].name} has "
                f"{_first_genes(cells[0].genes)}. Name genes as in the files."
            )
        warn_user(message)
    return np.array(list(by_key.values()), dtype=object)


def _report_shared(
    cells: list[Any], n_shared: int, n_genes: int, least: float, form: CellForm
) -> None:
    """Warn of genes that are not in all files, or raise a ValueError if fewer than `least` are."""
    message = f"{n_shared:,} of {n_genes:,} genes are in all of the files."
    advice = _advice_for_files(cells, set.intersection, n_shared, form)
    if n_shared >= least:
        warn_user(message + advice)
        return
    names = different_names(cells)
    shown = [f"{names[i]} has {_first_genes(cells[i].genes)}." for i in (0, -1)]
    advice = advice or " Name genes alike in all files, or train on one of the files."
    raise ValueError(f"{message} {' '.join(shown)}{advice}")


def _advice_for_files(
    cells: list[Any], combine: Callable[..., set[str]], n_now: int, form: CellForm,
    genes: list[str] | None = None,
) -> str:  # fmt: skip
    """Return advice to name genes in another way, after a space, or "" if no way finds far more
    than `n_now`. Genes are found if `combine` has them, the union or the intersection of the files,
    and, unless `genes` is None, if they are among `genes`."""
    columns = [{form.var: each.genes, **each.var.texts()} for each in cells]

    def n_found(column: str | None, match: Match) -> int:
        found = combine(*(set(names_by(each.get(column, ()), match)) for each in columns))
        return len(found if genes is None else found.intersection(names_by(genes, match)))

    n_best, advice = _best_form(n_found, columns[0], form)
    return f" {advice}" if advice and n_best > _FAR_MORE * n_now else ""


def columns_in(cells: Cells, genes: np.ndarray, form: CellForm) -> np.ndarray:
    """Match the columns of a file with genes by name.

    A column whose name is exactly that of a gene is matched first. A gene without such a column is
    matched with the first column whose name compares equal. Other columns contribute at most to the
    totals of cells. The result has for each column the index of its gene, `LEFT_OUT` for a gene
    that is not among `genes`, or `NO_GENE` for a feature that is not a gene. A ValueError is raised
    if no column matches a gene.
    """
    names = form.names_of(cells)
    at = {str(name): i for i, name in enumerate(genes)}
    columns = np.array([NO_GENE if name is None else at.get(name, LEFT_OUT) for name in names],
                       dtype=np.int32)  # fmt: skip
    if form.match != "exact":
        _match_others(cells, names, genes, columns, form.match)
    if (columns < 0).all():
        raise ValueError(
            f"{cells.name} has none of the {len(genes):,} genes {_first_genes(genes)}. Its genes "
            f"are {_first_genes(cells.genes)}. {_remedy(cells, genes, form)}"
        )
    return columns


def _match_others(
    cells: Cells, names: list[Any], genes: np.ndarray, columns: np.ndarray, match: Match
) -> None:
    """Match the columns without an exact match by compared names. Change `columns` in place."""
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
            f"of its genes, by match={match!r}. They are left out: "
            f"{first_three(map(repr, second))}."
        )


def _remedy(cells: Cells, genes: np.ndarray, form: CellForm) -> str:
    """Return advice: the column of var and the `match` with which most genes are found, or another
    remedy if these are used."""
    wanted = {match: set(names_by(genes, match)) for match in get_args(Match)}
    texts = {form.var: cells.genes, **cells.var.texts()}
    n_found, advice = _best_form(
        lambda column, match: len(wanted[match].intersection(names_by(texts[column], match))),
        texts, form,
    )  # fmt: skip
    if advice:
        return advice
    if "raw" in cells.layers and form.layer != "raw" and n_found:
        return "If adata.raw has the other genes, too, pass layer='raw'."
    return (
        "No column of var has more of them. Train a model on the genes of these cells: "
        "CellClassifier(..., genes=list(adata.var_names))."
        if n_found
        else "Name the genes as those of the model: var=NAME is a column of var with other names."
    )


def _best_form(
    n_found: Callable[[str | None, Match], int], columns: Iterable[str | None], form: CellForm
) -> tuple[int, str]:
    """Find the column of var and the `match` with which most genes are found. Return the number of
    these genes, which `n_found` counts, and advice to pass both; "" if `form` has them."""
    found = [(n_found(form.var, form.match), 0, True, "")]
    for column in columns:
        for match in get_args(Match):
            given = [f"pass match={match!r}"] * (match != form.match)
            if column is None and form.var is not None:
                given.append(f"leave out var={form.var!r}")
            elif column != form.var:
                given.append(f"pass var={column!r}")
            found.append(
                (n_found(column, match), -len(given), column == form.var, " and ".join(given))
            )
    n_best, *_, best = max(found)
    return n_best, best and f"{best[0].upper()}{best[1:]}. Then {n_best:,} genes are found."


def _missing_in(columns: np.ndarray, how: CellNormalizer) -> tuple[np.ndarray, float]:
    """Return a mask of the missing genes of a model, and the other genes' share of the variance."""
    variances = how.deviations_**2
    is_missing = ~np.isin(np.arange(len(variances)), columns)
    total = float(variances.sum())
    if not total:
        return is_missing, 1 - float(is_missing.mean())
    return is_missing, float(variances[~is_missing].sum()) / total


def warn_of_few_genes(
    cells: Cells, columns: np.ndarray, how: CellNormalizer, form: CellForm
) -> None:
    """Warn if cells lack so many genes of a model that `check_shared` names a remedy."""
    is_missing, share = _missing_in(columns, how)
    if share < _COMPLETE_SHARE:
        genes = how.feature_names_in_
        warn_user(
            f"{cells.name} lacks {np.count_nonzero(is_missing):,} of the {len(genes):,} genes of "
            f"the model. The others have {100 * share:.0f} % of the variance of the training "
            f"cells, and only these are listed. {_remedy(cells, genes, form)}"
        )


def check_shared(cells: Cells, columns: np.ndarray, how: CellNormalizer, form: CellForm) -> float:
    """Return the weight of the confidences of cells, which may lack genes of a model.

    It is the square root of the share of the variance of the training cells that comes from genes
    that the new cells have, or 1 if this share is at least 90 %. A warning names missing genes. A
    share that is too small raises a ValueError.
    """
    genes, (is_missing, share) = how.feature_names_in_, _missing_in(columns, how)
    if not is_missing.any():
        return 1.0
    weight, missing = sqrt(share) if share < _COMPLETE_SHARE else 1.0, genes[is_missing].tolist()
    message = (
        f"{cells.name} lacks {len(missing):,} of the {len(genes):,} genes of the model, which "
        f"count as 0: {first_three(map(repr, missing))}."
    )
    if share < _COMPLETE_SHARE:
        message += f" The others have {100 * share:.0f} % of the variance of the training cells"
        is_enough = share >= _LEAST_SHARE
        message += (
            f", so confidences are lowered by {100 * (1 - weight):.0f} %. "
            if is_enough
            else f". At least {100 * _LEAST_SHARE:.0f} % is needed to recognise types. "
        )
        message += _remedy(cells, genes, form)
        if not is_enough:
            raise ValueError(message)
    warn_user(message)
    return weight
