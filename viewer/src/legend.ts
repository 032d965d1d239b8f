/** Explains the colours of the picture. */

import type { App } from "./app";
import type { Palette } from "./colours";
import { familyPaints, FAMILIES } from "./colours";
import { GROUPS, GROUP_SIGNS, GROUP_WORDS, type Differences } from "./differences";
import { el, style } from "./dom";
import type { Graph } from "./graph";
import type { OverlayFigures } from "./overlays";
import { along, scaleOf } from "./scales";

const STEPS = 24;
const TICKS = 3;

function swatch(colour: string, ...words: string[]): HTMLElement {
  const box = el("span", { class: "dot square", "aria-hidden": "true" });
  style(box, "background", colour);
  return el("span", { class: "key" }, box, ...words);
}

/** The families of operators that a model has. */
function familyLegend(graph: Graph, palette: Palette): HTMLElement[] {
  const used = new Set(graph.model.nodes.op.map((op) => graph.model.ops[op].family));
  const paints = familyPaints(palette);
  return FAMILIES.filter((family) => used.has(family)).map((family) => swatch(paints[family].strong, family));
}

/** The groups of changes; that of regions only where there are any. */
function differenceLegend(palette: Palette, differences: Differences): HTMLElement[] {
  return GROUPS.filter((group) => group !== "otherwise" || differences.hasRegions).map((group) =>
    swatch(palette[group], `${GROUP_SIGNS[group]} ${GROUP_WORDS[group]}`),
  );
}

function overlayLegend(figures: OverlayFigures, dark: boolean): HTMLElement[] {
  const { overlay } = figures;
  const scale = scaleOf(overlay, dark);
  if (overlay.scale === "classes") return overlay.classes.map((name, at) => swatch(scale.colour(at), name));
  const steps = Array.from({ length: STEPS }, (_, at) => {
    const step = el("span", {});
    style(step, "background", along(at / (STEPS - 1), dark));
    return step;
  });
  const ticks = scale.ticks(TICKS).map((tick) => el("span", {}, figures.write(tick)));
  const levels = figures.sums;
  const ofLevels = levels.length
    ? `; levels by their sum, ${figures.write(levels.at(-1)!)} to ${figures.write(levels[0])}`
    : "";
  const words = `${overlay.title}${scale.log ? ", logarithmic" : ""}; right is worse${ofLevels}`;
  return [
    el(
      "div",
      { class: "ramp", role: "img", "aria-label": words },
      el("div", { class: "steps" }, ...steps),
      el("div", { class: "ticks" }, ...ticks),
    ),
    el("small", { class: "dim" }, words),
  ];
}

/** The legend of what colours stand for now. */
export function legendOf(app: App, palette: Palette): HTMLElement[] {
  if (typeof app.colour === "number") return overlayLegend(app.overlays[app.colour], palette.dark);
  return app.colour === "difference" && app.differences
    ? differenceLegend(palette, app.differences)
    : familyLegend(app.side.graph, palette);
}
