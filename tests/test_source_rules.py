"""Rules for the source that no linter checks, tested on its syntax tree."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest


pytestmark = pytest.mark.f32

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "physax"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 80

# Reading a file with one of these can run code from the file.
UNSAFE_MODULES = {
    "cloudpickle",
    "dill",
    "joblib",
    "jsonpickle",
    "marshal",
    "pickle",
    "runpy",
    "shelve",
}
UNSAFE_CALLS = {"__import__", "eval", "exec"}
UNSAFE_METHODS = {
    ("os", "popen"),
    ("os", "system"),
    ("yaml", "full_load"),
    ("yaml", "load"),
    ("yaml", "load_all"),
    ("yaml", "unsafe_load"),
}
# Names that say nothing about what a file holds.
VAGUE_FILES = {"common", "config", "core", "helpers", "manager", "misc", "utils"}


def distribution(requirement):
    return re.split(r"[^\w-]", requirement)[0].lower()


# Where the module has another name than the distribution.
MODULE_NAMES = {"pyyaml": "yaml", "orbax-checkpoint": "orbax"}


def module_names(requirements):
    names = map(distribution, requirements)
    return {MODULE_NAMES.get(name, name).replace("-", "_") for name in names}


REQUIRED = module_names(PROJECT["dependencies"])
OPTIONAL = {
    name
    for extra, requirements in PROJECT["optional-dependencies"].items()
    if extra not in ("dev", "docs", "cuda12", "cuda13", "tpu")
    for name in module_names(requirements)
} - {"physax"}


# Required, but slow to import: 0.5 s for those who never use it.
HEAVY = {"diffrax"}


def modules_of(node):
    """Top-level names that an import statement reaches outside physax."""
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return {node.module.split(".")[0]}
    return set()


def dotted(node):
    """The dotted name of a called function: ("os", "system"), or () if it has none."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return (*head, node.attr) if head else ()
    return ()


def keyword(call, name):
    for given in call.keywords:
        if given.arg == name:
            return given.value
    return None


def is_constant(node, value):
    return isinstance(node, ast.Constant) and node.value == value


def call_faults(call, unit):
    name = dotted(call.func)
    if len(name) == 1 and name[0] in UNSAFE_CALLS:
        yield f"calls {name[0]}"
    if name[-2:] in UNSAFE_METHODS:
        yield f"calls {'.'.join(name)}"
    if is_constant(keyword(call, "shell"), True):
        yield "starts a shell"
    allow_pickle = keyword(call, "allow_pickle")
    if allow_pickle is not None and not is_constant(allow_pickle, False):
        yield "allows pickle"
    if (
        name[-1:] == ("import_module",)
        and unit != "__init__"
        and not (call.args and isinstance(call.args[0], ast.Constant))
    ):
        yield "imports a module by a computed name"
    if name == ("hasattr",):
        yield "calls hasattr"
    if name == ("print",) and unit != "cli":
        yield "prints"
    # An error raised inside a compiled program hangs other devices, and keeps the
    # program out of the compile cache.
    if name[-1:] == ("error_if",) and not is_constant(keyword(call, "on_error"), "nan"):
        yield 'calls error_if without on_error="nan"'


def handler_faults(handler):
    if handler.type is None:
        yield "catches everything"
        return
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {dotted(kind)[-1:] for kind in kinds}
    if ("Exception",) in names:
        yield "catches Exception"
    # Cleaning up and re-raising is fine.
    last = handler.body[-1]
    raises = isinstance(last, ast.Raise) and last.exc is None
    if ("BaseException",) in names and not raises:
        yield "catches BaseException without re-raising"


def import_faults(node, unit, *, at_top):
    modules = modules_of(node)
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        yield "imports *"
    for module in modules & UNSAFE_MODULES:
        yield f"imports {module}"
    if "logging" in modules and unit != "cli":
        yield "imports logging"
    if not at_top and not (modules and modules <= OPTIONAL | HEAVY):
        yield "imports something other than an optional dependency in a function"
    known = REQUIRED | set(sys.stdlib_module_names) | {"physax"}
    for module in modules - known if at_top else ():
        yield f"imports {module}, which is not a dependency"


def lines_of_code(function):
    """Counts the lines of a function without its docstring, which may be long."""
    first = function.body[0]
    text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    documentation = first.end_lineno - first.lineno + 1 if text else 0
    return function.end_lineno - function.lineno + 1 - documentation


def faults(source, unit):
    """Lists how a file breaks the rules, with line numbers.

    Args:
        source: Its text.
        unit: The part of physax it belongs to.
    """
    found = []
    if source.count("\n") > MAX_FILE_LINES:
        found.append(f"is longer than {MAX_FILE_LINES} lines")

    def visit(node, inside):
        function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if isinstance(node, ast.Call):
            add(node, call_faults(node, unit))
        elif isinstance(node, ast.ExceptHandler):
            add(node, handler_faults(node))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            add(node, import_faults(node, unit, at_top=not inside))
        elif function:
            if lines_of_code(node) > MAX_FUNCTION_LINES:
                add(node, [f"{node.name} is longer than {MAX_FUNCTION_LINES} lines"])
        elif isinstance(node, ast.ClassDef) and node.name.endswith("Config"):
            add(node, [f"{node.name}: the module itself is the configuration"])
        for child in ast.iter_child_nodes(node):
            visit(child, inside or function)

    def add(node, messages):
        found.extend(f"line {node.lineno}: {message}" for message in messages)

    visit(ast.parse(source), inside=False)
    return found


def name_faults(parts):
    stem = Path(parts[-1]).stem
    if {part.strip("_") for part in (*parts[:-1], stem)} & VAGUE_FILES:
        yield "has a name that does not say what it holds"
    if len(parts) > 1 and not stem.startswith("_"):
        yield "is not a private file of its subpackage"


def re_export_faults(source):
    """Lists what a subpackage's `__init__.py` does beyond exporting names."""
    for number, node in enumerate(ast.parse(source).body):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring and number == 0:
            continue
        if not (isinstance(node, ast.ImportFrom) and node.level):
            yield f"line {node.lineno}: is not an import of its own names"
        elif any(alias.name != alias.asname for alias in node.names):
            yield f"line {node.lineno}: is not of the form `X as X`"


FILES = sorted(PACKAGE.rglob("*.py"))
INITS = [p for p in FILES if p.name == "__init__.py" and p.parent != PACKAGE]


def label(path):
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", FILES, ids=label)
def test_source_keeps_the_rules(path):
    parts = path.relative_to(PACKAGE).parts
    found = faults(path.read_text(), Path(parts[0]).stem)
    assert not [*found, *name_faults(parts)]


@pytest.mark.parametrize("path", INITS, ids=label)
def test_subpackages_only_export_names(path):
    assert not list(re_export_faults(path.read_text()))


BREACHES = [
    "import pickle",
    "from marshal import loads",
    "import requests",
    "from os.path import *",
    "import logging",
    "def f():\n    import json",
    "def f():\n    from ..grid import Grid",
    "eval(text)",
    "exec(text)",
    "__import__(name)",
    "os.system(text)",
    "subprocess.run(text, shell=True)",
    "yaml.load(file, Loader=yaml.SafeLoader)",
    "np.load(file, allow_pickle=True)",
    "np.load(file, allow_pickle=flag)",
    "importlib.import_module(name)",
    "import_module('.' + name)",
    "hasattr(x, 'y')",
    "print(x)",
    "eqx.error_if(x, bad, 'message')",
    "try:\n    f()\nexcept:\n    raise",
    "try:\n    f()\nexcept Exception:\n    raise",
    "try:\n    f()\nexcept (OSError, Exception):\n    pass",
    "try:\n    f()\nexcept BaseException:\n    pass",
    "class RunConfig: pass",
    "x = 1\n" * 401,
    "def f():\n" + "    x = 1\n" * 80,
]


@pytest.mark.parametrize("source", BREACHES, ids=lambda text: text[:40])
def test_each_breach_is_found(source):
    assert len(faults(source, "em")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    import xarray\n    from gdstk import Cell",
        "import os\nimport numpy as np\nfrom ..grid import Grid",
        "yaml.safe_load(file)",
        "np.load(file, allow_pickle=False)",
        "model.eval(x)\nre.compile(x)",
        "import_module('.em', 'physax')",
        "eqx.error_if(x, bad, 'message', on_error='nan')",
        "try:\n    f()\nexcept BaseException:\n    tidy()\n    raise",
        "try:\n    f()\nexcept (OSError, ValueError):\n    pass",
    ],
)
def test_what_is_allowed_passes(source):
    assert not faults(source, "em")


@pytest.mark.parametrize("place", ["em/_utils.py", "em/step.py", "common/_a.py"])
def test_vague_or_public_file_names_are_found(place):
    assert list(name_faults(Path(place).parts))


@pytest.mark.parametrize(
    "source", ["from ._a import b", "from ._a import b as c", "x = 1", "import numpy"]
)
def test_more_than_re_exports_is_found(source):
    assert list(re_export_faults(source))
