"""No package, and no layer of the engine, imports from a layer above its own."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = PYPROJECT["tool"]["importlinter"]["contracts"]
NAMES = [contract["name"] for contract in CONTRACTS]
SUFFIXES = (".py", ".pyx", ".pxd", ".pxi")
IMPORT = re.compile(r"^\s*(?:from|c?import)\s+(sparsemargin[\w.]*)(?:\s+c?import\s+(\w+))?", re.M)


def floors(contract):
    """The number of each module's layer, from the top."""
    return {
        name.strip(): floor
        for floor, line in enumerate(contract["layers"])
        for name in line.split("|")
    }


def floor_of(module, floors):
    return next((floors[of] for of in floors if f"{module}.".startswith(f"{of}.")), None)


def upward(path, text, floors):
    """The modules in higher layers, or in the same one, that the text of a file imports."""
    own = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    room = next((of for of in floors if f"{own}.".startswith(f"{of}.")), None)
    for module, name in IMPORT.findall(text):
        target = f"{module}.{name}"
        floor = floor_of(target, floors)
        beside = room is not None and f"{target}.".startswith(f"{room}.")
        if room is not None and floor is not None and not beside and floor <= floors[room]:
            yield target


@pytest.mark.parametrize("contract", CONTRACTS, ids=NAMES)
def test_imports_point_down(contract):
    paths = [path for path in (ROOT / "sparsemargin").rglob("*") if path.suffix in SUFFIXES]
    lines = floors(contract)
    found = {str(path): list(upward(path, path.read_text(), lines)) for path in paths}
    assert {path: modules for path, modules in found.items() if modules} == {}
    rooms = {path.parent for path in paths if path.name == "__init__.py"}
    parent = ROOT.joinpath(*contract["layers"][0].split(".")[:-1])
    listed = {ROOT.joinpath(*name.split(".")) for name in lines}
    assert {room for room in rooms if room.parent == parent} <= listed


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("models/algorithms/arow.py", "from sparsemargin.streaming.stream import learn_svmlight"),
        ("evaluation/weights.py", "    from sparsemargin import datasets"),
        ("_engine/core/vectors.pyx", "from sparsemargin._engine.first_order.linear cimport Move"),
        ("_engine/rows/csr.pxd", "cimport sparsemargin._engine.core.rules"),
    ],
)
def test_upward_import_is_detected(file, line):
    path = ROOT / "sparsemargin" / file
    planted = f"{path.read_text()}\n{line}\n"
    assert any(list(upward(path, planted, floors(contract))) for contract in CONTRACTS)


def modules_imported(path, modules):
    """The modules of the package that a file imports anywhere, also for type checking only."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            full = {f"{node.module}.{each.name}" for each in node.names}
            yield from full & modules.keys() or {node.module} & modules.keys()
        elif isinstance(node, ast.Import):
            yield from {each.name for each in node.names} & modules.keys()


def in_circles(modules):
    """The modules that import themselves through other modules."""
    targets = {
        name: set(modules_imported(path, modules)) - {name} for name, path in modules.items()
    }
    while free := {name for name, of in targets.items() if not of}:
        targets = {name: of - free for name, of in targets.items() if name not in free}
    while ends := targets.keys() - set().union(*targets.values()):
        targets = {name: of for name, of in targets.items() if name not in ends}
    return set(targets)


# Four modules of this room still import each other.
CIRCULAR = "sparsemargin.distributed."


def modules_of_package():
    paths = (ROOT / "sparsemargin").rglob("*.py")
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}
    return {
        name.removesuffix(".__init__"): path for name, path in names.items()
        if not name.startswith(CIRCULAR)
    }  # fmt: skip


def test_no_modules_import_each_other(tmp_path):
    modules = modules_of_package()
    assert in_circles(modules) == set()
    name = "sparsemargin.models.fitted.outputs"
    planted = tmp_path / "outputs.py"
    more = "if TYPE_CHECKING:\n    from sparsemargin.models.learner import Learner\n"
    planted.write_text(modules[name].read_text() + more)
    assert {name, "sparsemargin.models.learner"} <= in_circles({**modules, name: planted})


# Lower this number when an import moves to the top of its module.
MOST_IMPORTS_IN_FUNCTIONS = 39


def imports_in_functions(path):
    """The lines of imports inside functions, and those of them without a comment that gives the
    reason: on the line, or above the first of several imports."""
    lines, found = path.read_text().splitlines(), set()
    for each in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = ast.walk(each)
            found |= {of.lineno for of in inner if isinstance(of, ast.Import | ast.ImportFrom)}
    for number in sorted(found):
        first = number
        while first - 1 in found:
            first -= 1
        is_above = lines[first - 2].lstrip().startswith("# ")
        has_reason = is_above or re.search("  # (?!noqa|type:)", lines[number - 1]) is not None
        yield f"{path.relative_to(ROOT)}:{number}", has_reason


def test_imports_in_functions_are_few_and_give_their_reasons():
    paths = sorted((ROOT / "sparsemargin").rglob("*.py"))
    found = dict(each for path in paths for each in imports_in_functions(path))
    assert [place for place, has_reason in found.items() if not has_reason] == []
    assert len(found) <= MOST_IMPORTS_IN_FUNCTIONS, found


# Names of scikit-learn's own vectorizers, which ours have, too.
OF_SCIKIT_LEARN = {"_tfidf", "_base"}


def room_of(path):
    parts = path.relative_to(ROOT / "sparsemargin").parts
    return parts[0] if len(parts) > 1 else path.stem


def private_names(tree):
    """The private names that a module defines, and those that it uses of other objects."""
    defined, used = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.Attribute):
            (defined if isinstance(node.ctx, ast.Store) else used).add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            used |= {each.name for each in node.names}
    return [{name for name in names if re.match("_[^_]", name)} for names in (defined, used)]


def test_private_names_are_used_in_their_own_folder_only():
    rooms = {}
    for path in (ROOT / "sparsemargin").rglob("*.py"):
        defined, used = rooms.setdefault(room_of(path), (set(), {}))
        names = private_names(ast.parse(path.read_text()))
        defined |= names[0]
        used.update(dict.fromkeys(names[1], path.name))
    every = set().union(*(defined for defined, _ in rooms.values()))
    found = {
        (room, file, name) for room, (defined, used) in rooms.items()
        for name, file in used.items() if name in every - defined - OF_SCIKIT_LEARN
    }  # fmt: skip
    assert found == set()
