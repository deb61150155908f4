"use strict";
const byId = id => document.getElementById(id);
const cell = (row, text, kind, name) => {
  const td = row.insertCell();
  td.textContent = text;
  if (kind) td.className = kind;
  if (name && text !== "" && text !== "-") td.dataset.name = name;
  return td;
};
function show(list) {
  const body = document.querySelector("tbody"), rows = [];
  for (const run of list.runs) {
    const row = document.createElement("tr");
    const link = document.createElement("a");
    link.href = "/runs/" + run.id;
    link.textContent = run.id;
    cell(row, "").append(link);
    cell(row, run.state, run.state);
    cell(row, run.problem);
    cell(row, run.started);
    cell(row, run.time, "number", "best");
    cell(row, run.speedup, "number", "speed-up");
    cell(row, run.evaluated, "number", "evaluated");
    cell(row, [run.best, run.verdict].join(" ").trim(), run.verdict === "win" ? "win" : "", "kernel");
    rows.push(row);
  }
  body.replaceChildren(...rows);
  document.querySelector("table").hidden = rows.length === 0;
  byId("folder").textContent = rows.length ? list.folder : "No runs yet in " + list.folder + ". Begin with: twagent run conv2d";
}
const source = new EventSource("/v1/runs");
source.onmessage = event => show(JSON.parse(event.data));
source.onerror = () => { byId("folder").textContent = "no connection to twagent serve"; };
