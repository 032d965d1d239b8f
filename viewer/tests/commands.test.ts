import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { boundary, offers, offersForTwo, quoted } from "../src/commands";
import { Graph } from "../src/graph";
import { addNode, addValue, emptyModel, emptyRoom } from "./random_rooms";

function chain(names: string[] = ["x", "a", "b", "y"], index = 0): Graph {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"), emptyRoom("then", 0, "branch"));
  let last = addValue(model, names[0], 0, 1);
  const weight = addValue(model, "w", 0, 3);
  for (const name of names.slice(1)) {
    last = addNode(model, 0, [last, weight]).value;
    model.values.name[last] = name;
  }
  model.values.kind[last] = 2;
  return new Graph(model, index);
}

/** The words that a POSIX shell makes of a command. */
function words(command: string): string[] {
  const out = execFileSync("/bin/sh", ["-c", `for word in ${command}; do printf '%s\\0' "$word"; done`]);
  return out.toString().split("\0").slice(0, -1);
}

test("a shell reads quoted words back", () => {
  for (const word of [
    "plain.onnx",
    "with space",
    "it's",
    "$(rm -rf x)",
    "`id`",
    "a;b",
    '"',
    "\\",
    "new\nline",
    "~",
    "*",
    "=x",
    "ü",
    "!",
    "a'b'c",
    "#x",
    "",
  ]) {
    assert.deepEqual(words(quoted(word)), [word]);
  }
});

test("the border of a selection: what it reads and gives, without constants", () => {
  const graph = chain();
  assert.deepEqual(boundary(graph, [1]), { from: [2], to: [3] });
  assert.deepEqual(boundary(graph, [0, 1, 2]), { from: [0], to: [4] });
});

test("the command cuts the selection out", () => {
  assert.equal(offers(chain(), [1])[0].command, "onnxsmith extract m.onnx --from a --to b -o part.onnx");
});

test("hostile names stay words", () => {
  const graph = chain(["x", "-a", "$(touch x)'\"", "{ y"]);
  const command = offers(graph, [0, 1, 2])[0].command;
  assert.deepEqual(words(command.replace(/^onnxsmith/, "")), [
    "extract",
    "m.onnx",
    "--from",
    "x",
    "--to",
    '{ producer = "n2", output = 0 }',
    "-o",
    "part.onnx",
  ]);
  assert.ok(words(offers(graph, [1])[0].command).includes("--from=-a"));
  assert.ok(words(offers(graph, [1])[0].command).includes("$(touch x)'\""));
  graph.model.path = "-o m.onnx";
  assert.ok(words(offers(graph, [0])[0].command).includes("./-o m.onnx"));
});

test("a part of a branch is not offered", () => {
  const graph = chain();
  graph.model.nodes.room[1] = 1;
  const [offer] = offers(graph, [0, 1]);
  assert.equal(offer.command, "");
  assert.match(offer.note, /branch/);
});

test("what the branches of a node read is part of its border", () => {
  const graph = chain(["x", "a", "b", "c", "y"]);
  const { model } = graph;
  const inner = addNode(model, 1, [2]); // reads "a" in the branch of the last node
  model.nodes.bodies[3] = [["then", 1]];
  model.captured = { 3: [1, 2] }; // the weight and "a"
  const holding = new Graph(model, 0);
  assert.deepEqual(boundary(holding, [3]), { from: [4, 2], to: [5] });
  assert.match(offers(holding, [3])[0].command, /--from c --from a --to y/);
  // The reader in the branch is inside; the room that holds both is offered, the branch alone is not.
  const reader = model.nodes.op.length - 1;
  assert.equal(holding.isHeld(reader, new Set([3])), true);
  assert.deepEqual(boundary(holding, [0, 1, 2, 3]).to, [5]);
  assert.match(offers(holding, [0, 1, 2, 3, reader])[0].command, /--from x --to y/);
  assert.equal(offers(holding, [reader])[0].command, "");
  assert.ok(inner.value >= 0);
});

test("a part with a long border is not offered", () => {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"));
  for (let at = 0; at < 80; at++) addNode(model, 0, [addValue(model, `x${at}`, 0, 1)]);
  assert.equal(
    offers(
      new Graph(model, 0),
      model.nodes.op.map((_, node) => node),
    )[0].command,
    "",
  );
});

test("two models are compared", () => {
  assert.deepEqual(
    offersForTwo(chain(), chain()).map((offer) => offer.command),
    ["onnxsmith diff m.onnx m.onnx", "onnxsmith compare m.onnx m.onnx --per-layer"],
  );
});

test("a part is compared in both models if both have its border", () => {
  const [old, changed] = [chain(), chain(undefined, 1)];
  Object.assign(old.model, { name: "old.onnx", path: "old.onnx" });
  Object.assign(changed.model, { name: "new.onnx", path: "new file.onnx" });
  const of = (graph: Graph, other: Graph) => offers(graph, [1], other).at(-1)!;
  assert.deepEqual(words(of(old, changed).command), words(of(changed, old).command));
  assert.deepEqual(words(of(old, changed).command), [
    "onnxsmith", "compare", "old.onnx", "new file.onnx", "--from", "a", "--to", "b", "--per-layer",
  ]);
  assert.equal(offers(old, [1]).length, 3);
  changed.model.values.name = changed.model.values.name.map((name) => (name === "b" ? "c" : name));
  assert.equal(of(old, changed).command, "");
  assert.match(of(old, changed).note, /new.onnx has no tensor b/);
});
