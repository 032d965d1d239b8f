/** Writes the types of values below the items that give them; symbolic dimensions have a colour of their own. */

import type { Frame } from "./compose";
import type { View } from "./draw";
import type { Box } from "./picture";
import type { Surface } from "./surface";
import { TYPE_SIZE, typeLabels, type TypeLabel } from "./type_labels";

export function drawTypes(surface: Surface, view: View, frame: Frame, seen: Box, first: number, last: number): void {
  const { palette } = view;
  const ground = frame.depth ? palette.rooms[(frame.depth - 1) % palette.rooms.length] : palette.ground;
  for (let row = first; row <= last && row < frame.rows.count; row++) {
    for (const label of typeLabels(view.picture.graph, frame, row, view.measure)) {
      if (label.left < seen.right && label.left + label.width > seen.left) write(surface, view, label, ground);
    }
  }
}

function write(surface: Surface, view: View, label: TypeLabel, ground: string): void {
  const { camera, palette, measure } = view;
  const size = TYPE_SIZE * camera.zoom;
  let x = camera.screenX(label.left);
  const y = camera.screenY(label.y);
  // Where no place is free, an edge behind the words is hidden there.
  surface.rect(x - 2, y - size * 0.6, label.width * camera.zoom + 4, size * 1.2, ground);
  for (const { text, symbolic } of runs(label.parts)) {
    // A space before a word moves the word: where text is taken out of SVG or a PDF, spaces at its ends are lost.
    const word = text.trimStart();
    const before = measure.width(text.slice(0, text.length - word.length), "plain") * size;
    surface.text(word, x + before, y, size, "plain", symbolic ? palette.symbolic : palette.dim);
    x += measure.width(text, "plain") * size;
  }
}

/** Parts of one colour beside each other are one text. */
function runs(parts: TypeLabel["parts"]): TypeLabel["parts"] {
  const found: TypeLabel["parts"] = [];
  for (const { text, symbolic } of parts) {
    const last = found.at(-1);
    if (last?.symbolic === symbolic) last.text += text;
    else found.push({ text, symbolic });
  }
  return found;
}
