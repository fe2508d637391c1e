"""Expressions: ``${ CEL }`` in values. Pure: the same names always give the same value.

* :func:`compile_value` and :class:`Value`: what the engine evaluates.
* :func:`analyse`, :func:`double_braces` and :func:`static_type`: what the validator asks.
"""

from __future__ import annotations

from workflows.expressions.analysis import ExpressionInfo, analyse, double_braces
from workflows.expressions.checking import CelType, TypeProblem, static_type, type_of_field, type_of_value
from workflows.expressions.errors import BadExpression, TemplateProblem
from workflows.expressions.references import RESERVED_NAMES, FunctionUse, Reference
from workflows.expressions.value import Value, compile_value

__all__ = [
    "RESERVED_NAMES",
    "BadExpression",
    "CelType",
    "ExpressionInfo",
    "FunctionUse",
    "Reference",
    "TemplateProblem",
    "TypeProblem",
    "Value",
    "analyse",
    "compile_value",
    "double_braces",
    "static_type",
    "type_of_field",
    "type_of_value",
]
