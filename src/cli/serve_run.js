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
}
const source = new EventSource("/v1/runs/" + id + "/status");
source.onmessage = event => show(JSON.parse(event.data));
source.onerror = () => { byId("state").textContent = source.readyState === EventSource.CLOSED ? "there is no run " + id : "no connection to twagent serve"; byId("state").className = "failed"; };
