/** Writes the types of values below the items that give them; symbolic dimensions have a colour of their own. */

import type { Frame } from "./compose";
import type { View } from "./draw";
import { shortDim, type TypeParts } from "./graph";
import { itemsOfRow, type Box } from "./picture";
import { listOf } from "./rows";
import { UNIT } from "./sizes";
import type { Surface } from "./surface";

const SIZE = 9.5;
/** An item with many outputs names the types of the first few. */
const MOST = 2;
/** An edge that goes less far to the side, in pixels at 100%, passes beside the words. */
const STRAIGHT = 12;

export function drawTypes(surface: Surface, view: View, frame: Frame, seen: Box, first: number, last: number): void {
  const ground = frame.depth ? view.palette.rooms[(frame.depth - 1) % view.palette.rooms.length] : view.palette.ground;
  const { edges, items } = view.picture.graph.model.rooms[frame.room];
  for (let row = first; row <= last; row++) {
    for (const item of itemsOfRow(frame, row, seen.left - UNIT, seen.right)) {
      // Inputs say their type themselves.
      if (items.kind[item] === 2 || frame.inner.has(item)) continue;
      const values = new Set<number>();
      for (const edge of listOf(frame.rows.leaving, item)) values.add(edges.value[edge]);
      const side = freeSide(frame, item, edges.to);
      let line = 0;
      for (const value of values) {
        const type = view.picture.graph.type(value);
        if (!type || line >= MOST) continue;
        writeType(surface, view, type, { x: frame.x[item] + 6 * side, side, y: frame.y[item] + frame.halfHeight[item] + (items.kind[item] === 1 ? 15 : 10) + line * 12 }, ground);
        line += 1;
      }
    }
  }
}

/** The side of an item's edges on which fewer of them turn: 1 right, -1 left. */
function freeSide(frame: Frame, item: number, to: number[]): 1 | -1 {
  let turned = 0;
  for (const edge of listOf(frame.rows.leaving, item)) {
    const hasBend = frame.rows.bendStart[edge] < frame.rows.bendStart[edge + 1];
    const next = hasBend ? frame.bendX[frame.rows.bendStart[edge]] : frame.x[to[edge]];
    turned += Math.abs(next - frame.x[item]) < STRAIGHT ? 0 : Math.sign(next - frame.x[item]);
  }
  return turned > 0 ? -1 : 1;
}

interface Place {
  x: number;
  y: number;
  side: 1 | -1;
}

function writeType(surface: Surface, view: View, type: TypeParts, place: Place, ground: string): void {
  const { camera, palette, measure } = view;
  const size = SIZE * camera.zoom;
  const y = camera.screenY(place.y);
  const parts: [string, string][] = [];
  (type.dims ?? []).forEach((dim, at) => {
    if (at) parts.push(["×", palette.dim]);
    parts.push([shortDim(dim.text), dim.symbolic ? palette.symbolic : palette.dim]);
  });
  parts.push([type.dims?.length ? ` ${type.dtype}` : type.dtype, palette.dim]);
  // Edges that pass behind the words are hidden there.
  const width = parts.reduce((sum, [text]) => sum + measure.width(text, "plain") * size, 0);
  let x = camera.screenX(place.x) - (place.side < 0 ? width : 0);
  surface.rect(x - 2, y - size * 0.6, width + 4, size * 1.2, ground);
  for (const [text, colour] of parts) {
    surface.text(text, x, y, size, "plain", colour);
    x += measure.width(text, "plain") * size;
  }
}
