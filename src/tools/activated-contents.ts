import type { VerbEntry } from '../client/session/verb-plan.js';
import type { Work } from './define-tool.js';
import { frame, headerLine } from './framing.js';
import { type OutputLimits, pageOf } from './page.js';
import { shownId } from './shown-id.js';

/** An object on which a verb was done. */
export type Done = Extract<VerbEntry, { readonly ok: true }>;

/** Most of one text that is shown: less than what is kept of the beginning of a large one, whose lines are still counted right (decision C6). */
const LONGEST_SHOWN = 60_000;
/** What a hint takes at most, without the id in it. */
const HINT_CHARS = 100;
const LEAST_SHOWN = 200;

interface Block {
  readonly id: string;
  readonly header: string;
  readonly text: string | undefined;
  /** What header and hint take at most. */
  readonly reserved: number;
}

function blockOf({ id, metadata, text }: Done, work: Work): Block {
  const shown = shownId(id, work);
  const named = metadata.type === 'file' ? { path: metadata.displayPath } : { tool: metadata.tool, status: metadata.status };
  const header = headerLine(metadata.type, { id: shown, ...named, chars: metadata.charCount });
  return { id: shown, header, text, reserved: header.length + shown.length + HINT_CHARS };
}

/** The blocks for which there is room at all, at least for header and hint. */
function fitting(blocks: readonly Block[], limits: OutputLimits): readonly Block[] {
  let chars = limits.chars - HINT_CHARS;
  let lines = limits.lines - 1;
  const kept: Block[] = [];
  for (const block of blocks) {
    chars -= block.reserved;
    lines -= 2;
    if (chars < 0 || lines < 0) break;
    kept.push(block);
  }
  return kept;
}

/** The contents of activated objects as far as an answer has room (decision D7); what is left is continued by `read`, and every object has its hint. */
export function activatedContents(entries: readonly Done[], limits: OutputLimits, work: Work): string {
  const blocks = entries.map((entry) => blockOf(entry, work));
  const kept = fitting(blocks, limits);
  let chars = limits.chars - HINT_CHARS - kept.reduce((sum, { reserved }) => sum + reserved, 0);
  let lines = limits.lines - 1 - 2 * kept.length;
  const texts = kept.map(({ id, header, text }) => {
    if (text === undefined || chars < LEAST_SHOWN || lines < 2) return `${header}\n[Not shown: no room left. Continue: read id=${id}]`;
    const page = pageOf(text, { offset: 1, column: 1 }, { chars: Math.min(chars, LONGEST_SHOWN), lines });
    chars -= page.text.length;
    lines -= page.lastLine;
    const next =
      page.next === undefined
        ? ''
        : Object.entries(page.next)
            .map(([name, value]) => ` ${name}=${value}`)
            .join('');
    const block = frame(header, page.text === '' ? '(empty)' : page.text, [
      next === '' ? undefined : `[More follows. Continue: read id=${id}${next}]`,
    ]);
    return block.endsWith('\n') ? block.slice(0, -1) : block;
  });
  const left = blocks.length - kept.length;
  return [...texts, ...(left === 0 ? [] : [`[${left} more objects are not shown: read them by their ids.]`])].join('\n');
}
