"""Conversions of public sources to registered files that no address serves directly."""

import csv
import re
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal
from io import StringIO

# Numbers of the AML patients of the study (Golub et al. 1999). The sources have no diagnoses.
_AML = {*range(28, 39), *range(50, 55), 57, 58, *range(60, 67)}
_MALIGNANT = ("DLBCL", "FL", "CLL")
# Samples of DLBCL that the usual subset of 62 does not contain.
_LEFT_OUT = (0, 1, 11, 63)


class UnlikeSource(ValueError):
    """A source does not have the format that its conversion expects."""


def convert(name: str | None, sources: list[bytes]) -> bytes:
    """Convert sources to a file with the named conversion; None: return the only source."""
    if name is None:
        (content,) = sources
        return content
    try:
        rows = _CONVERSIONS[name](*(source.decode("utf-8", "replace") for source in sources))
        text = StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
    except (ValueError, ArithmeticError, LookupError, csv.Error) as error:
        raise UnlikeSource(f"they are not of the form that is known ({error!r})") from error
    return text.getvalue().encode()


def _colon(intensities: str, tissues: str) -> Iterable[list[str]]:
    """Convert the authors' pages: a line per gene, and a number per tissue, negative for tumours.

    Later copies, such as those in R packages, are rounded to two decimals, half up.
    """
    genes = [
        [float(Decimal(cell).quantize(Decimal("0.01"), ROUND_HALF_UP)) for cell in line.split()]
        for line in _lines_of_numbers(intensities)
    ]
    yield ["sample", "class", *(f"X{gene}" for gene in range(1, len(genes) + 1))]
    samples = zip(*genes, strict=True)
    for number, (tissue, row) in enumerate(
        zip(_lines_of_numbers(tissues), samples, strict=True), 1
    ):
        yield [str(number), "t" if int(tissue) < 0 else "n", *map(repr, row)]


def _lines_of_numbers(page: str) -> list[str]:
    text = re.sub("<[^>]*>", "", page)
    return [line for line in text.splitlines() if re.fullmatch(r"\s*[-+.\d][-+.\deE\s]*", line)]


def _leukemia(*parts: str) -> Iterable[list[str]]:
    """Convert the study's two parts: a line per probe, with a presence call after each number."""
    samples, probes = {}, []
    for split, part in zip(("train", "test"), parts, strict=True):
        header, *rows = csv.reader(StringIO(part))
        probe_column = header.index("Gene Accession Number")
        probes.append([row[probe_column].strip() for row in rows])
        for column, name in enumerate(header):
            if name.strip().isdigit():
                disease = "AML" if int(name) in _AML else "ALL"
                samples[int(name)] = [split, disease, *(row[column].strip() for row in rows)]
    if probes[0] != probes[1]:
        raise ValueError("the parts name other probes")
    yield ["sample", "split", "class", *probes[0]]
    for number in sorted(samples):
        yield [str(number), *samples[number]]


def _lymphoma_labels(nine_classes: str, figure: str) -> Iterable[list[str]]:
    """Convert two ARFF files of the same samples, each with its classes in the last column."""
    yield ["row", "class9", "figure1_label", "malignant_66", "in_62_subset"]
    columns = (_last_column(nine_classes), _last_column(figure))
    for row, (name, label) in enumerate(zip(*columns, strict=True)):
        malignant = name in _MALIGNANT
        in_subset = malignant and row not in _LEFT_OUT
        yield [str(row), name, label, str(int(malignant)), str(int(in_subset))]


def _last_column(arff: str) -> list[str]:
    _, data = re.split(r"(?im)^@data\s*$", arff)
    return [line.rpartition(",")[2].strip() for line in data.splitlines() if line.strip()]


_CONVERSIONS: dict[str, Callable[..., Iterable[list[str]]]] = {
    "colon": _colon,
    "leukemia": _leukemia,
    "lymphoma_labels": _lymphoma_labels,
}
