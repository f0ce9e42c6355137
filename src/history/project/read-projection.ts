import { metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { type ObjectId, type SessionId, type Sha256, sessionObjectId, systemPromptObjectId } from '../../objects/ids.js';
import { keptArgsHash } from '../../objects/kept-args.js';
import { type FilesystemSource, parseSource } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import type { TokenCounter } from '../../projection/entry.js';
import {
  type ApprovalNote,
  type PendingCall,
  type ProjectedFile,
  type Projection,
  type ProjectionSource,
  projectSession,
  type SourceVersion,
  type StoredCall,
} from '../../projection/project-session.js';
import { applySteps, emptySession } from '../../session/session-state.js';
import { StoreError } from '../../store/errors.js';
import type { FoundVersion, Head, StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { countTokens, TOKENIZER } from '../ask/token-count.js';
import { HistoryError } from '../rebuild/history-error.js';
import { formatMoment } from '../rebuild/moment.js';
import type { Point, Timeline, When } from '../rebuild/timeline.js';

/** How the house counts tokens: the vocabulary that all its figures are by, and about what a chat's format adds to a message and a call. */
export const HOUSE_COUNTER: TokenCounter = { name: TOKENIZER, count: countTokens, perMessage: 4, perCall: 8 };

/** What of a session a point in time holds. */
interface FoundSession {
  readonly timeline: Timeline;
  readonly session: SessionId;
  readonly point: Point;
  readonly steps: readonly Step[];
}

async function stepsAt(timeline: Timeline, session: SessionId, { place, snapshot, basis, moment }: Point): Promise<readonly Step[]> {
  const isPlaced = place !== undefined;
  const steps = isPlaced ? (await timeline.steps(session)).slice(0, place.seq) : await snapshot.steps(session);
  if (isPlaced || steps.length > 0 || (await snapshot.existing([sessionObjectId(session)])).length > 0) return steps;
  throw new HistoryError('not-yet', `session ${session} did not exist at ${formatMoment(moment)}, transaction ${basis.txId ?? 'none'}`);
}

function missing(id: ObjectId): StoreError {
  return new StoreError('missing-part', `the chat names the call ${JSON.stringify(id)}, which the database does not hold at this basis`);
}

/** The whole arguments of calls whose objects only name them, by their hash. */
async function keptTexts(snapshot: StoreSnapshot, versions: ReadonlyMap<ObjectId, FoundVersion>): Promise<ReadonlyMap<Sha256, string>> {
  const hashes = [...versions.values()].flatMap(({ version }) => (version.type === 'toolcall' ? (keptArgsHash(version.args) ?? []) : []));
  const texts = await Promise.all(hashes.map(async (hash) => [hash, await snapshot.text(hash)] as const));
  return new Map(texts.flatMap(([hash, text]) => (text === undefined ? [] : [[hash, text] as const])));
}

function storedCall(
  { version, marks }: FoundVersion,
  metadata: ObjectMetadata<'toolcall'>,
  texts: ReadonlyMap<Sha256, string>,
): StoredCall {
  if (version.type !== 'toolcall') throw missing(metadata.id);
  const kept = keptArgsHash(version.args);
  return {
    metadata,
    args: version.args as Json,
    content: version.content,
    ...defined({ argsText: kept === undefined ? undefined : texts.get(kept), whole: marks.whole }),
  };
}

type NoteRecord = ContextRecord<'approval' | 'call'>;

/** What records say of calls and approvals, as it was known at a point. */
async function recordsAt(timeline: Timeline, session: SessionId, { snapshot, place }: Point): Promise<readonly NoteRecord[]> {
  const wanted = { kinds: ['approval', 'call'], ...defined({ last: place?.seq }) } as const;
  if (place === undefined) return snapshot.records(session, wanted);
  const lineage = await timeline.present.lineage(session);
  return lineage === undefined ? [] : snapshot.records(lineage, wanted);
}

/** Pending calls, and approvals: the first record of one says where it was asked for, the last where it stands. */
function notesOf(records: readonly NoteRecord[]): Pick<ProjectionSource, 'pending' | 'approvals'> {
  const pending: PendingCall[] = [];
  const approvals = new Map<string, ApprovalNote>();
  for (const record of [...records].sort((a, b) => a.at - b.at)) {
    const { turn, seq, at } = record;
    if (record.kind === 'call') {
      const { native, tool, args, by } = record.body;
      pending.push({ native, tool, args: args as Json, by, at });
    } else {
      const { approval, state, text, tool, native, reason } = record.body;
      const before = approvals.get(approval);
      approvals.set(
        approval,
        before === undefined
          ? { approval, state, text, turn, seq, at, ...defined({ tool, native, reason }) }
          : { ...before, state, ...defined({ reason }) },
      );
    }
  }
  return { pending, approvals: [...approvals.values()] };
}

async function projectionAt({ timeline, session, point, steps }: FoundSession, counter: TokenCounter): Promise<Projection> {
  const { snapshot, place } = point;
  const state = applySteps(emptySession(session), steps);
  const { sets } = state;
  const owner = place?.owner ?? session;
  const prompt = systemPromptObjectId(owner);
  const calls = steps.flatMap(({ call }) => call?.id ?? []);
  const heads = await snapshot.heads([...new Set([prompt, ...sets.index, ...calls])]);
  const shown = new Set<ObjectId>([prompt, ...calls, ...sets.active, ...sets.pinned]);
  const wanted = [...shown].flatMap((id): Head | readonly Head[] => heads.get(id) ?? []);
  const versions = await snapshot.versionsOf(wanted);
  const texts = await keptTexts(snapshot, versions);
  const [active, pinned] = [new Set(sets.active), new Set(sets.pinned)];
  const stored = new Map<ObjectId, StoredCall>();
  const files: ProjectedFile[] = [];
  const sources = new Map<ObjectId, SourceVersion>();
  for (const [name, { document, marks, validTime }] of heads) {
    const id = name as ObjectId;
    sources.set(id, { objectHash: document.object_hash as Sha256, validTime: validTime.getTime() });
    const metadata = metadataOf(document, marks, timeline.paths);
    const version = versions.get(id);
    if (metadata?.type === 'toolcall' && version !== undefined) stored.set(id, storedCall(version, metadata, texts));
    if (metadata?.type !== 'file') continue;
    const source = parseSource(document.source) as FilesystemSource;
    files.push({ metadata, source, active: active.has(id), pinned: pinned.has(id), content: version?.version.content });
  }
  for (const id of calls) if (!stored.has(id)) throw missing(id);
  const order = new Map(sets.index.map((id, i) => [id, i]));
  files.sort((a, b) => (order.get(a.metadata.id) ?? 0) - (order.get(b.metadata.id) ?? 0));
  const promptHead = heads.get(prompt);
  const promptText = versions.get(prompt)?.version.content ?? '';
  return projectSession(
    {
      session,
      basis: { validTime: snapshot.basis.validTime.getTime(), txId: snapshot.basis.txId ?? 0 },
      prompt: promptHead === undefined ? undefined : { text: promptText, at: promptHead.validTime.getTime() },
      steps,
      sets,
      calls: stored,
      files,
      versions: sources,
      ...notesOf(await recordsAt(timeline, session, point)),
    },
    counter,
  );
}

/**
 * The neutral projection of a session at a moment: now, the end of a turn or step, a transaction, a time. Everything in it is read at one basis; the same moment asked twice
 * gives the same value. A fork shows its parent's steps as its own. Files are shown by the timeline's paths.
 * @throws {HistoryError} `beyond-end`, `not-yet` – the session has no such turn, or did not exist then
 * @throws {StoreError} `missing-part`, `corrupt-part`
 * @throws {XtdbError}
 */
export async function readProjection(
  timeline: Timeline,
  session: SessionId,
  { when = {}, counter = HOUSE_COUNTER }: { readonly when?: When; readonly counter?: TokenCounter } = {},
): Promise<Projection> {
  const point = await timeline.find(when, session);
  const steps = await stepsAt(timeline, session, point);
  return projectionAt({ timeline, session, point, steps }, counter);
}
