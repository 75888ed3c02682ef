"""Learning in shards, measured: speed on Dask's workers, bytes that travel, errors, memory.

Each part is measured by itself, and what was measured is kept in scale.json whenever a part is
done; parts that are not asked for stay as they were. The figures of docs/scale.md, and what it
works out from them, are made by scale_pages.py.

    python benchmarks/scale.py [--only speed traffic ...] [--quick] [--out results]
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import scale_memory
import scale_shards
import scale_speed
import scale_touched
import scale_traffic
from measure import describe_machine, machine, replace_text, timed


class Part(NamedTuple):
    """What is measured, by `measure(quick)`, and told by `show(figures)`."""

    title: str
    measure: Callable[[bool], Any]
    show: Callable[[Any], None]


PARTS = {
    "rcv1": Part(
        "Test error against epochs and shards, RCV1", scale_shards.of_rcv1,
        scale_shards.show,
    ),
    "generated": Part(
        "Test error against epochs and shards, 10^8 nonzeros", scale_shards.of_generated,
        scale_shards.show,
    ),
    "touched": Part(
        "Coordinates that an epoch touches", scale_touched.measure, scale_touched.show
    ),
    "memory": Part(
        "Memory of a coordinate", scale_memory.measure, scale_memory.show
    ),
    "traffic": Part(
        "Bytes that travel", scale_traffic.measure, scale_traffic.show
    ),
    "speed": Part(
        "Seconds of an epoch", scale_speed.measure, scale_speed.show
    ),
}  # fmt: skip


def write(path: Path, parts: dict[str, Any]) -> None:
    """Write the figures of the parts, a line each where there are several."""
    told = ",\n".join(f'"{name}": {_lines(part)}' for name, part in parts.items())
    text = f'{{"machine": {json.dumps(machine())},\n"parts": {{\n{told}\n}}}}\n'
    replace_text(path, text)


def _lines(part: dict[str, Any]) -> str:
    """A part, its entries in lines of their own."""
    figures = part["figures"]
    if isinstance(figures, list):
        entries = ",\n".join(map(json.dumps, figures))
        return f'{{"quick": {json.dumps(part["quick"])}, "figures": [\n{entries}\n]}}'
    if "curves" in figures:
        rest = json.dumps({key: value for key, value in figures.items() if key != "curves"})
        curves = ",\n".join(map(json.dumps, figures["curves"]))
        told = f'{rest[:-1]}, "curves": [\n{curves}\n]}}'
        return f'{{"quick": {json.dumps(part["quick"])}, "figures": {told}}}'
    return json.dumps(part)


def read(path: Path) -> dict[str, Any]:
    """The parts that a file has, where it is there."""
    return json.loads(path.read_text())["parts"] if path.exists() else {}


def main(arguments: list[str] | None = None) -> None:
    """Measure the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART",
                        help=f"measure these again, of {', '.join(PARTS)}")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small sizes: a minute")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder (results)")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "scale.json"
    parts = read(path)
    print(describe_machine())
    for name in options.only:
        print(f"\n{PARTS[name].title}", flush=True)
        seconds, figures = timed(lambda name=name: PARTS[name].measure(options.quick))
        PARTS[name].show(figures)
        print(f"{name}: {seconds:.0f} s", flush=True)
        parts[name] = {"quick": options.quick, "figures": figures}
        write(path, {each: parts[each] for each in PARTS if each in parts})
    print(f"\nwritten: {path}")


if __name__ == "__main__":
    main()
