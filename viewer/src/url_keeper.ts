/** Keeps the address up to date, and goes to the place of an address. */

import type { App, Colour } from "./app";
import { chosenIn, lostIn, nearestRoom } from "./lost";
import { nameInLink } from "./naming";
import { fromHash, toHash, type PlaceInUrl } from "./url";

/** After so many milliseconds of rest the address is written: browsers refuse many writes a second. */
const REST = 350;

export class UrlKeeper {
  private timer = 0;
  private written = "";

  constructor(private readonly app: App) {
    window.addEventListener("hashchange", () => this.arrived());
    window.addEventListener("popstate", () => this.arrived());
  }

  /** Writes the state soon; with `step`, as a new entry that the Back button returns from. */
  changed(step = false): void {
    window.clearTimeout(this.timer);
    if (step) this.write(true);
    else this.timer = window.setTimeout(() => this.write(false), REST);
  }

  private write(step: boolean): void {
    const hash = toHash(this.place());
    if (hash === this.written) return;
    this.written = hash;
    try {
      if (step) history.pushState(null, "", hash);
      else history.replaceState(null, "", hash);
    } catch {
      // A frame of a notebook has no address of its own.
    }
  }

  private place(): PlaceInUrl {
    const { app } = this;
    const { side } = app;
    const { rooms } = side.graph.model;
    const last = side.selection.at(-1);
    return {
      room: rooms[side.room].path,
      open: [...side.opened].map((room) => rooms[room].path),
      at: last ? nameInLink(side.graph, last) : "",
      colour: typeof app.colour === "number" ? app.overlays[app.colour].overlay.title : app.colour,
      model: app.active,
      both: app.sides.length > 1 ? app.both : null,
      camera: side.camera.copy(),
    };
  }

  private arrived(): void {
    if (location.hash === this.written) return;
    this.restore();
    this.app.refresh();
  }

  /** Goes to the place of the address. Returns false if it names none. */
  restore(): boolean {
    const { app } = this;
    const hash = location.hash.length < 2 ? (app.scene.start ?? "") : location.hash;
    if (hash.length < 2) return false;
    this.written = location.hash;
    const place = fromHash(hash);
    app.page.notices.show(lostIn(place, app.sides.map(({ graph }) => graph), this.colours()));
    if (app.sides[place.model]) app.active = place.model;
    if (place.both !== null && app.sides.length > 1) app.both = place.both;
    const colour = this.colour(place.colour);
    if (colour !== null) app.colour = colour;
    const { side } = app;
    const { room, exact } = nearestRoom(side.graph, place.room);
    side.room = room;
    if (place.open[0] === "*") side.openAll();
    else side.opened = new Set(place.open.flatMap((path) => side.graph.roomByPath.get(path) ?? []));
    side.recompose();
    app.openPartners(app.active);
    const chosen = chosenIn(side.graph, place);
    side.selection = chosen ? [chosen] : [];
    const camera = exact ? place.camera : null; // a camera of another level would look at nothing
    app.page.layOut();
    app.panes.forEach((pane) => pane.resize());
    if (camera) Object.assign(side.camera, camera);
    else side.home();
    app.page.colourChanged();
    app.pictureChanged(app.active);
    if (chosen && !camera) app.jump(app.active, chosen);
    else app.selectionChanged();
    return true;
  }

  /** Goes to the place of the address with a part of it changed. */
  go(change: Partial<PlaceInUrl>): void {
    location.hash = toHash({ ...fromHash(location.hash), ...change });
  }

  private colours(): string[] {
    const { overlays, differences } = this.app;
    return ["family", ...(differences ? ["difference"] : []), ...overlays.map(({ overlay }) => overlay.title)];
  }

  private colour(title: string): Colour | null {
    if (title === "family" || (title === "difference" && this.app.differences)) return title;
    const at = this.app.overlays.findIndex(({ overlay }) => overlay.title === title);
    return at >= 0 ? at : null;
  }
}
