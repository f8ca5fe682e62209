"""Runs Python from standard input as in a notebook: `python type_python.py < TEXT`.

A comment behind an expression that is a value (a list, a dict, a text or a number) must be what the expression is, or
what it prints. test_documents.py runs the Python of the pages so, each block in a process of its own: a page need not
close what it opens, since mounts end with their process.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from collections.abc import Callable
from typing import Any


class Compare(ast.NodeTransformer):
    """Hands each expression that is a statement to a function `compare`, with the number of its line."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Return the statement that does so."""
        call = ast.parse(f"compare(lambda: None, {node.lineno})").body[0]
        assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
        expression = call.value.args[0]
        assert isinstance(expression, ast.Lambda)
        expression.body = node.value
        return ast.copy_location(call, node)


def run(text: str) -> None:
    """Run a text, and fail if it does not give what its comments say."""
    lines = text.splitlines()

    def compare(expression: Callable[[], Any], line: int) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = expression()
        comment = lines[line - 1].partition("  # ")[2].strip()
        if re.match(r"[\[{('\"\d-]", comment):
            got = printed.getvalue().strip() or repr(value)
            assert got == comment, f"{lines[line - 1].strip()}: got {got}"

    tree = ast.fix_missing_locations(Compare().visit(ast.parse(text)))
    exec(compile(tree, "page", "exec"), {"compare": compare, "__name__": "page"})


if __name__ == "__main__":
    run(sys.stdin.read())
