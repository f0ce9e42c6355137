import { fittedTable, wrapped } from '../../cli/fitted-table.js';
import { type Colours, grouped, textLines } from '../../cli/output.js';
import type { ReviewFlags } from '../../cli/review/answer.js';
import { answerReview, basisText } from '../../cli/review/answer.js';
import type { ContextKind } from '../../history/rebuild/context-kind.js';
import { NOT_TOLD } from '../../history/rebuild/not-told.js';
import type { PastContext } from '../../history/rebuild/past-context.js';
import type { CountTexts } from '../../history/rebuild/tokenizer.js';
import { ranges } from '../../history/rebuild/turn-spans.js';
import type { ObjectId } from '../../objects/ids.js';
import { askContext } from '../ask/ask.js';
import { type ContextLedger, type ContextList, reportDetail, reportList } from '../ask/context-report.js';
import { type NameOf, namesFor } from './object-names.js';

/** Describes the origin of a context. */
function originText({ kind, told, delivered, matches, redacted, rebuiltFrom }: PastContext): string {
  if (kind === 'unseen') return 'NOT SENT: assembled now from the session as of that moment; no model received this';
  if (kind === 'transcript') {
    const counted =
      told?.counted === undefined ? '' : `; the provider counted ${grouped(told.counted)} tokens in this request`;
    return `from the transcript, which does not have ${NOT_TOLD}; reasoning is not imported${counted}`;
  }
  if (redacted === true && matches === true)
    return `the rest of the handed-out context (${delivered}): it was redacted before its import`;
  if (rebuiltFrom !== undefined && matches === true)
    return (
      `REBUILT from ${rebuiltFrom} earlier ${rebuiltFrom === 1 ? 'request' : 'requests'} and this one: the request ` +
      'had only the new part, and the provider held the rest'
    );
  return matches === true
    ? `the handed-out context (${delivered}), byte for byte`
    : `NOT the handed-out context (${delivered}): the recorded hash differs; palimpsest verify shows why`;
}

/** How a context is shown. */
interface Style {
  readonly colours: Colours;
  /** Undefined if the output is not a terminal. */
  readonly width: number | undefined;
  readonly ids: boolean;
  readonly nameOf?: NameOf;
}

function headLines(context: PastContext, { colours, width, ids }: Style): readonly string[] {
  const { session, turn, step, basis, sha256 } = context;
  const isWrong = context.matches === false;
  return [
    ...wrapped(`context of session ${session}, turn ${turn}, step ${step}`, width).map(colours.yellow),
    ...wrapped(originText(context), width, '  ').map((line) => (isWrong ? colours.red(line) : line)),
    ...wrapped(basisText({ ...basis, txTime: undefined }), width, '  '),
    ...(ids ? [colours.dim(`  sha256 ${sha256}`)] : []),
    '',
  ];
}

/**
 * Returns the lines of a context. Messages are stored as JSON in one line and are pretty-printed.
 */
function shownText({ renderer, text }: PastContext): readonly string[] {
  if (renderer === 'text') return textLines(text);
  try {
    return textLines(JSON.stringify(JSON.parse(text), null, 2));
  } catch {
    // A request's body need not be JSON.
    return textLines(text);
  }
}

/** Number of objects that a ledger lists by name; the last line sums up the rest. */
const LARGEST = 25;

function share(part: number, whole: number): string {
  return whole === 0 ? '' : `${((100 * part) / whole).toFixed(1)}%`;
}

/** Label of each kind of context in a list. */
const SHOWN_AS: Readonly<Record<ContextKind, string>> = {
  sent: 'sent',
  transcript: 'from the transcript',
  unseen: 'not sent: state at the end of the turn',
};

const NUMBER = { align: 'right' } as const;

/** Lists the contexts of a session, one per line. */
function reportLines({ reported, unseen }: ContextList, { colours, width }: Style): readonly string[] {
  const numbers = ['turn', 'step', 'tokens', 'chars', 'system', 'pool', 'chat', 'active'];
  const headings = [...numbers.map((heading) => ({ heading, ...NUMBER })), { heading: '', share: 1 }];
  const rows = reported.map(({ context, ledger }) => [
    `${context.turn}`,
    `${context.step}`,
    grouped(ledger.total.tokens),
    grouped(ledger.total.chars),
    ...ledger.sections.map(({ tokens }) => grouped(tokens)),
    context.rebuiltFrom === undefined ? SHOWN_AS[context.kind] : 'sent in parts, rebuilt',
  ]);
  const lines = rows.length === 0 ? ['no contexts'] : fittedTable(headings, rows, { colours, width });
  return unseen.length === 0
    ? lines
    : [...lines, ...wrapped(`not seen by Palimpsest: model calls in turns ${ranges(unseen.toReversed())}`, width)];
}

/**
 * Formats the ledger of one context: its sections, then its largest objects with stored and shown
 * sizes.
 */
function ledgerLines(ledger: ContextLedger, { colours, width, nameOf = (id) => id }: Style): readonly string[] {
  const { sections, total, objects, rawChars } = ledger;
  const parts = sections.map(({ name, chars, tokens }) => [
    name,
    grouped(tokens),
    share(tokens, total.tokens),
    grouped(chars),
  ]);
  const shown = objects.slice(0, LARGEST);
  const rest = objects.length - shown.length;
  const right = (...headings: readonly string[]) => headings.map((heading) => ({ heading, ...NUMBER }));
  return [
    ...fittedTable(
      [{ heading: 'section' }, ...right('tokens', 'share', 'chars')],
      [...parts, ['all', grouped(total.tokens), '100.0%', grouped(total.chars)]],
      { colours, width },
    ),
    '',
    ...wrapped(
      `objects: ${grouped(rawChars)} chars stored, ` +
        `${grouped(objects.reduce((sum, object) => sum + object.shown.chars, 0))} shown`,
      width,
    ),
    ...fittedTable(
      [
        ...right('tokens', 'share', 'raw chars', 'shown'),
        { heading: '' },
        { heading: 'object', share: 1, least: 16, keep: 'end' },
      ],
      shown.map(({ id, active, rawChars: raw, shown: { tokens, chars } }) => [
        grouped(tokens),
        share(tokens, total.tokens),
        grouped(raw),
        grouped(chars),
        active ? 'active' : 'line',
        nameOf(id as ObjectId),
      ]),
      { colours, width },
    ),
    ...(rest > 0 ? [`and ${grouped(rest)} smaller ones`] : []),
  ];
}

/** Runs `context <session>[@when]`. */
export async function contextAction(reference: string, flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const context = await askContext(timeline, reference, flags);
    return {
      lines: (colours, width) => [
        ...headLines(context, { colours, width, ids: flags.ids ?? width === undefined }),
        ...shownText(context),
      ],
      json: async () => (await import('../http/review-answers.js')).pastContextAnswer(context),
      ...(flags.raw === true ? { exact: context.text } : {}),
    };
  });
}

/** Runs `report list <session>`. */
export async function reportListAction(reference: string, flags: ReviewFlags, count: CountTexts): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const list = await reportList(timeline, { reference, limit: flags.limit, assemble: flags.assemble, count });
    return {
      lines: (colours, width) => reportLines(list, { colours, width, ids: flags.ids ?? false }),
      holds: `tokens by ${list.tokenizer}, counted piece by piece`,
      json: async () => (await import('../http/review-answers.js')).reportListAnswer(list),
    };
  });
}

/** Runs `report detail <session>[@when]`. */
export async function reportDetailAction(reference: string, flags: ReviewFlags, count: CountTexts): Promise<void> {
  await answerReview(flags, async ({ timeline }) => {
    const reported = await reportDetail(timeline, { reference, text: flags, count });
    const objects = reported.ledger.objects.slice(0, LARGEST).map(({ id }) => id as ObjectId);
    const nameOf = await namesFor(timeline, objects, flags);
    return {
      lines: (colours, width) => {
        const style = { colours, width, nameOf, ids: flags.ids ?? width === undefined };
        return [...headLines(reported.context, style), ...ledgerLines(reported.ledger, style)];
      },
      holds: `tokens by ${reported.ledger.tokenizer}, counted piece by piece`,
      json: async () => (await import('../http/review-answers.js')).reportDetailAnswer(reported),
    };
  });
}
