/** Moves the camera of one model so that it shows what the other one shows: a pair of nodes stays at the same height. */

import type { Differences } from "./differences";
import { rowAt, type Box, type Picture } from "./picture";
import type { Chosen, Side } from "./side";

/** So many items around the middle of the screen are tried. */
const MOST_TRIED = 600;

interface Anchor {
  node: number;
  partner: number;
}

/** Boxes of the two pictures that belong at the same place of the screen. */
interface Places {
  here: Box;
  there: Box;
}

/** The node nearest to the middle of the screen that has a partner in the other picture. */
export function anchor(from: Side, to: Side, differences: Differences): Anchor | null {
  const { camera, picture } = from;
  let best: (Anchor & { away: number }) | null = null;
  let tried = 0;
  for (const node of nodesAround(picture, camera.x, camera.y)) {
    if (++tried > MOST_TRIED) break;
    const partner = differences.partner(from.graph.index, node);
    if (partner < 0) continue;
    const [here, there] = [picture.spotOfNode(node), to.picture.spotOfNode(partner)];
    if (!here || !there || here.item < 0) continue;
    const away = Math.hypot(here.frame.x[here.item] - camera.x, here.frame.y[here.item] - camera.y);
    if (!best || away < best.away) best = { node, partner, away };
  }
  return best;
}

/** Nodes of the opened rooms near a height, nearest rows first. */
function* nodesAround(picture: Picture, x: number, y: number): Generator<number> {
  const frames = [...picture.frames.values()].filter(
    (frame) => frame.depth === 0 || (frame.top <= y && frame.top + frame.height >= y),
  );
  for (const frame of frames.sort((a, b) => b.depth - a.depth)) {
    const { kind, ref } = picture.graph.model.rooms[frame.room].items;
    const middle = Math.max(0, rowAt(frame, y));
    for (let step = 0; step < 80; step++) {
      const row = middle + (step % 2 ? -(step + 1) / 2 : step / 2);
      if (row < 0 || row >= frame.rows.count) continue;
      const items = frame.rows.entry
        .subarray(frame.rows.start[row], frame.rows.start[row + 1])
        .filter((entry) => entry >= 0 && kind[entry] <= 1);
      for (const item of [...items].sort((a, b) => Math.abs(frame.x[a] - x) - Math.abs(frame.x[b] - x)).slice(0, 12)) {
        if (kind[item] === 0) yield ref[item];
        else if (!frame.inner.has(item)) {
          // A closed room is represented by the first of its nodes.
          const inside = picture.graph.model.rooms[ref[item]].items;
          const first = inside.kind.findIndex((one) => one === 0);
          if (first >= 0) yield inside.ref[first];
        }
      }
    }
  }
}

/** What is selected, if it is in view: what a person looks at stays beside what stands for it, or beside that of a neighbour. */
function selected(from: Side, to: Side, differences: Differences): Places | null {
  const nodes = from.selection.filter(({ kind }) => kind === "node").slice(0, MOST_TOGETHER);
  const here = from.place(nodes);
  if (!here) return null;
  const seen = from.camera.view();
  const isSeen = here.right > seen.left && here.left < seen.right && here.bottom > seen.top && here.top < seen.bottom;
  if (!isSeen) return null;
  const theirs = new Set(nodes.flatMap(({ ref }) => differences.counterparts(from.graph.index, ref)));
  const there = to.place([...theirs].map((ref): Chosen => ({ kind: "node", ref })));
  if (there) return { here, there };
  const near = placesOf(from, to, pairedNear(from, to, nodes[0].ref, differences));
  if (!near) return null;
  // A neighbour out of sight would leave the other picture empty: then its partner stands where the selection is.
  const away = (side: "left" | "top"): number => Math.abs(near.here[side] - here[side]) * from.camera.zoom;
  const isNear = away("left") < from.camera.width * BESIDE && away("top") < from.camera.height * BESIDE;
  return isNear ? near : { here, there: near.there };
}

/** A neighbour this share of the view away is still in sight. */
const BESIDE = 0.4;

/** So many selected nodes are kept beside what stands for them. */
const MOST_TOGETHER = 40;

function placesOf(from: Side, to: Side, found: Anchor | null): Places | null {
  const here = found && from.picture.spotOfNode(found.node);
  const there = found && to.picture.spotOfNode(found.partner);
  return here && there ? { here: from.picture.box(here), there: to.picture.box(there) } : null;
}

/** So many nodes around one without a partner are looked at. */
const MOST_NEIGHBOURS = 60;

/** The nearest node along edges that has a partner which is shown: the node itself, its producers and readers, theirs, … */
function pairedNear(from: Side, to: Side, start: number, differences: Differences): Anchor | null {
  const { nodes, values } = from.graph.model;
  const near = new Set([start]);
  for (const node of near) {
    const partner = differences.counterparts(from.graph.index, node)[0] ?? -1;
    if (partner >= 0 && from.picture.spotOfNode(node) && to.picture.spotOfNode(partner)) return { node, partner };
    const around = [
      ...nodes.inputs[node].filter((value) => value >= 0).map((value) => values.producer[value]),
      ...nodes.outputs[node].flatMap((value) => (value < 0 ? [] : from.graph.readers(value))),
    ];
    for (const one of around) if (one >= 0 && near.size < MOST_NEIGHBOURS) near.add(one);
  }
  return null;
}

/** Puts the partner of the anchor at the same place of the screen. Without an anchor, at the same share of the picture. */
export function follow(from: Side, to: Side, differences: Differences | null): void {
  to.camera.zoom = from.camera.zoom;
  const found = differences && (selected(from, to, differences) ?? placesOf(from, to, anchor(from, to, differences)));
  if (found) {
    const { here, there } = found;
    to.camera.x = (there.left + there.right) / 2 + from.camera.x - (here.left + here.right) / 2;
    to.camera.y = (there.top + there.bottom) / 2 + from.camera.y - (here.top + here.bottom) / 2;
  } else {
    to.camera.x = (from.camera.x / Math.max(1, from.picture.root.width)) * to.picture.root.width;
    to.camera.y = (from.camera.y / Math.max(1, from.picture.root.height)) * to.picture.root.height;
  }
}
