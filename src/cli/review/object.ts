import { askDiff, askObject } from '../../history/ask/ask.js';
import type { ActiveDiff, DiffSide, ObjectDiff, SessionDiff, SetDiff } from '../../history/ask/diff.js';
import { type ObjectLine, type ObjectView, requireText } from '../../history/ask/object-view.js';
import { type TextDiff, unifiedLines } from '../../history/ask/text-diff.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { VersionText } from '../../store/texts.js';
import { type Colours, escapedLine, escapedText, tell, textLines } from '../output.js';
import type { ReviewFlags } from './answer.js';
import { type Answer, answerReview, type NameOf, namesFor, pointText, shownTime, wireAnswers } from './answer.js';

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
  /** Its path as an agent saw it; undefined for an object without a source. */
  readonly display: string | undefined;
  readonly text: VersionText | undefined;
  readonly withContent: boolean;
}

/** Describes which of several version lines the answer comes from. */
function lineNote({ session, others }: ObjectLine): readonly string[] {
  const more = others.length === 0 ? '' : `; imported with versions of their own: ${others.join(', ')} (--session)`;
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
}

function coloured(line: string, colours: Colours): string {
  const shown = escapedText(line);
  if (line.startsWith('@@')) return colours.cyan(shown);
  if (line.startsWith('+')) return colours.green(shown);
  return line.startsWith('-') ? colours.red(shown) : shown;
}

/** Formats the coloured lines of a difference. */
function diffLines(diff: TextDiff, colours: Colours): readonly string[] {
  return unifiedLines(diff).map((line) => coloured(line, colours));
}

function sideLine(mark: '---' | '+++', name: string, { view }: DiffSide): string {
  if (view === undefined) return `${mark} /dev/null`;
  const { txId, validTime } = view.times;
  return `${mark} ${escapedLine(name)}\ttx:${txId} ${shownTime(validTime)}${view.gone ? ' (deleted)' : ''}`;
}

/** Formats an object's change as a unified diff. */
function objectDiffLines({ before, after, diff }: ObjectDiff, name: string, colours: Colours): readonly string[] {
  const isSame = diff.equal && (before.view === undefined) === (after.view === undefined);
  if (isSame) return [`the text of ${escapedLine(name)} is the same at both moments`];
  return [
    colours.bold(sideLine('---', name, before)),
    colours.bold(sideLine('+++', name, after)),
    ...diffLines(diff, colours),
  ];
}

function setLines(label: string, { added, removed }: SetDiff, { nameOf, colours }: Style): readonly string[] {
  if (added.length === 0 && removed.length === 0) return [];
  const lines = [
    ...removed.map((id) => colours.red(`  -${escapedLine(nameOf(id))}`)),
    ...added.map((id) => colours.green(`  +${escapedLine(nameOf(id))}`)),
  ];
  return [colours.bold(`${label}: ${added.length} added, ${removed.length} removed`), ...lines];
}

function activeLines(
  { id, change, charsBefore, charsAfter, diff }: ActiveDiff,
  { nameOf, colours }: Style,
): readonly string[] {
  if (diff === undefined) return [];
  const name = escapedLine(nameOf(id));
  return [
    '',
    colours.bold(`${change} while active: ${name} (${charsBefore} → ${charsAfter} chars)`),
    ...diffLines(diff, colours),
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
    `  from  ${pointText(from)}`,
    `  to    ${pointText(to)}`,
    '',
    ...(body.length === 0 ? ['nothing in its context changed'] : body),
  ];
}

/** `show <object>[@when]` */
export async function showAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const view = await askObject(timeline, { ...flags, object: reference });
    const text = flags.content === false ? undefined : await view.text();
    const { source } = view.version;
    const display = source === null ? undefined : timeline.paths.display(source);
    return {
      lines: (colours) => objectLines({ view, display, text, withContent: flags.content ?? true }, colours),
      holds: pointText(view.point),
      json: async () => (await wireAnswers()).showAnswer(view, text, timeline.paths),
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
      json: async () => (await wireAnswers()).showAnswer(view, { text, whole }, timeline.paths),
    };
  });
}

/** `diff <object> [A..B]`, `diff <session> [turnA..turnB]` */
export async function diffAction(
  name: string,
  range: string | undefined,
  { context, session, ...flags }: ReviewFlags,
): Promise<void> {
  await answerReview(flags, async ({ timeline }): Promise<Answer> => {
    const asked = await askDiff(timeline, { name, session, range, context });
    if (asked.kind === 'object') {
      const { diff } = asked;
      const nameOf = await namesFor(timeline, [diff.id]);
      return {
        lines: (colours) => objectDiffLines(diff, nameOf(diff.id), colours),
        holds: `${pointText(diff.before.point)} .. ${pointText(diff.after.point)}`,
        json: async () => (await wireAnswers()).objectDiffAnswer(diff, timeline.paths),
      };
    }
    const { diff } = asked;
    const { index, active, pinned } = diff.sets;
    const changed = [index, active, pinned].flatMap(({ added, removed }) => [...added, ...removed]);
    const nameOf = await namesFor(timeline, [...changed, ...diff.active.map(({ id }) => id)]);
    return {
      lines: (colours) => sessionDiffLines(diff, { nameOf, colours }),
      json: async () => (await wireAnswers()).sessionDiffAnswer(diff),
    };
  });
}
