import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { hashText } from '../../objects/hashes.js';
import type { ObjectId, Sha256 } from '../../objects/ids.js';
import { isJsonObject } from '../../values/json-object.js';
import type { EntryId, ResultEntry } from '../projection/entry.js';
import type { Projection } from '../projection/project-session.js';
import { answeredCalls, oneLine } from './event-lines.js';
import { HANDOFF_TOOL, PINNED_TOOL } from './imported-steps.js';
import type { MessageLine } from './message-lines.js';
import { contentName, isName, nameFor } from './session-paths.js';

/** The records shown in the files of the context area, the folder `context/`. */
export type ShownRecord = ContextRecord<'note' | 'compaction' | 'missing'>;

/**
 * A session with the line numbers of its entries in `messages.jsonl`, from 1. A message with calls
 * has several lines, with the results between them.
 */
export interface PlacedSession {
  readonly projection: Projection;
  readonly lines: readonly MessageLine[];
  readonly firstLineOf: ReadonlyMap<EntryId, number>;
  /** The last line of each entry. */
  readonly lineOf: ReadonlyMap<EntryId, number>;
  readonly records: readonly ShownRecord[];
  /** The texts of the session's files, as far as they were read. */
  readonly contents: ReadonlyMap<ObjectId, string | null>;
}

/** Minimum characters of a shared text. A reference to a shorter text would save nothing. */
const LEAST_SHARED = 1_024;
const LONGEST_SUMMARY = 160;

/** Joins lines into a file's text, each with a line end. */
export const fileOf = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');
const jsonLines = (values: readonly object[]): string => fileOf(values.map((value) => JSON.stringify(value)));

function shortLine(text: string): string {
  const line = oneLine(text);
  return line.length <= LONGEST_SUMMARY ? line : `${line.slice(0, LONGEST_SUMMARY).toWellFormed()} …`;
}

/** Returns the name of a file in the context area. */
const fileName = (id: ObjectId): string => `f-${id.slice(0, 32)}`;

const resultsOf = ({ entries }: Projection): readonly ResultEntry[] =>
  entries.flatMap((entry) => (entry.kind === 'result' ? [entry] : []));

/** Returns the line of the last entry that existed when a record was written. */
function sourceOf({ seq }: ShownRecord, { projection, lineOf }: PlacedSession): string {
  const last = projection.entries.findLast((entry) => entry.seq <= seq && lineOf.has(entry.id));
  return last === undefined ? 'session' : `messages:${lineOf.get(last.id)}`;
}

/** Returns notes of some kinds as facts or decisions. A repeated name gets a number in its id. */
function notedLines(session: PlacedSession, kinds: readonly string[], field: 'text' | 'decision'): string {
  const seen = new Map<string, number>();
  return jsonLines(
    session.records.flatMap((record) => {
      if (record.kind !== 'note' || !kinds.includes(record.body.note)) return [];
      const { name, note, text, source } = record.body;
      const times = (seen.get(name) ?? 0) + 1;
      seen.set(name, times);
      const id = nameFor(times === 1 ? name : `${name}.${times}`);
      const said = oneLine(text);
      const lost = said === text ? {} : { own_text: text };
      const kind = kinds[0] === note ? {} : { kind: note };
      return [{ id, [field]: said, source: oneLine(source ?? sourceOf(record, session)), ...kind, ...lost }];
    }),
  );
}

/** Returns open and finished work, open questions, and known gaps. */
function todoText({ records }: PlacedSession): string {
  const items = new Map<string, string>();
  for (const record of records) {
    if (record.kind === 'missing') {
      const { question, status, severity } = record.body;
      items.set(
        `missing ${question}`,
        `- [${status === 'resolved' ? 'x' : ' '}] missing (${severity}): ${oneLine(question)}`,
      );
    }
    if (record.kind !== 'note') continue;
    const { name, note, text, isOpen = note !== 'done' } = record.body;
    if (note === 'todo' || note === 'done') items.set(name, `- [${isOpen ? ' ' : 'x'}] ${oneLine(text)}`);
    if (note === 'question') items.set(name, `- [${isOpen ? ' ' : 'x'}] question: ${oneLine(text)}`);
  }
  return fileOf([...items.values()]);
}

/**
 * Returns the results that the model sees only as a line. `messages.jsonl` still has their texts.
 */
function swappedResults({ projection, lineOf }: PlacedSession): readonly object[] {
  const found = new Map<string, object>();
  for (const { id, text, active, pinned, sha256, line, tokens } of resultsOf(projection)) {
    const at = lineOf.get(id);
    if (active || pinned || at === undefined || text === null || text === '') continue;
    const name = contentName(sha256);
    if (found.has(name)) continue;
    found.set(name, {
      id: name,
      kind: 'tool_output',
      source: 'messages.jsonl',
      range: `${at}-${at}`,
      summary: shortLine(line),
      tokens,
      sha256,
    });
  }
  return [...found.values()];
}

/** Returns the entries that the last compaction removed from the view, as one range. */
function swappedRange({ projection, firstLineOf, lineOf, lines, records }: PlacedSession): readonly object[] {
  const last = records.findLast((record) => record.kind === 'compaction');
  const gone =
    last?.kind === 'compaction'
      ? last.body.gone.flatMap((id) => [firstLineOf, lineOf].flatMap((of) => of.get(id as EntryId) ?? []))
      : [];
  if (last?.kind !== 'compaction' || gone.length === 0) return [];
  const [first, end] = [gone.reduce((a, b) => Math.min(a, b)), gone.reduce((a, b) => Math.max(a, b))];
  const text = fileOf(lines.slice(first - 1, end).map((line) => line.text));
  const sha256 = hashText(text);
  const summary = shortLine(last.body.summary?.text ?? 'left out of the view without a summary');
  const tokens = projection.counter.count(text);
  return [
    {
      id: contentName(sha256),
      kind: 'message_range',
      source: 'messages.jsonl',
      range: `${first}-${end}`,
      summary,
      tokens,
      sha256,
    },
  ];
}

function refLines({ projection, lineOf }: PlacedSession): string {
  const files = projection.files.map(({ metadata, source, active }) => ({
    id: fileName(metadata.id),
    path: source.path,
    kind: 'file',
    summary: active ? 'in context' : 'known, not in context',
  }));
  const outputs = resultsOf(projection).flatMap(({ id, active, pinned, line }) => {
    const at = lineOf.get(id);
    return active || pinned || at === undefined
      ? []
      : [{ id, path: 'messages.jsonl', kind: 'tool_output', summary: shortLine(line), range: `${at}-${at}` }];
  });
  return jsonLines([...files, ...outputs]);
}

/** A text, and the places where it occurs. */
interface SharedText {
  readonly text: string;
  readonly tokens: number | undefined;
  readonly refs: string[];
}

/**
 * Returns the texts that occur more than once among the outputs in `messages.jsonl`, the files of
 * the index and the pinned objects.
 */
function dedupLines({ projection, lineOf, contents }: PlacedSession): string {
  const shared = new Map<Sha256, SharedText>();
  const add = (
    ref: string,
    text: string | null | undefined,
    { sha256, tokens }: { sha256?: Sha256 | null; tokens?: number } = {},
  ): void => {
    if (typeof text !== 'string' || text.length < LEAST_SHARED) return;
    const hash = sha256 ?? hashText(text);
    const known = shared.get(hash);
    if (known === undefined) shared.set(hash, { text, tokens, refs: [ref] });
    else known.refs.push(ref);
  };
  for (const result of resultsOf(projection)) {
    const at = lineOf.get(result.id);
    if (at !== undefined) add(`messages:${at}`, result.text, result);
  }
  for (const { metadata } of projection.files)
    add(`file:${fileName(metadata.id)}`, contents.get(metadata.id), { sha256: metadata.contentHash });
  for (const [path, text] of pinnedFiles(projection)) add(`pinned:${path.slice(PINNED.length)}`, text);
  return jsonLines(
    [...shared]
      .filter(([, { refs }]) => refs.length > 1)
      .map(([sha256, { text, tokens = projection.counter.count(text), refs }]) => ({
        hash: contentName(sha256),
        refs,
        bytes: Buffer.byteLength(text),
        tokens,
        sha256,
      })),
  );
}

/** Returns a text argument of a call; empty if absent. */
function argument(args: Json | undefined, key: string): string {
  const value = isJsonObject(args) ? args[key] : undefined;
  return typeof value === 'string' ? value : '';
}

/** Returns the file name of a pinned result. A file that another program pinned keeps its name. */
function pinnedName({ id, tool }: ResultEntry, args: Json | undefined): string {
  const name = tool === PINNED_TOOL ? argument(args, 'name') : '';
  return isName(name) ? name : `${id}.md`;
}

const PINNED = 'context/pinned/';

/** Returns a file for the prompt and for each pinned object. */
function pinnedFiles({ entries, files }: Projection): readonly (readonly [string, string])[] {
  const prompt = entries.find((entry) => entry.kind === 'system' && entry.isPrompt);
  const calls = answeredCalls(entries);
  const results = entries.flatMap((entry) =>
    entry.kind === 'result' && entry.pinned
      ? [[pinnedName(entry, calls.get(entry.id)?.args), entry.text ?? ''] as const]
      : [],
  );
  const pinned = files.flatMap(({ metadata, pinned, content }) =>
    pinned && typeof content === 'string' ? [[`${fileName(metadata.id)}.md`, content] as const] : [],
  );
  const system = prompt?.kind === 'system' ? [['system.md', prompt.text] as const] : [];
  return [...system, ...results, ...pinned].map(([name, text]) => [`${PINNED}${name}`, text] as const);
}

/**
 * Returns the folders of child agents, made from the session's handoff calls. They never contain a
 * child's own messages.
 */
function childFiles({ entries }: Projection): readonly (readonly [string, string])[] {
  const calls = answeredCalls(entries);
  return entries.flatMap((entry) => {
    if (entry.kind !== 'result' || entry.tool !== HANDOFF_TOOL) return [];
    const field = (key: string): string => argument(calls.get(entry.id)?.args, key);
    const folder = `context/child/${nameFor(field('child') === '' ? entry.native : field('child'))}`;
    return [
      [`${folder}/agent`, `${oneLine(field('agent'), field('child'))}\n`] as const,
      [`${folder}/session`, `${oneLine(field('session'), '')}\n`] as const,
      [`${folder}/status`, entry.status === 'ok' ? 'done\n' : 'error\n'] as const,
      [`${folder}/handoff.md`, field('handoff')] as const,
      [`${folder}/result.md`, entry.text ?? ''] as const,
      [`${folder}/refs.jsonl`, ''] as const,
    ];
  });
}

/**
 * Returns the files of the context area by path, except `budget` and the files of a pack. All are
 * derived from the session and its records.
 */
export function contextFiles(session: PlacedSession): ReadonlyMap<string, string> {
  const compaction = session.records.findLast(
    (record) => record.kind === 'compaction' && record.body.summary !== undefined,
  );
  const summary = compaction?.kind === 'compaction' ? (compaction.body.summary?.text ?? '') : '';
  return new Map([
    ['context/summary.md', summary],
    ['context/facts.jsonl', notedLines(session, ['fact', 'constraint', 'goal'], 'text')],
    ['context/decisions.jsonl', notedLines(session, ['decision'], 'decision')],
    ['context/todo.md', todoText(session)],
    ['context/refs.jsonl', refLines(session)],
    ['context/swap/index.jsonl', jsonLines([...swappedRange(session), ...swappedResults(session)])],
    ['context/dedup/index.jsonl', dedupLines(session)],
    ...pinnedFiles(session.projection),
    ...childFiles(session.projection),
  ]);
}
