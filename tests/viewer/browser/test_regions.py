"""Nodes that compute what other nodes of the other model compute: one place with a colour of its own."""

from __future__ import annotations

from tests.viewer.browser import scenes
from tests.viewer.browser.conftest import Open, of

WORDS = "computed otherwise"


def test_a_region_has_a_colour_a_sign_and_a_count(opened: Open) -> None:
    scene, ours, theirs = scenes.two_with_region()
    page = opened(scene)
    paint = "app.sides[%d].paint.node(%d).strong"
    otherwise = of(page, "app.palette.otherwise")
    assert {of(page, paint % (model, node)) for model, nodes in enumerate((ours, theirs)) for node in nodes} == {
        otherwise
    }
    assert of(page, f"app.sides[0].paint.nodeSign({ours[0]}).text") == "≈"
    removed, added = scene["difference"]["removed"], scene["difference"]["added"]
    assert of(page, paint % (0, next(node for node in removed if node not in ours))) != otherwise
    assert f"≈ {WORDS}" in page.locator(".legend").inner_text()
    page.keyboard.press("d")
    chips = page.locator(".chip:visible").all_inner_texts()
    assert f"≈ {WORDS} 1" in chips
    assert f"\N{MINUS SIGN} removed {len(removed) - len(ours)}" in chips
    assert f"+ added {len(added) - len(theirs)}" in chips


def test_a_region_is_one_step_in_both_models(opened: Open) -> None:
    scene, ours, theirs = scenes.two_with_region()
    page = opened(scene)
    page.keyboard.press("d")
    page.locator(".chip", has_text=WORDS).click()
    page.keyboard.press("d")
    for model, nodes in enumerate((ours, theirs)):
        assert of(page, f"app.sides[{model}].selection.map(({{ ref }}) => ref)") == nodes
        for node in nodes:  # the rooms of all of them are open
            assert (
                of(page, f"app.sides[{model}].spot({{ kind: 'node', ref: {node} }}).frame.room")
                == (scene["models"][model]["nodes"]["room"][node])
            )
    assert "3 nodes → 2 nodes with the same results" in page.locator(".row.current").inner_text()
    assert page.locator(".row.current .sign").inner_text() == "≈"
    # The inspector of the whole region names the other side, too.
    section = page.locator(".inspector section", has=page.locator("h3", has_text="Difference"))
    assert section.locator("button").all_inner_texts() == ["up_0", "act_0"]


def test_the_inspector_names_the_nodes_of_the_other_side(opened: Open) -> None:
    scene, ours, theirs = scenes.two_with_region()
    page = opened(scene)
    page.evaluate(f"window.onnxsmithView.jump(0, {{ kind: 'node', ref: {ours[2]} }})")
    section = page.locator(".inspector section", has=page.locator("h3", has_text="Difference"))
    assert WORDS in section.inner_text()
    assert section.locator("button").all_inner_texts() == ["up_0", "act_0"]
    assert of(page, "app.sides[1].selection.map(({ ref }) => ref)") == theirs
    section.locator("button", has_text="act_0").click()
    assert of(page, "app.active") == 1
    assert of(page, "app.side.selection[0].ref") == theirs[1]


def test_models_without_regions_have_no_such_words(opened: Open) -> None:
    page = opened(scenes.two(2))
    page.keyboard.press("d")
    assert WORDS not in page.locator("body").inner_text()


def test_a_region_without_nodes_on_one_side(opened: Open) -> None:
    scene = scenes.two(2)
    node = scene["difference"]["removed"][0]
    scene["difference"]["regions"] = [[[node, -1, 9999], []], [[], []], "broken"]
    page = opened(scene)
    assert of(page, f"app.differences.state(0, {node})") == "otherwise"
    assert of(page, "app.differences.changes.filter(({ state }) => state === 'otherwise').length") == 1
    page.evaluate(f"window.onnxsmithView.jump(0, {{ kind: 'node', ref: {node} }})")
    assert "1 node removed: the results are elsewhere in the new model" in page.locator(".inspector").inner_text()
