import assert from "node:assert/strict";
import { test } from "node:test";
import { Differences } from "../src/differences";
import { drawnOrder } from "../src/drawn_order";
import { Graph } from "../src/graph";
import { placeWords, stepped } from "../src/stepping";
import { addNode, addValue, emptyModel, emptyRoom } from "./random_rooms";

/** A chain of nodes, drawn from the top down in an order of its own: `rows` holds the row of each node of the file. */
function chain(rows: number[], index: number): Graph {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"));
  let value = addValue(model, "x", 0, 1);
  for (const _ of rows) ({ value } = addNode(model, 0, [value], { name: `n${model.nodes.op.length}`, op: 0, type: 0 }));
  const { items } = model.rooms[0];
  items.kind = rows.map(() => 0);
  items.ref = rows.map((_, node) => node);
  items.row = rows;
  items.x = rows.map(() => 0);
  return new Graph(model, index);
}

test("a step begins again at the other end, and says so", () => {
  assert.deepEqual(stepped(-1, 1, 3), { at: 0, turned: "" });
  assert.deepEqual(stepped(-1, -1, 3), { at: 2, turned: "" });
  assert.deepEqual(stepped(0, 1, 3), { at: 1, turned: "" });
  assert.equal(placeWords("Result", stepped(0, 1, 1), 1), "Result 1 of 1, the only one");
  assert.equal(placeWords("Result", stepped(2, 1, 3), 3), "Result 1 of 3, from the start again");
  assert.equal(placeWords("Result", stepped(0, -1, 3), 3), "Result 3 of 3, from the end again");
});

test("nodes are in the order of the picture, each level as a whole", () => {
  assert.deepEqual([...drawnOrder(chain([2, 0, 1], 0))], [2, 0, 1]);
  const graph = chain([0, 1, 2], 0);
  const inner = graph.model.rooms.push(emptyRoom("inner", 0)) - 1;
  graph.model.nodes.room[0] = inner;
  graph.model.rooms[inner].items = { kind: [0], ref: [0], row: [5], x: [0] };
  const { items } = graph.model.rooms[0];
  [items.kind[0], items.ref[0], items.row[0]] = [1, inner, 1];
  items.row[1] = 0;
  assert.deepEqual([...drawnOrder(graph)], [1, 0, 2]);
});

test("changes are in the order of the graph, though the files hold their nodes from last to first", () => {
  // Six nodes, the last of the file drawn first; the second model has one more, between the third and the fourth.
  const graphs: [Graph, Graph] = [chain([5, 4, 3, 2, 1, 0], 0), chain([6, 5, 4, 3, 2, 1, 0], 1)];
  const difference = {
    pairs: [[5, 6, 1], [4, 5, 0], [3, 4, 0], [2, 2, 0], [1, 1, 2], [0, 0, 0]] as [number, number, number][],
    removed: [],
    added: [3],
    changes: {},
  };
  const { changes } = new Differences(difference, graphs);
  assert.deepEqual(changes.map(({ nodes }) => nodes), [[[5], [6]], [[], [3]], [[1], [1]]]);
});

test("a pair that was rounded otherwise is no change, and its figures are told", () => {
  const difference = {
    pairs: [[0, 0, 0], [1, 1, 0]] as [number, number, number][],
    removed: [],
    added: [],
    changes: { 1: ["w differs by 2 ulp"] },
    rounded: [1],
  };
  const found = new Differences(difference, [chain([0, 1], 0), chain([0, 1], 1)]);
  assert.equal(found.changes.length, 0);
  assert.deepEqual(found.words(0, 0), ["equal"]);
  assert.deepEqual(found.words(1, 1), ["equal up to rounding", "w differs by 2 ulp"]);
});
