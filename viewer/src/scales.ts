/** Colour scales of overlays: from figures to colours that stand out more the worse a figure is. */

import { mix } from "./colours";
import type { Overlay } from "./scene";
import { numeric } from "./words";

/** Viridis, whose steps are told apart with all common colour blindness, and in grey (van der Walt and Smith, 2015). */
const VIRIDIS = [
  "#440154",
  "#482878",
  "#3e4a89",
  "#31688e",
  "#26828e",
  "#1f9e89",
  "#35b779",
  "#6ece58",
  "#b5de2b",
  "#fde725",
];
/** Okabe and Ito (2008), for classes, from harmless to worst; their yellow and black are left out. */
const CLASSES = ["#0072b2", "#56b4e9", "#009e73", "#8c6bb1", "#cc79a7", "#e69f00", "#d55e00"];

export interface Scale {
  /** The ends of the scale; equal if all figures are. */
  low: number;
  high: number;
  log: boolean;
  /** 0 (harmless) to 1 (worst). */
  badness(figure: number): number;
  colour(figure: number): string;
  /** Figures for the legend, from harmless to worst. */
  ticks(count: number): number[];
}

/** Log scales end this far below the highest figure, however small others are. A longer scale would tell nothing apart. */
const DECADES = 12;

/** The scale of the figures of nodes, or of other figures of the same kind, such as sums of levels. */
export function scaleOf(overlay: Overlay, dark: boolean, figures = overlay.figures.map(numeric)): Scale {
  return overlay.scale === "classes"
    ? classScale(overlay)
    : spanScale(figures, overlay.scale === "log", overlay.worst, dark);
}

function spanScale(figures: number[], log: boolean, worst: "high" | "low", dark: boolean): Scale {
  let low = Infinity;
  let high = -Infinity;
  for (const figure of figures) {
    if (!Number.isFinite(figure) || (log && figure <= 0)) continue;
    low = Math.min(low, figure);
    high = Math.max(high, figure);
  }
  if (low > high) [low, high] = log ? [1, 1] : [0, 0];
  if (log) low = Math.max(low, high / 10 ** DECADES);
  const span = log ? Math.log(high / low) : high - low;
  const share = (figure: number): number => {
    if (Number.isNaN(figure)) return worst === "high" ? 1 : 0;
    if (figure <= low || (log && figure <= 0)) return span ? 0 : 0.5;
    if (figure >= high) return span ? 1 : 0.5;
    return (log ? Math.log(figure / low) : figure - low) / span;
  };
  const badness = (figure: number): number => (worst === "high" ? share(figure) : 1 - share(figure));
  return {
    low,
    high,
    log,
    badness,
    colour: (figure) => along(badness(figure), dark),
    ticks(count) {
      const shares = span ? Array.from({ length: count }, (_, at) => at / (count - 1)) : [0.5];
      const found = shares.map((at) => (log ? low * Math.exp(at * span) : low + at * span));
      return worst === "high" ? found : found.reverse();
    },
  };
}

function classScale(overlay: Overlay): Scale {
  const count = Math.max(1, overlay.classes.length);
  const badness = (figure: number): number => {
    const share = count < 2 ? 0.5 : Math.min(count - 1, Math.max(0, figure)) / (count - 1);
    return Number.isNaN(figure) ? 1 : overlay.worst === "high" ? share : 1 - share;
  };
  return {
    low: 0,
    high: count - 1,
    log: false,
    badness,
    colour: (figure) => classColour(badness(figure), count),
    ticks: () => Array.from({ length: count }, (_, at) => at),
  };
}

/** The colour of a class by its badness: of few classes the colours lie far apart. */
export function classColour(badness: number, count: number): string {
  const last = CLASSES.length - 1;
  if (count === 3) return CLASSES[[0, last - 1, last][Math.round(badness * 2)]];
  if (count <= CLASSES.length) return CLASSES[Math.round(badness * last)];
  // More classes than colours: neighbours differ, and the words of the legend and of the cards tell the rest.
  return CLASSES[Math.round(badness * (count - 1)) % CLASSES.length];
}

/** The colour of a badness: the worst end differs most from the ground. */
export function along(badness: number, dark: boolean): string {
  // The palest yellow is lost on white, the darkest violet on black: the ends are cut.
  const at = dark ? 0.14 + badness * 0.86 : 1 - (0.04 + badness * 0.88);
  const place = at * (VIRIDIS.length - 1);
  const step = Math.min(VIRIDIS.length - 2, Math.floor(place));
  return mix(VIRIDIS[step], VIRIDIS[step + 1], place - step);
}
