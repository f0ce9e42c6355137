import pLimit from 'p-limit';
import { canonicalJson } from '../../src/objects/canonical-json.js';
import { hashText } from '../../src/objects/hashes.js';
import {
  chatObjectId,
  type ObjectId,
  type SessionId,
  sessionObjectId,
  systemPromptObjectId,
} from '../../src/objects/ids.js';
import type { Turn } from '../../src/objects/object-type.js';
import type { Step } from '../../src/objects/step.js';
import { applyStep, emptySession, type SessionState } from '../../src/session/session-state.js';
import type { ObjectStore } from '../../src/store/object-store.js';
import { stepId } from '../../src/store/step-part.js';
import type { StoreSnapshot } from '../../src/store/store-snapshot.js';
import { type HistoryVersion, historyOf } from '../support/object-history.js';
import type { AcknowledgedCall, Line } from './acknowledged.js';
import { missingSteps } from './check-resume.js';

/** The findings for one session. */
export interface SessionFindings {
  readonly problems: readonly string[];
  readonly steps: number;
  readonly calls: readonly ObjectId[];
  /** The files of the session's index. */
  readonly files: readonly ObjectId[];
  readonly versions: number;
}

const AT_ONCE = 6;

/** Active and pinned lie within the index, and no set lists an object twice (decision D1). */
function setProblems({ id, seq, sets }: SessionState): readonly string[] {
  const known = new Set(sets.index);
  const broken = [...sets.active, ...sets.pinned].filter((member) => !known.has(member));
  const repeats = [sets.index, sets.active, sets.pinned].some((set) => new Set(set).size !== set.length);
  return broken.length > 0 || repeats
    ? [`${id}: the sets after step ${seq} break the invariants: ${broken.join(', ')}`]
    : [];
}

/**
 * Folds the steps, and compares the result with the sets that the workload had after each of its
 * calls.
 */
function foldProblems(
  session: SessionId,
  steps: readonly Step[],
  calls: readonly AcknowledgedCall[],
): { readonly state: SessionState; readonly problems: readonly string[] } {
  const digests = new Map(
    calls.flatMap(({ seq, sets }) => (seq === undefined || sets === undefined ? [] : [[seq, sets] as const])),
  );
  const problems: string[] = [];
  let state = emptySession(session);
  for (const step of steps) {
    state = applyStep(state, step);
    problems.push(...setProblems(state));
    const told = digests.get(step.seq);
    if (told !== undefined && told !== hashText(canonicalJson(state.sets)))
      problems.push(`${session}: other sets after step ${step.seq} than acknowledged`);
  }
  return { state, problems };
}

interface Pair {
  readonly problems: readonly string[];
  readonly versions: number;
}

/**
 * Checks that a step and its call were written once, in one transaction, with the acknowledged
 * content.
 */
async function checkStep(snapshot: StoreSnapshot, step: Step, told: AcknowledgedCall | undefined): Promise<Pair> {
  const name = stepId(step.session, step.seq);
  const parts = await historyOf(snapshot, name);
  const problems = parts.length === 1 ? [] : [`${name} has ${parts.length} versions`];
  if (step.call === undefined) return { problems, versions: 0 };
  const history = await historyOf(snapshot, step.call.id);
  const [only] = history;
  if (history.length !== 1 || only?.version?.type !== 'toolcall')
    problems.push(`call ${step.call.id} has ${history.length} versions`);
  else {
    if (only.txId !== parts[0]?.txId) problems.push(`call ${step.call.id} and ${name} are of two transactions`);
    const content = only.marks.whole ?? only.version.content_hash;
    if (told !== undefined && content !== told.content)
      problems.push(`call ${step.call.id} has another content than acknowledged`);
    const whole =
      only.marks.whole === undefined ? undefined : (await snapshot.texts([only.marks.whole])).get(only.marks.whole);
    if (only.marks.whole !== undefined && (whole === undefined || hashText(whole) !== only.marks.whole))
      problems.push(`the whole text of ${step.call.id} is not there`);
  }
  return { problems, versions: history.length };
}

const turnsIn = ({ version }: HistoryVersion): readonly Turn[] => (version?.type === 'chat' ? version.turns : []);

/**
 * Checks that every version of chat, session and prompt restores, and that a closed turn stays the
 * same in later versions.
 */
async function checkHeads(
  snapshot: StoreSnapshot,
  session: SessionId,
  state: SessionState,
  prompts: readonly string[],
): Promise<Pair> {
  const [chats, sessions, system] = await Promise.all(
    [chatObjectId, sessionObjectId, systemPromptObjectId].map((idOf) => historyOf(snapshot, idOf(session))),
  );
  const problems: string[] = [];
  const all = [...(chats ?? []), ...(sessions ?? []), ...(system ?? [])];
  if (all.some(({ version }) => version === undefined)) problems.push(`${session}: a version of a head is none`);
  const now = state.turns.map((turn) => canonicalJson(turn));
  for (const version of chats ?? []) {
    const closed = turnsIn(version).slice(0, -1);
    closed.forEach((turn, i) => {
      if (canonicalJson(turn) !== now[i]) problems.push(`${session}: turn ${i + 1} has two versions`);
    });
  }
  const texts = (system ?? []).map(({ version }) => (version?.content == null ? 'none' : hashText(version.content)));
  for (const prompt of prompts)
    if (!texts.includes(prompt as never)) problems.push(`${session}: the prompt ${prompt} is lost`);
  const dated = new Set((system ?? []).map(({ validTime }) => validTime.getTime()));
  if (dated.size !== (system ?? []).length)
    problems.push(`${session}: a prompt was written twice (${dated.size} moments, ${system?.length} versions)`);
  const stored = await snapshot.getMany([chatObjectId(session), sessionObjectId(session)]);
  const [chat, head] = [stored.get(chatObjectId(session))?.version, stored.get(sessionObjectId(session))?.version];
  if (chat?.type !== 'chat' || canonicalJson(chat.turns) !== canonicalJson(state.turns))
    problems.push(`${session}: the stored chat is not the fold`);
  if (
    head?.type !== 'session' ||
    canonicalJson([head.session_index, head.active_set, head.pinned_set]) !==
      canonicalJson([state.sets.index, state.sets.active, state.sets.pinned])
  )
    problems.push(`${session}: the stored sets are not the fold`);
  return { problems, versions: all.length };
}

/**
 * Checks one session: it has every acknowledged line, nothing is doubled or partial, and everything
 * restores.
 */
export async function checkSession(
  store: ObjectStore,
  session: SessionId,
  told: readonly Line[],
  callsOfChat: readonly string[],
): Promise<SessionFindings> {
  const snapshot = await store.now();
  const steps = await snapshot.steps(session);
  const calls = told.flatMap((line) => (line.kind === 'call' ? [line] : []));
  const found = steps.map(({ seq, call, message }) => ({
    seq,
    ...(call === undefined ? {} : { call: call.id }),
    ...(call?.answer === undefined ? {} : { answer: call.answer.sha256 }),
    ...(message === undefined ? {} : { message: hashText(message.text) }),
  }));
  const problems = [...missingSteps({ session, seq: steps.length, since: 0, steps: found }, told)];
  const { state, problems: folded } = foldProblems(session, steps, calls);
  problems.push(...folded);
  const byId = new Map(calls.map((call) => [call.id, call]));
  const limit = pLimit(AT_ONCE);
  const pairs = await Promise.all(
    steps.map((step) => limit(() => checkStep(snapshot, step, step.call && byId.get(step.call.id)))),
  );
  const prompts = told.flatMap((line) => (line.kind === 'prompt' ? [line.text] : []));
  pairs.push(await checkHeads(snapshot, session, state, prompts));
  const there = await snapshot.heads(state.sets.index);
  for (const id of state.sets.index)
    if (!there.has(id)) problems.push(`${session}: ${id} is in the index and not in the database`);
  const named = new Set<string>(steps.flatMap(({ call }) => (call === undefined ? [] : [call.id])));
  for (const id of callsOfChat)
    if (!named.has(id)) problems.push(`${session}: the call ${id} is there without its step`);
  for (const { document } of there.values()) {
    const refs = document.file_refs;
    const missing = Array.isArray(refs) ? refs.filter((ref) => !there.has(String(ref))) : [];
    if (missing.length > 0)
      problems.push(`${session}: ${document['xt/id']} refers to files that are not there: ${missing.join(', ')}`);
  }
  problems.push(...pairs.flatMap((pair) => pair.problems));
  return {
    problems,
    steps: steps.length,
    calls: [...named] as ObjectId[],
    files: state.sets.index.filter((id) => !named.has(id)),
    versions: pairs.reduce((sum, { versions }) => sum + versions, 0),
  };
}
