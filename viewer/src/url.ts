/** The state of the page in the hash of its address, so that a place can be linked. */

export interface PlaceInUrl {
  /** The path of the room that is shown. */
  room: string;
  /** Paths of opened rooms; ["*"] for all. */
  open: string[];
  /** The selection, such as "node:Conv_1". */
  at: string;
  /** The title of the colouring. */
  colour: string;
  model: number;
  /** Whether two models are side by side; null if the page decides. */
  both: boolean | null;
  camera: { x: number; y: number; zoom: number } | null;
}

/** More opened rooms than these aren't named one by one. */
const MOST_OPEN = 200;

/** Percent-encodes characters that would end a part. Slashes, colons and similar characters stay legible. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/%2F/g, "/").replace(/%3A/g, ":").replace(/%20/g, "+");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replace(/\+/g, "%20"));
  } catch {
    return text;
  }
}

export function toHash(place: PlaceInUrl): string {
  const parts = [encoded(place.room)];
  const add = (name: string, value: string): void => void (value && parts.push(`${name}=${value}`));
  add("open", place.open.length > MOST_OPEN ? "*" : place.open.map(encoded).join(","));
  add("at", encoded(place.at));
  add("colour", encoded(place.colour));
  add("model", place.model ? String(place.model) : "");
  add("both", place.both === null ? "" : place.both ? "1" : "0");
  if (place.camera)
    add(
      "camera",
      [place.camera.x.toFixed(0), place.camera.y.toFixed(0), String(Number(place.camera.zoom.toPrecision(4)))].join(
        ",",
      ),
    );
  return `#${parts.join("&")}`;
}

export function fromHash(hash: string): PlaceInUrl {
  const [room, ...rest] = hash.replace(/^#/, "").split("&");
  const values = new Map(rest.map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]));
  const camera = (values.get("camera") ?? "").split(",").map(Number);
  const open = values.get("open") ?? "";
  return {
    room: decoded(room),
    open: open ? open.split(",").map(decoded) : [],
    at: decoded(values.get("at") ?? ""),
    colour: decoded(values.get("colour") ?? ""),
    model: Number(values.get("model")) === 1 ? 1 : 0,
    both: values.has("both") ? values.get("both") === "1" : null,
    camera:
      camera.length === 3 && camera.every(Number.isFinite) && camera[2] > 0
        ? { x: camera[0], y: camera[1], zoom: camera[2] }
        : null,
  };
}
