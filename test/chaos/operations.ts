import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { CallReport, ReportedReading } from '../../src/client/session/call-report.js';
import type { ContextClient } from '../../src/client/session/context-client.js';
import type { ContextSession } from '../../src/client/session/context-session.js';
import { canonicalJson } from '../../src/objects/canonical-json.js';
import { hashText } from '../../src/objects/hashes.js';
import type { ObjectId, Sha256 } from '../../src/objects/ids.js';
import type { Verb } from '../../src/session/verb-outcome.js';
import { XtdbError, type XtdbErrorCode } from '../../src/xtdb/errors.js';
import { type AcknowledgedCall, type Line, lineMarks } from './acknowledged.js';
import type { Random } from './random.js';
import { FILE_NAMES } from './workload-plan.js';

/** One agent at work. */
export interface Agent {
  readonly client: ContextClient;
  readonly session: ContextSession;
  readonly root: string;
  readonly random: Random;
  /** Reports what was acknowledged; called after the answer has arrived. */
  readonly say: (line: Line) => void;
}

type Report = Omit<CallReport, 'answer'>;

/** SHA-256 of a session's three sets. */
export const setsDigest = ({ state }: ContextSession): Sha256 => hashText(canonicalJson(state.sets));

function readsOf({ readings = [], plan }: Report): AcknowledgedCall['reads'] {
  return [...readings, ...(plan?.readings ?? [])].flatMap(({ source, reading }) =>
    'fileHash' in reading
      ? [{ id: hashText(canonicalJson({ type: 'file', source })) as string as ObjectId, fileHash: reading.fileHash }]
      : [],
  );
}

/**
 * Records a call and reports it once it is acknowledged. Overlapping calls do not report their
 * step.
 */
async function record({ session, random, say }: Agent, report: Report, overlapping = false): Promise<void> {
  const answer = (id: ObjectId): string => `${id} answered: ${report.content.slice(0, 500)}`.toWellFormed();
  const recorded = await session.recordCall({ ...report, answer });
  recorded.applied.catch(() => undefined);
  const place = overlapping ? {} : { seq: session.state.seq, sets: setsDigest(session) };
  // Delays the report, because an answer takes time to reach its reader. A process that dies
  // meanwhile has reported nothing.
  if (random.chance(0.25)) await delay(random.between(0, 25));
  say({
    kind: 'call',
    session: session.id,
    id: recorded.callId,
    tool: report.tool,
    ...place,
    answer: hashText(recorded.answer),
    content: hashText(report.content),
    reads: readsOf(report),
  });
}

async function readingOf({ client }: Agent, name: string, activate = true): Promise<ReportedReading> {
  const { source } = await client.files.locate(name, { mustExist: false });
  return { source, reading: await client.files.read(source), activate };
}

/** Reads a file whole, as the agent's `read` does. */
export async function readFileWhole(agent: Agent, name: string, overlapping = false): Promise<void> {
  const reading = await readingOf(agent, name, agent.random.chance(0.8));
  const content = 'content' in reading.reading ? reading.reading.content : `no text: ${reading.reading.kind}`;
  const id = agent.random.chance(0.5) ? { callId: `call-${agent.session.id}-${agent.session.state.seq + 1}` } : {};
  await record(
    agent,
    { tool: 'read', args: { path: name }, status: 'ok', content, readings: [reading], ...id },
    overlapping,
  );
}

/**
 * Changes a file on disk: overwrites it, or renames a new file to its name, as editors do.
 * Sometimes removes the file.
 */
export async function changeFile({ root, random }: Agent, name: string): Promise<void> {
  const path = join(root, name);
  await mkdir(dirname(path), { recursive: true });
  if (random.chance(0.08)) return rm(path, { force: true });
  const size = random.weighted({ small: 60, page: 30, chunks: 3, large: 1 });
  const text = random.text(
    { small: random.between(0, 300), page: random.between(2_000, 9_000), chunks: 600_000, large: 1_200_000 }[size],
  );
  if (random.chance(0.5)) return writeFile(path, text);
  const draft = `${path}.${random.between(0, 1e9)}.draft`;
  await writeFile(draft, text);
  await rename(draft, path);
}

async function edit(agent: Agent): Promise<void> {
  const name = agent.random.pick(FILE_NAMES);
  await changeFile(agent, name);
  const readings = [await readingOf(agent, name)];
  await record(agent, {
    tool: 'edit',
    args: { path: name, note: agent.random.next() },
    status: 'ok',
    content: `edited ${name}`,
    readings,
  });
}

async function list(agent: Agent): Promise<void> {
  const { client, random } = agent;
  const names = FILE_NAMES.slice(random.between(0, 12), random.between(13, 24));
  const mentions = await Promise.all(
    names.map(async (name) => ({
      source: (await client.files.locate(name, { mustExist: false })).source,
      mtimeMs: 1_700_000_000_000,
    })),
  );
  await record(agent, { tool: 'ls', args: { path: '.' }, status: 'ok', content: names.join('\n'), mentions });
}

async function run(agent: Agent): Promise<void> {
  const { random } = agent;
  const size = random.weighted({ line: 50, page: 40, chunk: 5, chunks: 4, large: 1 });
  const length = {
    line: random.between(0, 200),
    page: random.between(2_049, 6_000),
    chunk: 60_000,
    chunks: 600_000,
    large: 1_300_000,
  }[size];
  const status = random.chance(0.9) ? 'ok' : 'fail';
  await record(agent, {
    tool: 'bash',
    args: { command: `make ${size}` },
    argsDisplay: `make ${size}`,
    status,
    content: random.text(length),
  });
}

const AWAY: ReadonlySet<XtdbErrorCode> = new Set(['unreachable', 'timeout', 'cut-off']);

/** During an outage, only a read of data that nothing but the database has may fail. */
function unlessAway(error: unknown): undefined {
  if (error instanceof XtdbError && AWAY.has(error.code)) return undefined;
  throw error;
}

async function change(agent: Agent): Promise<void> {
  const { session, random } = agent;
  const pool = session.state.sets.index;
  if (pool.length === 0) return run(agent);
  const verb = random.pick<Verb>(['activate', 'activate', 'deactivate', 'pin', 'unpin']);
  const references = Array.from({ length: random.between(1, 3) }, () => random.pick(pool));
  const plan = await session.planVerb(verb, references).catch(unlessAway);
  if (plan === undefined) return;
  await record(agent, {
    tool: verb,
    args: { ids: references },
    status: 'ok',
    content: `${verb} ${plan.entries.length}`,
    plan,
  });
}

async function burst(agent: Agent): Promise<void> {
  await Promise.all(Array.from({ length: 3 }, () => readFileWhole(agent, agent.random.pick(FILE_NAMES), true)));
}

async function speak({ session, random, say }: Agent): Promise<void> {
  const role = random.chance(0.5) ? 'user' : 'assistant';
  const text = random.text(random.chance(0.9) ? random.between(1, 400) : 5_000);
  await session.reportMessage({ role, text });
  say({ kind: 'message', session: session.id, seq: session.state.seq, role, text: hashText(text) });
}

async function instruct({ session, random, say }: Agent): Promise<void> {
  const prompt = random.text(random.between(20, 3_000));
  await session.setSystemPrompt(prompt);
  say({ kind: 'prompt', session: session.id, text: hashText(prompt) });
}

async function assemble({ session, random, say }: Agent): Promise<void> {
  const optimistic = random.chance(0.5);
  const assembled = await session.assemble({ deliver: 'library', optimistic }).catch(unlessAway);
  if (assembled === undefined) return;
  const { text, record: made } = assembled;
  say({ kind: 'handed', session: session.id, step: made.step, text: hashText(text) });
  // Versions shown ahead of the basis are recorded in the context record alone.
  if (optimistic || assembled.record.basis?.txId === undefined) return;
  const basis = { validTime: assembled.record.basis.validTime.toISOString(), txId: assembled.record.basis.txId };
  say({ kind: 'context', session: session.id, step: made.step, basis, text: hashText(text), lines: lineMarks(text) });
}

const OPERATIONS = {
  read: (agent: Agent) => readFileWhole(agent, agent.random.pick(FILE_NAMES)),
  edit,
  list,
  run,
  change,
  burst,
  speak,
  instruct,
  assemble,
  outside: (agent: Agent) => changeFile(agent, agent.random.pick(FILE_NAMES)),
};

const WEIGHTS: Readonly<Record<keyof typeof OPERATIONS, number>> = {
  read: 24,
  edit: 12,
  list: 6,
  run: 16,
  change: 18,
  burst: 4,
  speak: 12,
  instruct: 3,
  assemble: 6,
  outside: 4,
};

/** Performs the next action of an agent's script. */
export const operate = (agent: Agent): Promise<void> => OPERATIONS[agent.random.weighted(WEIGHTS)](agent);
