import assert from "node:assert/strict";
import { test } from "node:test";
import { Composer } from "../src/compose";
import { Graph } from "../src/graph";
import { sheetFor, type Sheet } from "../src/paper";
import { Picture } from "../src/picture";
import { addNode, addValue, emptyModel, emptyRoom } from "./random_rooms";

/** A picture of so many rows with so many nodes in each. */
function picture(rows: number, across: number): Picture {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"));
  const x = addValue(model, "x", 0, 1);
  const { items } = model.rooms[0];
  for (let at = 0; at < rows * across; at++) {
    addNode(model, 0, [x], { name: `n${at}`, op: 0, type: 0 });
    [items.kind[at], items.ref[at], items.row[at], items.x[at]] = [0, at, Math.floor(at / across), at % across];
  }
  const graph = new Graph(model, 0);
  return new Picture(graph, new Composer(graph), 0, new Set());
}

/** Whether each item lies whole in one strip. */
function isWhole(made: Sheet, { root }: Picture): boolean {
  return [...root.y].every((y, item) => {
    const [top, bottom] = [y - root.halfHeight[item], y + root.halfHeight[item]];
    return made.strips.some((strip) => top >= strip.top && bottom <= strip.bottom);
  });
}

test("a wide picture lies across, in one piece", () => {
  const sheet = sheetFor(picture(2, 30));
  assert.equal(sheet.wide, true);
  assert.equal(sheet.strips.length, 1);
});

test("a small picture is not enlarged", () => {
  assert.equal(sheetFor(picture(3, 2)).zoom, 1);
});

test("a long chain is cut between its nodes, into strips that cover it and make it legible", () => {
  for (const rows of [40, 100, 3000]) {
    const made = picture(rows, 1);
    const sheet = sheetFor(made);
    const whole = made.box({ frame: made.root, item: -1 });
    assert.equal(sheet.wide, false);
    assert.ok(sheet.strips.length > 1);
    assert.ok(isWhole(sheet, made), `${rows}`);
    assert.ok(sheet.strips[0].top <= whole.top && sheet.strips.at(-1)!.bottom >= whole.bottom);
    sheet.strips.slice(1).forEach((strip, at) => assert.equal(strip.top, sheet.strips[at].bottom));
    const alone = (222 * 96) / 25.4 / (whole.bottom - whole.top);
    assert.ok(sheet.zoom > 1.8 * alone, `${rows}: ${sheet.zoom} against ${alone}`);
  }
});
