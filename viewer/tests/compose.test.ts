import assert from "node:assert/strict";
import { test } from "node:test";
import { Composer, type Frame } from "../src/compose";
import { Graph } from "../src/graph";
import { Picture, itemsOfRow, rowAt } from "../src/picture";
import { rowsOf } from "../src/rows";
import { separate } from "../src/separate";
import { Side } from "../src/side";
import { BEND, GAP } from "../src/sizes";
import { chance, randomModel } from "./random_rooms";

const SEEDS = Array.from({ length: 60 }, (_, seed) => seed + 1);
const EXACT = 1e-6;

function frames(frame: Frame): Frame[] {
  return [frame, ...[...frame.inner.values()].flatMap(frames)];
}

/** Nothing of a row overlaps: items and bends keep their order and their distance. */
function assertApart(frame: Frame): void {
  for (let row = 0; row < frame.rows.count; row++) {
    const part = [...frame.rows.entry.subarray(frame.rows.start[row], frame.rows.start[row + 1])];
    const left = (entry: number): number =>
      entry >= 0 ? frame.x[entry] - frame.halfWidth[entry] : frame.bendX[-1 - entry] - BEND;
    const right = (entry: number): number =>
      entry >= 0 ? frame.x[entry] + frame.halfWidth[entry] : frame.bendX[-1 - entry] + BEND;
    for (let at = 1; at < part.length; at++)
      assert.ok(left(part[at]) - right(part[at - 1]) >= GAP - EXACT, `row ${row}: too near`);
    for (const entry of part) {
      assert.ok(
        left(entry) >= frame.left - EXACT && right(entry) <= frame.left + frame.width + EXACT,
        "outside the frame",
      );
      if (entry < 0) continue;
      assert.ok(frame.y[entry] - frame.halfHeight[entry] >= frame.rowTop[row] - EXACT, "above its row");
      assert.ok(frame.y[entry] + frame.halfHeight[entry] <= frame.rowBottom[row] + EXACT, "below its row");
    }
    if (row) assert.ok(frame.rowTop[row] > frame.rowBottom[row - 1], "rows overlap");
  }
}

/** All edges point down, from the bottom of an item to the top of another. */
function assertDown(graph: Graph, frame: Frame): void {
  const { edges } = graph.model.rooms[frame.room];
  edges.from.forEach((from, edge) => {
    const to = edges.to[edge];
    assert.ok(frame.y[from] + frame.halfHeight[from] < frame.y[to] - frame.halfHeight[to], "an edge points up");
  });
}

function assertInside(frame: Frame): void {
  for (const [item, inner] of frame.inner) {
    assert.ok(Math.abs(inner.left - (frame.x[item] - frame.halfWidth[item])) < EXACT);
    assert.ok(Math.abs(inner.top - (frame.y[item] - frame.halfHeight[item])) < EXACT);
    assert.ok(Math.abs(inner.width - 2 * frame.halfWidth[item]) < EXACT);
    assert.ok(Math.abs(inner.height - 2 * frame.halfHeight[item]) < EXACT);
    for (let row = 0; row < inner.rows.count; row++)
      assert.ok(inner.rowTop[row] > inner.top && inner.rowBottom[row] < inner.top + inner.height);
  }
}

test("whatever is opened and closed, nothing overlaps and edges point down", () => {
  for (const seed of SEEDS) {
    const graph = new Graph(randomModel(seed), 0);
    const side = new Side(graph);
    const next = chance(seed + 1000);
    for (let step = 0; step < 12; step++) {
      const room = 1 + Math.floor(next() * (graph.model.rooms.length - 1));
      side.toggle(room);
      for (const frame of frames(side.picture.root)) {
        assertApart(frame);
        assertDown(graph, frame);
        assertInside(frame);
      }
    }
  }
});

test("opening and closing a room gives the picture that was before", () => {
  for (const seed of SEEDS.slice(0, 20)) {
    const side = new Side(new Graph(randomModel(seed), 0));
    const before = side.picture.root;
    side.toggle(1);
    side.toggle(1);
    assert.deepEqual([...side.picture.root.x], [...before.x]);
    assert.deepEqual([...side.picture.root.y], [...before.y]);
  }
});

test("opening a room leaves its top and its middle where they are on the screen", () => {
  for (const seed of SEEDS.slice(0, 20)) {
    const side = new Side(new Graph(randomModel(seed), 0));
    const child = side.graph.children(0)[0];
    if (child === undefined) continue;
    const place = (): number[] => {
      const box = side.picture.box(side.picture.spotOfRoom(child)!);
      return [side.camera.screenX((box.left + box.right) / 2), side.camera.screenY(box.top)];
    };
    const before = place();
    side.toggle(child);
    place().forEach((now, at) => assert.ok(Math.abs(now - before[at]) < EXACT));
  }
});

test("an opened room stays, and what is beside it gives way", () => {
  const graph = new Graph(randomModel(3), 0);
  const wanted = [0, 200, 400];
  const moved = separate(wanted, [90, 900, 90], [1, 1e6, 1], 14);
  assert.ok(Math.abs(moved[1] - 200) < 0.01);
  assert.ok(moved[0] <= 200 - 900 - 90 - 14 + 0.01 && moved[2] >= 200 + 900 + 90 + 14 - 0.01);
  assert.ok(graph.model.rooms.length > 1);
});

test("things that are far enough apart are not moved", () => {
  assert.deepEqual([...separate([0, 300, 900], [90, 90, 90], [1, 1, 1], 14)], [0, 300, 900]);
});

test("separate keeps the order and gives the nearest positions", () => {
  const next = chance(7);
  for (let round = 0; round < 200; round++) {
    const count = 1 + Math.floor(next() * 8);
    const wanted = Array.from({ length: count }, () => next() * 500).sort((a, b) => a - b);
    const half = wanted.map(() => 10 + next() * 100);
    const weight = wanted.map(() => 0.1 + next() * 5);
    const cost = (all: ArrayLike<number>): number =>
      wanted.reduce((sum, one, at) => sum + weight[at] * (all[at] - one) ** 2, 0);
    const allowed = (all: number[]): boolean =>
      all.every((one, at) => !at || one - all[at - 1] >= half[at] + half[at - 1] + 14 - EXACT);
    const found = [...separate(wanted, half, weight, 14)];
    assert.ok(allowed(found));
    // No small step that is allowed is better.
    for (let at = 0; at < 40; at++) {
      const other = found.map((one) => one + (next() - 0.5) * 8);
      if (allowed(other)) assert.ok(cost(other) >= cost(found) - EXACT);
    }
  }
});

test("a point finds the item that is drawn there, in opened rooms, too", () => {
  for (const seed of SEEDS.slice(0, 20)) {
    const side = new Side(new Graph(randomModel(seed), 0));
    side.openAll();
    for (const frame of side.picture.frames.values()) {
      for (let item = 0; item < frame.x.length; item++) {
        if (frame.inner.has(item)) continue;
        const hit = side.picture.hit(frame.x[item], frame.y[item]);
        assert.equal(hit?.frame, frame);
        assert.equal(hit?.item, item);
      }
    }
  }
});

test("the visible items of a row are those that reach into view", () => {
  const graph = new Graph(randomModel(5), 0);
  const { root } = new Picture(graph, new Composer(graph), 0, new Set());
  for (let row = 0; row < root.rows.count; row++) {
    assert.equal(rowAt(root, root.rowTop[row] + 1), row);
    for (const [left, right] of [
      [-50, 120],
      [300, 310],
      [-1e6, 1e6],
    ]) {
      const expected = [...root.rows.entry.subarray(root.rows.start[row], root.rows.start[row + 1])].filter(
        (entry) =>
          entry >= 0 && root.x[entry] + root.halfWidth[entry] >= left && root.x[entry] - root.halfWidth[entry] <= right,
      );
      assert.deepEqual(new Set(itemsOfRow(root, row, left, right)), new Set(expected));
    }
  }
});

test("empty rows take no space, and a room without items has a size", () => {
  const model = randomModel(2, 1);
  model.rooms[0].items = { kind: [0, 0], ref: [0, 1], row: [3, 900], x: [0, 0] };
  model.rooms[0].edges = { from: [], to: [], value: [], bends: [] };
  assert.equal(rowsOf(model.rooms[0]).count, 2);
  model.rooms[0].items = { kind: [], ref: [], row: [], x: [] };
  const graph = new Graph(model, 0);
  const { root } = new Picture(graph, new Composer(graph), 0, new Set());
  assert.ok(root.width > 0 && root.height > 0);
});

test("opening all stops at its limit", () => {
  const model = randomModel(4, 5);
  for (const room of model.rooms.slice(1)) {
    for (let at = 0; at < 4000; at++) {
      room.items.kind.push(0);
      room.items.ref.push(0);
      room.items.row.push(at);
      room.items.x.push(0);
    }
  }
  const side = new Side(new Graph(model, 0));
  assert.equal(side.openAll(), false);
  assert.ok(side.picture.size <= 5000);
});
