/** Characters that are not seen: control characters, and marks that change the direction of text. */
const HIDDEN = /[^\P{C}\n\t]|[\u2028\u2029]/gu;

/** Returns a text with each hidden character as its escape: names come from strangers. */
function visible(text) {
  return text.replace(HIDDEN, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

/** Makes an element with children. Texts are never read as HTML. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, key === "title" ? visible(value) : value);
  made.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
  return made;
}

const grid = document.getElementById("grid");
const body = element("div", { role: "rowgroup" });
const counts = [];
const rows = [];
const heads = [];
/** The numbers of the models that are shown, in their order. */
let shown = [];
/** The cell that the keyboard is at: a model, or -1 for the head; and a column, or -1 for the names of models. */
let active = [-1, -1];
/** Columns up to which a cell has the word beside the mark. */
const FEW = 8;
const few = columns.length <= FEW;

const marked = (number) => MARKS[outcomes[number]] ?? "?";
const spoken = (cell) => outcomes[cell[OUTCOME]] + { "1": ", worse", "-1": ", better", "0": "" }[cell[CHANGE]];

/** The number of cells with each outcome. An outcome may occur in the earlier run only. */
const totals = outcomes.map((_, number) => cells.flat().filter((cell) => cell && cell[OUTCOME] === number).length);

/** Draws the head of the table and the names of the models. The cells of a row are drawn when it comes near. */
function draw() {
  grid.className = few ? "few" : "many";
  grid.setAttribute("aria-colcount", columns.length + 1);
  grid.setAttribute("aria-rowcount", models.length + 1);
  grid.style.setProperty("--columns", columns.length);
  grid.style.setProperty("--letters", Math.max(8, ...models.map((name) => Math.min(name.length, 48))));
  const above = element("div", { class: "counts", role: "rowgroup" });
  outcomes.forEach((name, number) => {
    const line = element("div", { role: "row" }, element("div", { role: "rowheader" }, `${marked(number)} ${name}`));
    counts.push(columns.map(() => line.appendChild(element("div", { role: "gridcell" }))));
    if (totals[number]) above.append(line);
  });
  const names = element("div", { role: "row" }, head("model", -1));
  columns.forEach(([name], column) => names.append(head(name, column)));
  models.forEach((name, row) => {
    const line = element("div", { class: "line", role: "row" }, element("div", { role: "rowheader", title: name }, name));
    line.number = row;
    rows.push(line);
    near.observe(line);
  });
  grid.append(above, element("div", { class: "names", role: "rowgroup" }, names), body);
}

/** Calls `filled` for rows that are in sight, or a little below or above. */
const near = new IntersectionObserver(
  (entries) => entries.forEach((entry) => { if (entry.isIntersecting) filled(entry.target.number); }),
  { root: document.querySelector(".scroll"), rootMargin: "600px 0px" },
);

/** Returns the row of a model with its cells. */
function filled(row) {
  const line = rows[row];
  if (line.children.length === 1) {
    near.unobserve(line);
    line.append(...cells[row].map((cell, column) => drawn(cell, row, column)));
  }
  return line;
}

function head(name, column) {
  const button = element("button", { type: "button", tabindex: "-1", title: name }, name);
  button.place = [-1, column];
  heads.push(button);
  return element("div", { role: "columnheader", class: column < 0 ? "model" : "column" }, button);
}

function drawn(cell, row, column) {
  const made = document.createElement("div");
  made.place = [row, column];
  made.tabIndex = -1;
  made.setAttribute("role", "gridcell");
  if (cell === null) {
    made.className = "none";
    made.setAttribute("aria-label", "not in the plan");
    return made;
  }
  made.className = `${outcomes[cell[OUTCOME]]}${dims() && !matches(cell) ? " off" : ""}`;
  made.textContent = `${marked(cell[OUTCOME])}${few ? ` ${outcomes[cell[OUTCOME]]}` : ""}${CHANGES[cell[CHANGE]]}`;
  made.setAttribute("aria-label", spoken(cell));
  return made;
}

/** Whether a filter for cells is on: then those that it does not let through are dim. */
const dims = () => state.outcomes.size > 0 || state.changed;

let filteredBy = "";
let sortedBy = "";

/** Shows the rows that the state asks for, in its order, with counts of what is shown. */
function show() {
  shown = shownModels();
  const visible = new Set(shown);
  rows.forEach((row, number) => { row.hidden = !visible.has(number); });
  const order = `${state.sort} ${state.down}`;
  if (order !== sortedBy) body.append(...ordered().map((number) => rows[number]));
  sortedBy = order;
  const filter = `${[...state.outcomes]} ${state.changed}`;
  if (filter !== filteredBy) {
    for (const row of rows) {
      for (const made of [...row.children].slice(1)) {
        const cell = cells[made.place[0]][made.place[1]];
        if (cell !== null) made.classList.toggle("off", dims() && !matches(cell));
      }
    }
  }
  filteredBy = filter;
  count();
  heads.forEach((button, number) => {
    const is = number === 0 ? state.sort === "name" : state.sort === number - 1;
    const up = number === 0 ? !state.down : state.down;
    if (is) button.parentElement.setAttribute("aria-sort", up ? "ascending" : "descending");
    else button.parentElement.removeAttribute("aria-sort");
  });
  if (!visible.has(active[0]) && active[0] !== -1) active = [shown[0] ?? -1, active[1]];
  setActive(active, false);
}

function count() {
  columns.forEach((_, column) => {
    const found = outcomes.map(() => 0);
    for (const row of shown) if (cells[row][column]) found[cells[row][column][OUTCOME]] += 1;
    found.forEach((number, outcome) => {
      counts[outcome][column].textContent = number || "·";
      counts[outcome][column].className = number ? "some" : "";
    });
  });
}

const at = ([row, column]) => (row < 0 ? heads[column + 1] : filled(row).children[column + 1]);

/** Makes one cell the one that Tab reaches. */
function setActive(place, focus) {
  at(active).tabIndex = -1;
  active = place;
  at(active).tabIndex = 0;
  if (focus) {
    at(active).focus({ preventScroll: true });
    at(active).scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

const PAGE_ROWS = 10;

/** Moves the keyboard's place. Returns false for a key that moves nothing. */
function moved(event) {
  const last = columns.length - 1;
  const line = active[0] < 0 ? -1 : shown.indexOf(active[0]);
  const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -PAGE_ROWS, PageDown: PAGE_ROWS }[event.key];
  let [to, column] = [line, active[1]];
  if (by !== undefined) to = Math.max(line < 0 || Math.abs(by) === 1 ? -1 : 0, line + by);
  else if (event.key === "ArrowLeft") column -= 1;
  else if (event.key === "ArrowRight") column += 1;
  else if (event.key === "Home") [to, column] = [event.ctrlKey ? Math.min(0, shown.length - 1) : line, 0];
  else if (event.key === "End") [to, column] = [event.ctrlKey ? shown.length - 1 : line, last];
  else return false;
  to = Math.min(to, shown.length - 1);
  column = Math.min(Math.max(column, to < 0 ? -1 : 0), last);
  setActive([to < 0 ? -1 : shown[to], column], true);
  return true;
}
