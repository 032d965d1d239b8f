/** Keeps the address up to date, and goes where an address leads. */

import type { App, Colour } from "./app";
import { chosenByLink, nameInLink } from "./naming";
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
    if (location.hash.length < 2) return false;
    this.written = location.hash;
    const { app } = this;
    const place = fromHash(location.hash);
    if (app.sides[place.model]) app.active = place.model;
    if (place.both !== null && app.sides.length > 1) app.both = place.both;
    const colour = this.colour(place.colour);
    if (colour !== null) app.colour = colour;
    const { side } = app;
    side.room = side.graph.roomByPath.get(place.room) ?? 0;
    if (place.open[0] === "*") side.openAll();
    else side.opened = new Set(place.open.flatMap((path) => side.graph.roomByPath.get(path) ?? []));
    side.recompose();
    app.openPartners(app.active);
    const chosen =
      chosenByLink(side.graph, place.at) ??
      (side.graph.roomByPath.has(place.room) ? null : chosenByLink(side.graph, `node:${place.room}`));
    side.selection = chosen ? [chosen] : [];
    const unknown = place.room && !chosen && !side.graph.roomByPath.has(place.room) ? place.room : chosen ? "" : place.at;
    if (unknown) app.page.toast(`Nothing here is called ${unknown}: the address is of another model or version`);
    app.page.layOut();
    app.panes.forEach((pane) => pane.resize());
    if (place.camera) Object.assign(side.camera, place.camera);
    else side.home();
    app.page.colourChanged();
    app.pictureChanged(app.active);
    if (chosen && !place.camera) app.jump(app.active, chosen);
    else app.selectionChanged();
    return true;
  }

  private colour(title: string): Colour | null {
    if (title === "family" || (title === "difference" && this.app.differences)) return title;
    const at = this.app.overlays.findIndex(({ overlay }) => overlay.title === title);
    return at >= 0 ? at : null;
  }
}
