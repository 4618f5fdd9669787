#!/usr/bin/env python3
"""Writes docs/python-api.md from the docstrings of the Python package; with --check, says whether it is as they are.

The sources are read and not imported: neither the compiled part nor a library of others is needed. A public name without a docstring is an error.
"""

from __future__ import annotations

import ast
import copy
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "veilworks"
PAGE = ROOT / "docs" / "python-api.md"

# The sections of the page, each with the modules whose public names it has.
SECTIONS = [
    ("Jobs", ["job"]),
    ("Types of columns", ["types", "infer"]),
    ("Tables", ["tables"]),
    ("Columns", ["columns"]),
    ("Functions of columns", ["functions", "traced", "loops"]),
    ("Models", ["ml", "models", "networks", "secret"]),
    ("Data", ["data"]),
    ("Results", ["result", "shadow"]),
    ("Homes", ["home", "run"]),
    ("Errors", ["errors"]),
]

HEAD = """# Python: all names

After this page you can look up what each public name of `veilworks` takes, gives and raises; [Use it from Python](python.md) has the way there.

This page is written by `scripts/python-api.py` from the package's own docstrings, and not by hand.
"""


def fail(message: str) -> None:
    sys.exit(f"error: {message}")


def public() -> dict[str, tuple[str, str]]:
    """Public names: of each its module and its name there."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    found: dict[str, tuple[str, str]] = {}
    every: list[str] = []
    modules: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {alias.name for alias in node.names}
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            every = ast.literal_eval(node.value)
    for module in sorted(modules & set(every)):
        every.remove(module)
        own = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
        names = next(ast.literal_eval(node.value) for node in ast.parse(own).body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        found |= {f"{module}.{name}": (module, name) for name in names}
        every += [f"{module}.{name}" for name in names]
    for name in every:
        if name not in found:
            fail(f"`{name}` is in __all__ and comes from nowhere")
    return {name: found[name] for name in every if not name.startswith("_")}


def text(node: ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef, name: str) -> str:
    """The docstring as a paragraph of the page."""
    said = ast.get_docstring(node)
    if not said:
        fail(f"`{name}` has no docstring")
        return ""
    parts = [re.sub(r"\s*\n\s*", " ", part) for part in said.split("\n\n")]
    return "\n\n".join(parts)


def signature(node: ast.AsyncFunctionDef | ast.FunctionDef, name: str, method: bool) -> str:
    """How it is called."""
    arguments = node.args
    static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list)
    if method and not static:
        first = arguments.posonlyargs or arguments.args
        first.pop(0)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and name.split(".")[-1] != "__init__" else ""
    return f"{name}({ast.unparse(arguments)}){returns}".replace("'", '"')


def overloaded(node: ast.AsyncFunctionDef | ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "overload" for one in node.decorator_list)


def is_property(node: ast.AsyncFunctionDef | ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)


def of_class(node: ast.ClassDef, name: str, private: dict[str, ast.ClassDef]) -> list[str]:
    """A class with its public methods, and those of a private one that it is made of."""
    inherited = [one for base in node.bases for one in copy.deepcopy(private[ast.unparse(base)].body if ast.unparse(base) in private else [])]
    node.body = [*node.body, *inherited]
    made = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and not one.target.id.startswith("_")]
    bases = [ast.unparse(base) for base in node.bases]
    lines = [f"### `{name}`", ""]
    if "NamedTuple" in bases:
        lines += ["```python", f"{name}({', '.join(ast.unparse(one) for one in fields)})", "```", ""]
    elif made is not None and not any(base.endswith("Error") or base in ("Secret", "Expression") for base in bases):
        lines += ["```python", signature(made, name, True), "```", ""]
    lines += [text(node, name), ""]
    if made is not None and ast.get_docstring(made):
        lines += [text(made, name), ""]
    aliases: dict[str, list[str]] = {}
    for one in node.body:
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Name) and isinstance(one.targets[0], ast.Name):
            aliases.setdefault(one.value.id, []).append(one.targets[0].id)
    for one in node.body:
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) or one.name.startswith("_") or overloaded(one):
            continue
        whole = f"{name}.{one.name}"
        shown = f"{name}.{one.name}" + (f": {ast.unparse(one.returns)}" if one.returns else "") if is_property(one) else signature(one, whole, True)
        also = "".join(f", also `{alias}`" for alias in aliases.get(one.name, []))
        lines += [f"- `{shown}`{also}: {text(one, whole)}".replace("\n\n", "\n\n  ")]
    return [*lines, ""]


def page() -> str:
    """The whole page."""
    names = public()
    lines = [HEAD]
    done: set[str] = set()
    for title, modules in SECTIONS:
        lines += [f"## {title}", ""]
        for module in modules:
            tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
            private = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.startswith("_")}
            for node in tree.body:
                own = [name for name, (of, there) in names.items() if of == module and isinstance(node, (ast.FunctionDef, ast.ClassDef)) and there == node.name]
                if isinstance(node, ast.FunctionDef) and own and not overloaded(node):
                    lines += [f"### `{own[0]}`", "", "```python", signature(node, own[0], False), "```", "", text(node, own[0]), ""]
                    done.add(own[0])
                elif isinstance(node, ast.ClassDef) and own:
                    lines += of_class(node, own[0], private)
                    done.add(own[0])
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Name):
                    alias = node.targets[0].id
                    if alias in names and names[alias][0] == module:
                        lines += [f"### `{alias}`", "", f"Another name for `{node.value.id}`.", ""]
                        done.add(alias)
    for name in names:
        if name not in done:
            fail(f"`{name}` of module `{names[name][0]}` is in no section: put the module into SECTIONS")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def main() -> None:
    made = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != made:
            fail("docs/python-api.md is not as the docstrings are: run scripts/python-api.py")
        return
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
