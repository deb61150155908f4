
// ---- the page ----

const KEPT = 16384; // places of an output that are compared
const EPSILON = { float32: 1.2e-7, int32: 0 };
const at = (id) => document.getElementById(id);

function mix(number, seed) {
  let h = (Math.imul(number, 0x9e3779b1) + Math.imul(seed, 0x85ebca77)) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Element i of tensor `seed`: a hash of the two, scaled. What `expected` is of was drawn the same way. */
function draw(tensor, seed, count) {
  const [low, high] = tensor.range, values = new ARRAYS[tensor.dtype](count);
  for (let i = 0; i < count; i++) {
    const unit = (mix(i, seed) >>> 8) / 16777216;
    values[i] = tensor.dtype === "int32" ? Math.floor(low + (high - low + 1) * unit) : low + (high - low) * unit;
  }
  return values;
}

const inputsOf = (dims) => Object.fromEntries(plan.inputs.map((tensor, i) => [tensor.name, draw(tensor, i + 1, elementsOf(tensor, dims))]));

function expectedOf(tensor, text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new ARRAYS[tensor.dtype](bytes.buffer);
}

/** Relative L2 error; NaN where a number is missing. */
function errorOf(got, want, count) {
  const stride = Math.max(1, Math.floor(count / KEPT));
  let off = 0, size = 0;
  for (let i = 0; i < want.length; i++) {
    const difference = got[i * stride + (mix(i, 1000) % stride)] - want[i];
    off += difference * difference;
    size += want[i] * want[i];
  }
  return Math.sqrt(off) / Math.max(Math.sqrt(size), 1e-300);
}

const words = (dims) => Object.entries(dims).map(([name, number]) => `${name}=${number}`).join(", ");

function row(shape, outcome, error, allowed, compared) {
  const line = at("rows").insertRow();
  [[shape, ""], [outcome, "", outcome], [error, "error", "number"], [allowed, "allowed", "number"], [compared, "compared", "number"]]
    .forEach(([text, label, kind]) => {
      const cell = line.insertCell();
      cell.textContent = text;
      if (label) cell.dataset.label = label;
      if (kind) cell.className = kind;
    });
}

function timeWords(ns) {
  const [unit, size] = ns < 1e3 ? ["ns", 1] : ns < 1e6 ? ["µs", 1e3] : ns < 1e9 ? ["ms", 1e6] : ["s", 1e9];
  return `${(ns / size).toPrecision(3)} ${unit}`;
}

function close(state, verdict, why) {
  document.body.dataset.state = state;
  at("verdict").className = state === "right" ? "right" : state === "untold" ? "" : "wrong";
  at("verdict").textContent = verdict;
  at("why").textContent = why;
  at("again").disabled = false;
}

async function compare(kernel) {
  let wrong = 0;
  for (const { dims, outputs } of expected) {
    const results = await kernel.run(inputsOf(dimsOf(dims)), dims);
    let fine = true;
    plan.outputs.forEach((tensor, i) => {
      const want = expectedOf(tensor, outputs[i].values);
      const error = errorOf(results[tensor.name], want, outputs[i].count), allowed = 64 * EPSILON[tensor.dtype];
      fine = fine && error <= allowed;
      row(words(dims) + (plan.outputs.length > 1 ? `: ${tensor.name}` : ""), error <= allowed ? "right" : "wrong",
        error.toExponential(1), allowed.toExponential(1), `${want.length} of ${outputs[i].count}`);
    });
    wrong += fine ? 0 : 1;
  }
  return wrong;
}

function describe(device, adapter) {
  const info = device.adapterInfo ?? adapter.info ?? {};
  const known = [info.description, info.vendor, info.architecture].filter(Boolean).join(", ");
  at("device").textContent = `${known || "the browser does not say which"}${info.isFallbackAdapter
    ? "; software: it computes on the CPU, and its times say nothing of a GPU" : ""}`;
}

async function show() {
  at("again").disabled = true;
  at("rows").replaceChildren();
  document.body.dataset.state = "running";
  at("verdict").className = "";
  at("verdict").textContent = "running";
  at("why").textContent = "";
  let device;
  try {
    const opened = await openDevice({ clock: true });
    device = opened.device;
    describe(device, opened.adapter);
    const kernel = await Kernel.create(device);
    const wrong = await compare(kernel);
    const dims = dimsOf();
    const time = await kernel.time(inputsOf(dims));
    const free = Object.fromEntries(plan.dims.filter((dim) => !dim.value).map((dim) => [dim.name, dims[dim.name]]));
    const told = expected.length ? `at ${expected.length - wrong} of ${expected.length} shapes` : "";
    close(!expected.length ? "untold" : wrong ? "wrong" : "right",
      `${!expected.length ? "Not compared" : wrong ? "Wrong" : "Right"}${told && ` ${told}`}, ${timeWords(time.ns)}`,
      `${words(free)}: seven of nine batches within ${timeWords(time.low)} to ${timeWords(time.high)}, ${time.launches} ` +
      `launches each on the same inputs, by ${time.clock}.`);
  } catch (error) {
    close("failed", "It does not run here", error instanceof KernelError ? error.message : String(error));
  } finally {
    device?.destroy();
  }
}

document.title = `${plan.problem} in this browser`;
at("name").textContent = plan.problem;
at("title").textContent = plan.kernel;
at("source").textContent = source;
at("how").textContent = expected.length
  ? "The page draws its inputs. What the definition gives for the same inputs, in float64, came with it. " +
    "The error is relative, over all numbers that are compared."
  : plan.uncompared;
at("again").addEventListener("click", show);
show();
