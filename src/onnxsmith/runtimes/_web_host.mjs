// Runs onnxruntime-web for `_web_host.py`: messages of `_wire.py` on standard input, answers on standard output.
//
// A worker thread computes, so that the main thread sees the end of its input at once: then the process ends, even in the
// middle of a computation, and does not outlive its caller.

import { readFileSync, writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bool: Uint8Array,
  int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
};

if (isMainThread) serve(process.argv[2]);
else await compute(workerData);

// The main thread

function serve(library) {
  const worker = new Worker(new URL(import.meta.url), { workerData: library });
  worker.on('message', ({ text, buffers }) => write([text, ...buffers]));
  worker.on('error', (error) => { process.stderr.write(`${error?.stack ?? error}\n`, () => process.exit(70)); });
  worker.on('exit', () => process.exit(70));
  let chunks = [], held = 0;
  const take = (size) => {
    const all = Buffer.concat(chunks);
    chunks = [all.subarray(size)];
    held -= size;
    return all.subarray(0, size);
  };
  let length = null, message = null, wanted = 0;
  process.stdin.on('data', (chunk) => {
    chunks.push(chunk);
    held += chunk.length;
    for (;;) {
      if (length === null) {
        if (held < 8) return;
        length = Number(take(8).readBigUInt64LE());
      } else if (message === null) {
        if (held < length) return;
        message = JSON.parse(take(length).toString());
        wanted = message.sizes.reduce((sum, size) => sum + size, 0);
      } else {
        if (held < wanted) return;
        const bytes = Uint8Array.from(take(wanted));
        worker.postMessage({ message, bytes }, [bytes.buffer]);
        length = message = null;
      }
    }
  });
  process.stdin.on('end', () => process.kill(process.pid, 'SIGKILL'));
}

function write([text, ...buffers]) {
  const head = Buffer.alloc(8);
  const body = Buffer.from(text);
  head.writeBigUInt64LE(BigInt(body.length));
  for (const piece of [head, body, ...buffers]) {
    for (let at = 0; at < piece.length;) {
      try {
        at += writeSync(1, piece, at);
      } catch (error) {
        if (error.code !== 'EAGAIN') throw error;
      }
    }
  }
}

// The worker

async function compute(library) {
  const ort = await import(pathToFileURL(library));
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.proxy = false;
  ort.env.logLevel = 'fatal';
  const sessions = new Map();
  const held = new Map();
  let last = Promise.resolve();
  parentPort.on('message', (given) => {
    last = last.then(async () => {
      const buffers = [];
      let head = {}, values = {};
      try {
        ({ head, values } = await answer(ort, sessions, held, given, buffers));
      } catch (error) {
        head = { error: String(error?.message ?? error) };
      }
      const sizes = buffers.map((buffer) => buffer.length);
      parentPort.postMessage({ text: JSON.stringify({ head, values, sizes }), buffers });
    });
  });
}

async function answer(ort, sessions, held, { message, bytes }, buffers) {
  const { head: request } = message;
  for (const number of request.release ?? []) {
    await sessions.get(number)?.release();
    sessions.delete(number);
    held.delete(number);
  }
  if (request.do === 'about') return { head: { node: process.version }, values: {} };
  if (request.do === 'prepare') {
    const session = await ort.InferenceSession.create(readFileSync(request.path), {
      executionProviders: ['wasm'],
      graphOptimizationLevel: request.level,
      externalData: request.external.map(([path, file]) => ({ path, data: readFileSync(file) })),
      logSeverityLevel: 4,
    });
    sessions.set(request.session, session);
    return { head: { inputs: session.inputNames }, values: {} };
  }
  const session = sessions.get(request.session);
  if (request.do === 'time') return { head: { ns: await measured(session, held.get(request.session), request) }, values: {} };
  const starts = message.sizes.map(((sum) => (size) => (sum += size) - size)(0));
  const feeds = {};
  for (const [name, value] of Object.entries(message.values)) {
    feeds[name] = value.text !== undefined
      ? new ort.Tensor('string', value.text, value.shape)
      : new ort.Tensor(value.dtype, typed(value, bytes, starts, message.sizes), value.shape);
  }
  if (request.do === 'hold') {
    held.set(request.session, feeds);
    return { head: { around: 'session.run on tensors, in node' }, values: {} };
  }
  const results = await session.run(feeds);
  const values = {};
  for (const name of session.outputNames) values[name] = packed(results[name], buffers);
  return { head: {}, values };
}

// Nanoseconds of each sample, as `measured` of `_timing.py`.
async function measured(session, feeds, { runs, inner, budget }) {
  const end = budget ? process.hrtime.bigint() + BigInt(Math.trunc(budget * 1e9)) : null;
  const found = [];
  do {
    const begin = process.hrtime.bigint();
    for (let count = 0; count < inner; count++) await session.run(feeds);
    const now = process.hrtime.bigint();
    found.push(Number(now - begin));
    if (end !== null && now >= end) break;
  } while (found.length < runs);
  return found;
}

function typed({ dtype, buffer }, bytes, starts, sizes) {
  const kind = ARRAYS[dtype];
  const copy = bytes.slice(starts[buffer], starts[buffer] + sizes[buffer]); // a new buffer, so that it is aligned
  return new kind(copy.buffer, 0, copy.length / kind.BYTES_PER_ELEMENT);
}

function packed(tensor, buffers) {
  if (tensor.type === 'string') return { text: [...tensor.data], shape: [...tensor.dims] };
  const { data } = tensor;
  buffers.push(Uint8Array.from(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)));
  return { dtype: tensor.type, shape: [...tensor.dims], buffer: buffers.length - 1 };
}
