"use strict";
// Texts from FMUs are only ever set as textContent. Details of a row are parsed when they are needed.
const table = document.querySelector("main > table");
const body = table.tBodies[0];
const rows = [...body.rows];
const sources = document.querySelectorAll('script[type="application/json"]');
const known = new Map();
rows.forEach((row, k) => {
  row.number = k;
  row.facets = JSON.parse(row.dataset.facets);
  for (const cell of row.cells) if (!cell.textContent) cell.classList.add("none");
});

function detailsOf(row) {
  if (!known.has(row)) known.set(row, JSON.parse(sources[row.number].textContent));
  return known.get(row);
}

function make(name, properties = {}, ...inside) {
  const part = document.createElement(name);
  Object.assign(part, properties);
  part.append(...inside);
  return part;
}

function draw(name, attributes, ...inside) {
  const part = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) part.setAttribute(key, attributes[key]);
  part.append(...inside);
  return part;
}

// ---- sorting and filtering ----

const heads = [...table.tHead.rows[0].cells];
const order = document.getElementById("order");
let sorted = { column: -1, up: true };

function keyOf(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.key ?? cell.textContent;
  if (text === "") return null;
  return Number.isNaN(Number(text)) ? text.toLowerCase() : Number(text);
}

function compare(a, b, column, up) {
  const x = keyOf(a, column), y = keyOf(b, column);
  if (x === null || y === null) return (x === null) - (y === null) || a.number - b.number;
  const both = typeof x === typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === "number" ? -1 : 1;
  return (up ? both : -both) || a.number - b.number;
}

function sort(column, up) {
  sorted = { column, up };
  heads.forEach((head, k) => {
    if (k === column) head.setAttribute("aria-sort", up ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  });
  order.value = column;
  for (const row of [...rows].sort((a, b) => compare(a, b, column, up)))
    body.append(row, ...(row.below ? [row.below] : []));
}

heads.forEach((head, k) => head.querySelector("button")?.addEventListener("click", () =>
  // a first click shows the largest numbers first: they are what one looks for
  sort(k, sorted.column === k ? !sorted.up : !head.classList.contains("number"))));
order.addEventListener("change", () => {
  const column = Number(order.value);
  sort(column, !heads[column].classList.contains("number"));
});

const find = document.getElementById("find");
const choices = [...document.querySelectorAll(".filters [data-facet]")];
const tallies = document.querySelector(".tallies");
const buttons = [...tallies.querySelectorAll("button")];

function filter() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const pressed = buttons.filter(b => b.getAttribute("aria-pressed") === "true").map(b => b.dataset.value);
  let shown = 0;
  for (const row of rows) {
    row.words ??= row.textContent.toLowerCase();
    row.hidden = !(
      words.every(word => row.words.includes(word))
      && (!pressed.length || pressed.includes(row.facets[tallies.dataset.facet]))
      && choices.every(c => c.value === "*" || row.facets[c.dataset.facet] === c.value));
    if (row.below) row.below.hidden = row.hidden;
    shown += !row.hidden;
  }
  document.getElementById("shown").textContent = shown === rows.length ? `${shown} rows` : `${shown} of ${rows.length} rows`;
  document.getElementById("none").hidden = shown > 0;
}
find.addEventListener("input", filter);
choices.forEach(choice => choice.addEventListener("change", filter));
buttons.forEach(button => button.addEventListener("click", () => {
  button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
  filter();
}));

// ---- plots ----

const finite = list => list.filter(value => value !== null);
const all = (plot, key) => finite(plot.series.flatMap(s => s[key]));

function range(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  return low <= high ? [low, high] : [0, 1];
}

function path(series, x, y) {
  let text = "", last = null;
  series.t.forEach((t, k) => {
    const v = series.v[k];
    if (v === null || t === null) last = null;
    else {
      const X = x(t).toFixed(1), Y = y(v).toFixed(1);
      text += last === null ? `M${X} ${Y}` : series.held ? `H${X}V${Y}` : `L${X} ${Y}`;
      last = v;
    }
  });
  return text;
}

function lines(plot, x, y) {
  const parts = [];
  if (plot.band) {
    const { t, lower, upper } = plot.band;
    const edge = (values, k) => `${x(t[k]).toFixed(1)} ${y(values[k]).toFixed(1)}`;
    const there = t.map((_, k) => edge(upper, k)), back = t.map((_, k) => edge(lower, k)).reverse();
    parts.push(draw("path", { class: "band", d: `M${[...there, ...back].join("L")}Z` }));
  }
  for (const series of plot.series) parts.push(draw("path", { class: series.kind, d: path(series, x, y) }));
  return parts;
}

function scaled(plot, left, right, top, bottom, withBand) {
  const [start, stop] = range(all(plot, "t"));
  const band = withBand && plot.band ? finite([...plot.band.lower, ...plot.band.upper]) : [];
  let [low, high] = range([...all(plot, "v"), ...band]);
  if (low === high) { const room = Math.abs(low) * .1 || 1; low -= room; high += room; }
  const x = t => left + (right - left) * (stop > start ? (t - start) / (stop - start) : .5);
  const y = v => bottom + (top - bottom) * (v - low) / (high - low);
  return { x, y, start, stop, low, high };
}

function ticks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(part => part * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return { step, found };
}

function number(value, step) {
  const size = Math.abs(value);
  if (size < step * 1e-6) return "0";
  if (size >= 1e5 || size < 1e-3) return value.toExponential(Math.max(0, Math.min(4, Math.floor(Math.log10(size)) - Math.floor(Math.log10(step)))));
  return value.toFixed(Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9))));
}

function axes({ x, y, start, stop, low, high }) {
  const parts = [], [left, right, top, bottom] = FRAME;
  const up = ticks(low, high, 5);
  for (const v of up.found) {
    parts.push(draw("line", { class: "grid", x1: left, x2: right, y1: y(v), y2: y(v) }));
    parts.push(draw("text", { x: left - 4, y: y(v) + 3.5, "text-anchor": "end" }, number(v, up.step)));
  }
  if (stop > start) {
    const along = ticks(start, stop, 5);
    for (const t of along.found) {
      parts.push(draw("line", { class: "grid", x1: x(t), x2: x(t), y1: bottom, y2: bottom + 3 }));
      const anchor = x(t) > right - 12 ? "end" : "middle";
      parts.push(draw("text", { x: Math.min(x(t), right), y: bottom + 14, "text-anchor": anchor }, number(t, along.step)));
    }
  }
  return parts;
}

const FRAME = [52, 352, 8, 158]; // left, right, top, bottom of 360 by 176
const NAMES = { run: "results", reference: "reference", old: "before", band: "band" };

function valueAt(series, time) {
  let k = series.t.findIndex(t => t > time);
  if (k === 0) return null;
  if (k < 0) k = series.t.length;
  const before = series.v[k - 1], after = series.v[k];
  if (series.held || after === undefined || before === null || after === null) return before;
  return before + (after - before) * (time - series.t[k - 1]) / (series.t[k] - series.t[k - 1]);
}

function figure(plot) {
  const scale = scaled(plot, ...FRAME, true);
  const cursor = draw("line", { class: "cursor", y1: FRAME[2], y2: FRAME[3], visibility: "hidden" });
  const label = `${plot.name} over time`;
  const svg = draw("svg", { viewBox: "0 0 360 176", role: "img", "aria-label": label },
    ...axes(scale), ...lines(plot, scale.x, scale.y), cursor);
  const key = make("p");
  const usual = () => key.replaceChildren(...[...plot.series.map(s => s.kind), ...(plot.band ? ["band"] : [])]
    .flatMap(kind => [make("i", { className: kind }), plot.names?.[kind] ?? NAMES[kind]]), make("i"), "t in s");
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const part = ((event.clientX - box.left) / box.width * 360 - FRAME[0]) / (FRAME[1] - FRAME[0]);
    const time = scale.start + Math.min(1, Math.max(0, part)) * (scale.stop - scale.start);
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, scale.x(time));
    cursor.setAttribute("visibility", "visible");
    key.replaceChildren(...plot.series.flatMap(s => {
      const value = valueAt(s, time);
      return [make("i", { className: s.kind }), value === null ? "–" : String(Number(value.toPrecision(5)))];
    }), make("i"), `t = ${Number(time.toPrecision(4))} s`);
  });
  svg.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); usual(); });
  usual();
  const unit = plot.unit ? ` in ${plot.unit}` : "";
  return make("figure", {}, make("figcaption", {}, plot.name, make("span", {}, `${unit}${plot.note ? `, ${plot.note}` : ""}`)), svg, key);
}

const drawn = new IntersectionObserver(entries => entries.forEach(entry => {
  if (!entry.isIntersecting) return;
  drawn.unobserve(entry.target);
  const [plot] = detailsOf(entry.target.parentElement).plots ?? [];
  if (!plot) return;
  const { x, y } = scaled(plot, 2, 122, 3, 31, false);
  const small = { ...plot, band: null };
  entry.target.replaceChildren(draw("svg", { viewBox: "0 0 124 34", role: "img", "aria-label": plot.name }, draw("title", {}, plot.name), ...lines(small, x, y)));
}), { rootMargin: "300px" });
for (const cell of body.querySelectorAll("td.plot")) drawn.observe(cell);

// ---- details of a row ----

function grid({ caption, head, rows }) {
  return make("div", { className: "scroll" }, make("table", {}, make("caption", { textContent: caption }),
    make("tr", {}, ...head.map(textContent => make("th", { textContent }))),
    ...rows.map(row => make("tr", {}, ...row.map(textContent => make("td", { textContent }))))));
}

function shown(d) {
  const parts = [];
  if (d.reason) parts.push(make("p", { className: "reason", textContent: d.reason }));
  if (d.notes?.length) parts.push(make("ul", {}, ...d.notes.map(textContent => make("li", { textContent }))));
  if (d.plots?.length) parts.push(make("div", { className: "plots" }, ...d.plots.map(figure)));
  parts.push(...(d.tables ?? []).map(grid));
  if (d.facts?.length) parts.push(make("dl", { className: "facts" }, ...d.facts.map(([name, value]) =>
    make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value })))));
  parts.push(...(d.texts ?? []).map(([title, textContent, className]) =>
    make("details", {}, make("summary", { textContent: title }), make("pre", { textContent, className }))));
  if (d.links?.length) parts.push(make("p", { className: "links" }, ...d.links.map(([textContent, href]) => make("a", { textContent, href }))));
  return parts;
}

function toggle(row) {
  const button = row.querySelector("td.name button");
  if (row.below) { row.below.remove(); row.below = null; }
  else {
    const cell = make("td", { colSpan: heads.length },
      make("div", { className: "inside" }, ...shown(detailsOf(row))));
    row.below = make("tr", { className: "details" }, cell);
    row.after(row.below);
  }
  row.classList.toggle("open", !!row.below);
  button.setAttribute("aria-expanded", !!row.below);
}

for (const row of rows) {
  const name = row.querySelector("td.name > span");
  const button = make("button", { type: "button", textContent: name.textContent });
  button.setAttribute("aria-expanded", "false");
  name.replaceChildren(button);
  row.addEventListener("click", () => {
    if (String(getSelection())) return; // text is being selected
    toggle(row);
    history.replaceState(null, "", row.below ? `#${encodeURIComponent(row.id)}` : " ");
  });
}

function openAddressed() {
  const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (row?.facets && !row.below) { toggle(row); row.scrollIntoView(); }
}
addEventListener("hashchange", openAddressed);
heads[0].setAttribute("aria-sort", "ascending");
sorted.column = 0;
filter();
openAddressed();
