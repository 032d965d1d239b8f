const control = (id) => document.getElementById(id);
/** After so many milliseconds of rest the address is written: browsers refuse many writes a second. */
const REST = 250;
let timer = 0;
let written = location.hash;

/** Shows the state everywhere, and writes it into the address soon. */
function changed() {
  show();
  control("shown").textContent = `${shown.length.toLocaleString("en")} of ${models.length.toLocaleString("en")} models`;
  control("find").value = state.find;
  control("changed").checked = state.changed;
  sortControl();
  document.querySelectorAll(".chip").forEach((chip) => chip.setAttribute("aria-pressed", String(state.outcomes.has(chip.number))));
  keep();
}

function keep() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    written = toHash();
    try {
      history.replaceState(null, "", written === "#" ? location.pathname + location.search : written);
    } catch {
      // A frame of a notebook has no address of its own.
    }
  }, REST);
}

/** The list of orders has an entry for a column while the table is sorted by it. */
function sortControl() {
  const select = control("sort");
  select.querySelectorAll(".column").forEach((option) => option.remove());
  if (typeof state.sort === "number") {
    select.append(element("option", { class: "column", value: "column" }, `by ${columns[state.sort][0]}`));
  }
  select.value = typeof state.sort === "number" ? "column" : state.sort;
}

/** Chooses a cell, or none. With `focus`, the keyboard goes into the panel, or back into the table. */
function choose(place, focus) {
  const before = state.at;
  state.at = place;
  showPanel();
  if (place) setActive(place, false);
  if (focus && place) panel.focus();
  else if (focus && before && !rows[before[0]].hidden) setActive(before, true);
  keep();
}

function sortBy(column) {
  const sort = column < 0 ? "name" : column;
  state.down = state.sort === sort && !state.down;
  state.sort = sort;
  changed();
}

/** Goes to what the address names, and says what of it this page does not have. */
function arrive() {
  const lost = fromHash(location.hash);
  control("lost").hidden = !lost.length;
  control("lost").textContent = visible(lost.length ? `This page does not have what its address names: ${lost.join(", ")}` : "");
  changed();
  showPanel();
  if (state.at && !rows[state.at[0]].hidden) {
    setActive(state.at, false);
    at(active).scrollIntoView({ block: "center", inline: "center" });
  }
}

function onGridKey(event) {
  const place = event.target.place;
  if (!place || event.altKey || event.metaKey) return;
  active = place;
  if (moved(event)) event.preventDefault();
  else if ((event.key === "Enter" || event.key === " ") && place[0] >= 0) {
    event.preventDefault();
    if (cells[place[0]][place[1]]) choose(place, true);
  }
}

function onGridClick(event) {
  const { place } = event.target.closest("[role=gridcell], button") ?? {};
  if (!place) return;
  if (place[0] < 0) {
    setActive(place, true);
    sortBy(place[1]);
  } else if (cells[place[0]][place[1]]) {
    choose(place, false);
    setActive(place, true);
  }
}

function onKey(event) {
  const typing = event.target.matches("input[type=search], select");
  if (event.key === "Escape" && !typing && state.at) choose(null, true);
  else if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    control("find").focus();
    control("find").select();
  }
}

/** A hint for the mouse is made when it is needed: thousands of them would be most of the page. */
function onHover(event) {
  const { place } = event.target;
  const cell = place && place[0] >= 0 ? cells[place[0]][place[1]] : null;
  if (cell && !event.target.title) {
    event.target.title = visible(`${models[place[0]]}, ${columns[place[1]][0]}: ${spoken(cell)}\n${texts[cell[HEADLINE]]}`);
  }
}

function begin() {
  draw();
  outcomes.forEach((name, number) => {
    if (!totals[number]) return;
    const mark = element("span", { class: `mark ${name}` }, marked(number));
    const chip = element("button", { type: "button", class: "chip", "aria-pressed": "false" }, mark, ` ${name} ${totals[number].toLocaleString("en")}`);
    chip.number = number;
    chip.addEventListener("click", () => {
      if (!state.outcomes.delete(number)) state.outcomes.add(number);
      changed();
    });
    control("outcomes").append(chip);
  });
  control("find").addEventListener("input", (event) => { state.find = event.target.value; changed(); });
  control("changed").addEventListener("change", (event) => { state.changed = event.target.checked; changed(); });
  control("sort").addEventListener("change", (event) => {
    if (event.target.value !== "column") Object.assign(state, { sort: event.target.value, down: false });
    changed();
  });
  grid.addEventListener("keydown", onGridKey);
  grid.addEventListener("click", onGridClick);
  grid.addEventListener("mouseover", onHover);
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", () => { if (location.hash !== written) arrive(); });
  if (data.leftOut) {
    const count = data.leftOut.toLocaleString("en");
    control("left").textContent = visible(`${count} done cells have no page of their own. To write all: ${data.every}`);
  }
  arrive();
  if (!state.at && shown.length && columns.length) setActive([shown[0], 0], false);
}

begin();
