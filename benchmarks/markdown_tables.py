"""Tables in Markdown, made from entries of JSON, and their places on pages.

A table is placed between two comments with its name.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from string import Formatter
from typing import Any

from timing import replace_text

Entry = dict[str, Any]
#: The content of a cell for an entry: a template of `str.format`, or a function.
Cell = str | Callable[[Any], str | None]
#: A header, and the cells of its column.
Columns = Sequence[tuple[str, Cell]]

#: Units at the end of a format, each as a factor and a divisor.
_UNITS = {
    "%": (100, 1), "m": (1e3, 1), "u": (1e6, 1), "n": (1e9, 1), "M": (1, 2**20), "D": (1, 1e6),
    "G": (1, 1e9),
}  # fmt: skip


class _Missing(Exception):
    """A cell has no content."""


class _Cells(Formatter):
    """`str.format` with units at the end of formats: ``.1%`` is 100 times the number."""

    def get_field(self, name: str, args: Any, kwargs: Any) -> Any:
        try:
            return super().get_field(name, args, kwargs)
        except TypeError as error:  # None has no entries
            raise _Missing from error

    def format_field(self, value: Any, spec: str) -> str:
        if value is None:
            raise _Missing
        if spec[-1:] in _UNITS:
            factor, divisor = _UNITS[spec[-1]]
            return f"{factor * value / divisor:{spec[:-1]}f}"
        return format(value, spec)


def cell(template: Cell, entry: Any, missing: str = "") -> str:
    """Return the content of a cell for an entry, or `missing` if there is none."""
    if callable(template):
        content = template(entry)
        return missing if content is None else content
    try:
        return _Cells().vformat(template, (), entry)
    except _Missing:
        return missing


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format rows of cells with their headers in Markdown, without a newline at the end."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown(
    columns: Columns, chosen: Callable[[Any], bool] = lambda entry: True
) -> Callable[[Iterable[Any]], str]:
    """Make a function that formats the selected entries in Markdown, one line per entry."""

    def render(entries: Iterable[Any]) -> str:
        shown = filter(chosen, entries)
        rows = ([cell(template, each) for _, template in columns] for each in shown)
        return markdown_table([header for header, _ in columns], rows)

    return render


def pivot(
    lead: Columns, by: str, cells: Columns, chosen: Callable[[Any], bool] = lambda entry: True
) -> Callable[[Iterable[Any]], str]:
    """Make a function that formats one line for all entries with the same `lead`. Each value of
    `by` has the columns `cells`, whose headers are templates as well."""

    def render(entries: Iterable[Any]) -> str:
        lines: dict[tuple[str, ...], Entry] = {}
        first: Entry = {}
        for entry in filter(chosen, entries):
            key = tuple(cell(template, entry) for _, template in lead)
            lines.setdefault(key, {})[entry[by]] = entry
            first.setdefault(entry[by], entry)
        headers = [header for header, _ in lead]
        headers += [cell(header, each) for each in first.values() for header, _ in cells]
        all_of = [(value, template) for value in first for _, template in cells]
        rows = [
            [*key, *(cell(each, found[value]) if value in found else "" for value, each in all_of)]
            for key, found in lines.items()
        ]
        return markdown_table(headers, rows)

    return render


def pairs(first: str, second: str) -> Callable[[Iterable[Entry]], str]:
    """Make a function for cells with two errors, on the first and the second kind of values."""

    def render(entries: Iterable[Entry]) -> str:
        errors: dict[tuple[str, str], Entry] = {}
        for each in entries:
            errors.setdefault((each["contestant"], each["of"]), {})[each["values"]] = each["error"]
        both = [{"contestant": name, "of": of} | each for (name, of), each in errors.items()]
        cells = [("{of}", f"{{{first}:.1f}}; {{{second}:.1f}}")]
        return pivot([(f"{first}; {second}", "`{contestant}`")], "of", cells)(both)

    return render


def fill(text: str, tables: dict[str, str]) -> str:
    """Return the text with the tables between their comments, which must occur once each."""
    for name, table in tables.items():
        begin, end = f"<!-- table {name} -->", f"<!-- end of table {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not (text.count(begin) == text.count(end) == len(pattern.findall(text)) == 1):
            raise ValueError(f"the text must have {begin!r} and, after it, {end!r}, each once")
        block = f"{begin}\n\n{table}\n\n{end}"
        text = pattern.sub(lambda _, block=block: block, text)
    return text


def fill_page(page: Path, tables: dict[str, str]) -> None:
    """Put the tables into a page, and print a line about it."""
    replace_text(page, fill(page.read_text(), tables))
    print(f"written: {page.name}, the tables {', '.join(tables)}")
