/** A histogram of a constant's values, as bars. */

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 240;
const HEIGHT = 44;

export function histogram(counts: number[], label: string): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("class", "histogram");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  const most = Math.max(1, ...counts);
  const pitch = WIDTH / Math.max(1, counts.length);
  counts.forEach((count, at) => {
    // A bar that isn't empty is seen, however small its share.
    const height = count ? Math.max(1, (count / most) * HEIGHT) : 0;
    const bar = document.createElementNS(SVG, "rect");
    const place = { x: at * pitch, y: HEIGHT - height, width: Math.max(0.5, pitch - 1), height };
    for (const [name, value] of Object.entries(place)) bar.setAttribute(name, String(Math.round(value * 100) / 100));
    svg.appendChild(bar);
  });
  return svg;
}
