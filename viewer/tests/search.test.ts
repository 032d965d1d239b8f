import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph, typeParts } from "../src/graph";
import { parse } from "../src/query";
import { search } from "../src/search";
import { fits, storedTensors } from "../src/stored";
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
  const kinds = (text: string) => parse(text).map(({ kind, words }) => [kind, words]);
  assert.deepEqual(kinds("op: Conv"), [["operator", "conv"]]);
  assert.deepEqual(kinds("name::x"), [[null, "name::x"]]);
  assert.deepEqual(kinds("other:x"), [[null, "other:x"]]);
  assert.deepEqual(kinds('op:conv [2, 2] "a  b"'), [["operator", "conv"], [null, "[2,2]"], [null, "a  b"]]);
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

/** Two convolutions, the second with defaults, and a product. */
function furnished(): Graph {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"), emptyRoom("stem", 0));
  model.types.push("float32[32, 16, 3, 3]", "float32[32, 128]", "float32[1, 32, 8, 8]");
  const x = addValue(model, "x", 0, 1);
  const weight = addValue(model, "stem.weight", 2, 3);
  const matrix = addValue(model, "matrix", 3, 3);
  for (const value of [weight, matrix])
    model.constants[value] = { bytes: 4, file: "", figures: null, histogram: [], text: "" };
  addNode(model, 1, [x, weight], { name: "first", op: 1, type: 4 });
  addNode(model, 0, [x], { name: "second", op: 1, type: 0 });
  addNode(model, 0, [x, matrix], { name: "third", op: 0, type: 0 });
  model.nodes.attributes[0] = [["strides", "[2, 2]", 0], ["auto_pad", "'NOTSET'", 0], ["epsilon", "9.999999747378752e-06", 0]];
  model.nodes.attributes[1] = [["strides", "[1, 1]", 1]];
  return new Graph(model, 0);
}

function nodes(text: string): number[] {
  const found = [...search(furnished(), text).values()].flat();
  return [...new Set(found.filter(({ chosen }) => chosen.kind === "node").map(({ chosen }) => chosen.ref))].sort();
}

test("attributes are found by name, and by name and value, however it is written", () => {
  for (const text of ["strides=2", "strides=2,2", "strides=[2, 2]", "strides=2x2", "strides:2", "attr:strides=2", "stride 2", "auto_pad=notset", "epsilon=1e-5"])
    assert.deepEqual(nodes(text), [0], text);
  assert.deepEqual(nodes("strides=1"), [1]); // a default
  for (const text of ["attr:strides", "strides"]) assert.deepEqual(nodes(text), [0, 1], text);
  assert.deepEqual(nodes("strides=22"), []);
});

test("of several words all have to hold, each in any field or in that of its prefix", () => {
  assert.deepEqual(nodes("op:conv strides=2,2"), [0]);
  assert.deepEqual(nodes("op:conv 32"), [0]); // "32" is a dimension, not a part of "float32"
  assert.deepEqual(nodes("Conv 3x3"), [0]); // of the weight that it reads
  assert.deepEqual(nodes("3×3 conv"), [0]);
  assert.deepEqual(nodes("conv 3x32"), []);
  assert.deepEqual(nodes("level:stem op:conv"), [0]);
  assert.deepEqual(nodes("conv reads:x"), [0, 1]);
  assert.deepEqual(nodes('"self.conv x"'), []);
});

test("shapes are written with ×, x or commas, also in the filter of stored tensors", () => {
  const graph = furnished();
  const all = storedTensors(graph);
  for (const text of ["32×128", "32x128", "32,128", "32, 128"]) {
    assert.ok(search(graph, text).get("type")!.some(({ chosen }) => chosen.kind === "value"), text);
    assert.deepEqual(all.filter((one) => fits(one, text)).map(({ type }) => type), ["float32[32, 128]"], text);
  }
  assert.equal(all.filter((one) => fits(one, "matrix float32")).length, 1);
});

test("a weight is found by the torch parameter that it was computed from", () => {
  const graph = furnished();
  const matrix = graph.model.values.name.indexOf("matrix");
  graph.model.constants[matrix].aliases = ["layers.0.ff.weight"];
  const found = [...search(graph, "layers.0.ff").values()].flat();
  assert.deepEqual(found.map(({ chosen }) => chosen), [{ kind: "value", ref: matrix }]);
  assert.equal(found[0].text, "matrix (layers.0.ff.weight)");
});
