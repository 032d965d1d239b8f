import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph } from "../src/graph";
import { read, Unreadable } from "../src/reading";
import { Side } from "../src/side";
import { escaped, SvgSurface } from "../src/svg";
import { TextMeasure } from "../src/text";
import { shortFloats } from "../src/words";
import { chance, randomModel, sceneOf } from "./random_rooms";

test("a scene that is read is the scene that was written", () => {
  for (let seed = 1; seed < 20; seed++) {
    const scene = sceneOf(randomModel(seed));
    assert.deepEqual(read(JSON.stringify(scene)), scene);
  }
});

test("what can't be read is said in plain words", () => {
  for (const [text, words] of [
    [null, /missing/],
    ["", /missing/],
    ['{"format":1,', /cut off/],
    ["[]", /no model|format/],
    ["3", /not an object/],
    ['{"format":1}', /no model/],
    ['{"format":2}', /newer/],
  ] as const) {
    assert.throws(
      () => read(text),
      (error: Error) => error instanceof Unreadable && words.test(error.message),
      String(text),
    );
  }
});

test("a newer format is shown as far as it is known", () => {
  const scene = { ...sceneOf(randomModel(1)), format: 2, more: [1] };
  assert.match(read(JSON.stringify(scene)).notes[0], /format 2/);
});

test("whatever is missing or wrong in a scene, a picture is made", () => {
  const next = chance(99);
  const broken = (value: unknown, key = ""): unknown => {
    if (key === "format") return value;
    const dice = next();
    if (dice < 0.02) return null;
    if (dice < 0.03) return "text";
    if (dice < 0.04) return -7;
    if (dice < 0.05) return [];
    if (Array.isArray(value)) return value.map((one) => broken(one)).slice(0, dice < 0.1 ? 1 : undefined);
    if (typeof value === "object" && value)
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, broken(one, name)]));
    return value;
  };
  for (let seed = 1; seed < 150; seed++) {
    const text = JSON.stringify({ ...(broken(sceneOf(randomModel(seed))) as object), format: 1 });
    try {
      const side = new Side(new Graph(read(text).models[0], 0));
      side.openAll();
      assert.ok(side.picture.root.width > 0);
    } catch (error) {
      assert.ok(error instanceof Unreadable, `${seed}: ${(error as Error).stack}`);
    }
  }
});

test("rooms that lie in each other end in the main graph", () => {
  const model = randomModel(1, 4);
  model.rooms[1].parent = 2;
  model.rooms[2].parent = 1;
  const { rooms } = read(JSON.stringify(sceneOf(model))).models[0];
  const graph = new Graph({ ...model, rooms }, 0);
  assert.ok(graph.path(1).includes(0) && graph.path(2).includes(0));
});

test("a scene without nodes and rooms has a picture", () => {
  const scene = read('{"format":1,"models":[{"name":"m.onnx"}]}');
  assert.ok(new Side(new Graph(scene.models[0], 0)).picture.root.width > 0);
  assert.match(scene.notes[0], /no levels/);
});

test("SVG holds names as text", () => {
  const surface = new SvgSurface(10, 10, "#fff");
  surface.text('</text><script>"&\u0000', 0, 0, 10, "plain", "#000");
  const text = surface.toString("</title><b>");
  assert.ok(!text.includes("<script") && !text.includes("<b>"));
  assert.equal(escaped('a<b>&"\u0007'), "a&lt;b&gt;&amp;&quot;\uFFFD");
});

test("texts are shortened to their width, at the end or between", () => {
  const measure = new TextMeasure((text) => text.length * 50);
  assert.equal(measure.fit("short", "plain", 10, 100), "short");
  for (const cut of ["middle", "end"] as const) {
    const found = measure.fit("a_very_long_name_of_a_node_12", "plain", 10, 60, cut);
    assert.ok(found.includes("…") && measure.width(found, "plain") * 10 <= 60);
    assert.equal(found.endsWith("_12"), cut === "middle");
  }
  assert.equal(measure.fit("x", "plain", 10, 1), "");
});

test("numbers of float32 are written in the fewest digits, others as they are", () => {
  assert.equal(shortFloats("0.10000000149011612"), "0.1");
  assert.equal(shortFloats("[9.999999747378752e-06, -0.30000001192092896, 2.5]"), "[1e-5, -0.3, 2.5]");
  for (const text of ["0.123456789012345", "'0.10000000149011612'", "[1, 224, 224, 1000]", "nan"]) assert.equal(shortFloats(text), text);
  for (let at = 0; at < 200; at++) {
    const number = Math.fround(chance(at)() * 10 ** ((at % 60) - 30));
    assert.equal(Math.fround(Number(shortFloats(String(number)))), number);
  }
  const scene = sceneOf(randomModel(1));
  const [model] = scene.models;
  model.types.push("float64[]");
  model.constants = { 0: { bytes: 8, file: "", figures: null, histogram: [], text: "0.10000000149011612" } };
  model.values.type[0] = 0;
  assert.equal(read(JSON.stringify(scene)).models[0].constants[0].text, "0.1");
  model.values.type[0] = model.types.length - 1;
  assert.equal(read(JSON.stringify(scene)).models[0].constants[0].text, "0.10000000149011612");
});

test("lines of reports write figures as the page does", () => {
  const scene = { ...sceneOf(randomModel(1)), warnings: ["103 us of 664 us is in kernels", "focus 3 users", "r0: 0.0 to 0.10000000149011612, v0.10000000149011612"] };
  const here = ["103 µs of 664 µs is in kernels", "focus 3 users", "r0: 0.0 to 0.1, v0.10000000149011612"];
  assert.deepEqual(read(JSON.stringify(scene)).warnings, here);
});
