"""Puts faults into a copy of the library, all of them at once: SM_FAULT chooses one when it runs.

A statement with a fault becomes ``if FAULT == number: the wrong one, else: the right one``; so the
library is compiled once, however many faults there are.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from pathlib import Path

from known_faults import Fault

MODULE = "sparsemargin/_engine/planted"
DECLARED = 'cdef extern from "planted.hpp":\n    const int FAULT "SM_FAULT"\n'
IN_C = """#pragma once
#include <cstdlib>
static const int SM_FAULT = std::getenv("SM_FAULT") ? std::atoi(std::getenv("SM_FAULT")) : 0;
"""
IN_PYTHON = 'import os\n\nFAULT = int(os.environ.get("SM_FAULT", "0"))\n'
IMPORT = "from sparsemargin._engine.planted {} FAULT\n"

_TOKEN = re.compile(r'"""|\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*|[()\[\]{}]|\n')

_DECLARATION = re.compile(r"(\s*cdef .*? = )(.*)\n$", re.DOTALL)
_HEADER = re.compile(r"\s*(if|elif|while) (.*):(?: *#.*)?\n$", re.DOTALL)


def statements(text: str) -> list[tuple[int, int]]:
    """Where the logical lines of Python or Cython begin and end."""
    found, start, depth, quoted = [], 0, 0, None
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in ('"""', "'''"):
            quoted = None if quoted == token else quoted or token
        elif quoted is None and token in "([{":
            depth += 1
        elif quoted is None and token in ")]}":
            depth -= 1
        elif token == "\n" and quoted is None and depth == 0:
            found.append((start, match.end()))
            start = match.end()
    return found


def branch(number: int, wrong: str, right: str) -> str:
    """The two statements, or headers of compound ones, as one that chooses."""
    indent = right[: len(right) - len(right.lstrip())]
    header, other = (_HEADER.match(block) for block in (right, wrong))
    if header and other:
        chosen = f"(FAULT == {number} and ({other[2]})) or (FAULT != {number} and ({header[2]}))"
        return f"{indent}{header[1]} {chosen}:\n"
    first, second = (_DECLARATION.match(block) for block in (right, wrong))
    if first and second:
        return f"{first[1]}(({second[2]}) if FAULT == {number} else ({first[2]}))\n"
    blocks = ["".join(f"    {line}\n" for line in block.splitlines()) for block in (wrong, right)]
    blocks[0] = blocks[0] if wrong.strip() else f"{indent}    pass\n"
    return f"{indent}if FAULT == {number}:\n{blocks[0]}{indent}else:\n{blocks[1]}"


def in_python(text: str, faults: dict[int, Fault]) -> str:
    """Python or Cython with these faults."""
    by_place: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for number, fault in faults.items():
        at = text.index(fault.right)
        inside = [
            place for place in statements(text)
            if place[1] > at and place[0] < at + len(fault.right)
        ]  # fmt: skip
        place = inside[0][0], inside[-1][1]
        whole = text[slice(*place)]
        by_place[place].append((number, whole.replace(fault.right, fault.wrong)))
    pieces, done = io.StringIO(), 0
    for place in sorted(by_place):
        if place[0] < done:
            raise SystemExit(f"faults overlap: {text[slice(*place)]}")
        right = text[slice(*place)]
        for number, wrong in by_place[place]:
            if right.count("\n    if FAULT") or right.lstrip().startswith("if FAULT"):
                indent = right[: len(right) - len(right.lstrip())]
                right = (
                    f"{indent}if FAULT == {number}:\n"
                    + "".join(
                        f"    {line}\n"
                        for line in (wrong.strip("\n") or f"{indent}pass").splitlines()
                    )
                    + f"{indent}el{right.lstrip()}"
                )
            else:
                right = branch(number, wrong, right)
        pieces.write(text[done : place[0]] + right)
        done = place[1]
    return pieces.getvalue() + text[done:]


def in_c(text: str, faults: dict[int, Fault]) -> str:
    """C++ with these faults, which are expressions, or statements that end with a semicolon."""
    for number, fault in faults.items():
        if fault.right.rstrip().endswith(";"):
            chosen = f"if (SM_FAULT == {number}) {{ {fault.wrong} }} else {{ {fault.right} }}"
        else:
            chosen = f"(SM_FAULT == {number} ? ({fault.wrong}) : ({fault.right}))"
        text = text.replace(fault.right, chosen)
    return text.replace("#pragma once\n", '#pragma once\n#include "planted.hpp"\n', 1)


def plant(folder: Path, faults: list[Fault]) -> None:
    """Put them into the library in that folder; the first is number 1."""
    by_file: dict[str, dict[int, Fault]] = defaultdict(dict)
    for number, fault in enumerate(faults, 1):
        by_file[fault.file][number] = fault
    for suffix, text in ((".pxd", DECLARED), (".hpp", IN_C), (".py", IN_PYTHON)):
        (folder / MODULE).with_suffix(suffix).write_text(text)
    for file, ours in by_file.items():
        path = folder / file
        text = path.read_text()
        for fault in ours.values():
            if text.count(fault.right) != 1:
                raise SystemExit(f"{file} has {fault.right!r} {text.count(fault.right)} times")
        if path.suffix == ".hpp":
            path.write_text(in_c(text, ours))
            continue
        text = in_python(text, ours)
        if path.suffix == ".pxi":  # a part of the one module beside it that includes it
            path.write_text(text)
            path = next(p for p in path.parent.glob("*.pyx") if f'"{path.name}"' in p.read_text())
            text = path.read_text()
        line = IMPORT.format("import" if path.suffix == ".py" else "cimport")
        if line not in text:
            at = re.search(r"^(?:from \S+ c?import|c?import)", text, re.MULTILINE).start()
            future = re.search(r"^from __future__.*\n", text, re.MULTILINE)
            at = future.end() if future else at
            text = text[:at] + line + text[at:]
        path.write_text(text)
