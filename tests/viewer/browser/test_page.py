"""The page of `onnxsmith view` in Chromium, from disk, with the network off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.viewer.browser import scenes
from tests.viewer.browser.conftest import Open, of, settled, until

HOSTILE = "</script><img src=x onerror=alert(1)>"


def canvas(page: Any, model: int = 0) -> Any:
    return page.locator("canvas[role=application]").nth(model)


def press(page: Any, *keys: str) -> None:
    canvas(page).focus()
    for key in keys:
        page.keyboard.press(key)


def spot(page: Any, kind: str, ref: int, model: int = 0) -> dict[str, float]:
    """The middle of an item on the screen."""
    return page.evaluate(
        """([kind, ref, model]) => {
          const side = window.onnxsmithView.sides[model];
          const box = side.picture.box(side.spot({ kind, ref }));
          const place = window.onnxsmithView.panes[model].canvas.getBoundingClientRect();
          return {
            x: place.left + side.camera.screenX((box.left + box.right) / 2),
            y: place.top + side.camera.screenY((box.top + box.bottom) / 2),
          };
        }""",
        [kind, ref, model],
    )


def click(page: Any, kind: str, ref: int, *, model: int = 0, **how: Any) -> None:
    at = spot(page, kind, ref, model)
    page.mouse.click(at["x"], at["y"], **how)


def test_it_opens_from_disk_without_a_request(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    assert page.title() == "encoder.onnx · onnxsmith view"
    assert "MatMul" in page.locator(".inspector").inner_text()
    assert of(page, "app.sides[0].picture.size") == 5


def test_a_room_opens_in_its_place_and_closes(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    room = of(page, "app.sides[0].graph.roomByPath.get('encoder')")
    before = spot(page, "room", room)
    page.mouse.dblclick(before["x"], before["y"])
    assert of(page, f"app.side.opened.has({room})")
    assert of(page, "app.sides[0].picture.size") > 5
    press(page, "e")
    assert of(page, "app.side.opened.size") == len(scenes.encoder(2)["rooms"]) - 1
    press(page, "Shift+E")
    assert of(page, "app.side.opened.size") == 0


def test_a_room_is_entered_alone_and_left(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    click(page, "room", 2)
    press(page, "Shift+Enter")
    assert of(page, "app.side.graph.model.rooms[app.side.room].path") == "encoder"
    assert page.locator(".crumbs [aria-current]").inner_text() == "encoder"
    page.locator(".crumbs button").first.click()
    assert of(page, "app.side.room") == 0
    press(page, "Shift+Enter")
    press(page, "Backspace")
    assert of(page, "app.side.room") == 0


def test_a_search_finds_jumps_and_counts_in_closed_rooms(opened: Open) -> None:
    page = opened(scenes.with_overlays(3))
    press(page, "/")
    page.keyboard.type("op:softmax")
    until(page, "document.querySelector('.found').textContent === '3'")
    assert of(page, "app.side.marks.foundInRooms.get(app.side.graph.roomByPath.get('encoder'))") == 3
    page.keyboard.press("Enter")
    assert page.locator(".found").inner_text() == "1 of 3"
    assert page.locator(".inspector h2").inner_text().startswith("Softmax")
    first = of(page, "app.side.selection[0].ref")
    press(page, "n")
    assert page.locator(".found").inner_text() == "2 of 3"
    press(page, "Shift+N")
    assert of(page, "app.side.selection[0].ref") == first
    # The node is inside the view.
    at = spot(page, "node", first)
    box = canvas(page).bounding_box()
    assert box["x"] < at["x"] < box["x"] + box["width"]
    assert box["y"] < at["y"] < box["y"] + box["height"]


def test_kinds_of_results_are_counted(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    press(page, "/")
    page.keyboard.type("norm")
    page.wait_for_selector("#panel-results .chip")
    chips = page.locator("#panel-results .chip")
    assert chips.all_inner_texts() == ["All 4", "Names 4", "Operators 4", "Tensors 4", "Modules 4"]
    page.locator("#panel-results .chip", has_text="Operators").click()
    assert page.locator("#panel-results .chip[aria-pressed=true]").inner_text() == "Operators 4"


def test_an_overlay_colours_lists_and_leads_to_the_worst(opened: Open) -> None:
    scene = scenes.with_overlays(2)
    page = opened(scene)
    page.locator("select").select_option("1")
    assert page.locator(".panel:visible .head").inner_text().startswith("error")
    assert page.locator(".legend").inner_text().splitlines()[-1] == "error; right is worse"
    press(page, "w")
    # Not-a-number is the worst of all.
    assert of(page, "app.side.selection[0].ref") == scene["overlays"][1]["nodes"][0]
    press(page, "w")
    figures = {
        node: figure
        for node, figure in zip(scene["overlays"][1]["nodes"], scene["overlays"][1]["figures"], strict=True)
        if figure != "nan"
    }
    assert of(page, "app.side.selection[0].ref") == max(figures, key=lambda node: figures[node])
    page.locator("select").select_option("2")
    assert page.locator(".legend").inner_text().split() == ["taken", "slow", "refused"]


def test_two_models_move_together(opened: Open) -> None:
    page = opened(scenes.two(3))
    assert page.locator(".pane canvas[role=application]").count() == 2
    press(page, "d")
    state = of(page, "app.differences.state(0, app.sides[0].selection[0].ref)")
    assert state == "removed"
    assert page.locator(".row.current .sign").inner_text() == "\N{MINUS SIGN}"
    # What was removed has no partner: the nodes around it stand beside theirs.
    before = of(
        page,
        "app.sides[0].graph.model.values.producer[app.sides[0].graph.model.nodes.inputs[app.sides[0].selection[0].ref][0]]",
    )
    partner = of(page, f"app.differences.partner(0, {before})")
    assert spot(page, "node", before)["y"] == pytest.approx(spot(page, "node", partner, 1)["y"], abs=1)
    # The rooms that opened on one side opened on the other, too.
    assert of(page, "app.sides[0].opened.size") == of(page, "app.sides[1].opened.size") > 0
    press(page, "d")
    node = of(page, "app.sides[0].selection[0].ref")
    partner = of(page, f"app.differences.partner(0, {node})")
    assert of(page, "app.sides[1].selection[0].ref") == partner
    page.mouse.move(420, 400)
    page.mouse.down()
    page.mouse.move(380, 330, steps=4)
    page.mouse.up()
    old, new = spot(page, "node", node), spot(page, "node", partner, 1)
    left, right = canvas(page).bounding_box(), canvas(page, 1).bounding_box()
    assert old["y"] - left["y"] == pytest.approx(new["y"] - right["y"], abs=1)


def test_two_models_are_shown_in_one_picture(opened: Open) -> None:
    page = opened(scenes.two(2))
    press(page, "v")
    assert page.locator("canvas[role=application]").count() == 1
    press(page, "x")
    assert of(page, "app.active") == 1
    assert page.locator("canvas[role=application]").get_attribute("aria-label") == "Graph of new.onnx"
    press(page, "v")
    assert page.locator("canvas[role=application]").count() == 2


def test_changes_are_marked_by_a_sign(opened: Open) -> None:
    page = opened(scenes.two(2))
    signs = page.evaluate(
        """() => window.onnxsmithView.differences.changes.map(({ nodes: [old, now] }) => {
          const model = old.length ? 0 : 1;
          return window.onnxsmithView.sides[model].paint.nodeSign(model ? now[0] : old[0]).text;
        })"""
    )
    assert set(signs) == {"+", "\N{MINUS SIGN}", "≠"}
    assert page.locator(".legend").inner_text().split("\n") != []


def test_lines_of_the_program_lead_to_nodes_and_back(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    press(page, "p")
    row = page.locator(".row.code").nth(2)
    row.hover()
    assert of(page, "[...app.side.pointed]") == [2]
    row.click()
    assert of(page, "app.side.selection[0].ref") == 2
    page.evaluate("window.onnxsmithView.jump(0, { kind: 'node', ref: 20 })")
    assert page.locator(".row.current").get_attribute("data-index") == "20"


def test_the_keyboard_reaches_everything(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    press(page, "ArrowDown")  # without a selection it pans
    page.evaluate("window.onnxsmithView.choose(0, { kind: 'value', ref: 0 })")
    press(page, "ArrowDown")
    assert of(page, "app.side.selection[0].kind") == "room"
    press(page, "Enter")
    assert of(page, "app.side.opened.size") == 1
    press(page, "?")
    assert page.locator("dialog").is_visible()
    assert "next worst figure" in page.locator("dialog").inner_text()
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    zoom = of(page, "app.side.camera.zoom")
    press(page, "+")
    assert of(page, "app.side.camera.zoom") > zoom
    press(page, "0")
    assert of(page, "app.side.camera.zoom") == pytest.approx(1)
    press(page, "Escape")
    assert of(page, "app.side.selection.length") == 0


def test_the_outline_is_a_tree_of_the_room(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    press(page, "o")
    tree = page.locator("[role=tree]")
    names = page.locator("[role=treeitem]").evaluate_all(
        "rows => rows.map((row) => row.textContent.replace(/\\s+/g, ' ').trim())"
    )
    assert names == [
        "input pixels",
        "▸ embeddings 3 nodes",
        "▸ encoder 28 nodes",
        "▸ classifier 2 nodes",
        "output logits_out",
    ]
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert tree.locator("[aria-expanded=true]").count() == 1
    assert of(page, "app.side.opened.size") == 1
    page.keyboard.press("Enter")
    assert page.locator(".inspector h2").inner_text() == "embeddings"
    tree.locator(".turn").first.click()
    assert of(page, "app.side.opened.size") == 0
    page.locator("[role=treeitem]").nth(3).evaluate("row => row.click()")  # as assistive technology does
    assert page.locator(".inspector h2").inner_text() == "classifier"


def test_the_address_holds_the_place(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    press(page, "/")
    page.keyboard.type("context_1")
    page.keyboard.press("Enter")
    page.locator("select").select_option("1")
    settled(page)
    hash_ = page.evaluate("location.hash")
    camera = of(page, "app.side.camera.copy()")
    other = opened(scenes.with_overlays(2), hash_)
    assert other.locator(".inspector .name").inner_text() == "context_1"
    assert of(other, "app.colour") == 1
    assert of(other, "app.side.camera.copy()") == pytest.approx(camera, abs=1)
    assert of(other, "[...app.side.opened].length") == of(page, "[...app.side.opened].length")


def test_a_link_to_a_room_shows_it(opened: Open) -> None:
    page = opened(scenes.with_overlays(2), "#encoder.layer.1")
    assert page.locator(".crumbs [aria-current]").inner_text() == "layer.1"
    page.evaluate("location.hash = '#encoder'")
    until(page, "document.querySelector('.crumbs [aria-current]').textContent === 'encoder'")


def test_a_selection_becomes_a_command(opened: Open) -> None:
    page = opened(scenes.with_overlays(2), permissions=["clipboard-read", "clipboard-write"])
    page.evaluate("window.onnxsmithView.jump(0, { kind: 'node', ref: 0 })")
    page.locator(".offer button").first.click()
    page.wait_for_selector(".toast:not([hidden])")
    assert (
        page.evaluate("navigator.clipboard.readText()")
        == "onnxsmith extract encoder.onnx --from pixels --to patches_out -o part.onnx"
    )


def test_what_is_visible_is_saved_as_svg(opened: Open, tmp_path: Path) -> None:
    from xml.etree import ElementTree

    page = opened(scenes.with_overlays(2))
    canvas(page).focus()
    with page.expect_download() as download:
        page.keyboard.press("s")
    download.value.save_as(tmp_path / "picture.svg")
    tree = ElementTree.parse(tmp_path / "picture.svg")  # the page's own output
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"embeddings", "encoder", "classifier"} <= set(texts)


def test_hostile_names_do_nothing(opened: Open) -> None:
    scene = json.loads(
        json.dumps(scenes.with_overlays(2))
        .replace("softmax_0", HOSTILE)
        .replace("encoder.layer.0.attention", HOSTILE)
        .replace("layer.0", HOSTILE)
    )
    scene["headline"] = scene["notes"] = HOSTILE
    scene["notes"] = [HOSTILE]
    scene["models"][0]["name"] = scene["models"][0]["path"] = HOSTILE
    scene["models"][0]["ops"][0]["doc"] = "javascript:alert(1)"
    scene["overlays"][0]["title"] = scene["overlays"][0]["from"] = HOSTILE
    page = opened(scene)
    assert HOSTILE in page.title()
    press(page, "e", "w", "/")
    page.keyboard.type("onerror")
    page.keyboard.press("Enter")
    assert HOSTILE in page.locator(".inspector").inner_text()
    for node in range(4):
        page.evaluate(f"window.onnxsmithView.jump(0, {{ kind: 'node', ref: {node} }})")
    settled(page)
    assert page.locator("img, a[href^=javascript]").count() == 0
    assert page.evaluate("document.querySelectorAll('script').length") == 2


def test_a_broken_scene_is_said_in_plain_words(opened: Open) -> None:
    whole = json.dumps(scenes.with_overlays(1))
    for text, words in [
        (whole[: len(whole) // 2], "cut off"),
        ("", "missing"),
        ('{"format": 9}', "newer onnxsmith"),
        ('{"format": 1, "models": []}', "no model"),
    ]:
        page = opened(None, text=text)
        assert words in page.locator(".refused").inner_text()


def test_a_newer_scene_is_shown_as_far_as_it_is_known(opened: Open) -> None:
    page = opened(scenes.with_overlays(1) | {"format": 2})
    assert "format 2" in page.locator(".note").first.inner_text()
    assert of(page, "app.sides[0].picture.size") == 5


def test_a_model_without_nodes_types_and_sources(opened: Open) -> None:
    maker = scenes.ModelMaker("empty.onnx")
    maker.room("main", "graph", "")
    page = opened(scenes.scene(maker.finish()))
    assert "no nodes" in page.locator(".inspector").inner_text()
    maker = scenes.ModelMaker("untyped.onnx")
    maker.room("main", "graph", "")
    x = maker.value("x", "", kind=1)
    maker.node("Relu", [x, -1], type_="")
    page = opened(scenes.scene(maker.finish()))
    page.evaluate("window.onnxsmithView.jump(0, { kind: 'node', ref: 0 })")
    assert "type unknown" in page.locator(".inspector").inner_text()
    assert "left out" in page.locator(".inspector").inner_text()


def test_a_room_of_100_000_nodes(opened: Open) -> None:
    page = opened(scenes.flat(100_000))
    press(page, "f")
    press(page, "/")
    page.keyboard.type("op:QuantizeLinear")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('.found').textContent.startsWith('1 of')")
    settled(page)
    assert of(page, "app.sides[0].picture.size") > 100_000


def test_branches_are_entered_from_their_node(opened: Open) -> None:
    maker = scenes.ModelMaker("branches.onnx")
    maker.room("main", "graph", "")
    x = maker.value("x", "float32[n]", kind=1)
    node, _ = maker.node("If", [x])
    branch = maker.room("then_branch", "branch", "if/then", 0)
    inner, _ = maker.node("Relu", [x], branch)
    maker.model["nodes"]["bodies"][node] = [["then_branch", branch]]
    page = opened(scenes.scene(maker.finish()))
    # A node in a branch that isn't shown is represented by the node that holds the branch.
    assert of(page, f"app.side.spot({{ kind: 'node', ref: {inner} }}).item") == of(
        page, f"app.side.graph.itemOfNode[{node}]"
    )
    page.evaluate(f"window.onnxsmithView.jump(0, {{ kind: 'node', ref: {node} }})")
    page.locator("button", has_text="then_branch").click()
    assert of(page, "app.side.room") == branch
    press(page, "Backspace")
    assert of(page, "app.side.room") == 0
    page.evaluate(f"window.onnxsmithView.jump(0, {{ kind: 'node', ref: {inner} }})")
    assert of(page, "app.side.room") == branch
    assert "cannot be cut out" in page.locator(".inspector").inner_text()


def test_a_stub_leads_to_the_other_end(opened: Open) -> None:
    maker = scenes.ModelMaker("stubs.onnx")
    maker.room("main", "graph", "")
    x = maker.value("x", "float32[n]", kind=1)
    first, a = maker.node("Relu", [x], name="first")
    last, _ = maker.node("Mul", [a], name="last")
    model = maker.finish()
    items, edges = model["rooms"][0]["items"], model["rooms"][0]["edges"]
    cut = next(at for at, value in enumerate(edges["value"]) if value == a)
    stubs = {}
    for name, row in [("out", items["row"][first] + 1), ("in", items["row"][last] - 1)]:
        stubs[name] = len(items["kind"])
        for key, entry in [("kind", 4), ("ref", a), ("row", row), ("x", 2.0)]:
            items[key].append(entry)
    source, target = edges["from"][cut], edges["to"][cut]
    edges["to"][cut] = stubs["out"]
    items["row"][target] += 2
    for key, entry in [("from", stubs["in"]), ("to", target), ("value", a), ("bends", [2.0])]:
        edges[key].append(entry)
    assert source >= 0
    page = opened(scenes.scene(model))
    for stub, node in [("out", last), ("in", first)]:
        at = page.evaluate(
            """(item) => {
              const { side, pane } = window.onnxsmithView;
              const { x, y } = side.picture.root;
              const box = pane.canvas.getBoundingClientRect();
              return { x: box.left + side.camera.screenX(x[item]), y: box.top + side.camera.screenY(y[item]) };
            }""",
            stubs[stub],
        )
        page.mouse.click(at["x"], at["y"])
        assert of(page, "app.side.selection[0].ref") == node


def test_light_and_dark(opened: Open) -> None:
    page = opened(scenes.with_overlays(1), color_scheme="dark")
    assert of(page, "app.palette.dark")
    press(page, "t")
    assert not of(page, "app.palette.dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_it_works_in_the_frame_of_a_notebook(browser: Any) -> None:
    """There it has no origin, no storage and no address of its own."""
    from html import escape

    from tests.viewer.browser.page import html

    page = browser.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    held = escape(html(scenes.with_overlays(1)), quote=True)
    page.set_content(
        f'<iframe width="1000" height="700" sandbox="allow-scripts allow-downloads" srcdoc="{held}"></iframe>'
    )
    frame = page.frame_locator("iframe")
    frame.locator("canvas[role=application]").wait_for()
    frame.locator("[role=treeitem]").nth(1).click()
    page.wait_for_timeout(600)
    frame.locator("button", has_text="Show alone").click()
    assert frame.locator(".crumbs [aria-current]").inner_text() == "embeddings"
    page.wait_for_timeout(600)
    page.close()
    assert complaints == []


def test_two_fingers_zoom(opened: Open) -> None:
    page = opened(scenes.with_overlays(1), has_touch=True)
    zoom = of(page, "app.side.camera.zoom")
    session = page.context.new_cdp_session(page)
    box = canvas(page).bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def touch(kind: str, away: float) -> None:
        points = [{"x": middle[0] + side * away, "y": middle[1], "id": side + 1} for side in (-1, 1)] if away else []
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 40)
    for away in (50, 70, 80):
        touch("touchMove", away)
    touch("touchEnd", 0)
    assert of(page, "app.side.camera.zoom") == pytest.approx(2 * zoom, rel=0.05)
    assert of(page, "app.side.selection.length") == 0


def test_a_search_looks_at_both_models(opened: Open) -> None:
    scene = scenes.two(3)
    page = opened(scene)
    press(page, "/")
    page.keyboard.type("op:softmax")
    until(page, "document.querySelector('.found').textContent !== ''")
    counts = [sum(model["ops"][op]["type"] == "Softmax" for op in model["nodes"]["op"]) for model in scene["models"]]
    assert all(counts)
    said = [f"in old {counts[0]}", f"in new {counts[1]}"]
    assert page.locator(".chip:visible").all_inner_texts()[-2:] == said
    assert page.locator(".found").inner_text() == str(sum(counts))
    assert [of(page, f"app.sides[{at}].found.length") for at in (0, 1)] == counts
    page.locator(".chip", has_text="in new").click()
    assert [of(page, f"app.sides[{at}].found.length") for at in (0, 1)] == [0, counts[1]]
    assert page.locator(".found").inner_text() == str(counts[1])  # the header counts what is listed
    page.locator("#panel-results .row").nth(1).click()
    assert page.locator(".found").inner_text() == f"2 of {counts[1]}"


def test_all_readers_are_listed_and_gone_through(opened: Open) -> None:
    maker = scenes.ModelMaker("mask.onnx")
    maker.room("main", "graph", "")
    mask = maker.value("mask", "bool[n]", kind=1)
    nodes = [maker.node("Relu", [mask])[0] for _ in range(100)]
    page = opened(scenes.scene(maker.finish()))
    page.evaluate(f"window.onnxsmithView.jump(0, {{ kind: 'value', ref: {mask} }})")
    page.locator(".inspector button", has_text="and 88 more").click()
    assert page.locator(".found").inner_text() == "100"
    assert of(page, "app.side.found.length") == 100
    for node in nodes[:3]:
        press(page, "n")
        assert of(page, "app.side.selection[0].ref") == node


def test_an_empty_search_is_said(opened: Open) -> None:
    page = opened(scenes.with_overlays(1))
    press(page, "/")
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    assert "Result 1 of" in page.locator("[role=status]").inner_text()
    press(page, "/")
    page.keyboard.type("nothing is called so")
    until(page, "document.querySelector('[role=status]').textContent === 'Nothing found'")


def test_without_a_selection_a_level_shown_alone_tells_of_itself(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    page.evaluate("window.onnxsmithView.enter(0, window.onnxsmithView.side.graph.roomByPath.get('embeddings'))")
    press(page, "Escape")
    assert page.locator(".inspector h2").inner_text() == "embeddings"
    assert "SHA-256" not in page.locator(".inspector").inner_text()


def test_a_result_in_the_other_model_shows_that_model(opened: Open) -> None:
    scene = scenes.two(3)
    scene["models"][1]["nodes"]["name"][-1] = "only_here"
    page = opened(scene)
    press(page, "v")  # one picture
    assert of(page, "app.both") is False
    assert of(page, "app.active") == 0
    press(page, "/")
    page.keyboard.type("only_here")
    page.keyboard.press("Enter")
    until(page, "app.active === 1")
    assert of(page, "app.side.selection[0].ref") == len(scene["models"][1]["nodes"]["name"]) - 1
    assert (
        page.locator(".pane canvas[role=application]").get_attribute("aria-label").endswith(scene["models"][1]["name"])
    )


def test_a_report_of_another_model_is_told_above_the_picture(opened: Open) -> None:
    scene = scenes.with_overlays(2)
    scene["warnings"] = [f"old.json: the report is of another model (hash 12, named {HOSTILE}); 3 of 6 names match"]
    page = opened(scene)
    line = page.locator(".warnings")
    assert line.inner_text() == scene["warnings"][0]
    assert line.is_visible()
    box, picture = line.bounding_box(), canvas(page).bounding_box()
    assert box["y"] + box["height"] <= picture["y"]
    assert opened(scenes.with_overlays(2)).locator(".warnings").count() == 0
