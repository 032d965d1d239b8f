/** Colours of the picture, in light and dark. All pairs of text and ground have a contrast of at least 4.5. */

export interface Palette {
  dark: boolean;
  ground: string;
  /** Grounds of opened rooms, by depth in turns. */
  rooms: string[];
  roomLine: string;
  roomBar: string;
  card: string;
  cardLine: string;
  text: string;
  dim: string;
  edge: string;
  accent: string;
  symbolic: string;
  hit: string;
  muted: string;
  added: string;
  removed: string;
  changed: string;
  otherwise: string;
}

export const LIGHT: Palette = {
  dark: false,
  ground: "#f6f7f9",
  rooms: ["#eceff4", "#f9fafc"],
  roomLine: "#c3cad6",
  roomBar: "#dfe4ec",
  card: "#ffffff",
  cardLine: "#cfd5df",
  text: "#161b22",
  dim: "#586273",
  edge: "#98a2b3",
  accent: "#1258c4",
  symbolic: "#8a3ffc",
  hit: "#c2410c",
  muted: "#e3e7ed",
  added: "#0b62a8",
  removed: "#b3410e",
  changed: "#7d5c00",
  otherwise: "#8a2f93",
};

export const DARK: Palette = {
  dark: true,
  ground: "#12151a",
  rooms: ["#1a1f27", "#151920"],
  roomLine: "#3a4352",
  roomBar: "#242b36",
  card: "#1d232c",
  cardLine: "#3a4352",
  text: "#e8ebf0",
  dim: "#9ba6b6",
  edge: "#5d6a7d",
  accent: "#6ea8ff",
  symbolic: "#c79bff",
  hit: "#ffa35c",
  muted: "#2a313c",
  added: "#66b6f5",
  removed: "#f78e5a",
  changed: "#e3bb4b",
  otherwise: "#d992e3",
};

/** The hue of each family of operators: told apart by lightness, too. */
const HUES: Record<string, string> = {
  product: "#2f6fbf",
  activation: "#b8433f",
  normalization: "#2e8a57",
  shape: "#857443",
  elementwise: "#7a5bb5",
  reduction: "#1f8f9c",
  quantizer: "#c46f12",
  control: "#b64a8c",
  constant: "#64707f",
  other: "#7f868f",
};

export const FAMILIES = Object.keys(HUES);

export interface Paint {
  /** The colour of rectangles far out, and of the stripe of a card. */
  strong: string;
  /** The ground of a card. */
  soft: string;
  line: string;
  text: string;
  dim: string;
}

/** The paint of each family in a palette. */
export function familyPaints(palette: Palette): Record<string, Paint> {
  return Object.fromEntries(FAMILIES.map((family) => [family, paintOf(HUES[family], palette)]));
}

/** A card in the tint of a hue. */
export function paintOf(hue: string, palette: Palette): Paint {
  return {
    strong: palette.dark ? mix(hue, "#ffffff", 0.22) : hue,
    soft: mix(palette.card, hue, palette.dark ? 0.2 : 0.1),
    line: mix(palette.cardLine, hue, 0.38),
    text: palette.text,
    dim: palette.dim,
  };
}

/** A card filled with a colour; the text on it is black or white, whichever is easier to read. */
export function filled(colour: string): Paint {
  const text = contrast(colour, "#000000") > contrast(colour, "#ffffff") ? "#000000" : "#ffffff";
  return { strong: colour, soft: colour, line: mix(colour, text, 0.35), text, dim: text };
}

export function mix(from: string, to: string, share: number): string {
  const [a, b] = [channels(from), channels(to)];
  return `#${a
    .map((one, at) =>
      Math.round(one + (b[at] - one) * share)
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;
}

export function channels(colour: string): number[] {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

/** Relative luminance (WCAG 2). */
export function luminance(colour: string): number {
  const [r, g, b] = channels(colour).map((one) =>
    one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The contrast of two colours (WCAG 2), 1 to 21. */
export function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((one, other) => one - other);
  return (high + 0.05) / (low + 0.05);
}
