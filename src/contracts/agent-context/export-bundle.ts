import { HistoryError } from '../../history/rebuild/history-error.js';
import type { When } from '../../history/rebuild/moment.js';
import { PastContexts } from '../../history/rebuild/past-context.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { type SessionId, systemPromptObjectId } from '../../objects/ids.js';
import { assemblyId } from '../../store/assemblies.js';
import { recordId } from '../../store/context-records.js';
import { redactedTexts } from '../projection/hidden-texts.js';
import { readProjection } from '../projection/read-projection.js';
import { SessionMoment } from '../projection/session-moment.js';
import { type BundleSource, makeBundle } from './bundle.js';
import { type Bundle, objectsOf, PART_NAMES } from './bundle-parts.js';
import { checkBundle } from './check-bundle.js';
import type { HandedOutContext } from './handed-out-assemblies.js';
import { FACT_KINDS, type FactRecord } from './recorded-facts.js';
import { writeBundle } from './write-bundle.js';

/** Record kinds that apply to a single turn. Records of other kinds also apply to later turns. */
const OF_A_TURN: ReadonlySet<FactRecord['kind']> = new Set(['budget', 'selection', 'injection', 'event']);

/**
 * Returns the input of a handed-out context. Returns no input if this version of Palimpsest cannot
 * rebuild the same context.
 */
async function inputOf(contexts: PastContexts, proof: AssemblyProof): Promise<Pick<HandedOutContext, 'input'>> {
  try {
    const { input, matches } = await contexts.ofRecord(proof);
    return matches === true ? { input } : {};
  } catch (error) {
    if (error instanceof HistoryError) return {};
    throw error;
  }
}

/**
 * Returns the newest transaction that wrote one of these: the projection's last step, its files,
 * its prompt, and the given parts.
 */
async function newestOf({ projection, point, written }: SessionMoment, parts: readonly string[]): Promise<number> {
  const { session, seq, files } = projection;
  const objects = [systemPromptObjectId(session), ...files.map(({ metadata }) => metadata.id)];
  const found = await Promise.all([
    point.snapshot.times(objects),
    written.times(parts),
    point.snapshot.stepTimes(session, [seq]),
  ]);
  return Math.max(0, ...found.flatMap((times) => [...times.values()].map(({ txId }) => txId)));
}

/** The request for a bundle of a session. */
export interface WantedBundle {
  readonly when: When;
  /** The agent whose memory the bundle includes. If omitted, no memory is included. */
  readonly agent?: string | undefined;
}

/**
 * Reads the input of a bundle at a moment. At the end of a turn or step, the bundle covers that
 * turn and its handed-out contexts. Otherwise it covers the whole session up to the moment.
 * @throws {HistoryError} `beyond-end`, `not-yet`
 * @throws {StoreError} `missing-part`, `corrupt-part`
 * @throws {XtdbError}
 */
async function readBundleSource(
  asked: Timeline,
  session: SessionId,
  { when, agent }: WantedBundle,
): Promise<BundleSource> {
  const timeline = await asked.of(session);
  const moment = await SessionMoment.read(timeline, session, when);
  const { projection, lineage, written } = moment;
  const { place, snapshot } = moment.point;
  const { turn, seq } = projection;
  const scope = place === undefined ? 'session' : 'turn';
  const [all, steps, found, redactions, memory] = await Promise.all([
    moment.records(FACT_KINDS),
    timeline.steps(session),
    written.assemblies(session, { last: seq }),
    timeline.present.records(lineage, { kinds: ['event'] }),
    agent === undefined ? [] : snapshot.records({ agent }, { kinds: ['memory'] }),
  ]);
  const parts = [...all, ...redactions, ...memory].map((record) => recordId(record as ContextRecord));
  const newest = place === undefined ? await newestOf(moment, [...parts, ...found.map(assemblyId)]) : undefined;
  const isOfScope = (record: FactRecord): boolean =>
    scope === 'session' || record.turn === turn || !OF_A_TURN.has(record.kind);
  const proofs = found.filter((proof) => scope === 'session' || proof.turn === turn);
  const contexts = new PastContexts(timeline);
  const last = proofs.at(-1);
  if (last?.session === session) contexts.know(steps);
  const delivered: HandedOutContext[] = [];
  for (const proof of proofs)
    delivered.push({ id: assemblyId(proof), proof, ...(proof === last ? await inputOf(contexts, proof) : {}) });
  return {
    projection,
    newest,
    scope,
    steps: steps.slice(0, seq),
    records: [...(all as readonly ContextRecord<FactRecord['kind']>[] as readonly FactRecord[]), ...memory].filter(
      isOfScope,
    ),
    delivered,
    redactions,
    redactedTexts: await redactedTexts(timeline, () => readProjection(timeline, session), redactions),
  };
}

/**
 * Returns the checked bundle of a session at a moment. An equal basis gives an equal bundle.
 * @throws {AgentContextError} `invalid-bundle`
 * @throws errors of reading a session at a moment
 */
export async function bundleAt(timeline: Timeline, session: SessionId, wanted: WantedBundle): Promise<Bundle> {
  const bundle = makeBundle(await readBundleSource(timeline, session, wanted));
  checkBundle(bundle);
  return bundle;
}

const countsOf = (bundle: Bundle): Readonly<Record<string, number>> =>
  Object.fromEntries(PART_NAMES.map((part) => [part, objectsOf(bundle, part).length]));

/**
 * Writes the bundle of a session at a moment into a folder, completely or not at all.
 * @throws {AgentContextError} `folder-in-use`, `not-a-folder`, `invalid-bundle`
 * @throws errors of reading a session at a moment
 */
export async function exportBundle(
  { timeline, session, ...wanted }: WantedBundle & { readonly timeline: Timeline; readonly session: SessionId },
  to: string,
): Promise<{ readonly lines: readonly string[]; readonly json: object }> {
  const bundle = await bundleAt(timeline, session, wanted);
  const { folder, isNew, files } = await writeBundle(bundle, to);
  const { context_id, scope } = bundle.envelope;
  const counts = countsOf(bundle);
  const { items, assemblies, injections, events } = counts;
  const said = `${items} items, ${assemblies} assemblies, ${injections} injections, ${events} events`;
  return {
    lines: [`${folder}: ${isNew ? `${context_id} of session ${session}, ${said}` : 'holds this bundle already'}`],
    json: { session, format: 'agent-context', context_id, scope, folder, written: isNew, files, counts },
  };
}
