"use strict";
const byId = id => document.getElementById(id);
const make = (tag, text, kind) => { const e = document.createElement(tag); e.textContent = text; if (kind) e.className = kind; return e; };
const id = location.pathname.split("/").pop();
const questions = {
  pause: "Nothing new is asked or measured until it goes on; what is under way ends and is kept.",
  resume: "It goes on where it is.",
  stop: "It ends within seconds, everything kept. To go on later: twagent resume " + id,
};
const names = { pause: "pause", resume: "go on", stop: "stop" };
let offered = "";
function act(what) {
  const dialog = document.querySelector("dialog");
  byId("question").textContent = id + ": " + names[what] + "? " + questions[what];
  byId("yes").textContent = names[what];
  dialog.returnValue = "no";
  dialog.onclose = async () => {
    if (dialog.returnValue !== "yes") return;
    byId("told").textContent = "";
    const answer = await fetch("/v1/runs/" + id + "/" + what, { method: "POST", headers: { "X-Twagent-Confirm": id } });
    byId("told").textContent = answer.ok ? id + " was told: " + names[what] : await answer.text();
  };
  dialog.showModal();
}
function offer(acts) {
  if (offered === acts.join()) return;
  offered = acts.join();
  byId("acts").replaceChildren(...acts.map(what => { const b = make("button", names[what]); b.onclick = () => act(what); return b; }));
}
// The report of the run so far, by the report's own script. Nothing is redrawn under somebody's hands.
const EVERY_MS = 5000;
let drawn = -1, known = 0, at = 0, later = 0;
async function report() {
  at = Date.now();
  later = 0;
  const count = known, answer = await fetch("/v1/runs/" + id + "/report").catch(() => null);
  if (!answer?.ok) return;
  const facts = make("script", await answer.text()), script = make("script", "");
  facts.type = "application/json";
  facts.id = "facts";
  script.src = "/report.js";
  for (const old of document.querySelectorAll("#facts, script[src='/report.js']")) old.remove();
  document.body.append(facts, script);
  byId("newer").replaceChildren();
  drawn = count;
}
const inUse = () => document.querySelector("#page details[open], dialog[open]") || byId("page").contains(document.activeElement);
function follow(evaluated) {
  known = evaluated;
  if (known === drawn || later) return;
  if (inUse()) {
    const button = make("button", "show " + (known - drawn) + " newer evaluations");
    button.onclick = report;
    byId("newer").replaceChildren(button);
  } else {
    later = setTimeout(report, Math.max(0, at + EVERY_MS - Date.now()));
  }
}
function show(status) {
  document.title = id + " " + status.state + ": " + status.run.problem;
  byId("name").textContent = id + "  " + status.run.problem;
  byId("state").textContent = status.words;
  byId("state").className = status.state;
  offer(!status.live ? [] : status.state === "paused" ? ["resume", "stop"] : ["pause", "stop"]);
  document.querySelector("dl").replaceChildren(...status.rows.flatMap(([name, text]) => [make("dt", name), make("dd", text)]));
  document.querySelector("ol").replaceChildren(...status.events.map(line => {
    const item = make("li", "");
    item.append(make("time", new Date(line.wall).toLocaleTimeString()), " ", make("span", line.kind, line.level), " " + line.text);
    return item;
  }));
  follow(status.run.evaluated);
}
const source = new EventSource("/v1/runs/" + id + "/status");
source.onmessage = event => show(JSON.parse(event.data));
source.onerror = () => { byId("state").textContent = source.readyState === EventSource.CLOSED ? "there is no run " + id : "no connection to twagent serve"; byId("state").className = "failed"; };
