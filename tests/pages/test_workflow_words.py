"""Words of the templates about workflows."""

from __future__ import annotations

from workflows.pages.workflow_tags import lines_of, prose


def test_a_description_has_paragraphs_lists_code_and_bold() -> None:
    assert (
        prose("One\ntwo `a<b` **c**\n\n- x\n- y\n")
        == "<p><bdi>One two <code>a&lt;b</code> <strong>c</strong></bdi></p><ul><li><bdi>x</bdi></li><li><bdi>y</bdi></li></ul>"
    )


def test_nothing_in_a_description_becomes_a_link_a_picture_or_a_tag() -> None:
    """WEB.1"""
    told = prose("<img src=x onerror=alert(1)> [x](javascript:alert(1)) ![x](https://e.example/p.png) `<b>`\n\n# h")

    assert "<img" not in told
    assert "<a" not in told
    assert "<b>" not in told
    assert "[x](javascript:alert(1))" in told
    assert prose("") == ""


def test_lines_can_be_linked_to_and_marked() -> None:
    """WEB.1"""
    assert lines_of("a: <b>\nc", [2]) == (
        '<ol class="source"><li id="line-1"><code>a: &lt;b&gt;</code></li>'
        '<li id="line-2" class="is-marked"><code>c</code></li></ol>'
    )
