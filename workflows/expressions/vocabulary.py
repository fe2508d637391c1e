"""The functions an expression may call, and what to say about those that do not exist."""

from __future__ import annotations

from difflib import get_close_matches

_OWN = ("get", "sum", "unique", "sort", "keys", "to_json", "from_json")
_STANDARD = (
    "has", "all", "exists", "exists_one", "map", "filter",
    "size", "matches", "contains", "startsWith", "endsWith",
    "int", "uint", "double", "string", "bytes", "bool", "timestamp", "duration", "dyn", "type",
    "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds",
    "getMinutes", "getMonth", "getSeconds",
)  # fmt: skip
_STRINGS = (
    "charAt", "indexOf", "lastIndexOf", "join", "split", "replace", "substring", "trim", "lowerAscii", "upperAscii",
    "format", "reverse", "strings.quote",
)  # fmt: skip
_MATH = tuple(
    f"math.{name}"
    for name in (
        "greatest", "least", "ceil", "floor", "round", "trunc", "abs", "sign", "isNaN", "isInf", "isFinite", "sqrt",
        "bitOr", "bitAnd", "bitXor", "bitNot", "bitShiftLeft", "bitShiftRight",
    )
)  # fmt: skip
_OPTIONAL = (
    "optional.of", "optional.ofNonZeroValue", "optional.none", "hasValue", "value", "or", "orValue", "optMap",
    "optFlatMap", "first", "last", "unwrapOpt",
)  # fmt: skip

FUNCTIONS = frozenset((*_OWN, *_STANDARD, *_STRINGS, *_MATH, *_OPTIONAL))
#: Functions that are only ever written before their bracket, never after a dot.
PLAIN_FUNCTIONS = frozenset(
    (*_OWN, "int", "uint", "double", "string", "bytes", "bool", "timestamp", "duration", "dyn", "type", "has")
)

_SAME_VALUE = "Expressions give the same value on every evaluation. "
_TIME = f"{_SAME_VALUE}Use run.started_at or a step that prints the time."
_RANDOM = f"{_SAME_VALUE}Use run.id or a step that prints a random value."
_OUTSIDE = f"{_SAME_VALUE}Use a step that prints what is needed."
_HINTS = {
    **dict.fromkeys(
        ("now", "today", "date", "time", "datetime", "utcnow", "current_time", "currentTime", "clock"), _TIME
    ),
    **dict.fromkeys(("random", "rand", "randint", "uuid", "uuid4", "choice", "shuffle"), _RANDOM),
    **dict.fromkeys(("env", "getenv", "environ", "read", "open", "file", "fetch", "http", "exec", "shell"), _OUTSIDE),
    "secret": "Secrets cannot be read in expressions; use `{ secret: NAME }` in env, headers or auth.",
}
_OTHER_NAMES = {
    "len": "size", "length": "size", "count": "size",
    "str": "string", "float": "double", "number": "double", "integer": "int", "boolean": "bool",
    "upper": "upperAscii", "toUpperCase": "upperAscii", "lower": "lowerAscii", "toLowerCase": "lowerAscii",
    "strip": "trim", "startswith": "startsWith", "endswith": "endsWith", "includes": "contains", "find": "indexOf",
    "max": "math.greatest", "min": "math.least", "round": "math.round", "abs": "math.abs", "floor": "math.floor",
    "ceil": "math.ceil", "any": "exists", "some": "exists", "every": "all", "default": "get", "json": "to_json",
    "toJSON": "to_json", "tojson": "to_json", "fromJSON": "from_json", "fromjson": "from_json", "distinct": "unique",
    "uniq": "unique", "sorted": "sort", "typeof": "type", "substr": "substring", "slice": "substring",
}  # fmt: skip


def advice_for(name: str) -> str:
    """What to write instead of a function that does not exist."""
    if name in _HINTS:
        return _HINTS[name]
    if name in _OTHER_NAMES:
        return f'Did you mean "{_OTHER_NAMES[name]}"?'
    close = get_close_matches(name, sorted(FUNCTIONS | _OTHER_NAMES.keys()), n=1, cutoff=0.7)
    if close:
        return f'Did you mean "{_OTHER_NAMES.get(close[0], close[0])}"?'
    return f"Functions: those of CEL, and {', '.join(_OWN)}."
