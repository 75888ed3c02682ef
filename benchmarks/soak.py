"""A long soak: 10^9 nonzeros through every kind of model, memory flat and nothing drifting.

    python benchmarks/soak.py [--nonzeros 1e9] [--out results/soak.json]

A stream of Zipf text with a tenth of its labels wrong, so that corrections never cease, goes
through `partial_fit`, p-norm Perceptrons and ALMA, p = 2 and 6, float32 and float64, all with the
averaged hypothesis; each in a process of its own. Beside it two others learn the same rows: an
estimator that gets them cut at random, which must come to the same bits; and a reference in
extended precision (`numpy.longdouble`), which also sums up the hypotheses, for 64 coordinates, and
must make the same corrections. At the end the norm of theta that the estimator has kept is compared
with the one summed afresh, and the average with the reference's, relative to the largest weight.
The same rows as text then go through a pipe into `fit_svmlight("-")`, which must come to the bits
of `partial_fit`. Resident memory is sampled all along: what it was at most in the second and in the
last tenth.

It ends with status 1 where memory has grown, or anything has drifted. The whole takes some ten
minutes of two cores that have nothing else to do, and 400 MB.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import soak_text
from measure import describe_machine, text_table, write_json
from soak_fit import ALPHA, AVERAGE, SOAKS, same_bits

FOLDER = Path(__file__).parent
TWIN = "ALMA, p=2"
TEXT = f"{TWIN}, text"
MEGABYTE = 2**20
#: An allocator's freedom, where a leak of a byte a row would be five times as much.
GROWTH_BYTES = 4 * MEGABYTE
#: Below it there is no sample in every tenth of the work.
LEAST_NONZEROS = 20_000_000
#: Relative errors; float32 averages are float32 numbers, added up in float32.
TOLERANCE = 1e-10
TOLERANCE_FLOAT32 = 1e-3

COLUMNS = [
    ("", ""), ("nonzeros", ",d"), ("corrections", ">11"), ("CPU ns per nonzero", ".2f"),
    ("MB, second tenth", ".1f"), ("last tenth", ".1f"), ("peak", ".1f"), ("norm", ">9"),
    ("average", ">9"), ("same bits", ""),
]  # fmt: skip


def soak_all(n_nonzeros: int) -> dict[str, dict[str, Any]]:
    """Run every soak, one after the other."""
    results = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for soak in SOAKS:
            command = [sys.executable, FOLDER / "soak_fit.py", str(n_nonzeros), soak,
                       folder / f"{soak}.npz"]  # fmt: skip
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
            results[soak] = json.loads(out)
            show({soak: results[soak]})
        settings = AVERAGE | {"p": 2, "alpha": ALPHA}
        from_text = soak_text.soak(n_nonzeros, settings, folder / "text.npz")
        same = same_bits(np.load(folder / f"{TWIN}.npz"), np.load(folder / "text.npz"))
        results[TEXT] = {**from_text, "drift": {"same_bits": same}}
        show({TEXT: results[TEXT]})
    return results


def faults(name: str, result: dict[str, Any]) -> list[str]:
    """Return what is not as it should be, in a few words each."""
    memory, drift = result["memory"], result["drift"]
    limit = TOLERANCE_FLOAT32 if name == "Perceptron, float32" else TOLERANCE
    grown = memory["late_bytes"] - memory["early_bytes"]
    found = {
        f"memory has grown by {grown / MEGABYTE:.1f} MB": grown > GROWTH_BYTES,
        "the bits hang on how the stream was cut": not drift["same_bits"],
        "the corrections part from the reference's": drift.get("parted_at") is not None,
        "the trials are counted wrongly": not drift.get("trials_right", True),
        "the norm has drifted": drift.get("norm", 0) > TOLERANCE,
        "the average has drifted": drift.get("average", 0) > limit,
    }
    return [f"{name}: {what}" for what, holds in found.items() if holds]


def show(results: dict[str, dict[str, Any]]) -> None:
    """Print the table."""
    print(text_table(COLUMNS, [_row(name, result) for name, result in results.items()]), flush=True)


def _row(name: str, result: dict[str, Any]) -> tuple:
    sizes, memory, drift = result["sizes"], result["memory"], result["drift"]
    megabytes = [memory[key] / MEGABYTE for key in ("early_bytes", "late_bytes", "peak_bytes")]
    return (
        name, sizes["nonzeros"], f"{sizes['corrections']:,}" if "corrections" in sizes else "",
        result["cpu_seconds"] / sizes["nonzeros"] * 1e9, *megabytes,
        f"{drift['norm']:.1e}" if "norm" in drift else "",
        f"{drift['average']:.1e}" if "average" in drift else "",
        "yes" if drift["same_bits"] else "no",
    )  # fmt: skip


def main() -> None:
    """Soak, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nonzeros", type=float, default=1e9)
    parser.add_argument("--out", type=Path, default=Path("results/soak.json"))
    options = parser.parse_args()
    if options.nonzeros < LEAST_NONZEROS:
        parser.error(f"--nonzeros must be at least {LEAST_NONZEROS:.0e}")
    print(describe_machine())
    results = soak_all(int(options.nonzeros))
    write_json(options.out, {"soaks": results})
    wrong = [fault for name, result in results.items() for fault in faults(name, result)]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
