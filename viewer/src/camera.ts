/** The visible part of the picture: the point in the middle and the size of a pixel. */

import type { Box } from "./picture";

export const NEAREST = 4;
export const FARTHEST = 0.0005;
/** A jump puts its target into this share of the view, so that the minimap does not cover it. */
const MIDDLE = 0.4;

export class Camera {
  x = 0;
  y = 0;
  zoom = 1;
  width = 800;
  height = 600;

  screenX(x: number): number {
    return (x - this.x) * this.zoom + this.width / 2;
  }

  screenY(y: number): number {
    return (y - this.y) * this.zoom + this.height / 2;
  }

  worldX(x: number): number {
    return (x - this.width / 2) / this.zoom + this.x;
  }

  worldY(y: number): number {
    return (y - this.height / 2) / this.zoom + this.y;
  }

  view(): Box {
    return {
      left: this.worldX(0),
      top: this.worldY(0),
      right: this.worldX(this.width),
      bottom: this.worldY(this.height),
    };
  }

  pan(dx: number, dy: number): void {
    this.x -= dx / this.zoom;
    this.y -= dy / this.zoom;
  }

  /** Zooms so that the point under (x, y) stays there. */
  zoomAt(x: number, y: number, factor: number): void {
    const zoom = Math.min(NEAREST, Math.max(FARTHEST, this.zoom * factor));
    const [worldX, worldY] = [this.worldX(x), this.worldY(y)];
    this.zoom = zoom;
    this.x = worldX - (x - this.width / 2) / zoom;
    this.y = worldY - (y - this.height / 2) / zoom;
  }

  /** Shows a box whole, at `most` 100%. */
  fit(box: Box, most = 1, margin = 24): void {
    this.zoom = Math.min(most, this.zoomFor(box, margin));
    this.centre(box);
  }

  /** The zoom at which a box fills the view. */
  zoomFor(box: Box, margin: number): number {
    const across = (this.width - 2 * margin) / Math.max(1, box.right - box.left);
    const down = (this.height - 2 * margin) / Math.max(1, box.bottom - box.top);
    return Math.min(NEAREST, Math.max(FARTHEST, Math.min(across, down)));
  }

  /** Shows the top of a box at a zoom at which text is legible, where the whole box would be too small. */
  fitTop(box: Box, least: number): void {
    this.fit(box);
    if (this.zoom >= least) return;
    this.zoom = least;
    this.y = box.top + (this.height / 2 - 24) / this.zoom;
  }

  /** Moves as little as possible, so that a box is inside the middle part of the view. */
  show(box: Box): void {
    const across = Math.max(0, this.width / this.zoom / 2 - (box.right - box.left) / 2) * MIDDLE;
    const down = Math.max(0, this.height / this.zoom / 2 - (box.bottom - box.top) / 2) * MIDDLE;
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    this.x = Math.min(x + across, Math.max(x - across, this.x));
    this.y = Math.min(y + down, Math.max(y - down, this.y));
  }

  /** Whether a box can be seen whole at the present zoom. */
  holds(box: Box, margin = 24): boolean {
    return (
      (box.right - box.left) * this.zoom <= this.width - 2 * margin &&
      (box.bottom - box.top) * this.zoom <= this.height - 2 * margin
    );
  }

  centre(box: Box): void {
    this.x = (box.left + box.right) / 2;
    this.y = (box.top + box.bottom) / 2;
  }

  copy(): { x: number; y: number; zoom: number } {
    return { x: this.x, y: this.y, zoom: this.zoom };
  }
}
