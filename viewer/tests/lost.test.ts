import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph } from "../src/graph";
import { lostIn, nearestRoom } from "../src/lost";
import { nearNames } from "../src/near_names";
import { fromHash } from "../src/url";
import { addNode, addValue, emptyModel, emptyRoom } from "./random_rooms";

function graph(): Graph {
  const model = emptyModel();
  model.rooms.push(emptyRoom("main", -1, "graph"), emptyRoom("encoder", 0), emptyRoom("encoder.layer.1", 1));
  model.rooms.forEach((room, at) => (room.path = ["", "encoder", "encoder.layer.1"][at]));
  const x = addValue(model, "pixels", 0, 1);
  const { value } = addNode(model, 0, [x], { name: "stem/conv_1", op: 0, type: 0 });
  addNode(model, 0, [value], { name: "head/fc", op: 0, type: 0 });
  return new Graph(model, 0);
}

const lost = (hash: string): string[] => lostIn(fromHash(hash), [graph()], ["family", "time"]).map(({ text }) => text);

test("names that are alike are found, whatever stands between their words", () => {
  const names = ["/stem/Conv_1", "stem.conv_2", "head.fc", ""];
  assert.deepEqual(nearNames("stem.conv_1", names), ["/stem/Conv_1", "stem.conv_2"]);
  assert.deepEqual(nearNames("zzz", names), []);
});

test("the nearest level is the innermost one around that exists", () => {
  assert.deepEqual(nearestRoom(graph(), "encoder.layer.1"), { room: 2, exact: true });
  assert.deepEqual(nearestRoom(graph(), "encoder.layer.7.mlp"), { room: 1, exact: false });
  assert.deepEqual(nearestRoom(graph(), "decoder/zz"), { room: 0, exact: false });
  assert.deepEqual(nearestRoom(graph(), ""), { room: 0, exact: true });
});

test("all that an address names and the page has not is said", () => {
  assert.deepEqual(lost("#encoder&at=node:head/fc&colour=time"), []);
  assert.deepEqual(lost("#stem/conv_1"), []); // a node's name may stand in the place of a level
  assert.deepEqual(lost("#nolevel/zz&at=node:ghost&open=gone,encoder&colour=memory&model=1"), [
    "There is no second model",
    "No level or node is called nolevel/zz; the main graph is shown",
    "Levels to open are not here: gone",
    "No node is called ghost",
    "No colours or report are called memory",
  ]);
  assert.deepEqual(lost("#&at=node-number:99"), ["No node has the number 99"]);
  assert.deepEqual(lost("#&at=ghost"), ["“ghost” is not of the form node:…, tensor:… or room:…"]);
});

test("near names come with the change of the address that leads there", () => {
  const [first] = lostIn(fromHash("#&at=node:stem.conv_1"), [graph()], ["family"]);
  assert.deepEqual(first.near, [{ text: "stem/conv_1", change: { at: "node:stem/conv_1", camera: null } }]);
});
