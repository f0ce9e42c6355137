import { join } from 'node:path';
import { type Colours, escapedLine, grouped, progressLine, tell } from '../../cli/output.js';
import { type Answer, answerReview, basisText, type ReviewFlags, shownTime } from '../../cli/review/answer.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { CallRange } from '../../history/search/exposure.js';
import type { SearchedKind } from '../../history/search/kinds.js';
import { askSearch, type SearchAnswer, type SearchHit } from '../../history/search/search.js';
import { SearchIndex } from '../../history/search/search-index.js';
import type { TextIndex } from '../../text-index/text-index.js';
import { shortName } from './object-names.js';

/** The flags of `search`. */
export interface SearchFlags extends ReviewFlags {
  readonly type?: SearchedKind;
  readonly path?: string;
  readonly rebuild?: boolean;
  /** Whether to use the index. False with `--no-index`. */
  readonly index?: boolean;
}

const LISTED = 20;
/** Maximum number of ranges of calls in one line. */
const MOST_RANGES = 6;

function rangesText(ranges: readonly CallRange[]): string {
  const shown = ranges.slice(0, MOST_RANGES).map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`));
  const more = ranges.length > MOST_RANGES ? ` and ${ranges.length - MOST_RANGES} more` : '';
  return `${shown.join(', ')}${more}`;
}

function exposureLines({ seen }: SearchHit, colours: Colours): readonly string[] {
  return seen.flatMap(({ session, whole, inPart, asLine, falls }) => {
    const said = [
      ...(whole.length === 0 ? [] : [`whole at step ${rangesText(whole)}`]),
      ...(inPart.length === 0 ? [] : [`a part of the file at step ${rangesText(inPart)}`]),
      ...(asLine.length === 0 ? [] : [`as a line at step ${rangesText(asLine)}`]),
    ];
    const where = said.length === 0 ? 'in no recorded context' : said.join(', ');
    const [fall] = falls;
    return [
      `contexts of ${escapedLine(session)}: ${where}`,
      ...(fall === undefined
        ? []
        : [
            `by the transcript: at step ${fall.step} the provider counted ${grouped(fall.fewer)} tokens fewer; ` +
              `which text left is not recorded${falls.length > 1 ? `, as at ${falls.length - 1} later` : ''}`,
          ]),
    ].map((line) => colours.dim(`    ${line}`));
  });
}

function hitLines(hit: SearchHit, colours: Colours, ids: boolean): readonly string[] {
  const { kind, name, part, object, version, step, turn, session, at, txId, count, lines } = hit;
  const id = !ids || object === undefined || kind === 'system_prompt' ? '' : ` ${shortName(object)}`;
  const what = [
    part === undefined ? kind : `${kind} ${part === 'content' ? 'output' : part}`,
    ...(kind === 'file' && version !== undefined ? [`version ${version.number}`] : []),
    ...(step === undefined ? [] : [`turn ${turn}, step ${step} of ${escapedLine(session)}`]),
    `${count} ${count === 1 ? 'match' : 'matches'}`,
  ].join(', ');
  const known = txId === undefined ? '' : `, recorded by transaction ${txId}`;
  const wide = String(lines.at(-1)?.line ?? 0).length + 4;
  const numbered = (line: number | undefined, text: string): string =>
    `${String(line ?? '').padStart(wide)}  ${escapedLine(text)}`;
  return [
    `${colours.cyan(escapedLine(name))}${colours.dim(id)}  ${what}`,
    colours.dim(`    true from ${shownTime(at)}${known}`),
    ...lines.flatMap(({ line, excerpt, before = [], after = [] }) => [
      ...before.map((text, i) => colours.dim(numbered(line - before.length + i, text))),
      numbered(line, excerpt),
      ...after.map((text, i) => colours.dim(numbered(line + 1 + i, text))),
    ]),
    ...exposureLines(hit, colours),
    '',
  ];
}

function endLine({ hits, texts, chars, isCut, isIndexed }: SearchAnswer): string {
  const how = isIndexed ? 'texts that the index proposed' : 'texts, without an index';
  const found = hits.length === 0 ? 'no match' : `${hits.length} ${hits.length === 1 ? 'text' : 'texts'}`;
  const more = isCut ? '; more texts exist: narrow the search, or raise --limit' : '';
  return `${found} in ${grouped(texts)} ${how} (${grouped(chars)} characters)${more}`;
}

/** Brings the index up to date, with a progress line. With `--rebuild`, it rebuilds the index. */
async function indexFor(
  timeline: Timeline,
  clientDir: string,
  { rebuild = false, index: isWanted = true }: SearchFlags,
): Promise<TextIndex | undefined> {
  if (!isWanted) return undefined;
  const index = new SearchIndex(join(clientDir, 'search'));
  if (rebuild) await index.clear();
  const progress = progressLine();
  const onProgress = (done: number, all: number): void =>
    progress.show(`indexing: transaction ${grouped(done)} of ${grouped(all)}`);
  const onFailure = (reason: string): void => tell(`palimpsest: without the search index: ${reason}`);
  return index.of(timeline, { onProgress, onFailure }).finally(() => progress.end());
}

/** Runs `search <text>`. */
export async function searchAction(pattern: string, flags: SearchFlags): Promise<void> {
  const { session, type: kind, path, asOf, at = asOf, validTime, tx, limit = LISTED, context: around = 1 } = flags;
  await answerReview(flags, async ({ timeline, clientDir }): Promise<Answer> => {
    const asked = { pattern, session, kind, path, at, validTime, tx, limit, around };
    const answer = await askSearch(timeline, asked, await indexFor(timeline, clientDir, flags));
    return {
      lines: (colours, width) => [
        ...answer.hits.flatMap((hit) => hitLines(hit, colours, flags.ids ?? width === undefined)),
        endLine(answer),
      ],
      holds: basisText(answer.basis),
      json: async () => (await import('../http/review-answers.js')).searchAnswer(answer),
    };
  });
}
