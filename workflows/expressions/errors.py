"""The two ways an expression can be wrong: in the file, and when it is evaluated."""

from __future__ import annotations


class TemplateProblem(ValueError):
    """Text of a workflow file that is not a usable template.

    ``code`` is E401, E402, E411 or E416; ``offset`` is where in the text, from 0.
    """

    def __init__(self, code: str, message: str, hint: str, offset: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.offset = offset


class BadExpression(ValueError):
    """An expression that failed when it was evaluated; ``message`` may be shown (at most 2 000 characters)."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
