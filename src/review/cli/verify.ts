import { printJson, printLines, progressLine, reportFailure } from '../../cli/output.js';
import { openReview, type Review } from '../../cli/review/answer.js';
import { type StepsInFork, stepsInForks, stepsInForkText } from '../../client/recovery/rescue-fork.js';
import { listSessions } from '../../client/session/open-session.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { erasedText } from '../../store/tombstones.js';
import { keepChecks } from '../rows/kept-sessions.js';
import type { AnswersReport } from '../verify/verify-answers.js';
import { type ContextsReport, type SessionVerification, verifySession } from '../verify/verify-session.js';

/** Flags of `palimpsest verify`. */
export interface VerifyFlags {
  readonly data?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

function contextLines({
  total,
  equal,
  redacted,
  inherited,
  byDelivery,
  handedLists,
  unequal,
}: ContextsReport): readonly string[] {
  const ways = Object.entries(byDelivery).map(([way, count]) => `${count} ${way}`);
  const shared = inherited === 0 ? '' : `, ${inherited} inherited from the sessions that it was forked from`;
  const lists =
    handedLists === 0
      ? []
      : [
          `          of ${handedLists} lists that a harness sent, only the hash is stored; the context in ` +
            'them was compared',
        ];
  return [
    total === 0
      ? 'contexts  none was handed out'
      : `contexts  ${equal} of ${total} rebuilt byte for byte (${ways.join(', ')}${shared})`,
    ...(redacted === 0 ? [] : [`          ${redacted} redacted before their import: compared with the remaining text`]),
    ...lists,
    ...unequal.map(({ turn, step, cause, section, object, line, why }) => {
      const where = [section && `section ${section}`, line && `line ${line}`, object && `object ${object}`]
        .filter(Boolean)
        .join(', ');
      return `          NOT EQUAL turn ${turn}, step ${step}: ${cause}${where === '' ? '' : ` (${where})`}: ${why}`;
    }),
  ];
}

function answerLines({ total, equal, keptOnly, unequal, unread }: AnswersReport): readonly string[] {
  if (unread === true) return ['answers   NOT CHECKED: the steps cannot be read'];
  const kept = keptOnly === 0 ? '' : `; ${keptOnly} more have a proof, but cannot be rebuilt`;
  return [
    total === 0 ? 'answers   none' : `answers   ${equal} of ${total} rebuilt byte for byte${kept}`,
    ...unequal.map(
      ({ turn, step, call, cause, why }) =>
        `          NOT EQUAL turn ${turn}, step ${step}, call ${call}: ${cause}: ${why}`,
    ),
  ];
}

/**
 * The verification of one session, and the acknowledged steps that no check could reach. `waiting`
 * counts steps in a journal. `forks` has steps that only a fork received, because another process
 * took the session over.
 */
type Found = SessionVerification & { readonly waiting: number; readonly forks: readonly StepsInFork[] };

const erasedLines = ({ erased }: Found): readonly string[] =>
  erased === undefined
    ? []
    : [
        ...erased.orders.map((order) => `erased    from step ${order.from} on: ${erasedText(order)}`),
        `          ${erased.contexts} contexts and ${erased.parts} other parts no longer have a proof because of it`,
      ];

function reportLines(found: Found): readonly string[] {
  const { session, contexts, answers, parts, ok, waiting, forks } = found;
  const damages = parts.damages.map(({ part, what, of }) => `          ${what.toUpperCase()} ${part} (${of})`);
  const whole =
    parts.damages.length === 0 ? 'all as they were written' : `${parts.damages.length} not as they were written`;
  const unchecked =
    waiting === 0
      ? []
      : [`waiting   NOT CHECKED: ${waiting} acknowledged steps wait in a journal and are not in the database`];
  const checked = `parts     ${parts.checked} checked, ${whole}`;
  const forked = forks.map((one) => `forked    ${stepsInForkText(one)}`);
  const lines = [
    ...contextLines(contexts),
    ...answerLines(answers),
    checked,
    ...damages,
    ...erasedLines(found),
    ...unchecked,
    ...forked,
  ];
  return [`session   ${session}: ${ok ? 'verified' : 'NOT VERIFIED'}`, ...lines];
}

async function sessionsOf({ timeline }: Review, names: readonly string[], all: boolean): Promise<readonly string[]> {
  if (!all && names.length === 0) throw new HistoryError('which-session', 'name the sessions to verify, or use --all');
  return all ? (await timeline.present.sessions()).map(({ id }) => id).sort() : names;
}

/**
 * Stores the results for the list of sessions. A result holds until its session gets another step.
 */
async function keep({ timeline, dataDir }: Review, found: readonly Found[]): Promise<void> {
  const wanted = new Map(found.map((one) => [one.session as string, one]));
  const sessions = await listSessions(await timeline.store.latest(), [], ({ id }) => wanted.has(id));
  const checks = sessions.flatMap(({ id, steps, lastActivity }) => {
    const one = wanted.get(id);
    // Steps that wait in a journal were not checked.
    if (one === undefined || one.waiting > 0) return [];
    const { contexts, answers, parts } = one;
    const findings = contexts.unequal.length + answers.unequal.length + parts.damages.length;
    const isUnread = answers.unread === true ? 1 : 0;
    return [{ id, upto: steps, at: lastActivity.getTime(), findings: findings + isUnread, checkedAt: Date.now() }];
  });
  await keepChecks(dataDir, checks);
}

/** Runs `verify`. */
export async function verifyAction(names: readonly string[], flags: VerifyFlags): Promise<void> {
  await reportFailure(flags, async () => {
    const review = await openReview(flags);
    const stop = new AbortController();
    const line = progressLine();
    const onInterrupt = (): void => stop.abort(new Error('interrupted'));
    process.once('SIGINT', onInterrupt);
    try {
      const sessions = await sessionsOf(review, names, flags.all === true);
      const waitingOf = await review.waitingSteps();
      const inForks = await stepsInForks(review.timeline.present);
      const found: Found[] = [];
      for (const [i, session] of sessions.entries()) {
        const of = sessions.length > 1 ? `[${i + 1}/${sessions.length}] ` : '';
        const verified = await verifySession(review.timeline.store, session, {
          // If no step was waiting, this snapshot has every acknowledged step. Otherwise a newer
          // one is read.
          present: i === 0 && review.isSettled ? review.timeline.present : undefined,
          onProgress: ({ what, done, total }) => line.show(`${of}${session}: ${what} ${done}/${total}`),
          signal: stop.signal,
        });
        line.end();
        const waiting = waitingOf.get(verified.session) ?? 0;
        const forks = inForks.filter((one) => one.session === verified.session);
        found.push({ ...verified, ok: verified.ok && waiting === 0, waiting, forks });
        if (flags.json !== true) printLines(found.slice(-1).flatMap(reportLines));
      }
      await keep(review, found);
      const isDelivered = flags.all !== true || waitingOf.size === 0;
      const ok = review.isWhole && isDelivered && found.every((session) => session.ok);
      if (flags.json === true) printJson({ ok, sessions: found, notes: review.notes });
      else {
        if (sessions.length === 0) printLines(['no sessions']);
        for (const note of review.notes) printLines([`note      ${note}`]);
      }
      if (!ok) process.exitCode = 1;
    } finally {
      process.removeListener('SIGINT', onInterrupt);
      await review.close();
    }
  });
}
