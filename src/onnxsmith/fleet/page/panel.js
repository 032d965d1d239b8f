const panel = document.getElementById("panel");
/** The places in a cell that has a row, after those of every cell. A cell without a row has its command at SECONDS. */
const [SECONDS, ENDED, MACHINE, VERSIONS, FIX, STEPS, FILES] = [6, 7, 8, 9, 10, 11, 12];

/** Returns a word as a shell reads it back. */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** Shows the chosen cell in the panel, or closes the panel. */
function showPanel() {
  grid.querySelectorAll("[aria-selected]").forEach((other) => other.removeAttribute("aria-selected"));
  const cell = state.at && cells[state.at[0]][state.at[1]];
  panel.hidden = !cell;
  if (!cell) return panel.replaceChildren();
  at(state.at).setAttribute("aria-selected", "true");
  const [row, column] = state.at;
  const close = element("button", { type: "button", class: "close", "aria-label": "close" }, "✕");
  close.addEventListener("click", () => choose(null, true));
  panel.replaceChildren(close, element("h2", {}, models[row]), ...verdict(cell, columns[column]), ...rest(cell, row, column));
  panel.scrollTop = 0;
}

function verdict(cell, [name]) {
  const outcome = outcomes[cell[OUTCOME]];
  const line = element("p", {}, element("span", { class: `outcome ${outcome}` }, `${marked(cell[OUTCOME])} ${outcome}`));
  if (cell[BEFORE] >= 0) {
    const change = { "1": "▲ worse: ", "-1": "▽ better: ", "0": "not changed: " }[cell[CHANGE]];
    line.append(visible(` ${change}${outcomes[cell[BEFORE]]} in ${data.since}`));
  }
  return [element("p", {}, name), line, ...paragraph(texts[cell[HEADLINE]])];
}

function rest(cell, row, column) {
  if (cell.length <= FILES) return [element("p", {}, "The store has no row of this cell yet."), ...commands("compute it", [texts[cell[SECONDS]]])];
  return [
    facts([
      ["problem", texts[cell[PROBLEM]]],
      ["it means", data.titles[texts[cell[PROBLEM]]] ?? ""],
      ["fix", texts[cell[FIX]]],
    ]),
    report(cell),
    ...(columns[column][3] ? [facts([["steps", endings(cell)]])] : commands("run its steps", steps(cell))),
    ...commands("run it again, and see all", [why(row, column)]),
    ...commands("look at the files", cell[FILES].map((file) => `onnxsmith view ${texts[file]}`)),
    facts([
      ["time", texts[cell[SECONDS]]],
      ["ended", texts[cell[ENDED]]],
      ["machine", texts[cell[MACHINE]]],
      ["environment", columns[column][2]],
      ["versions", texts[cell[VERSIONS]]],
    ]),
  ];
}

const paragraph = (text) => (text ? [element("p", {}, text)] : []);

/** Labelled values, without the empty ones. */
function facts(listed) {
  const list = element("dl");
  for (const [label, text] of listed) if (text) list.append(element("dt", {}, label), element("dd", {}, text));
  return list;
}

function report(cell) {
  const page = texts[cell[PAGE]];
  if (!page) return element("p", {}, "This cell has no page: the footer says why.");
  return element("p", {}, element("a", { href: `${data.folder}/${page}.html` }, "The report of this cell"));
}

function commands(title, lines) {
  if (!lines.length) return [];
  const there = title !== "compute it" && !title.startsWith("run it again") && data.planFolder ? [`cd ${quoted(data.planFolder)}`] : [];
  return [element("h3", {}, title), element("pre", {}, [...there, ...lines].join("\n"))];
}

function steps(cell) {
  const lines = cell[STEPS].filter((step) => step.length > 1);
  return lines.map(([outcome, ...words]) => {
    const ending = texts[outcome] === "done" ? "" : `  # ${texts[outcome]}`;
    return words.map((word) => texts[word]).join(" ") + ending;
  });
}

/** The verb of each step and how it ended. The commands would run with another Python than that of the environment. */
function endings(cell) {
  const known = cell[STEPS].filter((step) => step.length > 2);
  return known.map(([outcome, , verb]) => `${texts[verb]}: ${texts[outcome]}`).join(", ");
}

function why(row, column) {
  const [, setting, environment] = columns[column];
  const words = ["onnxsmith", "fleet", "why", data.plan || "PLAN", models[row], "--setting", setting];
  if (environment) words.push("--environment", environment);
  return words.map(quoted).join(" ");
}
