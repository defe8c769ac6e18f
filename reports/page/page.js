"use strict";
// Everything below is comfort: without scripts the page shows the same numbers.

// Tables sort by a click on a column's title; means stay below.
for (const table of document.querySelectorAll("table.sortable")) {
  const titles = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  titles.forEach((title, column) => {
    title.setAttribute("aria-sort", "none");
    title.tabIndex = 0;
    const sort = () => {
      const up = title.getAttribute("aria-sort") === "descending" || (column === 0 && title.getAttribute("aria-sort") === "none");
      for (const other of titles) other.setAttribute("aria-sort", "none");
      title.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = row => {
        const cell = row.cells[column];
        // A hatched cell without a value shows progress, which is not what is sorted by.
        const text = cell.dataset.v ?? (cell.classList.contains("part") ? "" : cell.textContent);
        const number = parseFloat(text);
        return Number.isNaN(number) ? null : number;
      };
      const body = table.tBodies[0];
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === null && y === null) return a.cells[column].textContent.localeCompare(b.cells[column].textContent) * (up ? 1 : -1);
        if (x === null || y === null) return x === null ? 1 : -1; // empty cells last, either way
        return (x - y) * (up ? 1 : -1);
      });
      body.append(...rows);
    };
    title.addEventListener("click", sort);
    title.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
  });
}

const tip = document.getElementById("tip");

// A number leads to its seeds, also where they are folded away.
const reveal = () => {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", reveal);
addEventListener("hashchange", () => { tip.hidden = true; });
reveal();

// Hovering shows what a cell's title says, at once and in full.
for (const node of document.querySelectorAll("td[title]")) {
  node.dataset.tip = node.title;
  node.removeAttribute("title");
}
document.addEventListener("mousemove", event => {
  const node = event.target.closest?.("[data-tip]");
  tip.hidden = !node;
  if (!node) return;
  tip.textContent = node.dataset.tip;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8)) + "px";
});

// While runs are going on the page loads again each minute, and keeps what was chosen.
const store = "cwbench:" + location.pathname;
const inputs = [...document.querySelectorAll("input")], folds = [...document.querySelectorAll("details")];
try {
  const kept = JSON.parse(sessionStorage.getItem(store) ?? "null");
  if (kept && kept.inputs.length === inputs.length && kept.folds.length === folds.length) {
    inputs.forEach((input, i) => { input.checked = kept.inputs[i]; });
    folds.forEach((fold, i) => { fold.open ||= kept.folds[i]; });
  }
} catch { /* storage may be closed for pages opened from disk */ }
if (document.body.dataset.live === "yes") {
  setTimeout(() => {
    try {
      sessionStorage.setItem(store, JSON.stringify({ inputs: inputs.map(i => i.checked), folds: folds.map(f => f.open) }));
    } catch { /* as above */ }
    location.reload();
  }, 60_000);
}
