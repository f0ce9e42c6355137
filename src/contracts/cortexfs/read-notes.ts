import type { RecordBody } from '../../objects/context-record.js';
import { hashText } from '../../objects/hashes.js';
import { linesOf } from './check-file.js';

/** A note. `line` is the line of `messages.jsonl` that the note refers to, if any. */
export interface NotedRecord {
  readonly line: number | undefined;
  readonly body: RecordBody<'note'>;
}

type NoteKind = RecordBody<'note'>['note'];
type Fields = Readonly<Record<string, unknown>>;

const FACT_KINDS: ReadonlySet<unknown> = new Set(['fact', 'constraint', 'goal']);
const WORK = /^- \[( |x)\] (question: )?(.+)$/;

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
const lineIn = (source: string): number | undefined => {
  const found = /^messages:(?:\d+-)?(\d+)$/.exec(source)?.[1];
  return found === undefined ? undefined : Number(found);
};

function noted(text: string | undefined, field: 'text' | 'decision'): readonly NotedRecord[] {
  return linesOf(text ?? '').map((line) => {
    const fields = JSON.parse(line) as Fields;
    const source = String(fields.source);
    const own: NoteKind = FACT_KINDS.has(fields.kind) ? (fields.kind as NoteKind) : 'fact';
    const body = {
      name: String(fields.id),
      note: field === 'text' ? own : 'decision',
      text: textOf(fields.own_text) ?? String(fields[field]),
      source,
    };
    return { line: lineIn(source), body } as const;
  });
}

/** Returns open and finished work, one item per line. Ignores other lines. */
function work(text: string | undefined): readonly NotedRecord[] {
  return linesOf(text ?? '').flatMap((line) => {
    const [, mark, question, said] = WORK.exec(line.replace(/\r$/, '')) ?? [];
    if (said === undefined || said.startsWith('missing (')) return [];
    const isOpen = mark === ' ';
    const kind: NoteKind = question !== undefined ? 'question' : isOpen ? 'todo' : 'done';
    const body = { name: `work-${hashText(said).slice(0, 12)}`, note: kind, text: said.toWellFormed(), isOpen };
    return [{ line: undefined, body }];
  });
}

const sameText = (text: string): string => text.replace(/\s+/g, ' ').trim();

/**
 * Returns the notes in `facts.jsonl`, `decisions.jsonl` and `todo.md` that the directory's own
 * records lack. If another program changed only the kind of a note, the note keeps its record's
 * name.
 */
export function readNotes(
  files: ReadonlyMap<string, string>,
  records: readonly { readonly kind: string; readonly body: unknown }[],
): readonly NotedRecord[] {
  const known = new Set<string>();
  const names = new Map<string, string>();
  for (const { kind, body } of records) {
    const { name, note, text } = body as Partial<RecordBody<'note'>>;
    if (kind !== 'note' || name === undefined || note === undefined || text === undefined) continue;
    known.add(`${note} ${sameText(text)}`);
    names.set(sameText(text), name);
  }
  const all = [
    ...noted(files.get('context/facts.jsonl'), 'text'),
    ...noted(files.get('context/decisions.jsonl'), 'decision'),
    ...work(files.get('context/todo.md')),
  ];
  return all.flatMap(({ line, body }) => {
    const text = sameText(body.text);
    return known.has(`${body.note} ${text}`) ? [] : [{ line, body: { ...body, name: names.get(text) ?? body.name } }];
  });
}
