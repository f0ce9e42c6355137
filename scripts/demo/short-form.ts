import { relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Colours, grouped } from '../../src/cli/output.js';
import type { SessionAssembly } from '../../src/index.js';
import { countTokens } from '../../src/review/ask/token-count.js';
import type { DemoCall } from './narrator.js';
import type { DemoRun } from './run-session.js';

/** The command that opens a file on each system; elsewhere `xdg-open`. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: 'open', win32: 'start' };

/** A written review page, and the system that opens it. */
export interface DemoPage {
  readonly file: string;
  readonly platform: NodeJS.Platform;
}

/** Returns a number of the first line of an answer, such as `entries=18`. */
function numberIn({ name, answer }: DemoCall, key: string): string {
  const found = new RegExp(`^\\[.* ${key}=(?:\\d+-\\d+/)?(\\d+)`).exec(answer)?.[1];
  if (found === undefined) throw new Error(`the answer of ${name} has no ${key}: ${answer.slice(0, 200)}`);
  return grouped(Number(found));
}

type Row = readonly [verb: string, path: string, about: string];

/** Returns the row for a call. Undefined for a tool that the summary leaves out. */
function rowOf(call: DemoCall, { copy, repository, editedChars }: DemoRun): Row | undefined {
  const { path = '', ids = [] } = call.args as { readonly path?: string; readonly ids?: readonly string[] };
  const at = pathHere(ids[0] ?? path, { copy, repository });
  switch (call.name) {
    case 'ls':
      return ['listed', at, `${numberIn(call, 'entries')} entries`];
    case 'grep':
      return ['searched', at, `${numberIn(call, 'matches')} matches in ${numberIn(call, 'files')} files`];
    case 'read':
      return ['read', at, `${numberIn(call, 'lines')} lines`];
    case 'edit':
      return ['changed', at, `from ${editedChars.map(grouped).join(' to ')} characters`];
    case 'activate':
      return ['loaded', at, 'only its name was known before'];
    case 'deactivate':
      return ['collapsed', at, "to one line, and the read's answer too"];
    default:
      return undefined;
  }
}

/** Returns a path relative to the repository, or to the copy of its docs. */
function pathHere(path: string, { copy, repository }: Pick<DemoRun, 'copy' | 'repository'>): string {
  if (path.startsWith(copy)) return relative(copy, path);
  return path.startsWith(repository) ? relative(repository, path) : path;
}

const tokens = (text: string): string => `${grouped(countTokens(text))} tokens`;

/** Describes how a context shows an object: with its whole text, by tokens, or as one line. */
function shownIn({ text, record }: SessionAssembly, id: string): string {
  const place = record.blocks.find((block) => block.id === id);
  return place === undefined ? '1 line' : tokens(text.slice(place.offset, place.offset + place.chars));
}

/** Pads all cells but those of the last column. */
function aligned(rows: readonly (readonly string[])[]): readonly string[][] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows.map((row) => row.map((cell, i) => (i < row.length - 1 ? cell.padEnd(widths[i] ?? 0) : cell)));
}

function seenRows(run: DemoRun): readonly (readonly string[])[] {
  const { before, after } = run;
  const files = before.input.pool.flatMap((object) => (object.type === 'file' ? [object] : []));
  const loaded = files.filter(({ id }) => before.record.blocks.some((block) => block.id === id));
  return [
    ['Assembled for the model', 'before the collapse', 'after it'],
    ...loaded.map(({ id, displayPath }) => [
      `  ${pathHere(displayPath, run)}`,
      shownIn(before, id),
      shownIn(after, id),
    ]),
    [`  ${files.length - loaded.length} other files`, '1 line each', '1 line each'],
    ['  the whole context', tokens(before.text), tokens(after.text)],
  ];
}

/**
 * Returns the demonstration in about 20 lines. They show the session, a context before and after a
 * file is collapsed, the saved tokens, and the address of the review page. Paths stand for ids.
 */
export function shortForm(run: DemoRun, page: DemoPage, colours: Colours): readonly string[] {
  const { session, calls, before, after, repository } = run;
  const rows = aligned(
    calls.flatMap((call) => {
      const row = rowOf(call, run);
      return row === undefined ? [] : [row];
    }),
  );
  const [heading = [], ...seen] = aligned(seenRows(run));
  const [from, to] = [countTokens(before.text), countTokens(after.text)];
  const turns = new Set(calls.map(({ turn }) => turn)).size;
  const share = `${(((from - to) / from) * 100).toFixed(1)} %`;
  return [
    colours.bold(
      `Session ${session}: a scripted agent, ${calls.length} calls in ${turns} turns, here and in a copy of docs`,
    ),
    ...rows.map(([verb = '', ...others]) => `  ${colours.cyan(verb)}  ${others.join('  ')}`),
    '',
    colours.bold(heading.join('  ')),
    ...seen.map((cells) => cells.join('  ')),
    colours.green(
      `Saved in the next request: ${grouped(from - to)} of ${grouped(from)} tokens (${share}), in o200k_base.`,
    ),
    'The context of turn 1, rebuilt from the database, has the same bytes.',
    '',
    `Its review page needs no server:  ${OPENERS[page.platform] ?? 'xdg-open'} ${relative(repository, page.file)}`,
    `  ${pathToFileURL(page.file).href}`,
  ];
}
