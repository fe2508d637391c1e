"""The pictures of the documentation: ``python -m tests.browser.screenshots [DIRECTORY]``, by default ``docs/images``.

They are made anew from a database of their own, which is gone afterwards.
"""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.gallery import Gallery

PROJECT = Path(__file__).resolve().parent.parent.parent
MOST_BYTES = 150_000


def _nothing(page: Page) -> None:
    """The page as it opens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """``path`` may name runs of the gallery (``{live}``). ``height`` None shows the whole page."""

    name: str
    path: str
    before: Callable[[Page], None] = _nothing
    is_dark: bool = False
    is_phone: bool = False
    height: int | None = 860
    by: str = "mara"


def _open_step(page: Page) -> None:
    page.locator("#timeline .row-name", has_text="update").first.click()
    page.locator("#step-panel h2").first.wait_for()


def _fill_start(page: Page) -> None:
    page.get_by_label("Version").first.fill("2.4.2")
    page.get_by_label("Title", exact=True).fill("After the fair")
    page.locator("#preview pre").wait_for()


def _preview_fork(page: Page) -> None:
    page.get_by_label("Begin with step").fill("v2")
    page.get_by_role("button", name="Show what it comes to").click()
    page.locator(".past-steps").first.wait_for()


def _ask_in_admin(page: Page) -> None:
    page.locator('input[name="_selected_action"]').first.check()
    page.locator('select[name="action"]').select_option("abandon")
    page.locator('button[name="index"]').click()
    page.get_by_label("Reason").wait_for()


def _wrong_text(page: Page) -> None:
    text = page.get_by_label("The text of the workflow file")
    text.fill(text.input_value().replace("kind: condition", "kind: conditon"))
    page.get_by_role("button", name="Check").click()
    page.locator("#findings").wait_for()


PICTURES = (
    # a run at work first, while its bars are long
    Picture(name="run", path="/runs/{live}/", height=1100),
    Picture(name="run-dark", path="/runs/{live}/", is_dark=True, height=1100),
    Picture(name="run-phone", path="/runs/{live}/", is_phone=True),
    Picture(name="home", path="/"),
    Picture(name="home-dark", path="/", is_dark=True),
    Picture(name="inbox", path="/inbox/", height=560),
    Picture(name="runs", path="/runs/"),
    Picture(name="step", path="/runs/{live}/", before=_open_step),
    Picture(name="run-failed", path="/runs/{failed}/"),
    Picture(name="question", path="/runs/{asks}/questions/2/", by="jon"),
    Picture(name="question-phone", path="/runs/{asks}/questions/2/", is_phone=True, by="jon"),
    Picture(name="reconcile", path="/runs/{interrupted}/reconcile/3/", height=900),
    Picture(name="fork", path="/runs/{done}/fork/", before=_preview_fork),
    Picture(name="history", path="/runs/{done}/at/", height=760),
    Picture(name="start", path="/workflows/roll_out/start/", before=_fill_start),
    Picture(name="workflow", path="/workflows/roll_out/", height=1200),
    Picture(name="editor", path="/workflows/roll_out/edit/", before=_wrong_text),
    Picture(name="versions", path="/workflows/roll_out/compare/?from=1&to=2", height=700),
    Picture(name="admin", path="/admin/workflows/run/", before=_ask_in_admin, height=560),
)


def _small(png: bytes) -> bytes:
    """The picture in its own colours, or with a palette where that would be too large."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colors in (0, 256, 128):
        found = io.BytesIO()
        shown = picture.quantize(colors, dither=Image.Dither.NONE) if colors else picture
        shown.save(found, "PNG", optimize=True)
        if found.tell() <= MOST_BYTES:
            break
    return found.getvalue()


@contextmanager
def _database() -> Iterator[None]:
    """A database as tests have it."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django

    django.setup()
    from django.test.utils import setup_databases, setup_test_environment, teardown_databases

    setup_test_environment(debug=False)
    made = setup_databases(verbosity=0, interactive=False)
    try:
        yield
    finally:
        teardown_databases(made, verbosity=0)


def _take(picture: Picture, directory: Path, gallery: Gallery, page: Page) -> int:
    page.goto(picture.path.format(**{name: getattr(gallery, name) for name in gallery.__slots__}))
    picture.before(page)
    page.evaluate("document.fonts.ready")
    found = _small(page.screenshot(full_page=picture.height is None, caret="hide", animations="disabled"))
    (directory / f"{picture.name}.png").write_bytes(found)
    return len(found)


def _options(picture: Picture) -> dict[str, Any]:
    width = 380 if picture.is_phone else 1280
    return {
        "viewport": {"width": width, "height": picture.height or 800},
        "color_scheme": "dark" if picture.is_dark else "light",
        "device_scale_factor": 2 if picture.is_phone else 1,
    }


def make(directory: Path, names: list[str]) -> bool:
    """Make the pictures; False when one is too large or a page had faults."""
    from tests.browser import chromium
    from tests.browser.crew import Crew
    from tests.browser.gallery import make_gallery
    from tests.browser.person import Person, session_of
    from tests.browser.server import Server

    path = chromium.find()
    if path is None:
        raise SystemExit("There is no Chromium on this machine; WAYPOST_CHROMIUM may name one.")
    directory.mkdir(parents=True, exist_ok=True)
    is_fine, server, crew = True, Server(), Crew()
    try:
        gallery = make_gallery(crew)
        with chromium.launched(path) as browser:
            for picture in PICTURES:
                if names and picture.name not in names:
                    continue
                person = Person(browser, server, session_of(picture.by), **_options(picture))
                size = _take(picture, directory, gallery, person.page)
                faults = person.leave()
                is_fine = is_fine and not faults and size <= MOST_BYTES
                print(f"{size:8} {picture.name} {' '.join(faults)}".rstrip(), flush=True)
    finally:
        crew.kill()
        crew.close()
        server.close()
    return is_fine


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.screenshots", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=PROJECT / "docs" / "images")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="only these pictures")
    options = parser.parse_args()
    with _database():
        return 0 if make(options.directory, options.only) else 1


if __name__ == "__main__":
    raise SystemExit(main())
