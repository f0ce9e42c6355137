import { defined } from '../../../values/defined.js';
import { listAt, numberAt, objectAt, objectsAt, textAt, textsAt } from '../entries/fields.js';
import { wholeFile } from '../evidence/shown-file.js';
import { hunkPieces } from '../evidence/shown-hunk.js';
import { isJsonObject, type JsonObject } from '../json/json-text.js';
import type { ShownFile } from '../neutral-session.js';

/** What the structured twin of a result shows beyond its text. */
export interface TwinEvidence {
  readonly files?: readonly ShownFile[];
  readonly listed?: readonly string[];
  readonly truncated?: boolean;
}

type Twin = (twin: JsonObject) => TwinEvidence;

function readTwin(twin: JsonObject): TwinEvidence {
  const file = objectAt(twin, 'file');
  const path = textAt(file, 'filePath');
  if (path === undefined || path === '') return {};
  const text = textAt(file, 'content');
  const total = numberAt(file, 'totalLines');
  const start = numberAt(file, 'startLine') ?? 1;
  if (text === undefined || textAt(twin, 'type') !== 'text') return { files: [{ path, moment: 'after', whole: false }] };
  if (start < 1) return { files: [{ path, moment: 'after', whole: false, text }] };
  const whole = start === 1 && total !== undefined && numberAt(file, 'numLines') === total;
  return { files: [{ path, moment: 'after', text, whole, start_line: start, ...defined({ total_lines: total }) }] };
}

/** What the tool makes of a text by one edit; undefined where the edit does not fit it. An edit to nothing takes the line end with it. */
export function applyEdit(text: string, edit: { readonly from: string; readonly to: string; readonly all: boolean }): string | undefined {
  if (edit.from === '') return text === '' ? edit.to : undefined;
  const wider = edit.to === '' && !edit.from.endsWith('\n') && text.includes(`${edit.from}\n`) ? `${edit.from}\n` : edit.from;
  const at = text.indexOf(wider);
  if (at < 0) return undefined;
  if (edit.all) return text.split(wider).join(edit.to);
  return text.slice(0, at) + edit.to + text.slice(at + wider.length);
}

const editOf = (fields: JsonObject): { from: string; to: string; all: boolean } | undefined => {
  const from = textAt(fields, 'oldString') ?? textAt(fields, 'old_string');
  const to = textAt(fields, 'newString') ?? textAt(fields, 'new_string');
  return from === undefined || to === undefined ? undefined : { from, to, all: (fields.replaceAll ?? fields.replace_all) === true };
};

/** Whether the lines of a patch are those of the file: some versions show leading tabs as spaces. */
function isExactPatch(lines: readonly string[], edits: readonly JsonObject[]): boolean {
  const bodies = lines.map((line) => line.slice(1));
  if (bodies.some((line) => line.startsWith('\t')) || !bodies.some((line) => line.startsWith(' '))) return true;
  const known = new Set(edits.flatMap(editOf).flatMap((edit) => (edit === undefined ? [] : `${edit.from}\n${edit.to}`.split('\n'))));
  return lines.some((line) => /^[-+] /.test(line) && known.has(line.slice(1)));
}

/** The pieces of a file that a patch shows before and after. */
function patchedPieces(path: string, twin: JsonObject, edits: readonly JsonObject[]): readonly ShownFile[] {
  const hunks = objectsAt(twin, 'structuredPatch');
  if (
    !isExactPatch(
      hunks.flatMap((hunk) => textsAt(hunk, 'lines')),
      edits,
    )
  )
    return [];
  return hunks.flatMap((hunk) =>
    hunkPieces(path, {
      oldStart: numberAt(hunk, 'oldStart') ?? 0,
      newStart: numberAt(hunk, 'newStart') ?? 0,
      lines: textsAt(hunk, 'lines'),
    }),
  );
}

function editTwin(twin: JsonObject): TwinEvidence {
  const path = textAt(twin, 'filePath');
  if (path === undefined || path === '') return {};
  const edits = listAt(twin, 'edits').length > 0 ? objectsAt(twin, 'edits') : [twin];
  const before = textAt(twin, 'originalFile') ?? textAt(twin, 'originalFileContents');
  if (before === undefined) return { files: [...patchedPieces(path, twin, edits), { path, moment: 'after', whole: false }] };
  let after: string | undefined = before;
  for (const fields of edits) {
    const edit = editOf(fields);
    after = edit === undefined || after === undefined ? undefined : applyEdit(after, edit);
  }
  const known = after !== undefined && twin.userModified !== true;
  const then: ShownFile = known && after !== undefined ? wholeFile(path, after, 'after') : { path, moment: 'after', whole: false };
  return { files: [wholeFile(path, before, 'before'), then] };
}

function writeTwin(twin: JsonObject): TwinEvidence {
  const path = textAt(twin, 'filePath');
  const after = textAt(twin, 'content');
  if (path === undefined || path === '' || after === undefined) return {};
  const before = textAt(twin, 'originalFile');
  const modified = twin.userModified === true;
  const then: ShownFile = modified ? { path, moment: 'after', whole: false } : wholeFile(path, after, 'after');
  return { files: before === undefined ? [then] : [wholeFile(path, before, 'before'), then] };
}

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

/** What the twin of a tool's result shows; nothing for tools without one and for errors, whose twin is a text. */
export function twinEvidence(tool: string | undefined, twin: unknown, text: string): TwinEvidence {
  const evidence = tool !== undefined && Object.hasOwn(TWINS, tool) && isJsonObject(twin) ? (TWINS[tool]?.(twin) ?? {}) : {};
  const truncated = evidence.truncated === true || CUT.test(text);
  return { ...evidence, ...(truncated ? { truncated } : {}) };
}
