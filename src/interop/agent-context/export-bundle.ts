import { readProjection } from '../../history/project/read-projection.js';
import { SessionMoment } from '../../history/project/session-moment.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { PastContexts } from '../../history/rebuild/past-context.js';
import type { Timeline, When } from '../../history/rebuild/timeline.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { type SessionId, systemPromptObjectId } from '../../objects/ids.js';
import type { Projection } from '../../projection/project-session.js';
import { MASK } from '../../redaction/mark.js';
import { assemblyId } from '../../store/assemblies.js';
import { recordId } from '../../store/context-records.js';
import { type BundleSource, makeBundle } from './bundle.js';
import { type Bundle, objectsOf, PART_NAMES } from './bundle-parts.js';
import { checkBundle } from './check-bundle.js';
import type { DeliveredContext } from './delivered-assemblies.js';
import { textsOf } from './item-table.js';
import { FACT_KINDS, type FactRecord } from './recorded-facts.js';
import { REDACTION, Redactor, redactedWhole, ruleTexts } from './redaction.js';
import { writeBundle } from './write-bundle.js';

/** What belongs to one turn alone; the rest holds on. */
const OF_A_TURN: ReadonlySet<FactRecord['kind']> = new Set(['budget', 'selection', 'injection', 'event']);

/** What a context was made of; nothing where this version cannot make it again, or makes it otherwise. */
async function inputOf(contexts: PastContexts, proof: AssemblyProof): Promise<Pick<DeliveredContext, 'input'>> {
  try {
    const { input, matches } = await contexts.ofRecord(proof);
    return matches === true ? { input } : {};
  } catch (error) {
    if (error instanceof HistoryError) return {};
    throw error;
  }
}

/** The texts of what was redacted as a whole, by its name: as the session has it now (`newest`), and of a file every version, whatever the sets hold at any moment. */
async function redactedTexts(
  timeline: Timeline,
  newest: () => Promise<Projection>,
  redactions: readonly ContextRecord<'event'>[],
): Promise<BundleSource['redactedTexts']> {
  const names = redactedWhole(redactions);
  if (names.length === 0) return () => [];
  const { present } = timeline;
  const texts = new Map<string, readonly string[]>();
  // Files are called by hashes of where they lie.
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

/** What the rules of a session hide. */
export interface HiddenTexts {
  /** How many rules there are. */
  readonly rules: number;
  /** How many of them hide something that was not masked before it came into this database; one that nothing is found for is among them. */
  readonly inForce: number;
  /** How many of them name something that is not found. */
  readonly unresolved: number;
  /** Hidden wherever they stand. */
  readonly texts: readonly string[];
  /** Hidden where they stand by themselves. */
  readonly words: readonly string[];
  /** The ids of calls and files that are hidden as a whole. */
  readonly objects: ReadonlySet<string>;
}

/** The calls whose results some names stand for. */
function callsNamed({ entries }: Projection, names: ReadonlySet<string>): readonly string[] {
  return entries.flatMap((entry) =>
    entry.kind === 'result' && [entry.id, entry.call, entry.native].some((name) => name !== undefined && names.has(name))
      ? [entry.call]
      : [],
  );
}

/** What the rules of a session hide; nothing for a session without rules. */
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

/** The newest transaction that wrote something that a bundle holds: its last step, with the calls before it, its files and prompt, and some parts. */
async function newestOf({ projection, point, written }: SessionMoment, parts: readonly string[]): Promise<number> {
  const { session, seq, files } = projection;
  const objects = [systemPromptObjectId(session), ...files.map(({ metadata }) => metadata.id)];
  const found = await Promise.all([point.snapshot.times(objects), written.times(parts), point.snapshot.stepTimes(session, [seq])]);
  return Math.max(0, ...found.flatMap((times) => [...times.values()].map(({ txId }) => txId)));
}

/** What is wanted of a session. */
export interface WantedBundle {
  readonly when: When;
  /** Whose memory belongs to it; none where left out. */
  readonly agent?: string | undefined;
}

/**
 * What the bundle of a session at a moment is made of. At the end of a turn or step it is that turn's: what was handed out in it. Otherwise it is the whole session's up to then.
 * @throws {HistoryError} `beyond-end`, `not-yet`
 * @throws {StoreError} `missing-part`, `corrupt-part`
 * @throws {XtdbError}
 */
async function readBundleSource(asked: Timeline, session: SessionId, { when, agent }: WantedBundle): Promise<BundleSource> {
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
  const isOfScope = (record: FactRecord): boolean => scope === 'session' || record.turn === turn || !OF_A_TURN.has(record.kind);
  const proofs = found.filter((proof) => scope === 'session' || proof.turn === turn);
  const contexts = new PastContexts(timeline);
  const last = proofs.at(-1);
  if (last?.session === session) contexts.know(steps);
  const delivered: DeliveredContext[] = [];
  for (const proof of proofs) delivered.push({ id: assemblyId(proof), proof, ...(proof === last ? await inputOf(contexts, proof) : {}) });
  return {
    projection,
    newest,
    scope,
    steps: steps.slice(0, seq),
    records: [...(all as readonly ContextRecord<FactRecord['kind']>[] as readonly FactRecord[]), ...memory].filter(isOfScope),
    delivered,
    redactions,
    redactedTexts: await redactedTexts(timeline, () => readProjection(timeline, session), redactions),
  };
}

/**
 * The bundle of a session at a moment, checked: the same basis gives the same bundle.
 * @throws {AgentContextError} `invalid-bundle`; and as reading a session at a moment does
 */
export async function bundleAt(timeline: Timeline, session: SessionId, wanted: WantedBundle): Promise<Bundle> {
  const bundle = makeBundle(await readBundleSource(timeline, session, wanted));
  checkBundle(bundle);
  return bundle;
}

/** How many objects of each part a bundle has. */
const countsOf = (bundle: Bundle): Readonly<Record<string, number>> =>
  Object.fromEntries(PART_NAMES.map((part) => [part, objectsOf(bundle, part).length]));

/**
 * Writes the bundle of a session at a moment into a folder, whole or not at all.
 * @throws {AgentContextError} `folder-in-use`, `not-a-folder`, `invalid-bundle`; and as reading a session at a moment does
 */
export async function exportBundle(
  { timeline, session, ...wanted }: WantedBundle & { readonly timeline: Timeline; readonly session: SessionId },
  to: string,
): Promise<{ readonly lines: readonly string[]; readonly json: object }> {
  const bundle = await bundleAt(timeline, session, wanted);
  const { folder, isNew, files } = await writeBundle(bundle, to);
  const { context_id, scope } = bundle.envelope;
  const counts = countsOf(bundle);
  const said = `${counts.items} items, ${counts.assemblies} assemblies, ${counts.injections} injections, ${counts.events} events`;
  return {
    lines: [`${folder}: ${isNew ? `${context_id} of session ${session}, ${said}` : 'holds this bundle already'}`],
    json: { session, format: 'agent-context', context_id, scope, folder, written: isNew, files, counts },
  };
}
