import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type {
  OpencodeHooks,
  OpencodeInput,
  OpencodeMessage,
  OpencodePart,
} from '../../src/extensions/opencode/opencode1-api.js';
import type { ContextClient } from '../../src/index.js';
import { quantile } from '../quantile.js';
import type { CaseResult, Sample } from '../results.js';
import { projectFolder, type Workshop } from '../workshop.js';

/** Entry point of the built plugin. */
interface Plugin {
  palimpsestForOpencode(input: OpencodeInput): Promise<OpencodeHooks>;
}

const MODEL = { id: 'bench', limit: { context: 1_000_000 } };
/** Number of unmeasured calls at the start. Code that runs for the first time is slow. */
const WARM_UP = 8;
/** Limit in milliseconds of the first call. It imports a history; no harness waits so long. */
const LIMIT_MS = 600_000;
const POLL_EVERY_MS = 100;
/**
 * Minimum milliseconds between an answer of the model and its next call, in OpenCode with a tool
 * that does nothing.
 */
const BETWEEN_MS = 120;

/** A message as OpenCode stores it. */
function messageOf(
  session: string,
  number: number,
  role: 'user' | 'assistant',
  parts: readonly Partial<OpencodePart>[],
): OpencodeMessage {
  const id = `msg_${String(number).padStart(6, '0')}`;
  const own = parts.map((part, i) => ({
    id: `prt_${number}_${i}`,
    sessionID: session,
    messageID: id,
    type: 'text',
    ...part,
  }));
  return { info: { id, sessionID: session, role, time: { created: number, completed: number } }, parts: own };
}

/** An answer of the model with a completed call. */
function working(session: string, number: number): OpencodeMessage {
  const output = Array.from(
    { length: 40 },
    (_, line) => `${number}: what the command says in line ${line} of its output`,
  ).join('\n');
  const state = {
    status: 'completed' as const,
    input: { command: `make part-${number}` },
    output,
    title: 'make',
    metadata: {},
  };
  return messageOf(session, number, 'assistant', [
    { type: 'step-start' },
    { type: 'text', text: `Now part ${number}, which follows from what the last one said.` },
    { type: 'tool', tool: 'bash', callID: `call_${session}_${number}`, state },
    { type: 'step-finish' },
  ]);
}

/** A history of `count` messages; every twentieth is the user's. */
function historyOf(session: string, count: number): OpencodeMessage[] {
  return Array.from({ length: count }, (_, i) =>
    i % 20 === 0
      ? messageOf(session, i, 'user', [{ text: `Please go on with chapter ${i / 20}.` }])
      : working(session, i),
  );
}

/**
 * Returns the milliseconds that one model call waits for the plugin. OpenCode builds a new list for
 * each call, then passes the prompt.
 */
async function waitOf(hooks: OpencodeHooks, session: string, history: readonly OpencodeMessage[]): Promise<number> {
  const messages = structuredClone(history) as OpencodeMessage[];
  const system = ['You are a coding agent. '.repeat(200)];
  const began = performance.now();
  await hooks['experimental.chat.messages.transform']({}, { messages });
  await hooks['experimental.chat.system.transform']({ sessionID: session, model: MODEL }, { system });
  return performance.now() - began;
}

/** Waits until the steps of a history are stored, so that their delivery slows no measured call. */
async function delivered(client: ContextClient, session: string, messages: number): Promise<void> {
  for (;;) {
    const [stored] = (await (await client.store.now()).sessions()).filter(({ id }) => id === session);
    if ((stored?.upto ?? 0) >= messages) return;
    await delay(POLL_EVERY_MS);
  }
}

/**
 * Measures how long model calls wait for the OpenCode plugin. The benchmark calls it as OpenCode
 * does, with the sidecar and a node behind it.
 */
export async function measureLoop(workshop: Workshop, dataDir: string): Promise<CaseResult> {
  const { lists, calls } = workshop.sizes.loop;
  workshop.tell('calls of a model in OpenCode');
  const node = await workshop.node(dataDir);
  process.env.PALIMPSEST_DATA = dataDir;
  process.env.PALIMPSEST_LOOP_LIMIT_MS = String(LIMIT_MS);
  const reader = await workshop.client(node, dataDir);
  const { palimpsestForOpencode } = (await import(
    pathToFileURL(join(projectFolder, 'dist', 'opencode.js')).href
  )) as Plugin;
  const client = { tui: { showToast: async () => undefined }, session: { messages: async () => ({}) } };
  const hooks = await palimpsestForOpencode({ directory: workshop.files, worktree: workshop.files, client });
  const samples: Sample[] = [];
  for (const length of lists) {
    workshop.tell(`lists of ${length} messages`);
    const session = `ses_bench_${length}`;
    const history = historyOf(session, length);
    const ms: number[] = [];
    await waitOf(hooks, session, history);
    await delivered(reader, session, length);
    for (let call = 0; call < WARM_UP + calls; call++) {
      const waited = await waitOf(hooks, session, history);
      if (call >= WARM_UP) ms.push(waited);
      const answer = working(session, history.length);
      for (const part of answer.parts)
        await hooks.event({ event: { type: 'message.part.updated', properties: { part } } });
      await hooks.event({ event: { type: 'message.updated', properties: { info: answer.info } } });
      history.push(answer);
      await delay(BETWEEN_MS);
    }
    samples.push({ name: `${length} messages`, ms });
  }
  await hooks.dispose();
  await node.release();
  return {
    cases: [{ kind: 'timed', title: 'Time that a model call waits for the OpenCode plugin', samples, yardsticks: [] }],
    goals: samples.map(({ name, ms }) => ({
      what: `OpenCode's wait, ${name}, p95`,
      measured: quantile(ms, 0.95),
      bar: 20,
      unit: 'ms',
    })),
  };
}
