"""Make the tables of the performance page, and the README's, from what the charter measured.

The figures that they tell are kept beside this file, in charter.json, each table's with the machine
that they were measured on, so that the tables can be made again without measuring. A table stands
between two comments of its name; tables whose parts the charter lacks, or has measured in a hurry,
stay as they are.

    python benchmarks/doc_tables.py [--charter results/charter.json]
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import charter_tables
from measure import replace_text

FOLDER = Path(__file__).parent
EXTRACT = FOLDER / "charter.json"
README = FOLDER.parent / "README.md"
PERFORMANCE = FOLDER.parent / "docs" / "performance.md"
#: Of all tables, those that the README has too.
HEADLINES = ("text",)
BEGIN, END = "<!-- table {} -->", "<!-- end of table {} -->"


def extract(charter: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """Return the tables' figures, those of an earlier extract where they were not measured again.

    Parameters
    ----------
    charter : dict
        As charter.py writes it.
    earlier : dict
        An earlier extract, or an empty one.
    """
    parts = {name: part for name, part in charter["parts"].items() if not part["quick"]}
    return {"tables": earlier.get("tables", {}) | charter_tables.select(parts)}


def fill(text: str, tables: dict[str, str]) -> str:
    """Return the text with the tables between their comments.

    Raises
    ------
    ValueError
        If the comments of a table are not in the text, each once and in this order.
    """
    for name, table in tables.items():
        begin, end = BEGIN.format(name), END.format(name)
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not (text.count(begin) == text.count(end) == len(pattern.findall(text)) == 1):
            raise ValueError(f"the text must have {begin!r} and, after it, {end!r}, each once")
        block = f"{begin}\n\n{table}\n\n{end}"
        text = pattern.sub(lambda _, block=block: block, text)
    return text


def pages(tables: dict[str, str]) -> dict[Path, dict[str, str]]:
    """Return the pages, and the tables that each of them has."""
    headlines = {name: table for name, table in tables.items() if name in HEADLINES}
    return {PERFORMANCE: tables, README: headlines}


def main() -> None:
    """Bring the figures and the pages up to date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--charter", type=Path, default=Path("results/charter.json"))
    options = parser.parse_args()
    figures = json.loads(EXTRACT.read_text())
    if options.charter.exists():
        figures = extract(json.loads(options.charter.read_text()), figures)
        replace_text(EXTRACT, json.dumps(figures, indent=1) + "\n")
    else:
        print(f"{options.charter} is not there: the tables are made from {EXTRACT.name} again")
    for page, tables in pages(charter_tables.render(figures["tables"])).items():
        replace_text(page, fill(page.read_text(), tables))
        print(f"written: {page.name}, the tables {', '.join(tables)}")


if __name__ == "__main__":
    main()
