"""Expressions: ``${ CEL }`` in values. Pure: the same names always give the same value."""

from __future__ import annotations

from workflows.expressions.errors import BadExpression, TemplateProblem
from workflows.expressions.value import Value, compile_value

__all__ = ["BadExpression", "TemplateProblem", "Value", "compile_value"]
