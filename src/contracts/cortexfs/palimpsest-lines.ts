import { canonicalJson, type Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { hashText } from '../../objects/hashes.js';
import type { ObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { defined } from '../../values/defined.js';
import type { EntryCall, ResultEntry } from '../projection/entry.js';
import type { Projection } from '../projection/project-session.js';
import { answeredCalls } from './event-lines.js';
import type { MessageLine } from './message-lines.js';
import { PALIMPSEST_FORMAT } from './palimpsest-file.js';

/** The data of a session for `context/palimpsest.jsonl`. */
export interface OwnSession {
  readonly projection: Projection;
  readonly steps: readonly Step[];
  /** The texts of its files. */
  readonly contents: ReadonlyMap<ObjectId, string | null>;
  readonly records: readonly ContextRecord[];
}

/** Returns a step without its session, and without the fields that `messages.jsonl` stores. */
function stepFields({ session: _session, message, ...step }: Step): object {
  if (message === undefined) return step;
  const { role, name } = message;
  return { ...step, message: { role, ...defined({ name }) } };
}

/** Returns the line numbers of each step, and whether we generated all of them. */
function placesOf(
  lines: readonly MessageLine[],
): ReadonlyMap<number, { readonly lines: readonly number[]; readonly isOwn: boolean }> {
  const places = new Map<number, { readonly lines: number[]; isOwn: boolean }>();
  for (const [i, { seq, isOwn }] of lines.entries()) {
    const place = places.get(seq) ?? { lines: [], isOwn: true };
    place.lines.push(i + 1);
    place.isOwn &&= isOwn;
    places.set(seq, place);
  }
  return places;
}

interface MadeCall {
  readonly call: EntryCall;
  readonly result: ResultEntry;
}

/** Returns the answered calls by the step of their result. */
function callsOf({ entries }: Projection): ReadonlyMap<number, MadeCall> {
  const calls = answeredCalls(entries);
  return new Map(
    entries.flatMap((entry) => {
      const call = entry.kind === 'result' ? calls.get(entry.id) : undefined;
      return entry.kind !== 'result' || call === undefined ? [] : [[entry.seq, { call, result: entry }] as const];
    }),
  );
}

const callFields = ({ call, result }: MadeCall): object => ({
  tool: call.tool,
  args: JSON.parse(call.argsText),
  status: result.status,
  content: result.text,
});

/**
 * Returns the lines of `context/palimpsest.jsonl`. With `messages.jsonl` they rebuild the session
 * in any database: its steps, its sets, its records, and its indexed files at the basis. Every
 * database writes the same lines for the same session.
 */
export function palimpsestLines(
  { projection, steps, contents, records }: OwnSession,
  lines: readonly MessageLine[],
): readonly string[] {
  const places = placesOf(lines);
  const calls = callsOf(projection);
  const prompt = projection.entries.find((entry) => entry.kind === 'system' && entry.isPrompt);
  const head = {
    format: PALIMPSEST_FORMAT,
    session: projection.session,
    lines: lines.length,
    sha256: hashText(lines.map(({ text }) => `${text}\n`).join('')),
    ...defined({ prompt_at: prompt?.at }),
  };
  const made = steps.map((step) => {
    const place = places.get(step.seq);
    const call = calls.get(step.seq);
    const files = call?.result.files ?? [];
    const common = { lines: place?.lines, files: files.length === 0 ? undefined : files };
    const isTold = place?.isOwn === true && place.lines.length === (step.call === undefined ? 1 : 2);
    const own = isTold ? {} : { said: step.message?.text, made: call === undefined ? undefined : callFields(call) };
    return { step: stepFields(step), ...defined({ ...common, ...own }) };
  });
  const files = projection.files.map(({ metadata, source }) => {
    const { id, state, fileHash } = metadata;
    const at = projection.versions.get(id)?.validTime ?? 0;
    return { file: { source, state, at, sha256: fileHash, content: contents.get(id) ?? null } };
  });
  const kept = records.map(({ owner: _owner, ...record }) => ({ record }));
  return [head, ...made, ...files, ...kept].map((line) => canonicalJson(line as unknown as Json));
}
