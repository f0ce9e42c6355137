import { joinedRanges, type LineRange } from '../../history/rebuild/call-names.js';

/** Formats ranges of lines in order, each once: `lines 1–60, 80–end`, `line 37`. */
function linesText(lines: readonly LineRange[]): string {
  const ranges = joinedRanges(lines);
  const texts = ranges.map(({ from, to = 'end' }) => (from === to ? `${from}` : `${from}–${to}`));
  return `${texts.length === 1 && ranges[0]?.from === ranges[0]?.to ? 'line' : 'lines'} ${texts.join(', ')}`;
}

/** The part of a file in the context of a model call that changed the file, or tried to. */
export interface SeenOfFile {
  /** The newest version that the agent had read or made. */
  readonly seen: { readonly number: number; readonly call: number | undefined } | undefined;
  /** The version on the disk before the call. */
  readonly was: number | undefined;
  /** False if the request was not recorded, so only the calls before it are known. */
  readonly isRecorded: boolean;
  /** The newest version that was whole in the context. */
  readonly whole: number | undefined;
  /** Whether the agent's own edits alone led from that version to the one that it had seen. */
  readonly isOwnSince: boolean;
  /** Whether a read, or an edit of the agent, gave the context any part of the file. */
  readonly isThere: boolean;
  /**
   * Without such a call, the calls that printed a part: searches, or other commands. `perhaps`:
   * commands named the file, and whether they printed a part is not known.
   */
  readonly printed: 'search' | 'command' | 'perhaps' | undefined;
  /**
   * The author of the changes after the version that the agent had seen, if their text is not
   * recorded. `perhaps`: a command that may have changed nothing.
   */
  readonly later: 'agent' | 'other' | 'perhaps' | undefined;
  /** The lines that were in the context, if it had only a part. */
  readonly lines: readonly LineRange[];
}

/** Returns the version that the agent knew whole. Undefined if it knew only parts. */
export const knownWhole = ({ whole, seen, isOwnSince }: SeenOfFile): number | undefined =>
  whole !== undefined && isOwnSince ? (seen?.number ?? whole) : whole;

/** A call that gave the context a text: a read, a search, a command, or an edit of the agent. */
export type TextPlace = 'read' | 'search' | 'command' | { readonly edit: number | undefined };

/**
 * The places of the replaced text in what the context had, or the number of its occurrences.
 * Undefined if the call replaces none.
 */
export type ReplacedText = readonly TextPlace[] | 'missing' | 'not recorded' | number | undefined;

/** Another file with the replaced text, and its version if the whole text is known. */
export interface OtherFile {
  readonly name: string;
  readonly version: number | undefined;
}

/** The text of a file that an agent had seen when it changed the file, in words. */
export interface EditSight {
  readonly sentence: string;
  /** Whether it acted on a text that it had not seen, or that was not on the disk any more. */
  readonly isDoubtful: boolean;
}

const LATER = {
  agent: ' The agent edited the file later, and its whole text since then is not recorded.',
  other: ' The file changed later, and its whole text since then is not recorded.',
  perhaps: ' The file may have changed later, and its text since then is not recorded.',
} as const;

/** Names the version that the agent had seen, and later changes without a recorded text. */
function seenVersion({ seen, later }: SeenOfFile): string {
  if (seen === undefined) return 'it';
  const changes = later === 'perhaps' ? 'possible later changes' : 'later changes';
  return `version ${seen.number}${later === undefined ? '' : ` with ${changes} whose text is not recorded`}`;
}

/** Describes the text of the file that the context had. */
function hadText(had: SeenOfFile): string {
  const { seen, isRecorded, whole, isOwnSince, isThere, lines, printed, later } = had;
  const part = lines.length === 0 ? 'a part' : linesText(lines);
  const of = seenVersion(had);
  if (whole !== undefined) {
    const whose = isRecorded ? "the agent's" : 'its';
    const next = isOwnSince ? `with ${whose} own edits up to version ${seen?.number}` : `and ${part} of ${of}`;
    const since = seen === undefined || seen.number <= whole ? '' : `, ${next}`;
    const unknown = later === undefined || (since !== '' && !isOwnSince) ? '' : LATER[later];
    return `${isRecorded ? 'The context had' : 'The agent had read'} all of version ${whole}${since}.${unknown}`;
  }
  if (isThere) return isRecorded ? `The context had only ${part} of ${of}.` : `It had read only ${part} of ${of}.`;
  if (printed === 'perhaps') return `Whether the context had any part of the file is not recorded.`;
  if (printed !== undefined) return `The context had only lines of ${of} that a ${printed} printed.`;
  if (seen === undefined) return 'The agent had not read it.';
  const call = seen.call === undefined ? '' : ` at call ${seen.call}`;
  const last = later === undefined ? `${of}${call}` : `it${call}: ${of}`;
  return `The context no longer had any part of it. The agent had last seen ${last}.`;
}

/** Names the calls that gave the context the replaced text. */
function placesText(places: readonly TextPlace[], base: string): string {
  const edits = places.flatMap((place) => (typeof place === 'object' ? [place.edit] : []));
  const calls = edits.filter((call) => call !== undefined);
  const at = calls.length === 0 ? '' : ` at ${calls.length === 1 ? 'call' : 'calls'} ${calls.join(' and ')}`;
  return [
    ...(places.includes('read') ? [base] : []),
    ...(places.includes('search') ? [base === 'these lines' ? base : 'lines that a search printed'] : []),
    ...(places.includes('command') ? [base === 'these lines' ? base : 'lines that a command printed'] : []),
    ...(edits.length === 0 ? [] : [`the new lines of the agent's own ${edits.length === 1 ? 'edit' : 'edits'}${at}`]),
  ].join(' and ');
}

/** Describes the place of the replaced text. */
function whereReplaced(replaced: ReplacedText, had: SeenOfFile): string {
  if (replaced === undefined) return '';
  if (replaced === 'not recorded') return ' Whether the context had the replaced text is not recorded.';
  const version = knownWhole(had);
  const hasLines = had.lines.length > 0 || had.printed !== undefined;
  const isOne = hasLines && linesText(had.lines).startsWith('line ');
  const part = isOne ? 'this line' : hasLines ? 'these lines' : 'this part';
  const base = version !== undefined ? `version ${version}` : part;
  if (typeof replaced === 'number') return ` The replaced text occurs ${replaced} times in ${base}.`;
  return replaced === 'missing'
    ? ` The replaced text is not in ${base}.`
    : ` The replaced text is in ${placesText(replaced, base)}.`;
}

/** Names another file that has the replaced text. */
function inOther({ name, version }: OtherFile): string {
  return version === undefined
    ? ` It is in the lines of ${name} that the agent had read.`
    : ` It is in version ${version} of ${name}.`;
}

/**
 * Describes what an agent had seen of a file when it changed the file. `other`: another file that
 * has the replaced text.
 */
export function editSight(had: SeenOfFile, replaced: ReplacedText, other?: OtherFile): EditSight {
  const { seen, was, isThere, whole, printed } = had;
  const isStale = was !== undefined && seen !== undefined && was > seen.number;
  const stale = isStale ? ` Version ${was} was on the disk.` : '';
  const isUnseen = !isThere && whole === undefined && printed === undefined;
  return {
    sentence: `${hadText(had)}${stale}${whereReplaced(replaced, had)}${other === undefined ? '' : inOther(other)}`,
    isDoubtful: isStale || isUnseen || replaced === 'missing' || typeof replaced === 'number',
  };
}
