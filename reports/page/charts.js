"use strict";
// Line plots: values under the pointer or by arrow keys, zoom, download. The points drawn are the
// data: x in steps, y in thousandths of the plot's range.

const tip = document.getElementById("tip");

const showTip = (x, y, ...content) => {
  tip.replaceChildren(...content);
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(y + 16, innerHeight - tip.offsetHeight - 8)) + "px";
};

const short = value => {
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (Math.abs(value) >= size) return parseFloat((value / size).toPrecision(5)) + letter;
  return String(parseFloat(value.toPrecision(3)));
};

const points = node => node.getAttribute("points").split(" ").map(pair => pair.split(",").map(Number));

class Plot {
  constructor(svg) {
    this.svg = svg;
    this.area = svg.querySelector("svg.area");
    [this.left, this.right] = this.whole = svg.dataset.x.split(" ").map(Number);
    const [low, high] = svg.dataset.y.split(" ").map(Number);
    this.value = y => low + (high - low) * y / 1000;
    // Points have one decimal: digits beyond a ten-thousandth of the range would be made up.
    const decimals = Math.min(100, Math.max(0, Math.ceil(4 - Math.log10(high - low))));
    this.digits = value => value.toFixed(decimals);
    this.spans = svg.dataset.spans.split(";").filter(Boolean).map(text => {
      const cut = text.indexOf(" ");
      return { end: Number(text.slice(0, cut)), name: text.slice(cut + 1) };
    });
    this.guide = document.createElementNS(svg.namespaceURI, "line");
    this.guide.setAttribute("class", "guide");
    svg.append(this.guide);
  }

  // Parsed when first looked at: a page may have thousands of lines.
  get lines() {
    return this.parsed ??= [...this.area.querySelectorAll("g[data-name]")].map(group => {
      const band = new Map();
      const corners = group.querySelector("polygon") ? points(group.querySelector("polygon")) : [];
      for (let i = 0; i < corners.length / 2; i++)
        band.set(corners[i][0], [corners[corners.length - 1 - i][1], corners[i][1]].map(this.value));
      const rows = points(group.querySelector(".mean")).map(([x, y]) => ({ x, mean: this.value(y), band: band.get(x) }));
      return { group, name: group.dataset.name, rows };
    });
  }

  get shown() { return this.lines.filter(line => getComputedStyle(line.group).display !== "none"); }

  get steps() {
    const all = new Set(this.shown.flatMap(line => line.rows.map(row => row.x)));
    return [...all].filter(x => x >= this.left && x <= this.right).sort((a, b) => a - b);
  }

  toX(clientX) {
    const box = this.svg.getBoundingClientRect();
    return this.left + (this.right - this.left) * (clientX - box.left) / box.width;
  }

  // A line of text per method, the best value first.
  readings(x) {
    const found = [];
    for (const { group, name, rows } of this.shown) {
      const row = rows.reduce((best, one) => Math.abs(one.x - x) < Math.abs(best.x - x) ? one : best);
      // Lines of unfinished runs have other points, and end early.
      if (Math.abs(row.x - x) <= (this.whole[1] - this.whole[0]) / 40) found.push({ group, name, ...row });
    }
    return found.sort((a, b) => b.mean - a.mean);
  }

  look(x, clientY) {
    const steps = this.steps;
    if (!steps.length) return;
    this.at = steps.reduce((best, one) => Math.abs(one - x) < Math.abs(best - x) ? one : best);
    const share = (this.at - this.left) / (this.right - this.left);
    for (const [key, value] of Object.entries({ x1: 100 * share + "%", x2: 100 * share + "%", y1: 0, y2: "100%" })) this.guide.setAttribute(key, value);
    const task = this.spans.find(span => this.at <= span.end)?.name;
    const head = document.createElement("b");
    head.textContent = `${short(this.at)} ${this.svg.dataset.unit}${task ? ", " + task : ""}`;
    const lines = this.readings(this.at).map(({ group, name, mean, band }) => {
      const line = document.createElement("div"), mark = document.createElement("i");
      mark.style.background = getComputedStyle(group).color;
      const digits = value => Math.abs(value) < 10 ? value.toFixed(2) : short(value);
      line.append(mark, `${name} ${digits(mean)}` + (band ? ` [${band.map(digits).join(", ")}]` : ""));
      return line;
    });
    const box = this.svg.getBoundingClientRect();
    showTip(box.left + share * box.width, clientY ?? box.top, head, ...lines);
  }

  leave() {
    this.guide.removeAttribute("x1");
    this.guide.removeAttribute("y2");
    tip.hidden = true;
  }

  zoom(left, right) {
    [this.left, this.right] = [left, right];
    this.area.setAttribute("viewBox", `${left} -1000 ${right - left} 1000`);
    const rough = (right - left) / 6, unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find(k => unit * k >= rough * 0.999);
    const labels = [];
    for (let x = Math.ceil(left / step) * step; x <= right; x += step) {
      const label = document.createElementNS(this.svg.namespaceURI, "text");
      label.setAttribute("x", 100 * (x - left) / (right - left) + "%");
      label.setAttribute("y", "100%");
      label.textContent = short(x);
      labels.push(label);
    }
    this.svg.querySelector(".xs").replaceChildren(...labels);
  }
}

// Files ------------------------------------------------------------------------------------

const save = (name, kind, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};

const fileName = plot => plot.svg.getAttribute("aria-label").replace(/[^\w.+-]+/g, "-");

const csv = plot => {
  const quoted = text => `"${text.replaceAll('"', '""')}"`;
  const rows = plot.shown.flatMap(({ name, rows }) => rows.map(({ x, mean, band }) => [quoted(name), x, plot.digits(mean), ...(band?.map(plot.digits) ?? ["", ""])].join(",")));
  const { part } = plot.svg.dataset;
  return [...(part ? [`# ${part}, the first and the last of each task among them`] : []), "method,step,mean,low,high", ...rows, ""].join("\n");
};

// The plot alone, with the style it has now written into it.
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "text-anchor", "dominant-baseline", "vector-effect", "display", "overflow"];
const standAlone = plot => {
  const copy = plot.svg.cloneNode(true), box = plot.svg.getBoundingClientRect();
  const originals = [plot.svg, ...plot.svg.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of STYLES) copies[i].style.setProperty(name, style.getPropertyValue(name));
  });
  copy.setAttribute("xmlns", copy.namespaceURI);
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  copy.style.overflow = "visible";
  copy.style.height = "";
  const outer = document.createElementNS(copy.namespaceURI, "svg");
  const size = [box.width + 70, box.height + 46];
  outer.setAttribute("viewBox", `-50 -14 ${size.join(" ")}`);
  outer.setAttribute("width", size[0]);
  outer.setAttribute("height", size[1]);
  outer.append(copy);
  return new XMLSerializer().serializeToString(outer);
};

// Each chart ----------------------------------------------------------------------------------

const button = (text, label, action) => {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.title = label;
  made.setAttribute("aria-label", label);
  made.addEventListener("click", action);
  return made;
};

const visible = plots => plots.filter(plot => plot.svg.getClientRects().length);

const follow = (plot, zoom) => {
  const { svg } = plot;
  let from = null;
  svg.addEventListener("pointerdown", event => { from = plot.toX(event.clientX); });
  svg.addEventListener("pointermove", event => plot.look(plot.toX(event.clientX), event.clientY));
  svg.addEventListener("pointerleave", () => { from = null; plot.leave(); });
  svg.addEventListener("pointerup", event => {
    const ends = [from, plot.toX(event.clientX)].sort((a, b) => a - b);
    if (from !== null && ends[1] - ends[0] > 0.02 * (plot.right - plot.left)) zoom(...ends);
    from = null;
  });
  svg.addEventListener("dblclick", () => zoom(...plot.whole));
  svg.addEventListener("blur", () => plot.leave());
  svg.addEventListener("keydown", event => {
    const steps = plot.steps, place = steps.indexOf(plot.at);
    const middle = plot.at ?? (plot.left + plot.right) / 2, quarter = (plot.right - plot.left) / 4;
    if (event.key === "ArrowRight") plot.look(steps[Math.min(place + 1, steps.length - 1)]);
    else if (event.key === "ArrowLeft") plot.look(steps[place < 0 ? steps.length - 1 : Math.max(place - 1, 0)]);
    else if (event.key === "+") zoom(Math.max(plot.whole[0], middle - quarter), Math.min(plot.whole[1], middle + quarter));
    else if (event.key === "-" || event.key === "Escape") { zoom(...plot.whole); plot.leave(); }
    else return;
    event.preventDefault();
  });
};

for (const chart of document.querySelectorAll("figure.chart")) {
  const plots = [...chart.querySelectorAll("svg.plot")].map(svg => new Plot(svg));
  if (!plots.length) continue;
  const reset = button("Whole run", "Show the whole run again", () => zoom(...plots[0].whole));
  const zoom = (left, right) => {
    plots.forEach(plot => plot.zoom(left, right));
    reset.hidden = left <= plots[0].whole[0] && right >= plots[0].whole[1];
  };
  reset.hidden = true;
  plots.forEach(plot => follow(plot, zoom));
  const tools = document.createElement("span");
  tools.className = "tools";
  tools.append(
    reset,
    button("SVG", "Download as SVG", () => visible(plots).forEach(plot => save(fileName(plot) + ".svg", "image/svg+xml", standAlone(plot)))),
    button("CSV", "Download as CSV", () => visible(plots).forEach(plot => save(fileName(plot) + ".csv", "text/csv", csv(plot)))),
  );
  chart.querySelector("figcaption").append(tools);
}
