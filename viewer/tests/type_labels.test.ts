import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph } from "../src/graph";
import { Side } from "../src/side";
import { TextMeasure } from "../src/text";
import { typeLabels } from "../src/type_labels";
import { addNode, emptyModel, emptyRoom, randomModel } from "./random_rooms";

const measure = new TextMeasure((text) => text.length * 55);

/** A node and readers at positions below it. */
function fan(...readers: number[]): Side {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"));
  const first = addNode(model, 0);
  const { items, edges } = model.rooms[0];
  const add = (ref: number, row: number, x: number): void =>
    void (items.kind.push(0), items.ref.push(ref), items.row.push(row), items.x.push(x));
  add(first.node, 0, 0);
  readers.forEach((x, at) => {
    add(addNode(model, 0, [first.value]).node, 1, x);
    for (const [column, entry] of [
      [edges.from, 0],
      [edges.to, at + 1],
      [edges.value, first.value],
    ] as const)
      column.push(entry);
    edges.bends.push([]);
  });
  return new Side(new Graph(model, 0));
}

test("a type stands on the side to which no edge turns", () => {
  const left = (side: Side): number =>
    typeLabels(side.graph, side.picture.root, 0, measure)[0].left - side.picture.root.x[0];
  assert.ok(left(fan(0)) > 0);
  assert.ok(left(fan(0, 1.5)) < 0);
  assert.ok(left(fan(0, -1.5)) > 0);
});

test("types do not cover each other", () => {
  for (let seed = 1; seed < 40; seed++) {
    const side = new Side(new Graph(randomModel(seed), 0));
    for (let row = 0; row < side.picture.root.rows.count; row++) {
      const labels = typeLabels(side.graph, side.picture.root, row, measure);
      labels.forEach((a, at) =>
        labels
          .slice(at + 1)
          .forEach((b) =>
            assert.ok(Math.abs(a.y - b.y) > 10 || a.left + a.width < b.left || b.left + b.width < a.left),
          ),
      );
    }
  }
});

test("a value whose type is not known has no label", () => {
  const side = fan(0);
  side.graph.model.values.type.fill(-1);
  assert.deepEqual(typeLabels(side.graph, side.picture.root, 0, measure), []);
});
