import { joinedRanges, type LineRange } from '../../history/rebuild/call-names.js';

/** Formats ranges of lines in order, each once: `1–60, 80–end`. */
const rangesText = (lines: readonly LineRange[]): string =>
  joinedRanges(lines)
    .map(({ from, to = 'end' }) => `${from}–${to}`)
    .join(', ');

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
  /** Whether any part of the file was in the context. */
  readonly isThere: boolean;
  /** The lines that were in the context, if it had only a part. */
  readonly lines: readonly LineRange[];
}

/** Returns the version that the agent knew whole. Undefined if it knew only parts. */
export const knownWhole = ({ whole, seen, isOwnSince }: SeenOfFile): number | undefined =>
  whole !== undefined && isOwnSince ? (seen?.number ?? whole) : whole;

/** The place of the replaced text in what the context had; undefined if it replaces none. */
export type ReplacedText = 'there' | 'missing' | 'not recorded' | number | undefined;

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

/** Describes the text of the file that the context had. */
function hadText({ seen, isRecorded, whole, isOwnSince, isThere, lines }: SeenOfFile): string {
  const part = lines.length === 0 ? 'a part' : `lines ${rangesText(lines)}`;
  const of = seen === undefined ? 'it' : `version ${seen.number}`;
  if (whole !== undefined) {
    const whose = isRecorded ? "the agent's" : 'its';
    const later = isOwnSince ? `with ${whose} own edits up to ${of}` : `and ${part} of ${of}`;
    const since = seen === undefined || seen.number <= whole ? '' : `, ${later}`;
    return isRecorded
      ? `The context had all of version ${whole}${since}.`
      : `The agent had read all of version ${whole}${since}.`;
  }
  if (isThere) return isRecorded ? `The context had only ${part} of ${of}.` : `It had read only ${part} of ${of}.`;
  if (seen === undefined) return 'The agent had not read it.';
  const call = seen.call === undefined ? '' : ` at call ${seen.call}`;
  return `The context no longer had any part of it. The agent had last seen ${of}${call}.`;
}

/** Describes the place of the replaced text. */
function whereReplaced(replaced: ReplacedText, had: SeenOfFile): string {
  if (replaced === undefined) return '';
  if (replaced === 'not recorded') return ' Whether the context had the replaced text is not recorded.';
  const version = knownWhole(had);
  const there = version !== undefined ? `version ${version}` : had.lines.length > 0 ? 'these lines' : 'this part';
  if (typeof replaced === 'number') return ` The replaced text occurs ${replaced} times in ${there}.`;
  return replaced === 'there' ? ` The replaced text is in ${there}.` : ` The replaced text is not in ${there}.`;
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
  const { seen, was, isThere, whole } = had;
  const isStale = was !== undefined && seen !== undefined && was > seen.number;
  const stale = isStale ? ` Version ${was} was on the disk.` : '';
  const isUnseen = !isThere && whole === undefined;
  return {
    sentence: `${hadText(had)}${stale}${whereReplaced(replaced, had)}${other === undefined ? '' : inOther(other)}`,
    isDoubtful: isStale || isUnseen || replaced === 'missing' || typeof replaced === 'number',
  };
}
