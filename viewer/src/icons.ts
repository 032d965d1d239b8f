/** Small drawings for buttons: fonts don't have them everywhere. */

const SVG = "http://www.w3.org/2000/svg";

const PATHS = {
  menu: "M2.5 4h11M2.5 8h11M2.5 12h11",
  split: "M2 3h12v10H2zM8 3v10",
  swap: "M3 5.5h10M10.5 3L13 5.5 10.5 8M13 10.5H3M5.5 8L3 10.5 5.5 13",
  save: "M8 2.5v7.5M5 7.5l3 3 3-3M2.5 13.5h11",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  panel: "M2 3h12v10H2zM10 3v10M11.5 6h1M11.5 8h1",
} as const;

export function icon(name: keyof typeof PATHS): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({
    viewBox: "0 0 16 16",
    width: "17",
    height: "17",
    class: `icon-${name}`,
    "aria-hidden": "true",
  }))
    svg.setAttribute(key, value);
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.appendChild(path);
  return svg;
}
