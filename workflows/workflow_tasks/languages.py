"""The language of a file, by its name."""

from __future__ import annotations

from pathlib import PurePosixPath

_BY_SUFFIX = {
    ".py": "Python",
    ".pyi": "Python",
    ".js": "JavaScript",
    ".mjs": "JavaScript",
    ".jsx": "JavaScript",
    ".ts": "TypeScript",
    ".tsx": "TypeScript",
    ".go": "Go",
    ".rs": "Rust",
    ".java": "Java",
    ".kt": "Kotlin",
    ".c": "C",
    ".h": "C",
    ".cc": "C++",
    ".cpp": "C++",
    ".hpp": "C++",
    ".cs": "C#",
    ".rb": "Ruby",
    ".php": "PHP",
    ".swift": "Swift",
    ".scala": "Scala",
    ".lua": "Lua",
    ".pl": "Perl",
    ".r": "R",
    ".sh": "Shell",
    ".bash": "Shell",
    ".sql": "SQL",
    ".html": "HTML",
    ".css": "CSS",
    ".scss": "CSS",
    ".md": "Markdown",
    ".rst": "reStructuredText",
    ".txt": "Text",
    ".yaml": "YAML",
    ".yml": "YAML",
    ".json": "JSON",
    ".toml": "TOML",
    ".ini": "INI",
    ".cfg": "INI",
    ".xml": "XML",
    ".svg": "SVG",
    ".csv": "CSV",
    ".tf": "Terraform",
    ".proto": "Protocol Buffers",
}
_BY_NAME = {"Makefile": "Make", "Dockerfile": "Docker", "LICENSE": "Text", "README": "Text", ".gitignore": "Git"}


def language_of(name: str) -> str:
    """
    >>> [language_of(name) for name in ("a/b.py", "Makefile", "photo.JPG")]
    ['Python', 'Make', 'Other']
    """
    path = PurePosixPath(name)
    return _BY_NAME.get(path.name) or _BY_SUFFIX.get(path.suffix.lower(), "Other")
