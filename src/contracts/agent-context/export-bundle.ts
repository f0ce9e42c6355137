import { HistoryError } from '../../history/rebuild/history-error.js';
import { PastContexts } from '../../history/rebuild/past-context.js';
import type { Timeline, When } from '../../history/rebuild/timeline.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { type SessionId, systemPromptObjectId } from '../../objects/ids.js';
import { MASK } from '../../redaction/mark.js';
import { assemblyId } from '../../store/assemblies.js';
import { recordId } from '../../store/context-records.js';
import type { Projection } from '../projection/project-session.js';
import { readProjection } from '../projection/read-projection.js';
import { SessionMoment } from '../projection/session-moment.js';
import { type BundleSource, makeBundle } from './bundle.js';
import { type Bundle, objectsOf, PART_NAMES } from './bundle-parts.js';
import { checkBundle } from './check-bundle.js';
import type { DeliveredContext } from './delivered-assemblies.js';
import { textsOf } from './item-texts.js';
import { FACT_KINDS, type FactRecord } from './recorded-facts.js';
import { REDACTION, Redactor, redactedWhole, ruleTexts } from './redaction.js';
import { writeBundle } from './write-bundle.js';

/** Record kinds that belong to a single turn. Other kinds stay valid after it. */
const OF_A_TURN: ReadonlySet<FactRecord['kind']> = new Set(['budget', 'selection', 'injection', 'event']);

/** Returns the input of a context, or nothing if this version cannot rebuild the same context. */
async function inputOf(contexts: PastContexts, proof: AssemblyProof): Promise<Pick<DeliveredContext, 'input'>> {
  try {
    const { input, matches } = await contexts.ofRecord(proof);
    return matches === true ? { input } : {};
  } catch (error) {
    if (error instanceof HistoryError) return {};
    throw error;
  }
}

/**
 * Returns the texts of wholly redacted objects by name: the session's newest texts (`newest`), and
 * every version of a redacted file regardless of the sets.
 */
async function redactedTexts(
  timeline: Timeline,
  newest: () => Promise<Projection>,
  redactions: readonly ContextRecord<'event'>[],
): Promise<BundleSource['redactedTexts']> {
  const names = redactedWhole(redactions);
  if (names.length === 0) return () => [];
  const { present } = timeline;
  const texts = new Map<string, readonly string[]>();
  // File ids are hashes of their locations.
  for (const name of names.filter((one) => /^[0-9a-f]{64}$/.test(one))) {
    const heads = (await present.historyOfHeads(name)).flatMap(({ document, marks }) =>
      document === undefined ? [] : [{ document, marks }],
    );
    const versions = await present.versionsIn(heads);
    texts.set(
      name,
      versions.flatMap(({ version }) => (typeof version.content === 'string' ? [version.content] : [])),
    );
  }
  const held = textsOf(await newest());
  return (name) => [...held(name), ...(texts.get(name) ?? [])];
}

/** The texts and objects that a session's redaction rules hide. */
export interface HiddenTexts {
  /** The number of rules. */
  readonly rules: number;
  /**
   * The number of rules that hide something which was not already masked on import. Unresolved
   * rules count too.
   */
  readonly inForce: number;
  /** The number of rules whose target is not found. */
  readonly unresolved: number;
  /** Texts to hide wherever they occur. */
  readonly texts: readonly string[];
  /** Texts to hide only where they occur as whole words. */
  readonly words: readonly string[];
  /** The ids of calls and files that are hidden entirely. */
  readonly objects: ReadonlySet<string>;
}

/** Returns the calls whose results the names refer to. */
function callsNamed({ entries }: Projection, names: ReadonlySet<string>): readonly string[] {
  return entries.flatMap((entry) =>
    entry.kind === 'result' &&
    [entry.id, entry.call, entry.native].some((name) => name !== undefined && names.has(name))
      ? [entry.call]
      : [],
  );
}

/**
 * Returns the texts and objects that a session's rules hide. A session without rules gives an empty
 * result.
 */
export async function hiddenTexts(asked: Timeline, session: SessionId): Promise<HiddenTexts> {
  const timeline = await asked.of(session);
  const lineage = await timeline.present.lineage(session);
  const events = lineage === undefined ? [] : await timeline.present.records(lineage, { kinds: ['event'] });
  const rules = events.filter(({ body }) => body.type === REDACTION);
  if (rules.length === 0) return { rules: 0, inForce: 0, unresolved: 0, texts: [], words: [], objects: new Set() };
  const projection = await readProjection(timeline, session);
  const textOf = await redactedTexts(timeline, async () => projection, rules);
  const { hidden, hiddenWords } = new Redactor(rules, textOf);
  const known = ruleTexts(rules, textOf);
  const whole = new Set([...known].flatMap(([name, { isWhole }]) => (isWhole ? [name] : [])));
  const { index } = (await timeline.present.sets(session)).sets;
  const objects = new Set<string>([...callsNamed(projection, whole), ...index.filter((id) => whole.has(id))]);
  const isMasked = (texts: readonly string[]): boolean => texts.length > 0 && texts.every((text) => text === MASK);
  const inForce = [...known.values()].filter(({ texts }) => !isMasked(texts)).length;
  const unresolved = [...known].filter(([name, { texts }]) => texts.length === 0 && !objects.has(name)).length;
  return { rules: known.size, inForce, unresolved, texts: hidden, words: hiddenWords, objects };
}

/**
 * Returns the newest transaction that wrote part of a bundle. Counted are the last step with the
 * calls before it, its files and prompt, and the given parts.
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
 * turn and its delivered contexts. Otherwise it covers the whole session up to the moment.
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
  const delivered: DeliveredContext[] = [];
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
