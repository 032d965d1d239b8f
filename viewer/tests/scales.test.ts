import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, DARK, FAMILIES, familyPaints, filled, LIGHT, luminance } from "../src/colours";
import { Graph } from "../src/graph";
import { OverlayFigures } from "../src/overlays";
import { OverlayLook } from "../src/looks";
import { along, scaleOf } from "../src/scales";
import type { Overlay } from "../src/scene";
import { TextMeasure } from "../src/text";
import { measured, short } from "../src/words";
import { addNode, emptyModel, emptyRoom } from "./random_rooms";

function overlay(figures: Overlay["figures"], how: Partial<Overlay> = {}): Overlay {
  return {
    title: "t",
    model: 0,
    unit: "",
    scale: "linear",
    classes: [],
    worst: "high",
    nodes: figures.map((_, at) => at),
    figures,
    texts: figures.map(() => ""),
    from: "",
    ...how,
  };
}

/** Lightness as seen without colours (CIE L*). */
function lightness(colour: string): number {
  return 116 * Math.cbrt(luminance(colour)) - 16;
}

test("the worse a figure, the more it differs from the ground, in grey, too", () => {
  for (const [dark, palette] of [
    [false, LIGHT],
    [true, DARK],
  ] as const) {
    const away = Array.from({ length: 21 }, (_, at) =>
      Math.abs(lightness(along(at / 20, dark)) - lightness(palette.ground)),
    );
    for (let at = 1; at < away.length; at++) assert.ok(away[at] > away[at - 1], `${dark} ${at}`);
  }
});

test("words on every colour of a scale and of a family can be read", () => {
  for (const dark of [false, true]) {
    for (let at = 0; at <= 20; at++) {
      const paint = filled(along(at / 20, dark));
      assert.ok(contrast(paint.soft, paint.text) >= 4.5, `${dark} ${at} ${contrast(paint.soft, paint.text)}`);
    }
    const palette = dark ? DARK : LIGHT;
    for (const family of FAMILIES) {
      const paint = familyPaints(palette)[family];
      assert.ok(contrast(paint.soft, paint.text) >= 4.5);
      assert.ok(contrast(paint.soft, paint.dim) >= 4.5, `${family} ${contrast(paint.soft, paint.dim)}`);
    }
  }
});

test("linear and logarithmic scales", () => {
  const linear = scaleOf(overlay([0, 5, 10]), false);
  assert.equal(linear.badness(5), 0.5);
  assert.deepEqual(linear.ticks(3), [0, 5, 10]);
  const log = scaleOf(overlay([1, 100, 10000], { scale: "log" }), false);
  assert.ok(Math.abs(log.badness(100) - 0.5) < 1e-9);
  assert.equal(log.badness(0), 0);
  assert.ok(Math.abs(log.ticks(3)[1] - 100) < 1e-6);
});

test("where low is worst, the ends change places", () => {
  const scale = scaleOf(overlay([0, 10], { worst: "low" }), false);
  assert.equal(scale.badness(0), 1);
  assert.deepEqual(scale.ticks(2), [10, 0]);
});

test("not-a-number is worst, infinities are at the ends, equal figures are in the middle", () => {
  const scale = scaleOf(overlay([0, 1, "nan", "inf"]), false);
  assert.equal(scale.badness(NaN), 1);
  assert.equal(scale.badness(Infinity), 1);
  assert.equal(scaleOf(overlay([3, 3]), false).badness(3), 0.5);
  assert.equal(scaleOf(overlay(["nan"]), false).badness(NaN), 1);
});

test("few classes have colours of their own, and the worst is vermilion", () => {
  for (let count = 2; count <= 7; count++) {
    const classes = Array.from({ length: count }, (_, at) => `c${at}`);
    const scale = scaleOf(overlay([0], { scale: "classes", classes }), false);
    const colours = classes.map((_, at) => scale.colour(at));
    assert.equal(new Set(colours).size, count);
    assert.equal(colours[count - 1], "#d55e00");
  }
});

test("rooms show the worst and the sum of what is inside, from the inner ones out", () => {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"), emptyRoom("outer", 0), emptyRoom("inner", 1));
  [2, 2, 1, 0].forEach((room) => addNode(model, room));
  const figures = new OverlayFigures(overlay([1, 5, 2, 9], { unit: "s" }), new Graph(model, 0));
  assert.deepEqual(figures.room(2), { worst: 5, worstNode: 1, times: 1, sum: 6, count: 2 });
  assert.equal(figures.room(1)!.sum, 8);
  assert.equal(figures.room(0)!.worst, 9);
  assert.equal(figures.writeRoom(figures.room(2)!), "Σ 6 s, worst 5 s");
  assert.deepEqual(figures.order, [3, 1, 2, 0]);
});

test("the order of figures: not-a-number first, then the worst", () => {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"));
  for (let at = 0; at < 4; at++) addNode(model, 0);
  assert.deepEqual(new OverlayFigures(overlay([1, "nan", "inf", 2]), new Graph(model, 0)).order, [1, 2, 3, 0]);
  assert.deepEqual(
    new OverlayFigures(overlay([1, "nan", "inf", 2], { worst: "low" }), new Graph(model, 0)).order,
    [1, 0, 3, 2],
  );
});

test("figures are written short", () => {
  assert.deepEqual([0, 1234, 0.00012, 1.5e-7, 3.14159, 1e9, NaN, -Infinity].map(short), [
    "0",
    "1,234",
    "1.2e-4",
    "1.5e-7",
    "3.14",
    "1e9",
    "NaN",
    "−∞",
  ]);
  assert.equal(measured(0.0123, "s"), "12.3 ms");
  assert.equal(measured(2359296, "bytes"), "2.36 MB");
  assert.equal(measured(1.5e9, "MACs"), "1.5 GMACs");
  assert.equal(measured(0.5, "dB"), "0.5 dB");
});

test("where figures add up, a level is coloured and ordered by its sum, elsewhere by its worst node", () => {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"), emptyRoom("one", 0), emptyRoom("many", 0));
  [1, 2, 2, 2].forEach((room) => addNode(model, room));
  const graph = new Graph(model, 0);
  const times = new OverlayFigures(overlay([5, 4, 4, 4], { unit: "s" }), graph);
  assert.deepEqual(times.levels, [2, 1]);
  const look = new OverlayLook(times, LIGHT);
  assert.ok(luminance(look.room(2).strong) < luminance(look.room(1).strong), "the larger sum is darker");
  assert.equal(look.node(0).strong, along(1, false));
  const errors = new OverlayFigures(overlay([5, 4, 4, 4]), graph);
  assert.deepEqual(errors.levels, []);
  const worst = new OverlayLook(errors, LIGHT);
  assert.equal(worst.room(1).strong, worst.node(0).strong);
  assert.equal(worst.room(2).strong, worst.node(1).strong);
});

test("no figure is cut into another one", () => {
  const measure = new TextMeasure((text) => text.length * 100); // each letter as wide as its size
  const texts = ["Σ 26.3 µs, worst 1.3 µs", "Σ 26.3 µs"];
  assert.equal(measure.first(texts, "plain", 1, 30), texts[0]);
  assert.equal(measure.first(texts, "plain", 1, 12), texts[1]);
  assert.equal(measure.first(texts, "plain", 1, 8), "");
  const cut = (text: string, width: number): string => measure.fit(text, "plain", 1, width, "end");
  assert.equal(cut("128 nodes", 3), "…");
  assert.equal(cut("worst 26.3 µs", 13), "worst 26.3 µs");
  for (let width = 7; width < 13; width++) assert.equal(cut("worst 26.3 µs", width), "worst …");
  assert.equal(cut("strides 2, dilations 1", 14), "strides 2, di…");
});
