import { structuredPatch } from 'diff';
import { changedLines } from '../assembly/epoch/changed-lines.js';
import { metadataLine, namesOf } from '../assembly/metadata.js';
import type { ContextSession } from '../client/session/context-session.js';
import { foreignTool } from '../foreign-tools/tool-table.js';
import type { ChatPlaces } from '../session/chat-places.js';
import type { SessionState } from '../session/session-state.js';
import { shownName } from '../tools/framing.js';
import type { ChangedFile, SeenIn } from './agent-memory.js';

/** Maximum characters of a diff in a note. */
const MOST_DIFF_CHARS = 1_200;
/** Maximum number of line ranges in a note. */
const MOST_RANGES = 5;
/** Maximum number of edits between two texts. Comparing them would take too long with more. */
const MOST_EDITS = 1_000;

/**
 * Returns the lines of the current text that changed: `lines 40-44, 80`. Undefined if lines were
 * only removed, or if the texts differ too much.
 */
export function changedRanges(before: string, after: string): string | undefined {
  const patch = structuredPatch('', '', before, after, '', '', { context: 0, maxEditLength: MOST_EDITS });
  const ranges = (patch?.hunks ?? []).flatMap(({ newStart, newLines }) => {
    if (newLines === 0) return [];
    return newLines === 1 ? [`${newStart}`] : [`${newStart}-${newStart + newLines - 1}`];
  });
  if (ranges.length === 0) return undefined;
  const shown = ranges.slice(0, MOST_RANGES).join(', ');
  const more = ranges.length > MOST_RANGES ? ' and more' : '';
  return `${ranges.length === 1 && !shown.includes('-') ? 'line' : 'lines'} ${shown}${more}`;
}

/**
 * Returns a file's text as the session last recorded it, and the last call that referenced the
 * file. Undefined if the session has no text of it.
 */
export async function recalledFile(
  session: Pick<ContextSession, 'load' | 'metadata' | 'resolve' | 'state'>,
  path: string,
): Promise<{ readonly text: string; readonly seenIn: SeenIn | undefined } | undefined> {
  const found = session.resolve(path);
  if (found.kind !== 'found') return undefined;
  const text = await (await session.load(found.id))?.wholeText();
  if (typeof text !== 'string') return undefined;
  const last = session.state.marks.findLast(({ call }) => {
    const metadata = call === undefined ? undefined : session.metadata(call);
    return metadata?.type === 'toolcall' && metadata.fileRefs.includes(found.id);
  })?.call;
  const call = last === undefined ? undefined : session.metadata(last);
  return { text, seenIn: call?.type === 'toolcall' ? { tool: call.tool, id: call.id } : undefined };
}

/** Returns the number of a call in its session, from 1. Undefined if the session lacks the call. */
export function callNumber(
  { places, state }: { readonly places: ChatPlaces; readonly state: SessionState },
  id: string,
): number | undefined {
  const seq = places.calls(id).at(-1)?.seq;
  if (seq === undefined) return undefined;
  return state.marks.filter((mark) => mark.call !== undefined && mark.seq <= seq).length;
}

function sinceWhen({ seenIn }: Pick<ChangedFile, 'seenIn'>, numberOf: (id: string) => number | undefined): string {
  if (seenIn === undefined) return 'since you last saw it';
  const { kind } = foreignTool(seenIn.tool);
  const number = seenIn.id === undefined ? undefined : numberOf(seenIn.id);
  if (kind === 'shell') return `since you saw it in ${number === undefined ? 'a command' : `call ${number}`}`;
  const verb = kind === 'read' ? 'read' : 'changed';
  return number === undefined ? `since you ${verb} it` : `since you ${verb} it in call ${number}`;
}

/**
 * Returns the note about files that changed since the agent saw them. It includes the changed lines
 * of a file if they are short. The note replaces a call that would change such a file.
 */
export function staleNote(
  changed: readonly Omit<ChangedFile, 'file'>[],
  numberOf: (id: string) => number | undefined,
): string {
  const parts = changed.map((file) => {
    const ranges = changedRanges(file.before, file.after);
    const head = `${shownName(file.name)} changed ${sinceWhen(file, numberOf)}`;
    const lines = changedLines(file.before, file.after);
    const where = ranges === undefined ? '' : ` (${ranges})`;
    return lines === undefined || lines.length > MOST_DIFF_CHARS
      ? `${head}${where}.`
      : `${head}${where}. The changed lines with their numbers:\n${lines}`;
  });
  const next = 'Nothing was done. If your change still fits, make it again; otherwise read the file first.';
  return `[Palimpsest] ${[...parts, next].join('\n')}`;
}

/** Maximum characters of the note about pins. Claude Code moves a longer note to a file. */
const MOST_PIN_CHARS = 8_000;
/**
 * Maximum characters of a pin's line. The note contains the line even if the pin's text does not
 * fit.
 */
const LINE_CHARS = 200;

/**
 * Returns the note that brings pinned objects back after a compaction: the texts that fit, and a
 * line for each other object. Undefined if nothing is pinned.
 */
export async function pinsNote(session: Pick<ContextSession, 'state' | 'pool' | 'load'>): Promise<string | undefined> {
  const pins = session.pool().filter(({ pinned }) => pinned);
  if (pins.length === 0) return undefined;
  const nameOf = namesOf(session.state.sets.index, true);
  const count = pins.length === 1 ? 'a pinned object' : `${pins.length} pinned objects`;
  const whose = pins.length === 1 ? 'its' : 'their';
  const head = `[Palimpsest] The compaction took ${count} out of your context. Here is ${whose} present state.`;
  const lines = pins.map(({ metadata }) => metadataLine(metadata, nameOf, false));
  let room = MOST_PIN_CHARS - head.length - lines.reduce((sum, line) => sum + Math.min(line.length, LINE_CHARS) + 1, 0);
  const parts: string[] = [head];
  let left = 0;
  for (const [at, { metadata }] of pins.entries()) {
    const line = (lines[at] ?? '').slice(0, LINE_CHARS);
    const text = await (await session.load(metadata.id))?.wholeText();
    const isShown = typeof text === 'string' && text.length < room;
    if (isShown) room -= text.length + 1;
    else left += 1;
    parts.push(isShown ? `${line}\n${text.replace(/\n$/, '')}` : line);
    if (parts.join('\n').length > MOST_PIN_CHARS) break;
  }
  if (left > 0) parts.push(`The text of ${left} of them is too long for this note. Read it if you need it.`);
  return parts.join('\n\n');
}
