import { numberAt, objectAt, textAt } from '../entries/fields.js';
import { wholeFile } from '../evidence/shown-file.js';
import { hunkPieces, unifiedHunks } from '../evidence/shown-hunk.js';
import { isJsonObject, type JsonObject, parseJson } from '../json/json-text.js';
import type { ShownFile } from '../neutral-session.js';

const FAILED =
  /^(?:apply_patch verification failed|\w+ failed(?: for|:)|unsupported call|failed to parse|tool call error|aborted by user)/i;
const EXIT = /^(?:Process exited with code|Exit code:) (-?\d+)$/m;
/** The header of a command's output is within its first lines. */
const HEADER_CHARS = 4000;
const CUT = /…\d+ (?:tokens|chars) truncated…|\[\.\.\. (?:omitted|removed) \d+ /;

/** The exit code that an output tells: in its header, or in the JSON of older versions. */
export function exitCodeOf(text: string): number | undefined {
  if (text.startsWith('{')) return numberAt(objectAt(asObject(parseJson(text)), 'metadata'), 'exit_code');
  const body = text.indexOf('\nOutput:');
  const header = body < 0 ? text.slice(0, HEADER_CHARS) : text.slice(0, body);
  const code = /^(?:Command: |Chunk ID: |Wall time: |Exit code: )/.test(header) ? EXIT.exec(header)?.[1] : undefined;
  return code === undefined ? undefined : Number(code);
}

const asObject = (value: unknown): JsonObject | undefined => (isJsonObject(value) ? value : undefined);

/** Whether an output is of a failed call. */
export function isFailure(text: string, code: number | undefined): boolean {
  return code === undefined ? FAILED.test(text) : code !== 0;
}

/** Whether an output says that it was cut. */
export function isCut(text: string): boolean {
  return CUT.test(text);
}

function changedFile(path: string, change: JsonObject): readonly ShownFile[] {
  const content = textAt(change, 'content');
  const type = textAt(change, 'type');
  if (type === 'add' && content !== undefined) return [wholeFile(path, content, 'after')];
  if (type === 'delete') return content === undefined ? [] : [wholeFile(path, content, 'before')];
  const moved = textAt(change, 'move_path') ?? path;
  const pieces = unifiedHunks(textAt(change, 'unified_diff') ?? '').flatMap((hunk) => hunkPieces(path, hunk, moved));
  return pieces.length > 0 ? pieces : [{ path: moved, moment: 'after', whole: false }];
}

/** What the end of a patch shows of the files that it changed; nothing of a patch that failed. */
export function patchEvidence(payload: JsonObject): readonly ShownFile[] {
  if (payload.success === false) return [];
  return Object.entries(objectAt(payload, 'changes') ?? {}).flatMap(([path, change]) =>
    isJsonObject(change) && path !== '' ? changedFile(path, change) : [],
  );
}
