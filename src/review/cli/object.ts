import { cellsOf, hanging, shortened, wrapped } from '../../cli/fitted-table.js';
import { type Colours, escapedLine, escapedText, tell, textLines } from '../../cli/output.js';
import type { ReviewFlags } from '../../cli/review/answer.js';
import { type Answer, answerReview, pointText, shownTime } from '../../cli/review/answer.js';
import type { ObjectId } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { VersionText } from '../../store/texts.js';
import { askDiff, askObject } from '../ask/ask.js';
import type { ActiveDiff, DiffSide, ObjectDiff, SessionDiff, SetDiff } from '../ask/diff.js';
import { type ObjectLine, type ObjectView, requireText } from '../ask/object-view.js';
import { type TextDiff, unifiedLines } from '../ask/text-diff.js';
import { type NameOf, namesFor } from './object-names.js';

const HASHES = ['identity_hash', 'file_hash', 'content_hash', 'metadata_hash', 'object_hash'] as const;
/** Width of the longest field name. */
const WIDTH = 17;
const ELSEWHERE: ReadonlySet<string> = new Set(['xt/id', 'type', 'source', 'content', ...HASHES]);

function fieldLines(version: ObjectVersion): readonly string[] {
  const fields = Object.entries(version).filter(([name]) => !ELSEWHERE.has(name));
  return fields.map(([name, value]) => {
    const size = Array.isArray(value) && value.length > 5 ? `${value.length} entries` : JSON.stringify(value);
    return `${name.padEnd(WIDTH)} ${escapedLine(size ?? 'null')}`;
  });
}

/** Formats the fields of an infrastructure object. */
function memberLines(version: ObjectVersion): readonly string[] {
  if (version.type === 'session') {
    const sets = ['session_index', 'active_set', 'pinned_set'] as const;
    return sets.flatMap((set) => ['', `${set}:`, ...version[set].map((id) => `  ${escapedLine(id)}`)]);
  }
  if (version.type !== 'chat') return [];
  return version.turns.flatMap(({ turn, messages }) => [
    '',
    `turn ${turn}`,
    ...messages.flatMap(({ role, text, toolcall_refs = [] }) => [
      ...textLines(`${escapedLine(role)}: ${text}`),
      ...toolcall_refs.map((id) => `  toolcall ${escapedLine(id)}`),
    ]),
  ]);
}

/** An object at a moment, ready to print. */
interface ShownObject {
  readonly view: ObjectView;
  /** Its agent-visible path. Undefined for an object without a source. */
  readonly display: string | undefined;
  readonly text: VersionText | undefined;
  readonly withContent: boolean;
}

/** Describes which of several version lines the answer comes from. */
function lineNote({ session, others }: ObjectLine): readonly string[] {
  const more =
    others.length === 0
      ? ''
      : `; these sessions were imported with their own versions: ${others.join(', ')} (--session)`;
  if (session !== null) return [`as in the imported session ${session}, not as in this database${more}`];
  return others.length === 0 ? [] : [`as in this database${more}`];
}

/** Formats an object at a moment: its kind, both times of the version, fields, hashes and text. */
function objectLines({ view, display, text, withContent }: ShownObject, colours: Colours): readonly string[] {
  const { version, times, number, gone } = view;
  const { source } = version;
  const id = version['xt/id'];
  // People know a file by its path.
  const name = source === null ? id : (display ?? source.path);
  const ids = name === id ? [] : [`${'id'.padEnd(WIDTH)} ${escapedLine(id)}`];
  const canonical =
    source === null || source.path === display ? [] : [`${'canonical'.padEnd(WIDTH)} ${escapedLine(source.path)}`];
  const state = gone ? ' (deleted)' : version.type === 'file' && version.file_hash === null ? ' (not read yet)' : '';
  const cut = text !== undefined && !text.whole ? ['only the head and the tail of this text were kept'] : [];
  const content = withContent && text !== undefined ? ['', ...cut, ...textLines(text.text)] : [];
  return [
    `${colours.yellow(`${version.type} ${escapedLine(name)}`)}${state}`,
    ...ids,
    ...canonical,
    ...lineNote(view.line).map((note) => `${'line'.padEnd(WIDTH)} ${escapedLine(note)}`),
    `${'version'.padEnd(WIDTH)} ${number}`,
    `${'valid'.padEnd(WIDTH)} ${shownTime(times.validTime)}`,
    `${'known'.padEnd(WIDTH)} ${shownTime(times.txTime)}, transaction ${times.txId}`,
    ...fieldLines(version),
    ...HASHES.map((name) => colours.dim(`${name.padEnd(WIDTH)} ${version[name] ?? 'null'}`)),
    ...(withContent ? memberLines(version) : []),
    ...content,
  ];
}

/** How to print a difference. */
interface Style {
  readonly nameOf: NameOf;
  readonly colours: Colours;
  /** Undefined without a terminal. Then lines are not broken, so that programs can read them. */
  readonly width: number | undefined;
}

function coloured(line: string, colours: Colours): string {
  const shown = escapedText(line);
  if (line.startsWith('@@')) return colours.cyan(shown);
  if (line.startsWith('+')) return colours.green(shown);
  return line.startsWith('-') ? colours.red(shown) : shown;
}

/** Breaks a line of a difference at words. Each piece has the sign of its line. */
function fitted(line: string, width: number | undefined): readonly string[] {
  const shown = escapedText(line);
  if (width === undefined || cellsOf(shown) <= width || line.startsWith('@@')) return [shown];
  return wrapped(shown.slice(1), width, shown.slice(0, 1));
}

/** Formats the coloured lines of a difference. */
function diffLines(diff: TextDiff, { colours, width }: Pick<Style, 'colours' | 'width'>): readonly string[] {
  return unifiedLines(diff).flatMap((line) => fitted(line, width).map((one) => coloured(one, colours)));
}

const LEAST_NAME = 12;

function sideLine(side: string, { view }: DiffSide, width: number | undefined): string {
  const [mark = '', name = ''] = [side.slice(0, 3), side.slice(4)];
  if (view === undefined) return `${mark} /dev/null`;
  const { txId, validTime } = view.times;
  const where = `tx:${txId} ${shownTime(validTime)}${view.gone ? ' (deleted)' : ''}`;
  if (width === undefined) return `${mark} ${escapedLine(name)}\t${where}`;
  return `${mark} ${shortened(escapedLine(name), Math.max(LEAST_NAME, width - where.length - 6), 'end')}  ${where}`;
}

/** Formats an object's change as a unified diff. */
function objectDiffLines(
  { before, after, diff }: ObjectDiff,
  name: string,
  { colours, width }: Pick<Style, 'colours' | 'width'>,
): readonly string[] {
  const isSame = diff.equal && (before.view === undefined) === (after.view === undefined);
  if (isSame) return wrapped(`the text of ${escapedLine(name)} is the same at both moments`, width);
  return [
    colours.bold(sideLine(`--- ${name}`, before, width)),
    colours.bold(sideLine(`+++ ${name}`, after, width)),
    ...diffLines(diff, { colours, width }),
  ];
}

function setLines(label: string, { added, removed }: SetDiff, { nameOf, colours, width }: Style): readonly string[] {
  if (added.length === 0 && removed.length === 0) return [];
  const named = (id: ObjectId): string => {
    const name = escapedLine(nameOf(id));
    return width === undefined ? name : shortened(name, width - 3, 'end');
  };
  const lines = [
    ...removed.map((id) => colours.red(`  -${named(id)}`)),
    ...added.map((id) => colours.green(`  +${named(id)}`)),
  ];
  return [colours.bold(`${label}: ${added.length} added, ${removed.length} removed`), ...lines];
}

function activeLines(
  { id, change, charsBefore, charsAfter, diff }: ActiveDiff,
  { nameOf, colours, width }: Style,
): readonly string[] {
  if (diff === undefined) return [];
  const name = escapedLine(nameOf(id));
  return [
    '',
    ...wrapped(`${change} while active: ${name} (${charsBefore} → ${charsAfter} chars)`, width).map(colours.bold),
    ...diffLines(diff, { colours, width }),
  ];
}

/** Formats a session's change: its sets, then the texts that stayed active and changed. */
function sessionDiffLines({ session, from, to, sets, active }: SessionDiff, style: Style): readonly string[] {
  const body = [
    ...setLines('index and pool', sets.index, style),
    ...setLines('active', sets.active, style),
    ...setLines('pinned', sets.pinned, style),
    ...active.flatMap((one) => activeLines(one, style)),
  ];
  return [
    style.colours.yellow(`session ${session}`),
    '',
    ...(body.length === 0 ? ['nothing in its context changed'] : body),
    '',
    ...[`  from  ${pointText(from)}`, `  to    ${pointText(to)}`]
      .flatMap((line) => hanging(line.slice(0, 8), line.slice(8), { width: style.width, indent: 8 }))
      .map(style.colours.dim),
  ];
}

/** Runs `show <object>[@when]`. */
export async function showAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const view = await askObject(timeline, { ...flags, object: reference });
    const text = flags.content === false ? undefined : await view.text();
    const { source } = view.version;
    const display = source === null ? undefined : timeline.paths.display(source);
    return {
      lines: (colours) => objectLines({ view, display, text, withContent: flags.content ?? true }, colours),
      holds: pointText(view.point),
      json: async () => (await import('../http/review-answers.js')).showAnswer(view, text, timeline.paths),
    };
  });
}

/**
 * `cat <object>[@when]`: writes the exact bytes to a pipe or file, and escapes control characters
 * on a terminal.
 */
export async function catAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const view = await askObject(timeline, { ...flags, object: reference });
    const { text, whole } = await requireText(view);
    for (const note of lineNote(view.line)) tell(`# ${note}`);
    if (!whole) tell('# only the head and the tail of this text were kept');
    return {
      lines: () => textLines(text),
      exact: text,
      json: async () => (await import('../http/review-answers.js')).showAnswer(view, { text, whole }, timeline.paths),
    };
  });
}

/** Runs `diff <object> [A..B]` or `diff <session> [turnA..turnB]`. */
export async function diffAction(
  name: string,
  range: string | undefined,
  { context, session, ...flags }: ReviewFlags,
): Promise<void> {
  await answerReview(flags, async ({ timeline }): Promise<Answer> => {
    const asked = await askDiff(timeline, { name, session, range, context });
    if (asked.kind === 'object') {
      const { diff } = asked;
      const nameOf = await namesFor(timeline, [diff.id], flags);
      return {
        lines: (colours, width) => objectDiffLines(diff, nameOf(diff.id), { colours, width }),
        holds: `${pointText(diff.before.point)} .. ${pointText(diff.after.point)}`,
        json: async () => (await import('../http/review-answers.js')).objectDiffAnswer(diff, timeline.paths),
      };
    }
    const { diff } = asked;
    const { index, active, pinned } = diff.sets;
    const changed = [index, active, pinned].flatMap(({ added, removed }) => [...added, ...removed]);
    const nameOf = await namesFor(timeline, [...changed, ...diff.active.map(({ id }) => id)], flags);
    return {
      lines: (colours, width) => sessionDiffLines(diff, { nameOf, colours, width }),
      json: async () => (await import('../http/review-answers.js')).sessionDiffAnswer(diff),
    };
  });
}
