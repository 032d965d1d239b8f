"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.tHead.rows[0].querySelectorAll("th").forEach((head, column) => {
    let up = false;
    const sort = () => {
      up = !up;
      const key = (row) => row.cells[column].textContent.trim();
      const number = (text) => (text === "" ? -Infinity : text === "inf" ? Infinity : Number(text));
      const rows = Array.from(body.rows);
      const numeric = rows.every((row) => !Number.isNaN(number(key(row))));
      const order = (a, b) => (numeric ? number(key(a)) - number(key(b)) : key(a).localeCompare(key(b)));
      rows.sort((a, b) => (up ? order(a, b) : order(b, a)));
      body.append(...rows);
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
    };
    head.querySelector("button").addEventListener("click", sort);
  });
}
