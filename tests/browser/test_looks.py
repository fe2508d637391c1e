"""Every page, as everybody needs it: without obstacles, in both colours, on a phone, with hostile texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import People
from tests.browser.person import PHONE
from tests.pages.addresses import ADDRESSES
from tests.pages.world import HARM, World, make_world
from tests.support.kinds import bad, ok
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.players import play
from workflows.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("sqlite"), pytest.mark.usefixtures("by_hand")]

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
#: Pieces, downloads and what needs more than an address.
NO_PAGES = {"home_part", "worker_part", "start_preview", "run_part_live", "run_part_visit", "workflow_source"}
ADMIN = ("/admin/", "/admin/workflows/run/", "/admin/workflows/workflow/", "/admin/auth/user/add/")
#: Django's own search field is described by a help text, and labelled by its picture only.
NOT_OURS = {"/admin/workflows/run/": ("label-title-only",), "/admin/workflows/workflow/": ("label-title-only",)}
#: Lines without a place to break, and a description that would be a script, a picture and a link.
LONG = workflow(
    """
  - { id: say, kind: shell, run: make, access: read }
  - { id: lose, kind: shell, run: make, access: read }
""",
    before=f"description: {json.dumps(f'# {HARM} ![x](http://127.0.0.1:1/x.png) <img src=x onerror=alert(4)>')}\n"
    "params: { line: { type: string } }",
    name="long",
)
_FAULTS = """
async (rules) => {
  await Promise.all(document.getAnimations().map((one) => one.finished.catch(() => null)));
  const found = await axe.run(document, rules ? {runOnly: {type: "rule", values: rules}} : {});
  return found.violations
    .filter((one) => one.impact === "serious" || one.impact === "critical")
    .map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(" | ")}`);
}
"""


def pages_of(world: World) -> list[str]:
    """The address of every page that can be looked at, downloads left out."""
    found = []
    for name, address in ADDRESSES.items():
        if address.get is None or address.is_missing or name in NO_PAGES:
            continue
        query = "&".join(f"{key}={value}" for key, value in address.query.items())
        path = world.path(name, address)
        if not path.endswith((".json", "/input/", "/output/")):
            found.append(f"{path}?{query}" if query else path)
    return found


def faults_of(page: Page, rules: list[str] | None = None) -> list[str]:
    return list(page.evaluate(_FAULTS, rules))


def look(page: Page, path: str) -> Any:
    response = page.goto(path)
    assert response is not None
    assert response.status == 200, path
    return response


def test_no_page_has_an_obstacle_in_light_or_dark(people: People) -> None:
    """WEB.6: axe-core finds nothing serious or critical; its script comes past the content policy, which other tests keep."""
    world = make_world()
    page = people("ann", user={"is_superuser": True, "is_staff": True}, bypass_csp=True).page
    found: dict[str, list[str]] = {}
    for path in [*pages_of(world), *ADMIN]:
        page.emulate_media(color_scheme="light")
        look(page, path)
        page.evaluate(AXE)
        faults = [one for one in faults_of(page) if one.partition(":")[0] not in NOT_OURS.get(path, ())]
        page.emulate_media(color_scheme="dark")
        faults += [f"dark {fault}" for fault in faults_of(page, ["color-contrast"])]
        if faults:
            found[path] = faults
    assert not found, "\n".join(f"{path}: {fault}" for path, faults in found.items() for fault in faults)


def test_no_page_is_wider_than_a_phone_and_hostile_texts_stay_text(people: People) -> None:
    """WEB.1, WEB.6: whatever a script in a text would do is told by the browser and fails this test, like a wide page."""
    world = make_world()
    store_plan(LONG, private=False)
    long = play(
        publish_run(LONG, {"line": HARM + "x" * 100_000}, title=HARM + "y" * 400),
        {"say": ok(HARM + "z" * 100_000), "lose": bad(message=HARM + "w" * 1_500)},
    ).pk
    assert Run.objects.get(pk=long).status == "failed"
    paths = [f"/runs/{long}/{tab}" for tab in ("", "steps/", "events/", "visits/1/", "visits/2/", "at/", "fork/")]
    page = people("ann", user={"is_superuser": True, "is_staff": True}, viewport=PHONE).page
    wide = {}
    for path in [*pages_of(world), *paths, "/workflows/long/", "/workflows/long/start/"]:
        look(page, path)
        width, most = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        if width > most:
            wide[path] = width
        assert page.locator("main b, main i:not(.key), main u, main script, main [onclick]").count() == 0, path
    assert wide == {}
