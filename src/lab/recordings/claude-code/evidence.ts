import { numberedLines, outputLines } from '../../../harness/tool-output/numbered-lines.js';
import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { ownMember } from '../../../values/own-member.js';
import { idAt, listAt, numberAt, objectAt, objectsAt, textAt, textsAt } from '../entries/fields.js';
import { type FileEvidence, fileText, hunkPieces, namedFile, wholeFile } from '../entries/shown-file.js';
import type { EntryOf, ShownFile } from '../neutral-session.js';

const named = (path: string): ShownFile[] => (path === '' ? [] : [namedFile(path)]);

/**
 * Returns the part of a file that Claude Code describes. Returns only the file's name if the text
 * or its position is not recorded.
 */
function describedFile(file: JsonObject | undefined, path: string, cut: boolean): ShownFile[] {
  const text = textAt(file, 'content');
  const total = numberAt(file, 'totalLines');
  const start = numberAt(file, 'startLine') ?? 1;
  if (text === undefined || path === '' || start < 1) return named(path);
  const lines = numberAt(file, 'numLines');
  const whole = start === 1 && total !== undefined && lines === total && !cut;
  // A part does not include its last line end. So a line end at the part's end begins an empty last
  // line.
  const endsEmpty = !whole && !cut && text.endsWith('\n') && text.split('\n').length === lines;
  return [fileText(path, endsEmpty ? `${text}\n` : text, { start, whole, total })];
}

/** Returns the evidence in the structured copy of a tool's result (`toolUseResult`). */
type Twin = (twin: JsonObject) => FileEvidence;

const readTwin: Twin = (twin) => {
  const file = objectAt(twin, 'file');
  const path = textAt(file, 'filePath') ?? '';
  if (path === '') return {};
  if (textAt(twin, 'type') !== 'text') return { files: named(path) };
  const text = textAt(file, 'content');
  // If a read starts after the end of the file, its `startLine` is 0.
  if (text !== undefined && (numberAt(file, 'startLine') ?? 1) < 1) return { files: [{ ...namedFile(path), text }] };
  return { files: describedFile(file, path, false) };
};

interface Edit {
  readonly from: string;
  readonly to: string;
  readonly all: boolean;
}

/**
 * Applies one edit to a text, as the tool does. Undefined if the edit does not match. If the new
 * text is empty, the line end after the old text is also removed.
 */
function applyEdit(text: string, edit: Edit): string | undefined {
  if (edit.from === '') return text === '' ? edit.to : undefined;
  const wider =
    edit.to === '' && !edit.from.endsWith('\n') && text.includes(`${edit.from}\n`) ? `${edit.from}\n` : edit.from;
  const at = text.indexOf(wider);
  if (at < 0) return undefined;
  if (edit.all) return text.split(wider).join(edit.to);
  return text.slice(0, at) + edit.to + text.slice(at + wider.length);
}

function editOf(fields: JsonObject): Edit | undefined {
  const from = textAt(fields, 'oldString') ?? textAt(fields, 'old_string');
  const to = textAt(fields, 'newString') ?? textAt(fields, 'new_string');
  return from === undefined || to === undefined
    ? undefined
    : { from, to, all: (fields.replaceAll ?? fields.replace_all) === true };
}

/**
 * Returns whether a patch shows the file's exact lines. Some versions show leading tabs as spaces.
 */
function isExactPatch(lines: readonly string[], edits: readonly JsonObject[]): boolean {
  const bodies = lines.map((line) => line.slice(1));
  if (bodies.some((line) => line.startsWith('\t')) || !bodies.some((line) => line.startsWith(' '))) return true;
  const known = new Set(
    edits.flatMap((fields) => editOf(fields) ?? []).flatMap(({ from, to }) => `${from}\n${to}`.split('\n')),
  );
  return lines.some((line) => /^[-+] /.test(line) && known.has(line.slice(1)));
}

/** Returns the parts of a file that an edit's patch shows, from before and after the edit. */
function patchedPieces(path: string, twin: JsonObject, edits: readonly JsonObject[]): readonly ShownFile[] {
  const hunks = objectsAt(twin, 'structuredPatch').map((hunk) => ({
    oldStart: numberAt(hunk, 'oldStart') ?? 0,
    newStart: numberAt(hunk, 'newStart') ?? 0,
    lines: textsAt(hunk, 'lines'),
  }));
  const lines = hunks.flatMap((hunk) => hunk.lines);
  return isExactPatch(lines, edits) ? hunks.flatMap((hunk) => hunkPieces(path, hunk)) : [];
}

const editTwin: Twin = (twin) => {
  const path = textAt(twin, 'filePath') ?? '';
  if (path === '') return {};
  const edits = listAt(twin, 'edits').length > 0 ? objectsAt(twin, 'edits') : [twin];
  const before = textAt(twin, 'originalFile') ?? textAt(twin, 'originalFileContents');
  if (before === undefined) return { files: [...patchedPieces(path, twin, edits), namedFile(path)] };
  const after = edits.reduce<string | undefined>((text, fields) => {
    const edit = editOf(fields);
    return edit === undefined || text === undefined ? undefined : applyEdit(text, edit);
  }, before);
  const known = after !== undefined && twin.userModified !== true;
  return { files: [wholeFile(path, before, 'before'), known ? wholeFile(path, after, 'after') : namedFile(path)] };
};

const writeTwin: Twin = (twin) => {
  const path = textAt(twin, 'filePath') ?? '';
  const text = textAt(twin, 'content');
  if (path === '' || text === undefined) return {};
  const before = textAt(twin, 'originalFile');
  const after = twin.userModified === true ? namedFile(path) : wholeFile(path, text, 'after');
  return { files: before === undefined ? [after] : [wholeFile(path, before, 'before'), after] };
};

const listing: Twin = (twin) => ({
  listed: textsAt(twin, 'filenames').filter((name) => name !== ''),
  truncated: twin.truncated === true || numberAt(twin, 'appliedLimit') !== undefined,
});

const TWINS: Readonly<Record<string, Twin>> = {
  Read: readTwin,
  Edit: editTwin,
  MultiEdit: editTwin,
  Write: writeTwin,
  Grep: listing,
  Glob: listing,
};

const CUT = /<persisted-output>|\[\d+ (?:characters|lines) truncated\]/;

/**
 * Returns the evidence in the structured copy of a tool's result. It is empty for tools without
 * such a copy, and for errors, which are plain text.
 */
export function twinEvidence(tool: string | undefined, twin: unknown, text: string): FileEvidence {
  const evidence = tool !== undefined && isJsonObject(twin) ? (ownMember(TWINS, tool)?.(twin) ?? {}) : {};
  const truncated = evidence.truncated === true || CUT.test(text);
  return { ...evidence, ...(truncated ? { truncated } : {}) };
}

/**
 * The entry for an attachment: an event, or a message with text that the model got. Both may show
 * files.
 */
type Attachment =
  | Pick<EntryOf<'event'>, 'kind' | 'name' | 'text' | 'files'>
  | Pick<EntryOf<'message'>, 'kind' | 'origin' | 'name' | 'text'>;

type AttachmentReader = (fields: JsonObject) => Attachment | undefined;

const attached = (text: string | undefined, files: ShownFile[]): Attachment => ({
  kind: 'event',
  name: 'file-attached',
  text,
  files,
});

/** Returns each run of consecutive numbered lines in a snippet as a part of the file. */
function snippetPieces(path: string, snippet: string): ShownFile[] {
  const lines = outputLines(snippet);
  const pieces: ShownFile[] = [];
  for (let at = 0; at < lines.length; ) {
    const run = numberedLines(lines, at, 'tab') ?? numberedLines(lines, at, 'arrow');
    if (run !== undefined) pieces.push(fileText(path, run.lines.join('\n'), { start: run.first, whole: false }));
    at += run?.lines.length ?? 1;
  }
  return pieces;
}

const attachedFile: AttachmentReader = (fields) => {
  const file = objectAt(objectAt(fields, 'content'), 'file');
  const path = textAt(file, 'filePath') ?? textAt(fields, 'filename') ?? '';
  const shown = describedFile(file, path, fields.truncated === true);
  return attached(shown[0]?.text, shown);
};

const memory: AttachmentReader = (fields) => {
  const inner = objectAt(fields, 'content');
  const path = textAt(fields, 'path') ?? textAt(inner, 'path') ?? '';
  const text = textAt(inner, 'content');
  if (text === undefined || path === '') return undefined;
  const onDisk = inner?.contentDiffersFromDisk === true ? textAt(inner, 'rawContent') : text;
  return attached(text, [onDisk === undefined ? namedFile(path) : wholeFile(path, onDisk, 'after')]);
};

const selection: AttachmentReader = (fields) => {
  const path = textAt(fields, 'filename') ?? '';
  const text = textAt(fields, 'content');
  const start = numberAt(fields, 'lineStart');
  if (text === undefined || start === undefined || start < 1 || path === '') return undefined;
  return attached(text, [fileText(path, text, { start, whole: false })]);
};

const changed: AttachmentReader = (fields) => {
  const path = textAt(fields, 'filename') ?? '';
  const snippet = textAt(fields, 'snippet') ?? '';
  const pieces = path === '' ? [] : snippetPieces(path, snippet);
  return { kind: 'event', name: 'file-changed', text: snippet, files: pieces.length > 0 ? pieces : named(path) };
};

const reference: AttachmentReader = (fields) => ({
  kind: 'event',
  name: 'file-named',
  files: named(textAt(fields, 'filename') ?? ''),
});

const queued: AttachmentReader = (fields) => {
  const blocks = objectsAt(fields, 'prompt').map((block) => textAt(block, 'text') ?? '');
  const byPerson = (textAt(fields, 'commandMode') ?? 'prompt') === 'prompt';
  const text = textAt(fields, 'prompt') ?? blocks.join('\n');
  return { kind: 'message', origin: byPerson ? 'person' : 'harness', name: 'queued_command', text };
};

/** Kinds of attachments that only the terminal shows. The model does not get them. */
const UNSEEN = new Set([
  'hook_system_message',
  'command_permissions',
  'auto_mode',
  'hook_non_blocking_error',
  'hook_cancelled',
]);

const ATTACHMENTS: Readonly<Record<string, AttachmentReader>> = {
  file: attachedFile,
  nested_memory: memory,
  selected_lines_in_ide: selection,
  opened_file_in_ide: reference,
  compact_file_reference: reference,
  edited_text_file: changed,
  queued_command: queued,
};

function carriedText(fields: JsonObject): string {
  const content = textAt(fields, 'content') ?? textAt(fields, 'snippet');
  if (content !== undefined) return content;
  const lines = ['content', 'addedLines', 'addedBlocks'].flatMap((field) => textsAt(fields, field));
  const items = objectsAt(fields, 'content').map((item) => JSON.stringify(item));
  return [...lines, ...items].join('\n');
}

/**
 * Reads an attachment. Undefined if only the person at the terminal sees it. For the model, Claude
 * Code wraps an attachment in text that is not recorded. An attachment of an unknown kind becomes a
 * message with its text, or an event if it has none.
 */
export function readAttachment(fields: JsonObject): Attachment | undefined {
  const type = idAt(fields, 'type') ?? 'attachment';
  if (UNSEEN.has(type)) return undefined;
  const known = ownMember(ATTACHMENTS, type)?.(fields);
  if (known !== undefined) return known;
  const text = carriedText(fields);
  if (text !== '') return { kind: 'message', origin: 'harness', name: type, text };
  return type === 'hook_success' ? undefined : { kind: 'event', name: `attachment-${type}` };
}
