"use strict";

/** The data of the page, as content.py writes it. */
const data = JSON.parse(document.getElementById("data").textContent);
const { texts, outcomes, models, columns, cells } = data;
/** A mark for each outcome, so that colour alone says nothing. */
const MARKS = {
  done: "✓", missing: "·", "cannot-tell": "?", refused: "⊘", different: "≠", failed: "✕",
  memory: "M", timeout: "T", lost: "L", crashed: "!",
};
const CHANGES = { "1": "▲", "-1": "▽", "0": "" };
/** The places in a cell. Cells with a row have more; see panel.js. */
const [OUTCOME, BEFORE, CHANGE, HEADLINE, PROBLEM, PAGE] = [0, 1, 2, 3, 4, 5];
const DONE = outcomes.indexOf("done");

/** What is shown. `sort` is worst, plan or name, or the number of a column; `down` turns the order round. */
const state = { find: "", outcomes: new Set(), changed: false, sort: "worst", down: false, at: null };

/** Returns the address of what is shown, as a fragment. */
function toHash() {
  const words = new URLSearchParams();
  if (state.find) words.set("find", state.find);
  if (state.outcomes.size) words.set("outcome", [...state.outcomes].map((number) => outcomes[number]).join(","));
  if (state.changed) words.set("changed", "1");
  if (typeof state.sort === "number") words.set("by", columns[state.sort][0]);
  else if (state.sort !== "worst") words.set("sort", state.sort);
  if (state.down) words.set("down", "1");
  if (state.at) {
    words.set("model", models[state.at[0]]);
    words.set("column", columns[state.at[1]][0]);
  }
  return `#${words}`;
}

/** Takes what an address shows. Returns the names in it that this page does not have. */
function fromHash(hash) {
  const words = new URLSearchParams(hash.slice(1));
  const lost = [];
  const column = (name) => {
    const number = columns.findIndex(([own]) => own === name);
    if (number < 0) lost.push(name);
    return number;
  };
  const named = (words.get("outcome") ?? "").split(",").filter(Boolean);
  lost.push(...named.filter((name) => !outcomes.includes(name)));
  state.find = words.get("find") ?? "";
  state.outcomes = new Set(named.map((name) => outcomes.indexOf(name)).filter((number) => number >= 0));
  state.changed = words.get("changed") === "1" && Boolean(data.since);
  state.sort = ["plan", "name"].includes(words.get("sort")) ? words.get("sort") : "worst";
  if (words.has("by")) {
    const number = column(words.get("by"));
    if (number >= 0) state.sort = number;
  }
  state.down = words.get("down") === "1";
  state.at = null;
  if (words.has("model")) {
    const row = models.indexOf(words.get("model"));
    if (row < 0) lost.push(words.get("model"));
    const number = column(words.get("column"));
    if (row >= 0 && number >= 0) state.at = [row, number];
  }
  return lost;
}

/** Whether the filters for cells let a cell through. */
function matches(cell) {
  return cell !== null && (!state.outcomes.size || state.outcomes.has(cell[OUTCOME])) && (!state.changed || cell[CHANGE] !== 0);
}

/** Returns the numbers of the models to show, in order. */
function shownModels() {
  const words = state.find.toLowerCase().split(/\s+/).filter(Boolean);
  const all = !state.outcomes.size && !state.changed;
  const shown = ordered().filter((row) => {
    const name = models[row].toLowerCase();
    return words.every((word) => name.includes(word)) && (all || cells[row].some(matches));
  });
  return shown;
}

const collator = new Intl.Collator("en", { numeric: true });
const worst = cells.map((row) => Math.max(...row.map((cell) => (cell ? cell[OUTCOME] : -1))));
const bad = cells.map((row) => row.filter((cell) => cell && cell[OUTCOME] !== DONE).length);

/** Returns the numbers of all models in the chosen order. Models that are equal in it stay as in the plan. */
function ordered() {
  const { sort } = state;
  const harm = (row) => (cells[row][sort] ? cells[row][sort][OUTCOME] : -1);
  const compare = {
    plan: () => 0,
    name: (a, b) => collator.compare(models[a], models[b]),
    worst: (a, b) => worst[b] - worst[a] || bad[b] - bad[a],
  }[sort] ?? ((a, b) => harm(b) - harm(a));
  const order = models.map((_, row) => row).sort((a, b) => (state.down ? compare(b, a) : compare(a, b)));
  return sort === "plan" && state.down ? order.reverse() : order;
}
