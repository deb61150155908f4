
// ---- what runs it: nothing below knows which kernel this is ----

const { min, max } = Math;
const div = (a, b) => Math.trunc(a / b);
const rem = (a, b) => a - b * div(a, b);
const ceil_div = (a, b) => Math.ceil(a / b);
const round_up = (a, b) => ceil_div(a, b) * b;
const next_pow2 = (a) => {
  let power = 1;
  while (power < a) power *= 2;
  return power;
};

const ARRAYS = { float32: Float32Array, int32: Int32Array };
const NAN_BITS = 0x7fc0abcd;

export class KernelError extends Error {}

/** All dims by name, derived ones too. */
export function dimsOf(given = {}) {
  const scope = {};
  for (const name in given)
    if (!plan.dims.some((dim) => dim.name === name && !dim.value)) throw new KernelError(`there is no dim ${name} to set`);
  for (const dim of plan.dims) {
    const number = dim.value ? dim.value(scope) : Number(given[dim.name] ?? dim.default);
    if (!Number.isSafeInteger(number)) throw new KernelError(`${dim.name} is ${number}, expected an integer`);
    scope[dim.name] = number;
  }
  if (plan.where ? !plan.where(scope) : Object.values(scope).some((number) => number < 1))
    throw new KernelError(`the kernel is not for ${JSON.stringify(scope)}`);
  const limits = plan.checkedUpTo ?? {};
  if (Object.keys(limits).some((name) => scope[name] > limits[name]))
    throw new KernelError(`the kernel was checked up to ${Object.keys(limits).map((name) => `${name}=${limits[name]}`).join(", ")} and no further`);
  return scope;
}

export function elementsOf(tensor, scope) {
  return tensor.shape.reduce((product, extent) => product * extent({ ...scope, ...plan.tune }), 1);
}

const bytesOf = (tensor, scope) => max(16, round_up(4 * elementsOf(tensor, scope), 16));

/** A device with what the kernel asks for. `clock`: with timestamps, where there are any. */
export async function openDevice({ clock = false } = {}) {
  if (!globalThis.navigator?.gpu) throw new KernelError("this browser has no WebGPU, or keeps it from pages that are neither https nor local");
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new KernelError("WebGPU is there, but no adapter: the browser allows none on this machine");
  const missing = plan.features.filter((feature) => !adapter.features.has(feature));
  if (missing.length) throw new KernelError(`this adapter has no ${missing.join(", ")}`);
  const requiredLimits = {};
  for (const name of ["maxBufferSize", "maxStorageBufferBindingSize", "maxComputeWorkgroupStorageSize",
    "maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX", "maxComputeWorkgroupSizeY",
    "maxComputeWorkgroupSizeZ", "maxComputeWorkgroupsPerDimension", "maxStorageBuffersPerShaderStage"])
    if (adapter.limits[name] !== undefined) requiredLimits[name] = adapter.limits[name];
  const requiredFeatures = [...plan.features];
  if (clock && adapter.features.has("timestamp-query")) requiredFeatures.push("timestamp-query");
  const device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
  return { device, adapter };
}

/** What the device says of what was asked of it, as an error. */
async function watched(device, ask) {
  device.pushErrorScope("validation");
  device.pushErrorScope("out-of-memory");
  let result, thrown;
  try {
    result = await ask();
  } catch (error) {
    thrown = error;
  }
  const memory = await device.popErrorScope(), said = (await device.popErrorScope()) ?? memory;
  if (thrown || said) throw new KernelError(said?.message ?? thrown.message);
  return result;
}

export class Kernel {
  /** `device`: one of yours; otherwise one is opened. */
  static async create(device) {
    const kernel = new Kernel();
    kernel.device = device ?? (await openDevice()).device;
    const { limits } = kernel.device;
    kernel.facts = { max_workgroups: limits.maxComputeWorkgroupsPerDimension,
      max_invocations: limits.maxComputeInvocationsPerWorkgroup, workgroup_bytes: limits.maxComputeWorkgroupStorageSize,
      binding_bytes: limits.maxStorageBufferBindingSize, software: kernel.device.adapterInfo?.isFallbackAdapter ? 1 : 0 };
    await watched(kernel.device, () => kernel.#compile());
    return kernel;
  }

  async #compile() {
    const { device } = this;
    const module = device.createShaderModule({ code: source });
    const wrong = (await module.getCompilationInfo()).messages.find((message) => message.type === "error");
    if (wrong) throw new KernelError(`line ${wrong.lineNum}: ${wrong.message}`);
    this.layout = device.createBindGroupLayout({ entries: plan.bindings.map(({ binding, type }) =>
      ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } })) });
    const layout = device.createPipelineLayout({ bindGroupLayouts: [this.layout] });
    this.pipelines = await Promise.all(plan.passes.map(({ entry }) => device.createComputePipelineAsync(
      { layout, compute: { module, entryPoint: entry, constants: plan.constants } })));
  }

  /** Memory, and how many workgroups each pass has. `buffers`: yours, by tensor; the rest is made. */
  prepare(given = {}, buffers = {}) {
    const { device } = this;
    const dims = dimsOf(given);
    const scope = { ...dims, ...plan.tune, ...this.facts };
    if (plan.tuneWhere && !plan.tuneWhere(scope)) throw new KernelError("its tune numbers are not for this device: it allows less than they need");
    const groups = plan.passes.map(({ entry, grid }) => grid.map((number) => {
      const count = number(scope);
      if (!(count >= 1 && count <= this.facts.max_workgroups))
        throw new KernelError(`${entry}: ${count} workgroups, expected 1 to ${this.facts.max_workgroups}`);
      return count;
    }));
    const all = {}, sizes = {};
    for (const tensor of [...plan.inputs, ...plan.outputs, ...plan.workspaces]) {
      const size = bytesOf(tensor, dims);
      if (size > this.facts.binding_bytes) throw new KernelError(`${tensor.name} has ${size} bytes, this device binds ${this.facts.binding_bytes}`);
      sizes[tensor.name] = plan.exact ? 4 * elementsOf(tensor, dims) : size;
      all[tensor.name] = buffers[tensor.name] ?? device.createBuffer({ size,
        usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST });
    }
    const numbers = new Uint32Array(round_up(plan.dims.length, 4));
    plan.dims.forEach((dim, i) => (numbers[i] = dims[dim.name]));
    const uniform = device.createBuffer({ size: max(16, numbers.byteLength), usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
    device.queue.writeBuffer(uniform, 0, numbers);
    const group = device.createBindGroup({ layout: this.layout, entries: plan.bindings.map(({ binding, tensor }) =>
      ({ binding, resource: tensor === null ? { buffer: uniform } : { buffer: all[tensor], size: sizes[tensor] } })) });
    const made = [uniform, ...Object.entries(all).filter(([name]) => !buffers[name]).map(([, buffer]) => buffer)];
    return { dims, groups, buffers: all, group, free: () => made.forEach((buffer) => buffer.destroy()) };
  }

  /** One call, into a compute pass of yours. */
  encode(pass, prepared) {
    pass.setBindGroup(0, prepared.group);
    this.pipelines.forEach((pipeline, i) => {
      pass.setPipeline(pipeline);
      pass.dispatchWorkgroups(...prepared.groups[i]);
    });
  }

  fill(prepared, inputs) {
    for (const tensor of plan.inputs) {
      const array = inputs[tensor.name], count = elementsOf(tensor, prepared.dims);
      if (!(array instanceof ARRAYS[tensor.dtype]) || array.length !== count)
        throw new KernelError(`${tensor.name}: expected a ${ARRAYS[tensor.dtype].name} of ${count}`);
      this.device.queue.writeBuffer(prepared.buffers[tensor.name], 0, array);
    }
    for (const tensor of [...plan.outputs, ...plan.workspaces]) /* what is not written is no result */
      this.device.queue.writeBuffer(prepared.buffers[tensor.name], 0, new Uint32Array(bytesOf(tensor, prepared.dims) / 4).fill(NAN_BITS));
  }

  async #read(buffer, size) {
    const staging = this.device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, staging, 0, size);
    this.device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const bytes = staging.getMappedRange().slice(0);
    staging.destroy();
    return bytes;
  }

  /** Arrays in by name, arrays out by name; `dims` that are not given are those it was timed at. */
  async run(inputs, dims) {
    const prepared = this.prepare(dims);
    try {
      return await watched(this.device, async () => {
        this.fill(prepared, inputs);
        const encoder = this.device.createCommandEncoder();
        const pass = encoder.beginComputePass();
        this.encode(pass, prepared);
        pass.end();
        this.device.queue.submit([encoder.finish()]);
        const outputs = {};
        for (const tensor of plan.outputs) {
          const bytes = await this.#read(prepared.buffers[tensor.name], bytesOf(tensor, prepared.dims));
          outputs[tensor.name] = new ARRAYS[tensor.dtype](bytes, 0, elementsOf(tensor, prepared.dims));
        }
        return outputs;
      });
    } finally {
      prepared.free();
    }
  }

  async #batch(prepared, count, queries, resolved) {
    const encoder = this.device.createCommandEncoder();
    const pass = encoder.beginComputePass(queries
      ? { timestampWrites: { querySet: queries, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 } } : {});
    for (let i = 0; i < count; i++) this.encode(pass, prepared);
    pass.end();
    if (queries) encoder.resolveQuerySet(queries, 0, 2, resolved, 0);
    const begun = performance.now();
    this.device.queue.submit([encoder.finish()]);
    await this.device.queue.onSubmittedWorkDone();
    const wall = (performance.now() - begun) * 1e6;
    if (!queries) return wall;
    const ticks = new BigUint64Array(await this.#read(resolved, 16));
    return Number(ticks[1] - ticks[0]);
  }

  /** The median of nine batches of launches one after the other, a launch, in ns; by timestamps where the device
   * was opened with them. What was in a cache stays there: a launch on new inputs may take longer. */
  async time(inputs, dims) {
    const prepared = this.prepare(dims), { device } = this;
    const timestamps = device.features.has("timestamp-query");
    const queries = timestamps ? device.createQuerySet({ type: "timestamp", count: 2 }) : null;
    const resolved = timestamps ? device.createBuffer({ size: 256, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC }) : null;
    try {
      return await watched(device, async () => {
        this.fill(prepared, inputs);
        let launches = 1, took = await this.#batch(prepared, 1, queries, resolved);
        took = await this.#batch(prepared, 1, queries, resolved); /* the first may compile */
        while (took < 20e6 && launches < 4096) {
          launches *= 2;
          took = await this.#batch(prepared, launches, queries, resolved);
        }
        const samples = [];
        for (let i = 0; i < 9; i++) samples.push((await this.#batch(prepared, launches, queries, resolved)) / launches);
        samples.sort((a, b) => a - b);
        return { ns: samples[4], low: samples[1], high: samples[7], launches, clock: timestamps ? "the device's timestamps" : "the page's clock" };
      });
    } finally {
      prepared.free();
      queries?.destroy();
      resolved?.destroy();
    }
  }
}
