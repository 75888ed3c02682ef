"""Everything this library claims about speed and memory, measured side by side in one run.

Runs the benchmarks one after the other, each in a process of its own, and gathers what they measure
in charter.json, with every speed beside its test error; charter.md has the aims, the exponents of
growth, and all tables; the pictures are beside it. After Ctrl-C what was measured is kept, and
`--only` measures parts again and leaves the others as they were. The tables of the pages are
made from charter.json by doc_tables.py.

    python benchmarks/charter.py [--quick] [--only epoch labels ...] [--out results]

Peers and data that are not at hand are left out, with a line that says so: vw (pip install
"sparsemargin[bench]"), liblinear and valgrind (Debian's liblinear-tools and valgrind), and the
files looked for in the folder that SPARSEMARGIN_DATA names.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import charter_plots
import charter_report
from charter_parts import PARTS, run
from measure import describe_machine, machine, replace_text

INTERRUPTED = 130


def _earlier(path: Path) -> dict[str, Any]:
    """The parts that earlier runs have measured."""
    return json.loads(path.read_text())["parts"] if path.exists() else {}


def _keep(folder: Path, parts: dict[str, Any]) -> dict[str, Any]:
    """Write what was measured, and return it in the order of the parts."""
    ordered = {name: parts[name] for name in PARTS if name in parts}
    charter = json.dumps({"machine": machine(), "parts": ordered}, indent=1)
    replace_text(folder / "charter.json", charter + "\n")
    return ordered


def _tell(folder: Path, parts: dict[str, Any]) -> None:
    """Draw the pictures, and write the report that shows them."""
    pictures = charter_plots.draw_all(parts, folder)
    replace_text(folder / "charter.md", charter_report.report(parts, pictures))


def _measure(name: str, quick: bool, folder: Path) -> dict[str, Any]:
    entry = run(name, PARTS[name], quick, folder / "charter")
    verdict = f"{name}: {entry['status']} in {entry['seconds']:.0f} s"
    print(f"{verdict}{': ' + entry['why'] if 'why' in entry else ''}", flush=True)
    return entry


def main(arguments: list[str] | None = None) -> int:
    """Run the parts asked for, and write all that is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART",
                        help=f"measure these again, of {', '.join(PARTS)}")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds: minutes")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder (results)")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    parts = _earlier(options.out / "charter.json")
    print(describe_machine())
    status = 0
    try:
        for number, name in enumerate(options.only, start=1):
            print(f"\n[{number}/{len(options.only)}] {PARTS[name].title}", flush=True)
            parts[name] = _measure(name, options.quick, options.out)
            _keep(options.out, parts)
    except KeyboardInterrupt:
        print("\ninterrupted: what was measured before is kept", file=sys.stderr)
        status = INTERRUPTED
    _tell(options.out, _keep(options.out, parts))
    if any(parts.get(name, {}).get("status") == "failed" for name in options.only):
        status = status or 1
    print(f"\nwritten: {options.out / 'charter.json'}, {options.out / 'charter.md'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
