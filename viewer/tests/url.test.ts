import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph } from "../src/graph";
import { chosenByLink, nameInLink } from "../src/naming";
import { fromHash, toHash, type PlaceInUrl } from "../src/url";
import ADDRESSES from "../../tests/viewer/addresses.json";
import { addNode, addValue, emptyModel, emptyRoom } from "./random_rooms";

const PLACE: PlaceInUrl = {
  room: "encoder.layer.3",
  open: ["a/b", "c,d&e=f"],
  at: "node:conv #1 & more=50%",
  colour: "time",
  model: 1,
  both: false,
  camera: { x: -120, y: 4000, zoom: 0.125 },
};

test("an address gives back what was written into it", () => {
  assert.deepEqual(fromHash(toHash(PLACE)), PLACE);
  const plain: PlaceInUrl = { room: "", open: [], at: "", colour: "", model: 0, both: null, camera: null };
  assert.deepEqual(fromHash(toHash(plain)), plain);
});

test("names with letters of all kinds survive", () => {
  for (const name of ["</script><img onerror=alert(1)>", "ü ∂ 模型", "a+b", "%41", "x\u0000y", "=&#,"]) {
    assert.deepEqual(fromHash(toHash({ ...PLACE, room: name, open: [name], at: name })).open, [name]);
    assert.equal(fromHash(toHash({ ...PLACE, room: name })).room, name);
  }
});

test("a broken address gives the start", () => {
  for (const hash of ["", "#", "#%E0%A4%A", "#x&camera=1,2", "#x&camera=a,b,c", "#x&camera=1,2,-3", "#&&&=="]) {
    assert.equal(fromHash(hash).camera, null);
  }
  assert.equal(fromHash("#encoder.layer.3").room, "encoder.layer.3");
});

test("many opened rooms are written as all", () => {
  assert.deepEqual(fromHash(toHash({ ...PLACE, open: Array.from({ length: 300 }, (_, at) => `r${at}`) })).open, ["*"]);
});

test("selected things are found again by their names", () => {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"), emptyRoom("layer:0", 0));
  const x = addValue(model, "a:b", 0, 1);
  addNode(model, 0, [x], { name: "same" });
  addNode(model, 0, [x], { name: "same" });
  addNode(model, 0, [x], { name: "" });
  const graph = new Graph(model, 0);
  for (const chosen of [
    { kind: "node", ref: 0 },
    { kind: "node", ref: 1 },
    { kind: "node", ref: 2 },
    { kind: "room", ref: 1 },
    { kind: "value", ref: x },
  ] as const) {
    assert.deepEqual(chosenByLink(graph, nameInLink(graph, chosen)), chosen);
  }
  for (const text of ["node:gone", "room:gone", "node-number:99", "node-number:x", "", "what:ever"])
    assert.equal(chosenByLink(graph, text), null);
});

test("an address is written as the reports write it", () => {
  const plain: PlaceInUrl = { room: "", open: [], at: "", colour: "", model: 0, both: null, camera: null };
  for (const [place, hash] of ADDRESSES as [Partial<PlaceInUrl>, string][]) {
    assert.equal(toHash({ ...plain, ...place }), hash);
    assert.deepEqual(fromHash(hash), { ...plain, ...place });
  }
});
