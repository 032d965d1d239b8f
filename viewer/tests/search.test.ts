import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph, typeParts } from "../src/graph";
import { parse, search } from "../src/search";
import { addNode, addValue, emptyModel, emptyRoom } from "./random_rooms";

function graph(): Graph {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"), emptyRoom("layer.1", 0));
  const x = addValue(model, "x", 0, 1);
  const first = addNode(model, 0, [x], { name: "stem::conv", op: 1, type: 0 });
  addNode(model, 1, [first.value], { name: "relu_1", op: 0, type: 1 });
  return new Graph(model, 0);
}

test("each kind is counted apart", () => {
  const found = search(graph(), "conv");
  assert.deepEqual([...found.keys()], ["name", "operator", "tensor", "source"]);
  assert.deepEqual(
    found.get("operator")!.map((result) => result.chosen.ref),
    [0],
  );
});

test("a prefix limits the search to a kind, but :: is part of a name", () => {
  assert.deepEqual(parse("op: Conv"), { kind: "operator", words: "conv" });
  assert.deepEqual(parse("name::x"), { kind: null, words: "name::x" });
  assert.deepEqual(parse("other:x"), { kind: null, words: "other:x" });
  assert.deepEqual([...search(graph(), "op:conv").keys()], ["operator"]);
  assert.equal(search(graph(), "stem::conv").get("name")?.length, 1);
});

test("shapes are found however they are written", () => {
  for (const text of ["3, 224", "3,224", "3x224", "3×224", "BATCH,3", "float32"]) {
    assert.ok(search(graph(), text).get("type")?.length, text);
  }
  assert.equal(search(graph(), "3x225").size, 0);
});

test("a value that a node computes is found as the node, a graph input as itself", () => {
  const found = search(graph(), "float32").get("type")!;
  assert.deepEqual(
    found.map(({ chosen }) => chosen),
    [
      { kind: "value", ref: 0 },
      { kind: "node", ref: 0 },
    ],
  );
});

test("rooms, modules and source lines are found; nothing finds nothing", () => {
  assert.ok(search(graph(), "layer.1").get("room"));
  assert.ok(search(graph(), "encoder.layer").get("module"));
  assert.ok(search(graph(), "model.py:41").get("source"));
  assert.ok(search(graph(), "self.conv").get("source"));
  assert.equal(search(graph(), "   ").size, 0);
});

test("the readers of a tensor are found when asked for", () => {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"));
  const mask = addValue(model, "Mask", 0, 1);
  const other = addValue(model, "mask_2", 0, 1);
  for (let at = 0; at < 30; at++) addNode(model, 0, [at % 2 ? other : mask], { name: `n${at}` });
  const found = search(new Graph(model, 0), "reads:mask").get("reader")!;
  assert.deepEqual(
    found.map(({ chosen }) => chosen.ref),
    Array.from({ length: 15 }, (_, at) => 2 * at),
  );
  assert.equal(found[0].text, "reads Mask");
  assert.equal(search(new Graph(model, 0), "readers:ask").get("reader")!.length, 30); // no tensor is called so
  assert.equal(search(new Graph(model, 0), "mask").has("reader"), false);
});

test("20,000 nodes are searched in time", () => {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"));
  for (let at = 0; at < 20_000; at++) addNode(model, 0, [], { name: `node_${at}` });
  const large = new Graph(model, 0);
  const begin = performance.now();
  assert.equal(search(large, "node_1999").get("name")!.length, 11);
  assert.ok(performance.now() - begin < 500);
});

test("types are taken apart", () => {
  assert.deepEqual(typeParts("float32[batch, 3]"), {
    dtype: "float32",
    dims: [
      { text: "batch", symbolic: true },
      { text: "3", symbolic: false },
    ],
  });
  assert.deepEqual(typeParts("float32[]"), { dtype: "float32", dims: [] });
  assert.deepEqual(typeParts("sequence(tensor(float))"), { dtype: "sequence(tensor(float))", dims: null });
});
