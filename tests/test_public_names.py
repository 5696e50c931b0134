"""The public names of the package: each is shown, can be imported, and has a type for checkers."""

from __future__ import annotations

import ast
import inspect

import milpbn


def test_public_names_are_shown_and_no_others() -> None:
    assert dir(milpbn) == sorted(milpbn.__all__)
    for name in milpbn.__all__:
        assert getattr(milpbn, name) is not None


def test_type_checkers_see_what_is_imported_at_first_use() -> None:
    """The imports for type checkers name the same modules as the table that is used at run time."""
    tree = ast.parse(inspect.getsource(milpbn))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.name: (node.module or "").removeprefix("milpbn.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == milpbn._HOME
    assert {*typed, "__version__"} == {*milpbn.__all__}
