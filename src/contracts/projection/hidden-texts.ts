import { type HiddenTexts, NOTHING_HIDDEN } from '../../history/rebuild/hidden-texts.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { ContextRecord } from '../../objects/context-record.js';
import type { SessionId } from '../../objects/ids.js';
import { MASK } from '../../redaction/mark.js';
import { textsOf } from './item-texts.js';
import type { Projection } from './project-session.js';
import { readProjection } from './read-projection.js';
import { REDACTION, Redactor, redactedWhole, ruleTexts } from './redaction-rules.js';

/**
 * Returns a function that maps the name of a wholly redacted object to its texts. For a file, these
 * are the texts of all versions. For other objects, they are the texts in the session's newest
 * state.
 */
export async function redactedTexts(
  timeline: Timeline,
  newest: () => Promise<Projection>,
  redactions: readonly ContextRecord<'event'>[],
): Promise<(name: string) => readonly string[]> {
  const names = redactedWhole(redactions);
  if (names.length === 0) return () => [];
  const { present } = timeline;
  const texts = new Map<string, readonly string[]>();
  // A file's id is a hash of its location, so 64 digits may name a file.
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

/** Returns the ids of the calls whose results have one of the names. */
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
  if (rules.length === 0) return NOTHING_HIDDEN;
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
