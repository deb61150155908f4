"use strict";
// The report's page: everything is drawn from the document of facts in #facts, and put there as text. A live page runs
// this again with newer facts: hence the block.
{
const facts = JSON.parse(document.getElementById("facts").textContent);
const rows = facts.rows.map(values => Object.fromEntries(facts.columns.map((name, i) => [name, values[i]])));
const byId = new Map(rows.map(row => [row.id, row]));
const root = document.getElementById("page"), first = !root.firstChild;
root.replaceChildren();
document.querySelector("dialog.candidate")?.remove();

// What would hide or turn the writing round is shown as its number.
const visible = text => String(text ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
  c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options))
    if (name.startsWith("on")) element[name] = value;
    else if (value !== undefined && value !== false) element.setAttribute(name, value);
  element.append(...children.map(child => child instanceof Node ? child : visible(child)));
  return element;
}
function draw(tag, options = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(options))
    if (name.startsWith("on")) element[name] = value;
    else element.setAttribute(name, value);
  element.append(...children.map(child => child instanceof Node ? child : visible(child)));
  return element;
}
// What a person calls a baseline: the reference by its definition's name (words_over).
const over = name => name === "reference" && facts.definition ? facts.definition : name;
const section = (title, ...children) => root.append(make("h2", {}, title), ...children);

// ---- numbers
function digits(value, low, high) { // no finer than the interval, at most four, at least one that is not 0 (base/digits)
  const first = Math.floor(Math.log10(value) + 1e-9), width = high > low ? Math.floor(Math.log10((high - low) / 6)) : first - 2;
  const last = Math.min(first, Math.max(first - 3, width)), step = 10 ** last;
  return Number.isFinite(first) ? (Math.round(value / step) * step).toFixed(Math.min(Math.max(0, -last), 20)) : String(value);
}
function time(ms, low, high) {
  if (!(ms > 0)) return "-";
  const [scale, unit] = ms >= 1000 ? [1e-3, "s"] : ms >= 1 ? [1, "ms"] : ms >= 1e-3 ? [1e3, "us"] : [1e6, "ns"];
  return digits(ms * scale, (low ?? ms) * scale, (high ?? ms) * scale) + " " + unit;
}
const ratio = row => row.speedup > 0 ? digits(row.speedup, row.speedup_low, row.speedup_high) + "x" : "-";
const interval = row => !(row.speedup > 0) ? "" : row.speedup_high > row.speedup_low ? digits(row.speedup_low, row.speedup_low, row.speedup_high) + " to " + digits(row.speedup_high, row.speedup_low, row.speedup_high) : "one sample";
const dollars = micro => micro > 0 ? "$" + (micro / 1e6).toFixed(micro < 1e4 ? 4 : 2) : "";
const lasted = ms => ms >= 60000 ? Math.floor(ms / 60000) + ":" + String(Math.floor(ms / 1000) % 60).padStart(2, "0") : (ms / 1000).toFixed(1) + " s";
const tuned = row => { try { return Object.entries(JSON.parse(row.tune)).map(([name, value]) => name + "=" + value).join(" "); } catch { return row.tune; } };
const what = row => row.correct ? row.idea || row.file : row.verdict + ": " + row.reason;

// ---- one candidate
const dialog = document.body.appendChild(make("dialog", { class: "candidate" }));
function difference(before, after) { // a longest common subsequence of lines
  const a = before.split("\n"), b = after.split("\n");
  if (a.length * b.length > 4e6) return null;
  const width = b.length + 1, length = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let k = b.length - 1; k >= 0; k--)
      length[i * width + k] = a[i] === b[k] ? length[(i + 1) * width + k + 1] + 1 : Math.max(length[(i + 1) * width + k], length[i * width + k + 1]);
  const lines = [];
  for (let i = 0, k = 0; i < a.length || k < b.length;)
    if (i < a.length && k < b.length && a[i] === b[k]) lines.push([" ", a[i++], k++]);
    else if (k < b.length && (i === a.length || length[i * width + k + 1] >= length[(i + 1) * width + k])) lines.push(["+", b[k++]]);
    else lines.push(["-", a[i++]]);
  return lines;
}
function showDifference(row) {
  const parent = byId.get(row.parent), after = facts.sources[row.source];
  if (!parent) return make("p", { class: "soft" }, row.parent ? "Its parent " + row.parent + " is of another run: twagent diff " + row.parent + " " + row.id : "It has no parent.");
  const before = facts.sources[parent.source];
  if (before === undefined || after === undefined) return absent(row, "twagent diff " + row.parent + " " + row.id);
  if (before === after) return make("p", {}, "The same source, with other numbers: " + (tuned(parent) || "none") + " became " + (tuned(row) || "none") + ".");
  const lines = difference(before, after);
  if (!lines) return make("p", {}, "Too long to compare here: twagent diff " + row.parent + " " + row.id);
  const near = new Set(lines.flatMap(([sign], i) => sign === " " ? [] : [i - 2, i - 1, i, i + 1, i + 2]));
  const text = make("pre");
  lines.forEach(([sign, line], i) => {
    if (near.has(i)) text.append(make("span", { class: sign === "+" ? "add" : sign === "-" ? "cut" : "" }, sign + line), "\n");
    else if (near.has(i - 1)) text.append("...\n");
  });
  return text;
}
const absent = (row, command) => make("p", {}, "Not in this page, which keeps the sources that matter most: ", make("code", {}, command));
const views = {
  source: row => facts.sources[row.source] === undefined ? absent(row, "twagent show " + row.id + " --source") : make("pre", {}, facts.sources[row.source]),
  "difference from its parent": showDifference,
  "prompt and answer": row => {
    const asked = facts.answers[row.id];
    if (!asked) return make("p", {}, row.model === "builtin" ? "The built-in proposer wrote it: no model was asked." : "Not in this page: twagent show " + row.id);
    return make("div", {}, ...asked.flatMap(one => [make("p", { class: "soft" }, one.purpose + ", " + one.model + ", " + one.tokens + " tokens"),
      make("details", {}, make("summary", {}, "prompt"), make("pre", {}, one.prompt)), make("pre", {}, one.answer)]));
  },
  profile: row => make("dl", {}, ...[["held back by", row.limiter || "not known"], ["rate", row.flops_per_s > 0 ? (row.flops_per_s / 1e9).toPrecision(3) + " GFLOP/s" + (row.flops_per_byte > 0 ? " at " + row.flops_per_byte.toPrecision(3) + " FLOP/B" : "") : "not known"],
    ["error", row.error_of_allowed > 0 ? row.error_of_allowed.toPrecision(2) + " of what is allowed" : "not known"], ["checks", row.checks_passed + " of " + row.checks_total],
    ["evaluation", lasted(row.evaluation_ms)], ["the whole record", "twagent show " + row.id]].flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])),
};
function open(id) {
  const row = byId.get(id), body = make("div");
  if (!row) return;
  const tabs = make("p", { class: "tabs", role: "tablist" }, ...Object.keys(views).map(name => make("button", { role: "tab", onclick: event => choose(name, event.currentTarget) }, name)));
  function choose(name, tab) {
    for (const other of tabs.children) other.setAttribute("aria-selected", other === tab);
    body.replaceChildren(views[name](row));
  }
  dialog.replaceChildren(make("p", {}, make("button", { onclick: () => dialog.close(), autofocus: "" }, "close")), make("h2", {}, row.id + (row.champion ? ", the champion" : "")),
    make("dl", {}, ...[["idea", row.idea], ["why", row.why], ["from", row.parent], ["from the agent of", row.attempt], ["from it", rows.filter(other => other.parent === row.id).slice(0, 12).map(other => other.id).join(" ")], ["model", row.model], ["file", row.file + " " + tuned(row)], ["verdict", row.verdict + (row.reason ? ": " + row.reason : "")],
      ["time", row.latency_ms > 0 ? time(row.latency_ms, row.latency_low_ms, row.latency_high_ms) : ""], ["speed-up", row.speedup > 0 ? ratio(row) + " (" + interval(row) + ") over " + over(facts.against) : ""]]
      .filter(([, text]) => text).flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, ...(name.startsWith("from") ? text.split(" ").flatMap(other => [link(other), " "]) : [text]))])), tabs, body);
  choose("source", tabs.firstChild);
  dialog.showModal();
}
const link = id => byId.has(id) ? make("a", { href: "#" + id, class: "id", onclick: event => { event.preventDefault(); open(id); } }, id) : document.createTextNode(visible(id));

// ---- tables
function table(columns, items, options = {}) {
  let order = options.order ?? null, falling = options.falling ?? false, shown = options.shown ?? 200;
  const body = make("tbody"), more = make("p"), box = make("div", {}, make("div", { class: "scroll" }, make("table", {},
    make("thead", {}, make("tr", {}, ...columns.map((column, i) => make("th", { class: column.number ? "n" : "" }, make("button", { onclick: () => { falling = order === i ? !falling : Boolean(column.number); order = i; fill(); } }, column.name))))), body)), more);
  let list = items;
  function fill() {
    const value = columns[order]?.value;
    const sorted = value ? [...list].sort((a, b) => { const x = value(a), y = value(b); return (falling ? -1 : 1) * (x < y || x === undefined ? -1 : x > y || y === undefined ? 1 : 0); }) : list;
    body.replaceChildren(...sorted.slice(0, shown).map(item => make("tr", { class: options.kind?.(item) ?? "" }, ...columns.map(column => {
      const cell = column.cell ? column.cell(item) : column.value(item);
      return make("td", { class: (column.number ? "n " : "") + (column.kind?.(item) ?? ""), "data-name": column.name }, ...(cell === undefined || cell === "" ? [] : [cell]));
    }))));
    more.replaceChildren(...(list.length > shown ? [make("button", { onclick: () => { shown *= 5; fill(); } }, "show more (" + (list.length - shown) + ")")] : []));
  }
  box.filter = keep => { list = items.filter(keep); fill(); };
  fill();
  return box;
}

// ---- plots
// As wide as the page, so that no letter shrinks on a phone; what names lines of a plot has `LEFT` of it.
const W = Math.max(300, Math.min(860, root.clientWidth || 860)), H = 280, L = 66, R = 14, T = 14, B = 42, LEFT = Math.min(190, Math.round(0.4 * W));
function axes(x, y, xName, yName) {
  const plot = draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": yName + " by " + xName });
  for (const [value, text] of y.ticks) plot.append(draw("line", { class: value === y.one ? "one" : "grid", x1: L, x2: W - R, y1: y.at(value), y2: y.at(value) }), draw("text", { x: L - 6, y: y.at(value) + 4, "text-anchor": "end" }, text));
  for (const [value, text] of x.ticks) plot.append(draw("line", { class: "grid", x1: x.at(value), x2: x.at(value), y1: T, y2: H - B }), draw("text", { x: x.at(value), y: H - B + 16, "text-anchor": "middle" }, text));
  plot.append(draw("text", { x: (L + W - R) / 2, y: H - 6, "text-anchor": "middle" }, xName), draw("text", { x: 12, y: (T + H - B) / 2, transform: `rotate(-90 12 ${(T + H - B) / 2})`, "text-anchor": "middle" }, yName));
  return plot;
}
function linear(low, high, from, to, words, least = 0) {
  const span = high - low || 1, step = Math.max(least, [1, 2, 5, 10, 20].map(k => k * 10 ** Math.floor(Math.log10(span / 5))).find(k => span / k <= Math.min(6, Math.abs(to - from) / 50)) ?? span), ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push([k * step, words(k * step)]);
  return { at: value => from + (to - from) * (value - low) / span, ticks };
}
function logarithmic(low, high, base, from, to, words) {
  const first = Math.floor(Math.log(low) / Math.log(base)), last = Math.max(first + 1, Math.ceil(Math.log(high) / Math.log(base))), ticks = [], every = Math.ceil((last - first) / Math.min(8, Math.abs(to - from) / 36));
  for (let k = first; k <= last; k += every) ticks.push([base ** k, words(base ** k)]);
  return { at: value => from + (to - from) * (Math.log(Math.max(value, base ** first)) / Math.log(base) - first) / (last - first), ticks, one: 1 };
}
const dot = (row, x, y) => draw("circle", { class: row.champion ? "champion kernel" : "kernel", cx: x.toFixed(1), cy: y.toFixed(1), r: row.champion ? 6 : 3.5, tabindex: row.champion ? 0 : -1, onclick: () => open(row.id) },
  draw("title", {}, row.id + ": " + time(row.latency_ms, row.latency_low_ms, row.latency_high_ms) + ", " + ratio(row) + " (" + interval(row) + "). " + row.idea));

const begun = Math.min(...rows.map(row => Date.parse(row.decided_at)));
// What was evaluated: not what repeats an earlier source, nor what never came to be measured.
const isEvaluated = row => Boolean(row.verdict) && (!row.duplicate_of || row.champion), evaluated = rows.filter(isEvaluated);
const inOrder = [...evaluated].sort((a, b) => Date.parse(a.decided_at) - Date.parse(b.decided_at) || a.number - b.number);
let paid = 0;
inOrder.forEach((row, i) => { row.nth = i + 1; row.at = (Date.parse(row.decided_at) - begun) / 60000; row.paid = paid += row.micro_dollars / 1e6; });
const progressAxes = { time: ["minutes since the first verdict", row => row.at], evaluations: ["evaluations", row => row.nth], money: ["dollars, of the candidates' own answers", row => row.paid] };
function progress(name) {
  const [words, of] = progressAxes[name], kernels = inOrder.filter(row => row.speedup_low > 0), lows = kernels.map(row => row.speedup_low).concat(1);
  const final = facts.final && facts.evaluation?.baselines?.[facts.against]?.speedup;
  const x = linear(0, Math.max(...inOrder.map(of), 1e-9), L, W - R, value => +value.toPrecision(3) + "", name === "evaluations" ? 1 : 0);
  const y = logarithmic(Math.max(Math.min(...lows), 1 / 64), Math.max(...lows, final?.high ?? 1), 2, H - B, T, value => value >= 1 ? value + "x" : "1/" + 1 / value + "x");
  const plot = axes(x, y, words, "speed-up, lower end of 95 %");
  if (final) plot.append(draw("rect", { class: "final", x: L, y: y.at(final.high), width: W - L - R, height: Math.max(1, y.at(final.low) - y.at(final.high)) }), draw("text", { class: "final", x: L + 6, y: y.at(final.high) - 4 }, "final measurement " + digits(final.median, final.low, final.high) + "x " + over(facts.against)));
  let best = 0, path = "";
  for (const row of kernels) if (row.speedup_low > best) { path += (path ? "H" + x.at(of(row)).toFixed(1) + "V" : "M" + x.at(of(row)).toFixed(1) + " ") + y.at(best = row.speedup_low).toFixed(1); }
  plot.append(draw("path", { class: "best", d: path ? path + "H" + (W - R) : "M0 0" }));
  for (const row of inOrder) if (!row.correct) plot.append(draw("path", { class: "failed", d: `M${x.at(of(row)).toFixed(1)} ${H - B}v-6`, onclick: () => open(row.id) }, draw("title", {}, row.id + " " + what(row))));
  for (const row of kernels) plot.append(dot(row, x.at(of(row)), y.at(row.speedup_low)));
  return plot;
}
if (rows.length) {
  const place = make("div", { class: "scroll" }, progress("evaluations")), names = Object.keys(progressAxes).filter(name => name !== "money" || paid > 0);
  const chart = document.getElementById("chart"), show = (...all) => chart ? chart.replaceChildren(make("h2", {}, "Best so far"), ...all) : section("Best so far", ...all);
  show(make("p", {}, ...names.map(name => make("label", {}, make("input", { type: "radio", name: "axis", value: name, checked: name === "evaluations" ? "" : undefined, onchange: () => place.replaceChildren(progress(name)) }), "by " + name))), place,
    make("p", { class: "soft" }, "A dot is a kernel as the search measured it, over " + over(facts.against) + ": click it. Red marks were refused. The line is the highest lower end so far; the champion is chosen by time." + (facts.final ? " The band is the champion's final measurement" + (facts.evaluation?.baseline === facts.against ? ", which the headline is of" : "; the headline is of the same measurement, over " + over(facts.evaluation?.baseline)) + ": the luckiest of many dots is apt to lie higher." : "")),
    make("details", {}, make("summary", {}, "as a table"), table([{ name: "after", number: true, value: row => row.nth }, { name: "minutes", number: true, value: row => +row.at.toFixed(2) }, { name: "kernel", value: row => row.number, cell: row => link(row.id) }, { name: "speed-up", number: true, value: row => row.speedup_low, cell: ratio }, { name: "95 %", number: true, value: row => row.speedup_low, cell: interval }],
      (() => { let best = 0; return inOrder.filter(row => row.speedup_low > best && (best = row.speedup_low)); })())));
}

// ---- a tune, islands
function ranges(items, x, xName) { // a line each: [name, middle, low, high, kind], its interval a bar
  const left = LEFT, high = 26 * items.length + B, plot = draw("svg", { viewBox: `0 0 ${W} ${high}`, role: "img", "aria-label": xName });
  for (const [value, text] of x.ticks) plot.append(draw("line", { class: value === x.one ? "one" : "grid", x1: x.at(value), x2: x.at(value), y1: 4, y2: high - B }), draw("text", { x: x.at(value), y: high - B + 16, "text-anchor": "middle" }, text));
  items.forEach(([name, middle, from, to, kind], i) => {
    const y = 26 * i + 15;
    plot.append(draw("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, name.length > LEFT / 6.7 ? name.slice(0, Math.floor(LEFT / 6.7) - 1) + "\u2026" : name));
    if (middle > 0) plot.append(draw("line", { class: "range " + (kind ?? ""), x1: x.at(from), x2: x.at(to), y1: y, y2: y }), draw("circle", { class: "middle " + (kind ?? ""), cx: x.at(middle), cy: y, r: 4.5 }, draw("title", {}, name + ": " + middle.toPrecision(3) + " (" + from.toPrecision(3) + " to " + to.toPrecision(3) + ")")));
  });
  plot.append(draw("text", { x: (left + W - R) / 2, y: high - 6, "text-anchor": "middle" }, xName));
  return make("div", { class: "scroll" }, plot);
}
const within = one => one.low.toFixed(2) + " to " + one.high.toFixed(2), costs = one => one.cost.toFixed(2) + "x";
const aside = (low, high) => logarithmic(Math.max(Math.min(low, 1), 1 / 64), Math.max(high, 1), 2, LEFT, W - R, value => value >= 1 ? value + "x" : "1/" + 1 / value + "x");
for (const kernel of facts.tuning?.kernels ?? []) {
  const impact = kernel.impact, known = impact.parameters.filter(one => one.values > 1);
  section("Impact of " + kernel.name, make("p", { class: "soft" }, kernel.kernels + " kernels of " + kernel.measured + " points measured" + (kernel.valid > 0 ? ", of " + kernel.valid.toFixed(0) + " valid." : ".")));
  if (impact.why) root.append(make("p", { class: "warn" }, (impact.parameters.length ? "Not to be relied on: " : "") + impact.why + "."));
  if (!impact.parameters.length) continue;
  if (known.length) root.append(ranges([...known.map(one => [one.name, one.cost, one.low, one.high]), ...impact.pairs.map(one => [one.a + " x " + one.b, one.cost, one.low, one.high, "pair"])],
    linear(1, Math.max(...[...known, ...impact.pairs].map(one => one.high), 1.01), LEFT, W - R, value => +value.toPrecision(3) + "x"), "cost: worst over best value, the other numbers as they are, with its 95 % interval"));
  root.append(table([{ name: "parameter", value: one => one.name }, { name: "cost", number: true, value: one => one.cost, cell: one => one.values > 1 ? costs(one) : "" }, { name: "95 %", number: true, value: one => one.cost, cell: one => one.values > 1 ? within(one) : "" }, { name: "best", number: true, value: one => one.best }, { name: "values", number: true, value: one => one.values }], impact.parameters));
  if (impact.pairs.length) root.append(make("h3", {}, "pairs: what two do together, beyond each alone"), table([{ name: "pair", value: one => one.a + " x " + one.b }, { name: "cost", number: true, value: one => one.cost, cell: costs }, { name: "95 %", number: true, value: one => one.cost, cell: within }], impact.pairs));
  const points = kernel.points.filter(one => one.time_ns > 0), chosen = known.find(one => one.values > 1)?.name;
  if (points.length && chosen) {
    const scatter = name => { // a column for each value; dots beside each other, in the order of measuring
      const values = [...new Set(points.map(one => one.tune[name]))].sort((a, b) => a - b), times = points.map(one => one.time_ns / 1e6), step = (W - L - R) / values.length;
      const x = { at: i => L + step * (i + 0.5), ticks: values.map((value, i) => [i, String(value)]) }, y = { ...logarithmic(Math.min(...times), Math.max(...times), 2, H - B, T, value => +time(value).split(" ")[0] + " " + time(value).split(" ")[1]), one: null }, plot = axes(x, y, name, "time"), drawn = new Map();
      for (const one of points) {
        const i = values.indexOf(one.tune[name]), nth = drawn.get(i) ?? 0, all = points.filter(other => other.tune[name] === one.tune[name]).length;
        drawn.set(i, nth + 1);
        plot.append(draw("circle", { class: "kernel" + (one.id === facts.best ? " champion" : ""), cx: (x.at(i) + 0.8 * step * ((nth + 0.5) / all - 0.5)).toFixed(1), cy: y.at(one.time_ns / 1e6).toFixed(1), r: one.id === facts.best ? 6 : 3.5, onclick: () => open(one.id) }, draw("title", {}, one.id + ": " + time(one.time_ns / 1e6) + ", " + JSON.stringify(one.tune))));
      }
      return plot;
    };
    const place = make("div", { class: "scroll" }, scatter(chosen)), pick = make("select", { "aria-label": "parameter of " + kernel.name, onchange: () => place.replaceChildren(scatter(pick.value)) }, ...known.map(one => make("option", {}, one.name)));
    root.append(make("h3", {}, "every point, by the value of "), pick, place);
  }
  root.append(make("p", { class: "soft" }, "A cost is the time of the worst value over that of the best, the other numbers as they are, on average over the space; a pair's is how far the one's ratio changes with the other. The model behind them predicts " + (100 * Math.max(0, impact.explained)).toFixed(0) + " % of the variance of log time of points left out. Times differ by " + (100 * impact.differ).toFixed(impact.differ < 0.1 ? 1 : 0) + " % from point to point" + (impact.noise > 0 ? "; one strays by " + (100 * impact.noise).toFixed(impact.noise < 0.1 ? 1 : 0) + " %" : "") + " (standard deviations)."));
}
if (facts.tuning?.top.length) {
  const list = facts.tuning.top, bounds = one => digits(one.low, one.low, one.high) + " to " + digits(one.high, one.low, one.high);
  section("Top configurations", table([{ name: "kernel", value: one => list.indexOf(one), cell: one => link(one.id) }, { name: "speed-up", number: true, value: one => one.low, cell: one => digits(one.speedup, one.low, one.high) + "x" }, { name: "95 %", number: true, value: one => one.low, cell: bounds },
    { name: "beside the best", value: one => one.standing, cell: one => one.standing + (one.paired ? ": " + one.time_over_best_low.toFixed(3) + " to " + one.time_over_best_high.toFixed(3) + " of its time" : one.standing === "best" ? "" : ", by intervals") }, { name: "numbers", value: one => one.source }], list, { kind: one => one.standing === "best" ? "champion" : "" }),
    make("p", { class: "soft" }, facts.tuning.not_apart > 0 ? facts.tuning.not_apart + " of all kernels cannot be told from the best: each is as good a choice." : "Each of the others is shown slower than the best."));
}
if (facts.tuning?.stability) {
  const ladder = facts.tuning.stability, sizes = ladder.sizes, compared = sizes.filter(one => one.speedup.samples > 0);
  section("Stability", make("p", { class: ladder.kernel && !ladder.stable ? "warn" : "" }, !ladder.kernel ? "Not measured: no kernel was verified, or the tune was stopped." : ladder.kernel + " at other sizes: " + (ladder.stable ? "right at each, slower at none" : ladder.right ? "right at each measured, but not shown steady" : "not right at every size") + (sizes.length < ladder.wanted ? "; " + (ladder.wanted - sizes.length) + " of " + ladder.wanted + " were not measured." : ".")));
  if (compared.length) root.append(ranges(compared.map(one => [one.size, one.speedup.median, one.speedup.low, one.speedup.high, one.finding === "faster" ? "" : "doubt"]), aside(Math.min(...compared.map(one => one.speedup.low)), Math.max(...compared.map(one => one.speedup.high))), "speed-up over " + compared[0].baseline + ", 95 %"));
  if (sizes.length) root.append(table([{ name: "size", value: one => sizes.indexOf(one), cell: one => one.size }, { name: "time", number: true, value: one => one.time_ns.median, cell: one => time(one.time_ns.median / 1e6, one.time_ns.low / 1e6, one.time_ns.high / 1e6) }, { name: "speed-up", number: true, value: one => one.speedup.low, cell: one => one.speedup.samples ? digits(one.speedup.median, one.speedup.low, one.speedup.high) + "x" : "" },
    { name: "95 %", number: true, value: one => one.speedup.low, cell: one => one.speedup.samples ? digits(one.speedup.low, one.speedup.low, one.speedup.high) + " to " + digits(one.speedup.high, one.speedup.low, one.speedup.high) : "" }, { name: "finding", value: one => one.right ? one.finding : "not right: " + one.reason, kind: one => one.right ? "" : "bad" }], sizes),
    make("p", { class: "soft" }, ladder.variation === null ? "" : "Coefficient of variation of the speed-ups: " + (100 * ladder.variation).toFixed(0) + " %."));
}
if (facts.islands?.length) {
  const found = facts.islands.filter(one => byId.has(one.best)).map(one => byId.get(one.best));
  section("Islands", ...(found.length ? [ranges(facts.islands.filter(one => byId.has(one.best)).map(one => [one.number + ": " + one.best, byId.get(one.best).speedup, byId.get(one.best).speedup_low, byId.get(one.best).speedup_high]), aside(Math.min(...found.map(row => row.speedup_low)), Math.max(...found.map(row => row.speedup_high))), "best speed-up of each island over " + over(facts.against) + ", 95 %")] : []),
    table([{ name: "island", number: true, value: one => one.number }, { name: "evaluated", number: true, value: one => one.evaluated }, { name: "kernels", number: true, value: one => one.kernels }, { name: "best", value: one => one.best ?? "", cell: one => one.best ? link(one.best) : "" }, { name: "speed-up", number: true, value: one => byId.get(one.best)?.speedup_low ?? 0, cell: one => byId.has(one.best) ? ratio(byId.get(one.best)) : "" }, { name: "95 %", number: true, value: one => byId.get(one.best)?.speedup_low ?? 0, cell: one => byId.has(one.best) ? interval(byId.get(one.best)) : "" }, { name: "idea", value: one => byId.has(one.best) ? what(byId.get(one.best)) : "" }], facts.islands));
}

// ---- rounds
const rounds = Map.groupBy ? Map.groupBy(rows, row => row.round) : rows.reduce((map, row) => map.set(row.round, [...(map.get(row.round) ?? []), row]), new Map());
if (rows.length)
  section("The tree of rounds", make("div", { class: "tree" }, ...[...rounds].sort(([a], [b]) => a - b).map(([number, list]) => {
    const tried = list.filter(isEvaluated), kernels = tried.filter(row => row.correct), box = make("details", {}, make("summary", {}, "round " + number + ": " + kernels.length + (kernels.length === 1 ? " kernel of " : " kernels of ") + tried.length + " evaluated" + (kernels.length ? (best => ", highest " + ratio(best) + " (" + interval(best) + ")")(kernels.reduce((a, b) => b.speedup_low > a.speedup_low ? b : a)) : "")));
    box.addEventListener("toggle", () => {
      if (box.childElementCount > 1) return;
      const parents = list.reduce((map, row) => map.set(row.parent, [...(map.get(row.parent) ?? []), row]), new Map());
      for (const [parent, children] of parents)
        box.append(make("details", { open: "" }, make("summary", {}, parent ? "from " : "from the starts", parent ? link(parent) : ""), table([
          { name: "candidate", value: row => row.number, cell: row => link(row.id) }, { name: "speed-up", number: true, value: row => row.speedup_low, cell: ratio }, { name: "idea, or why not", value: what, kind: row => row.correct ? "" : "bad" }], children, { shown: 50, kind: row => row.champion ? "champion" : "" })));
    });
    return box;
  })));

// ---- the champion's line
const line = [];
for (let row = byId.get(facts.best); row && !line.includes(row); row = byId.get(row.parent)) line.unshift(row);
if (line.length > 1) {
  const before = row => byId.get(row.parent);
  section("How the champion came about", table([{ name: "candidate", value: row => line.indexOf(row), cell: row => link(row.id) }, { name: "round", number: true, value: row => row.round }, { name: "speed-up", number: true, value: row => row.speedup_low ?? 0, cell: ratio }, { name: "95 %", number: true, value: row => row.speedup_low ?? 0, cell: interval },
    { name: "over its parent", number: true, value: row => before(row)?.speedup > 0 ? row.speedup / before(row).speedup : 0, cell: row => before(row)?.speedup > 0 && row.speedup > 0 ? (row.speedup / before(row).speedup).toFixed(2) + "x" : "" }, { name: "idea", value: what, kind: row => row.correct ? "" : "bad" }], line, { kind: row => row.champion ? "champion" : "" }));
}

// ---- roofline
const device = { ...facts.evaluation?.device }, share = facts.evaluation?.metrics?.roofline, placed = rows.filter(row => row.flops_per_s > 0 && row.flops_per_byte > 0);
if (share?.share_of_compute_roof > 0) device.flops_per_s = 1e9 * share.gflops_per_s / share.share_of_compute_roof; // of the units that the problem's numbers allow
if (placed.length && device.copy_bytes_per_s > 0 && device.flops_per_s > 0) {
  const ridge = device.flops_per_s / device.copy_bytes_per_s, xs = placed.map(row => row.flops_per_byte).concat(ridge), ys = placed.map(row => row.flops_per_s).concat(device.flops_per_s);
  const x = logarithmic(Math.min(...xs) / 2, Math.max(...xs) * 2, 10, L, W - R, value => +value.toPrecision(2) + ""), y = logarithmic(Math.min(...ys) / 1e9, Math.max(...ys) / 1e9, 10, H - B, T, value => +value.toPrecision(2) + "");
  const plot = axes(x, y, "FLOP per byte that must move", "GFLOP/s"), low = x.ticks[0][0], high = x.ticks[x.ticks.length - 1][0];
  plot.append(draw("path", { class: "roof", d: `M${x.at(low)} ${y.at(low * device.copy_bytes_per_s / 1e9)}L${x.at(ridge)} ${y.at(device.flops_per_s / 1e9)}H${x.at(high)}` }));
  for (const row of placed) plot.append(dot(row, x.at(row.flops_per_byte), y.at(row.flops_per_s / 1e9)));
  section("Roofline", make("div", { class: "scroll" }, plot), make("p", { class: "soft" }, "The roofs are measured here: " + +(device.copy_bytes_per_s / 1e9).toPrecision(3) + " GB/s of copies, " + +(device.flops_per_s / 1e9).toPrecision(3) + " GFLOP/s. FLOP and bytes are the definition's, the same for every kernel; a dot is a kernel as the search measured it."),
    make("details", {}, make("summary", {}, "as a table"), table([{ name: "kernel", value: row => row.number, cell: row => link(row.id) }, { name: "FLOP/B", number: true, value: row => row.flops_per_byte, cell: row => row.flops_per_byte.toPrecision(3) }, { name: "GFLOP/s", number: true, value: row => row.flops_per_s, cell: row => (row.flops_per_s / 1e9).toPrecision(4) }, { name: "held back by", value: row => row.limiter }], placed)));
}

// ---- what paid
function groups(of) {
  const map = new Map();
  for (const row of rows) {
    const group = map.get(of(row)) ?? { name: of(row), evaluated: 0, kernels: 0, better: 0, gains: [], cost: 0, ms: 0 }, parent = byId.get(row.parent);
    group.cost += row.micro_dollars;
    map.set(group.name, group);
    if (!isEvaluated(row)) continue; // paid for, and never measured: the figures are another's
    group.evaluated++; group.kernels += row.correct ? 1 : 0; group.ms += row.evaluation_ms;
    if (row.correct && parent?.correct) { group.better += row.speedup_low > parent.speedup_high ? 1 : 0; group.gains.push(row.speedup / parent.speedup); }
  }
  const others = facts.micro_dollars - rows.reduce((sum, row) => sum + row.micro_dollars, 0), list = [...map.values()].sort((a, b) => b.evaluated - a.evaluated);
  return others > 0 ? [...list, { name: "of no candidate: ideas, answers that came to nothing", evaluated: 0, kernels: 0, better: 0, gains: [], cost: others, ms: 0 }] : list;
}
const median = list => list.length ? [...list].sort((a, b) => a - b)[list.length >> 1] : undefined;
const paidTable = of => table([{ name: "what", value: g => g.name }, { name: "evaluated", number: true, value: g => g.evaluated }, { name: "kernels", number: true, value: g => g.kernels }, { name: "beyond doubt above their parent", number: true, value: g => g.better },
  { name: "median gain", number: true, value: g => median(g.gains), cell: g => g.gains.length >= 6 ? median(g.gains).toFixed(2) + "x" : "" }, { name: "lane", number: true, value: g => g.ms, cell: g => lasted(g.ms) }, { name: "cost", number: true, value: g => g.cost, cell: g => dollars(g.cost) }], groups(of));
if (rows.length) {
  section("What paid", make("h3", {}, "by kind of idea"), paidTable(row => row.category || "none named"), make("h3", {}, "by model"), paidTable(row => row.model));
  const stages = facts.stages, all = stages.reduce((sum, [, ms]) => sum + ms, 0);
  section("Where the lanes' time went", table([{ name: "stage", value: s => s[0] }, { name: "time", number: true, value: s => s[1], cell: s => lasted(s[1]) }, { name: "share", number: true, value: s => s[1], cell: s => (100 * s[1] / (all || 1)).toFixed(0) + " %" }], stages.filter(([, ms]) => ms > 0)));
  if (facts.refused.length) section("Refused", table([{ name: "how many", number: true, value: g => g.count }, { name: "why", value: g => g.why }, { name: "for example", value: g => byId.get(g.first)?.number, cell: g => link(g.first) }], facts.refused, { shown: 30 }));
}

// ---- every candidate
if (rows.length) {
  const list = table([{ name: "candidate", value: row => row.number, cell: row => link(row.id), kind: () => "id" }, { name: "from", value: row => byId.get(row.parent)?.number, cell: row => row.parent ? link(row.parent) : "", kind: () => "id" },
    { name: "round", number: true, value: row => row.round }, { name: "time", number: true, value: row => row.latency_ms || Infinity, cell: row => time(row.latency_ms, row.latency_low_ms, row.latency_high_ms) }, { name: "speed-up", number: true, value: row => row.speedup_low ?? 0, cell: ratio },
    { name: "95 %", number: true, value: row => row.speedup_low ?? 0, cell: interval }, { name: "idea, or why not", value: what, kind: row => row.correct ? "" : "bad" }], rows, { kind: row => row.champion ? "champion" : "" });
  const kind = make("select", { "aria-label": "verdict" }, ...["all", "kernel", "dropped", "rejected", "failed"].map(name => make("option", {}, name))), words = make("input", { type: "search", placeholder: "filter by words", "aria-label": "filter by words" });
  const apply = () => list.filter(row => (kind.value === "all" || row.verdict === kind.value) && (row.id + " " + what(row) + " " + row.file + " " + row.model).toLowerCase().includes(words.value.toLowerCase()));
  kind.onchange = words.oninput = apply;
  section("Every candidate", make("p", { class: "soft" }, facts.evaluated + " evaluated" + (rows.length > facts.evaluated ? ", and " + (rows.length - facts.evaluated) + " that repeat an earlier source or never came to be measured" : "") + "."), make("p", {}, kind, " ", words), list);
}

// ---- how to get each figure again
section("Get each figure again", make("dl", {}, ...facts.commands.flatMap(([name, command]) => [make("dt", {}, name), make("dd", {}, make("code", {}, command))])));
if (facts.cut) root.append(make("p", { class: "soft" }, facts.cut));
if (first && location.hash.length > 1) open(decodeURIComponent(location.hash.slice(1)));
}
