import { numberedLines, outputLines } from '../../../foreign-tools/numbered-lines.js';
import { defined } from '../../../values/defined.js';
import { idAt, numberAt, objectAt, objectsAt, textAt, textsAt } from '../entries/fields.js';
import type { JsonObject } from '../json/json-text.js';
import type { ShownFile } from '../neutral-session.js';

/** What an attachment is: a text that the model got, files that it was shown, or both. */
export interface Attachment {
  readonly kind: 'message' | 'event';
  readonly origin: 'person' | 'harness';
  readonly name: string;
  readonly text?: string;
  readonly files?: readonly ShownFile[];
}

type Reader = (fields: JsonObject) => Attachment | undefined;

/** The runs of numbered lines in a snippet: each is a piece of the file. */
function snippetPieces(path: string, snippet: string): readonly ShownFile[] {
  const lines = outputLines(snippet);
  const pieces: ShownFile[] = [];
  for (let at = 0; at < lines.length; ) {
    const run = numberedLines(lines, at, 'tab') ?? numberedLines(lines, at, 'arrow');
    if (run !== undefined) pieces.push({ path, moment: 'after', whole: false, start_line: run.first, text: run.lines.join('\n') });
    at += run?.lines.length ?? 1;
  }
  return pieces;
}

const named = (path: string): readonly ShownFile[] => (path === '' ? [] : [{ path, moment: 'after', whole: false }]);

const attachedFile: Reader = (fields) => {
  const file = objectAt(objectAt(fields, 'content'), 'file');
  const path = textAt(file, 'filePath') ?? textAt(fields, 'filename') ?? '';
  const text = textAt(file, 'content');
  const start = numberAt(file, 'startLine') ?? 1;
  const total = numberAt(file, 'totalLines');
  if (text === undefined || path === '' || start < 1) return { kind: 'event', origin: 'person', name: 'file-attached', files: named(path) };
  const whole = start === 1 && total !== undefined && numberAt(file, 'numLines') === total && fields.truncated !== true;
  const shown: ShownFile = {
    path,
    moment: 'after',
    text,
    whole,
    start_line: start,
    ...defined({ total_lines: total }),
  };
  return { kind: 'event', origin: 'person', name: 'file-attached', text, files: [shown] };
};

const memory: Reader = (fields) => {
  const inner = objectAt(fields, 'content');
  const path = textAt(fields, 'path') ?? textAt(inner, 'path') ?? '';
  const text = textAt(inner, 'content');
  if (text === undefined || path === '') return undefined;
  const onDisk = inner?.contentDiffersFromDisk === true ? textAt(inner, 'rawContent') : text;
  const files: readonly ShownFile[] = onDisk === undefined ? named(path) : [{ path, moment: 'after', whole: true, text: onDisk }];
  return { kind: 'event', origin: 'harness', name: 'file-attached', text, files };
};

const selection: Reader = (fields) => {
  const path = textAt(fields, 'filename') ?? '';
  const text = textAt(fields, 'content');
  const start = numberAt(fields, 'lineStart');
  if (text === undefined || start === undefined || start < 1 || path === '') return undefined;
  return {
    kind: 'event',
    origin: 'person',
    name: 'file-attached',
    text,
    files: [{ path, moment: 'after', whole: false, text, start_line: start }],
  };
};

const changed: Reader = (fields) => {
  const path = textAt(fields, 'filename') ?? '';
  const snippet = textAt(fields, 'snippet') ?? '';
  const pieces = path === '' ? [] : snippetPieces(path, snippet);
  return { kind: 'event', origin: 'harness', name: 'file-changed', text: snippet, files: pieces.length > 0 ? pieces : named(path) };
};

const reference: Reader = (fields) => ({
  kind: 'event',
  origin: 'harness',
  name: 'file-named',
  files: named(textAt(fields, 'filename') ?? ''),
});

const queued: Reader = (fields) => {
  const prompt =
    textAt(fields, 'prompt') ??
    objectsAt(fields, 'prompt')
      .map((block) => textAt(block, 'text') ?? '')
      .join('\n');
  const byPerson = (textAt(fields, 'commandMode') ?? 'prompt') === 'prompt';
  return { kind: 'message', origin: byPerson ? 'person' : 'harness', name: 'queued_command', text: prompt };
};

/** What only the person at the terminal sees, and what says nothing. */
const UNSEEN = new Set(['hook_system_message', 'command_permissions', 'auto_mode', 'hook_non_blocking_error', 'hook_cancelled']);

const READERS: Readonly<Record<string, Reader>> = {
  file: attachedFile,
  nested_memory: memory,
  selected_lines_in_ide: selection,
  opened_file_in_ide: reference,
  compact_file_reference: reference,
  edited_text_file: changed,
  queued_command: queued,
};

function textOf(fields: JsonObject): string {
  const content = textAt(fields, 'content') ?? textAt(fields, 'snippet');
  if (content !== undefined) return content;
  const lines = ['content', 'addedLines', 'addedBlocks'].flatMap((field) => textsAt(fields, field));
  const items = objectsAt(fields, 'content').map((item) => JSON.stringify(item));
  return [...lines, ...items].join('\n');
}

/**
 * What an attachment of a Claude Code recording is; undefined where it is for the person at the terminal alone. What the program wraps around it when it
 * hands it to the model is not recorded. Kinds that are not known give the text that they carry, an event where they carry none.
 */
export function readAttachment(fields: JsonObject): Attachment | undefined {
  const type = idAt(fields, 'type') ?? 'attachment';
  if (UNSEEN.has(type)) return undefined;
  const known = Object.hasOwn(READERS, type) ? READERS[type]?.(fields) : undefined;
  if (known !== undefined) return known;
  const text = textOf(fields);
  if (text !== '') return { kind: 'message', origin: 'harness', name: type, text };
  return type === 'hook_success' ? undefined : { kind: 'event', origin: 'harness', name: `attachment-${type}` };
}
