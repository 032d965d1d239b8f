/** Moves the camera to the target of a jump. */

import { around } from "./picture";
import type { Chosen, Side } from "./side";

/** The zoom to which a jump zooms in: words are legible there. It zooms out to NEAR. */
const LEGIBLE = 0.75;
const NEAR = 1.2;
/** Several things are shown whole down to this zoom, where titles can still be read; below it, the first of them is. */
const LEAST_WHOLE = 0.6;
/** The margin around several things, in pixels. */
const MARGIN = 40;

/**
 * Shows several things, zoomed so that words are legible. With `other`, the other model, they are put in the middle, and
 * the zoom is one at which `theirs`, the same place there, can be seen as well.
 */
export function aim(side: Side, all: Chosen[], other?: Side, theirs: Chosen[] = []): void {
  const { camera } = side;
  const groups = [side.boxes(all), other?.boxes(theirs) ?? []].filter((boxes) => boxes.length);
  const present = Math.max(LEGIBLE, Math.min(NEAR, camera.zoom));
  const whole = Math.min(...groups.map((boxes) => camera.zoomFor(around(boxes), MARGIN)));
  camera.zoom = whole >= LEAST_WHOLE ? Math.min(present, whole) : present;
  const place = side.place(all);
  if (!place) return;
  if (all.length > 1 || other) camera.centre(place);
  else camera.show(place);
}
