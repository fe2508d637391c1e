"""How standard output becomes the output of a shell step, and both outputs its log."""

from __future__ import annotations

from typing import Any

from workflows.engine.processes import STDOUT_LIMIT, Finished
from workflows.engine.results import MIB, OUTPUT_LIMIT
from workflows.engine.secrets import Masker
from workflows.jsonvalue import clean_text, repair
from workflows.steps.json_text import beginning, json_size, read_strictly

LOG_LIMIT = MIB


class UnusableOutput(Exception):
    """Standard output is not what ``parse`` says. ``code`` is a failure code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def parse_output(finished: Finished, parse: str, masker: Masker) -> tuple[Any, bool]:
    """The output by ``parse`` and whether characters were replaced. Raises :class:`UnusableOutput`."""
    if parse == "none":
        return None, False
    if parse == "json":
        return _parse_json(finished, masker)
    cut = finished.stdout_size > len(finished.stdout)
    text, repaired = clean_text(_whole_characters(finished.stdout) if cut else finished.stdout)
    text = masker.text(text)
    if cut:
        text = masker.cut_end(text)
    if parse == "lines":
        return _lines(text, finished, cut=cut), repaired
    return _text(text, finished, cut=cut), repaired


def log_of(finished: Finished, masker: Masker) -> str:
    """Both outputs as they came, at most 1 MiB, secrets masked. Says how much was left out."""
    texts = [masker.text(clean_text(part)[0]) for part in finished.log_parts]
    if len(texts) == 2:
        gap = f"\n… {finished.log_dropped:,} bytes left out …\n"
        texts = [masker.cut_end(texts[0]), gap, masker.cut_start(texts[1])]
    log = "".join(texts)
    data = log.encode()
    if len(data) <= LOG_LIMIT:
        return log
    # Replaced characters take three bytes each, so even a log that was short enough may have grown.
    gap_data = "\n… cut …\n".encode()
    half = (LOG_LIMIT - len(gap_data)) // 2
    return (data[:half] + gap_data + data[-half:]).decode(errors="ignore")


def _parse_json(finished: Finished, masker: Masker) -> tuple[Any, bool]:
    if finished.stdout_size > STDOUT_LIMIT:
        raise UnusableOutput(
            "output_too_large",
            f"Standard output is {finished.stdout_size:,} bytes; `parse: json` takes at most {STDOUT_LIMIT:,}.",
        )
    text, repaired = clean_text(finished.stdout)
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise UnusableOutput("invalid_output", "Standard output is empty, but `parse: json` needs a JSON value.")
    try:
        value = read_strictly(text)
    except RecursionError:
        raise UnusableOutput("invalid_output", "Standard output is nested too deeply to be read as JSON.") from None
    except ValueError as error:
        raise UnusableOutput("invalid_output", f"Standard output is not JSON: {masker.text(str(error))}.") from None
    value, changed = repair(value)
    return masker.value(value), repaired or changed


def _text(text: str, finished: Finished, *, cut: bool) -> str:
    text = text if cut else _without_line_break(text)
    if not cut and json_size(text) <= OUTPUT_LIMIT:
        return text
    mark = f"\n… cut: standard output was {finished.stdout_size:,} bytes"
    # Both texts are counted with their quotes, and only one pair stays.
    return beginning(text, OUTPUT_LIMIT + 2 - json_size(mark)) + mark


def _lines(text: str, finished: Finished, *, cut: bool) -> list[str]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if cut or lines[-1] == "":
        # The last part is either empty or the beginning of a line that was cut.
        lines.pop()
    if not cut and json_size(lines) <= OUTPUT_LIMIT:
        return lines
    mark = f"… cut: standard output was {finished.stdout_size:,} bytes"
    room = OUTPUT_LIMIT - json_size([mark])
    kept = []
    for line in lines:
        room -= json_size(line) + 1
        if room < 0:
            break
        kept.append(line)
    return [*kept, mark]


def _without_line_break(text: str) -> str:
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


def _whole_characters(data: bytes) -> bytes:
    """``data``, cut at some byte, without the beginning of a character that the cut left at its end."""
    for length in range(1, min(4, len(data)) + 1):
        byte = data[-length]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-length] if needed > length else data
    return data
