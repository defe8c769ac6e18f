"use strict";
// Tables: sort by a click on a column's title, copy as LaTeX, and show the runs behind a number.

for (const table of document.querySelectorAll("table.sortable"))
  for (const title of table.tHead.rows[table.tHead.rows.length - 1].cells) {
    title.setAttribute("aria-sort", "none");
    const sort = document.createElement("button"); // for keyboards and screen readers
    sort.type = "button";
    sort.className = "sort";
    sort.append(...title.childNodes);
    title.append(sort);
  }

const sortValue = (row, column) => {
  const cell = row.cells[column];
  // A hatched cell without a value shows progress, which is not what is sorted by.
  const number = parseFloat(cell.dataset.v ?? (cell.classList.contains("part") ? "" : cell.textContent));
  return Number.isNaN(number) ? null : number;
};

// Means stay below, empty cells come last either way.
const sortBy = title => {
  const titles = [...title.parentElement.cells], column = titles.indexOf(title);
  const now = title.getAttribute("aria-sort");
  const up = now === "descending" || (column === 0 && now === "none") ? 1 : -1;
  for (const other of titles) other.setAttribute("aria-sort", "none");
  title.setAttribute("aria-sort", up > 0 ? "ascending" : "descending");
  const body = title.closest("table").tBodies[0];
  body.append(...[...body.rows].sort((a, b) => {
    const [x, y] = [sortValue(a, column), sortValue(b, column)];
    if (x === null && y === null) return a.cells[column].textContent.localeCompare(b.cells[column].textContent) * up;
    return x === null || y === null ? (x === null ? 1 : -1) : Math.sign(x === y ? 0 : x - y) * up; // both may be infinite
  }));
};

document.addEventListener("click", event => {
  const title = event.target.closest?.("th[aria-sort]");
  if (title) sortBy(title);
});

// LaTeX ----------------------------------------------------------------------------------------

const copyText = async text => {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not every browser lets a page opened from disk use the clipboard
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
};

for (const source of document.querySelectorAll("template.latex")) {
  const copy = button("Copy as LaTeX", "Copy this table as LaTeX", async () => {
    await copyText(source.content.textContent);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy as LaTeX"; }, 2000);
  });
  copy.className = "copy";
  source.before(copy);
}

// Runs -----------------------------------------------------------------------------------------

const dialog = document.getElementById("behind");

const withoutIds = node => {
  for (const one of [node, ...node.querySelectorAll("[id]")]) one.removeAttribute("id");
  return node;
};

// The seeds of one sequence (`g-...`) or of a whole setting (`s-...`), with options and commands.
const showRuns = target => {
  const setup = target.closest("details.setup");
  const parts = target === setup ? [...setup.children].slice(1) : [setup.querySelector("dl"), target].filter(Boolean);
  dialog.querySelector("h2").textContent = setup.querySelector("summary b").textContent;
  dialog.querySelector(".content").replaceChildren(...parts.map(part => withoutIds(part.cloneNode(true))));
  dialog.dataset.target = target.id;
  if (!dialog.open) dialog.showModal();
};
