"use strict";
// Filters, links to a place and a choice, the tooltip, and the clock of a page that is being
// rewritten. All of it is comfort: without scripts the page shows the same numbers.

const decoded = text => {
  try { return decodeURIComponent(text); } catch { return text; } // a lone % in an address
};

// What the address says: #PLACE?method=A&method=B&sequence=...&protocol=...&kind=tasks
const address = () => {
  const [place, query] = location.hash.slice(1).split("?");
  return { place: decoded(place), query: new URLSearchParams(query ?? "") };
};
const setAddress = (place, query) => {
  const text = query.toString();
  history.replaceState(null, "", "#" + encodeURIComponent(place) + (text ? "?" + text : ""));
};

// A link ends below the bar of links, however many lines the bar has.
const bar = document.querySelector("nav");
const clear = () => {
  const covers = getComputedStyle(bar).position === "sticky";
  document.documentElement.style.scrollPaddingTop = covers ? `${bar.offsetHeight + 8}px` : "";
};
clear();
new ResizeObserver(clear).observe(bar);

// Filters --------------------------------------------------------------------------------------

const values = name => [...new Set([...document.querySelectorAll(`[data-${name}]`)].map(node => node.dataset[name]))];
const CHOICES = { protocol: values("protocol"), sequence: values("sequence"), method: values("method") };

// Rows and columns of tables are named by their titles: `1` in a table of CW3 is CW3-1.
for (const table of document.querySelectorAll("table.sortable")) {
  const titles = table.tHead.rows[table.tHead.rows.length - 1].cells, corner = titles[0].textContent;
  for (const title of [...titles, ...table.querySelectorAll("tbody th[scope=row]")]) {
    const text = title.textContent;
    if (CHOICES.method.includes(text)) title.dataset.method = text;
    for (const name of [text, `${corner}-${text}`]) if (CHOICES.sequence.includes(name)) title.dataset.sequence = name;
  }
}

const cellsOf = title => {
  if (title.scope === "row") return [title.parentElement];
  const column = title.cellIndex, table = title.closest("table");
  return [title, ...[...table.tBodies, table.tFoot].filter(Boolean).flatMap(part => [...part.rows]).map(row => row.cells[column])];
};

const filter = () => {
  const { query } = address();
  for (const name of Object.keys(CHOICES)) {
    const chosen = query.getAll(name);
    for (const node of document.querySelectorAll(`[data-${name}]`)) {
      const off = chosen.length > 0 && !chosen.includes(node.dataset[name]);
      const nodes = node.tagName === "TH" && node.closest("table.sortable") ? cellsOf(node) : [node];
      for (const one of nodes) one.classList.toggle("off-" + name, off);
    }
  }
  for (const line of document.querySelectorAll("svg.plot g[data-name]")) {
    const chosen = query.getAll("method");
    line.classList.toggle("off-method", chosen.length > 0 && !chosen.includes(line.dataset.name));
  }
  const kind = query.get("kind");
  if (kind) for (const input of document.querySelectorAll(`.switches input[value="${CSS.escape(kind)}"]`)) input.checked = true;
};

const menu = document.getElementById("filter");
for (const [name, choices] of Object.entries(CHOICES)) {
  if (choices.length < 2) continue;
  const box = document.createElement("fieldset"), legend = document.createElement("legend");
  legend.textContent = name;
  box.append(legend, ...choices.map(choice => {
    const label = document.createElement("label"), input = document.createElement("input");
    Object.assign(input, { type: "checkbox", name, value: choice });
    label.append(input, choice);
    return label;
  }));
  menu.querySelector("form").append(box);
}
menu.hidden = !menu.querySelector("input");

const readMenu = () => {
  const { query } = address();
  for (const input of menu.querySelectorAll("input")) input.checked = query.getAll(input.name).includes(input.value);
  menu.querySelector("summary").classList.toggle("set", Object.keys(CHOICES).some(name => query.has(name)));
};
menu.addEventListener("change", () => {
  const { place, query } = address();
  for (const name of Object.keys(CHOICES)) query.delete(name);
  for (const input of menu.querySelectorAll("input:checked")) query.append(input.name, input.value);
  setAddress(place, query);
  apply();
});
menu.querySelector("button").addEventListener("click", () => { setAddress(address().place, new URLSearchParams()); apply(); });
document.addEventListener("change", event => {
  if (!event.target.matches(".switches input[type=radio]")) return;
  const { place, query } = address();
  if (event.target.defaultChecked) query.delete("kind");
  else query.set("kind", event.target.value);
  setAddress(place, query);
});

const apply = () => { filter(); readMenu(); };

// Links ----------------------------------------------------------------------------------------

// A number leads to its runs; any other link to a place, also where it is folded away.
const reveal = () => {
  const { place } = address(), target = place && document.getElementById(place);
  tip.hidden = true;
  if (!target) return;
  if (/^[gs]-/.test(place)) { showRuns(target); return; }
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  target.scrollIntoView();
};
document.addEventListener("click", event => {
  const link = event.target.closest?.('a[href^="#"]');
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault(); // the filter in the address stays
  setAddress(decodeURIComponent(link.hash.slice(1)), address().query);
  reveal();
});
dialog.addEventListener("close", () => setAddress("", address().query));
dialog.querySelector(".close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", event => { if (event.target === dialog) dialog.close(); });
addEventListener("hashchange", () => { apply(); reveal(); });
apply();
reveal();

// Tooltip --------------------------------------------------------------------------------------

for (const node of document.querySelectorAll("td[title]")) {
  node.dataset.tip = node.title;
  node.removeAttribute("title");
}
document.addEventListener("mousemove", event => {
  if (event.target.closest?.("svg.plot")) return;
  const node = event.target.closest?.("[data-tip]");
  if (node) showTip(event.clientX, event.clientY, node.dataset.tip);
  else tip.hidden = true;
});

// Paper ----------------------------------------------------------------------------------------

// What is folded is opened while the page is printed; the list of files is of no use on paper.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("main details:not([open])")) {
    if (fold.closest("#files")) continue;
    fold.open = true;
    fold.dataset.folded = "";
  }
});
addEventListener("afterprint", () => {
  for (const fold of document.querySelectorAll("[data-folded]")) {
    fold.open = false;
    delete fold.dataset.folded;
  }
});

// While runs are going on ----------------------------------------------------------------------

const store = "cwbench:" + location.pathname;
const inputs = [...document.querySelectorAll(".switches input")], folds = [...document.querySelectorAll("main details")];
try {
  const kept = JSON.parse(sessionStorage.getItem(store) ?? "null");
  if (kept && kept.inputs.length === inputs.length && kept.folds.length === folds.length) {
    inputs.forEach((input, i) => { input.checked = kept.inputs[i]; });
    folds.forEach((fold, i) => { fold.open ||= kept.folds[i]; });
  }
} catch { /* storage may be closed for pages opened from disk */ }

const OLD_SECONDS = 180; // three times the interval at which training writes the page
const clock = () => {
  const age = Math.max(0, Date.now() / 1000 - Number(document.body.dataset.written));
  const text = age < 90 ? `${Math.round(age)} s` : age < 5400 ? `${Math.round(age / 60)} min` : `${Math.round(age / 3600)} h`;
  document.getElementById("age").textContent = `(${text} ago)`;
  document.getElementById("old").hidden = age < OLD_SECONDS;
};
if (document.body.dataset.live === "yes") {
  clock();
  setInterval(clock, 5000);
  setTimeout(() => {
    try {
      sessionStorage.setItem(store, JSON.stringify({ inputs: inputs.map(i => i.checked), folds: folds.map(f => f.open) }));
    } catch { /* as above */ }
    location.reload();
  }, 60_000);
}
