"use strict";
// A heading sorts its table, a box and lists filter it, and a name in the legend picks its curve.
// Without this script the page shows all the same.

const element = (tag, properties, ...inside) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...inside);
  return made;
};

// The first number of a cell such as "1,286.8 ± 2.7 (275.3–299.1)" or "−0.4"; none of "–".
const numberIn = (text) =>
  parseFloat((text.replace(/,(?=\d{3})/g, "").replace(/−/g, "-").match(/^[<>\s]*([-+]?\d*\.?\d+)/) || [])[1]);

// A column of figures may hold words, such as what ended a training: they come after figures.
const compare = (a, b, isNumber, sign) => {
  const [x, y] = isNumber ? [numberIn(a), numberIn(b)] : [NaN, NaN];
  if (Number.isNaN(x) && Number.isNaN(y)) return sign * a.localeCompare(b, "en", { numeric: true });
  return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y) : sign * (x - y);
};

const makeSortable = (heads, rows, body) => {
  const sort = (column) => {
    const head = heads[column];
    const isNumber = head.classList.contains("number");
    const turns = isNumber ? ["descending", "ascending"] : ["ascending", "descending"];
    const turn = turns[turns.indexOf(head.getAttribute("aria-sort")) + 1];
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    if (turn) head.setAttribute("aria-sort", turn);
    const text = (row) => row.cells[column].textContent;
    const sign = turn === "ascending" ? 1 : -1;
    const sorted = turn
      ? [...rows].sort((a, b) => compare(text(a), text(b), isNumber, sign))
      : rows;
    body.append(...sorted);
  };
  heads.forEach((head, column) => {
    if (!head.textContent) return;
    const button = element("button", { type: "button", title: "Sort" }, head.textContent);
    button.addEventListener("click", () => sort(column));
    head.replaceChildren(button);
  });
};

const makeFilterable = (heads, rows, box) => {
  const title = box.getAttribute("aria-label");
  const search = element("input", { type: "search", placeholder: "Filter rows" });
  search.setAttribute("aria-label", `Filter rows of: ${title}`);
  const found = element("output", {});
  const choices = heads.flatMap((head, column) => {
    const values = [...new Set(rows.map((row) => row.cells[column].textContent))].sort();
    const few = values.length > 1 && values.length <= Math.min(40, rows.length / 2);
    if (column === 0 || !head.classList.contains("text") || !few) return [];
    const options = values.map((value) => element("option", { value }, value));
    const any = element("option", { value: "" }, `any ${head.textContent}`);
    const list = element("select", {}, any, ...options);
    list.setAttribute("aria-label", `${head.textContent} of: ${title}`);
    return [{ column, list }];
  });
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word)) || choices.some(
        ({ column, list }) => list.value && row.cells[column].textContent !== list.value);
    }
    found.value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  for (const input of [search, ...choices.map(({ list }) => list)])
    input.addEventListener("input", filter);
  box.before(element("div", { className: "tools" }, search, ...choices.map((c) => c.list), found));
};

for (const box of document.querySelectorAll(".scroll")) {
  const table = box.querySelector("table");
  const [heads, rows] = [[...table.tHead.rows[0].cells], [...table.tBodies[0].rows]];
  if (rows.length > 7) makeFilterable(heads, rows, box);
  if (rows.length > 1) makeSortable(heads, rows, table.tBodies[0]);
}

for (const figure of document.querySelectorAll(".curves")) {
  const buttons = [...figure.querySelectorAll(".keys li")].map((key) => {
    const button = element("button", { type: "button", value: key.dataset.curve }, ...key.childNodes);
    button.setAttribute("aria-pressed", "false");
    key.append(button);
    return button;
  });
  const pick = (button) => {
    button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "false");
    const picked = buttons.filter((each) => each.getAttribute("aria-pressed") === "true");
    const names = new Set(picked.map((each) => each.value));
    figure.classList.toggle("picked", names.size > 0);
    for (const line of figure.querySelectorAll(".line"))
      line.classList.toggle("on", names.has(line.dataset.curve));
  };
  buttons.forEach((button) => button.addEventListener("click", () => pick(button)));
}
