"""Every link of the pages leads somewhere, and every picture is well-formed."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.blocks import PAGES, prose_of
from tests.processes import PROJECT

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PICTURES = sorted((PROJECT / "docs" / "images").glob("*.svg"))


def anchors_of(page: Path) -> set[str]:
    headings = (re.sub(r"[`*]", "", heading.lower()) for heading in _HEADING.findall(prose_of(page)))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


def links_of(page: Path) -> list[str]:
    return [first or second for first, second in _LINK.findall(prose_of(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in links_of(page):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []


def test_every_page_of_the_docs_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [PROJECT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            targets = ((page.parent / link.partition("#")[0]).resolve() for link in links_of(page))
            waiting += [target for target in targets if target.suffix == ".md" and target.is_file()]
    assert {page.name for page in PAGES} - {page.name for page in reached} == set()


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_well_formed_has_a_title_and_looks_right_in_the_dark(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert root.get("role") == "img"
    assert root.get("viewBox")
    assert "prefers-color-scheme: dark" in text


def test_every_picture_is_shown() -> None:
    shown = {(page.parent / link).resolve() for page in PAGES for link in links_of(page)}
    assert {picture for picture in PICTURES if picture not in shown} == set()
