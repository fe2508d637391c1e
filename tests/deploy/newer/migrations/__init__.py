"""The migrations that there are, and one more."""

from workflows import migrations

__path__ = [*__path__, *migrations.__path__]
