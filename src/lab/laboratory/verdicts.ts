import { asSent } from '../policies/as-sent.js';
import { raw } from '../policies/raw.js';
import { type Candidate, type Interval, isNoWorse, type PooledScore } from '../scorecard/pooled.js';
import type { LabFamily, LabPolicy, LabReport, Side } from './lab-report.js';
import { OWN_FAMILY, scoredSessions } from './make-report.js';

/** The sessions behind the report's sentences: the test side if there is a split, otherwise all. */
export const reportedSide = ({ split }: LabReport): Side =>
  split.test.length > 0 && split.train.length > 0 ? 'test' : 'all';

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
const points = (share: number): string => (100 * share).toFixed(0);
const times = (ratio: number): string => ratio.toFixed(2);
export const intervalText = ({ value, low, high }: Interval, show: (value: number) => string = times): string =>
  `${show(value)} [${show(low)}–${show(high)}]`;

const policyOf = ({ policies }: LabReport, name: string | undefined): LabPolicy | undefined =>
  policies.find((policy) => policy.name === name);

/**
 * Returns the setting of a family that the report's sentences describe: the one chosen on the
 * training side.
 */
const shownSetting = (report: LabReport, { best, published }: LabFamily): LabPolicy | undefined =>
  policyOf(report, best ?? published);

function candidateOf({ sessions, split }: LabReport, name: string, side: Side): Candidate {
  const names = new Set(side === 'all' ? sessions.map((one) => one.name) : split[side]);
  return { name, sessions: scoredSessions(sessions, name).filter(({ session }) => names.has(session)) };
}

/** States whether the policy costs less than the recorded requests, judged by the interval. */
function costSentence(name: string, { vsSent, vsRaw, sessions, calls }: PooledScore): string {
  const verdict = vsSent.high < 1 ? 'costs less than' : vsSent.low > 1 ? 'costs more than' : 'costs about as much as';
  const fitting = vsRaw === undefined ? '' : `; where everything fits the window, ${intervalText(vsRaw)} of that`;
  return (
    `On ${sessions} sessions with ${calls} model calls, ${name} ${verdict} what the programs sent: ` +
    `${intervalText(vsSent)} of it${fitting}.`
  );
}

/**
 * States how many calls and lines were kept, and whether the interval's lower limit reaches the
 * goal.
 */
function keptSentence({ callsKept, linesKept, shares, reasoningKept }: PooledScore): string {
  const goal =
    callsKept.value >= 0.95 && linesKept.value >= 0.98
      ? 'This reaches the goal of 95 % of the calls and 98 % of the lines.'
      : 'This misses the goal of 95 % of the calls and 98 % of the lines.';
  return (
    `${percent(callsKept.value)} [${points(callsKept.low)}–${points(callsKept.high)}] of the calls that repeat an ` +
    `earlier line still had every such line, ${percent(linesKept.value)} of the lines; putting the others back is ` +
    `${percent(shares.misses)} of its cost, and ${percent(reasoningKept)} of the calls kept their reasoning. ${goal}`
  );
}

/**
 * Names the policies of other programs that keep as much at no higher cost, on the sessions that
 * all of them cover.
 */
function peersSentence(report: LabReport, own: LabPolicy, side: Side): string {
  const ours = candidateOf(report, own.name, side);
  const rivals = report.families
    .filter(({ kind, family }) => kind === 'peer' || (family === asSent.family && kind === 'baseline'))
    .flatMap((family) => [...new Set([family.published, family.best])])
    .filter((name): name is string => name !== undefined);
  const better = rivals.filter((name) => isNoWorse(candidateOf(report, name, side), ours) === true);
  if (rivals.length === 0) return 'No policy of others was compared.';
  if (better.length === 0)
    return `None of the ${rivals.length} other policies keeps as many calls for no more cost on the same sessions.`;
  return `These policies of others keep as many calls for no more cost on the same sessions: ${better.join('; ')}.`;
}

/**
 * Returns the three sentences that sum up a report: cost, what is kept, and comparison with other
 * policies. Every clause is computed from figures. Empty if our policy was not compared.
 */
export function verdictsOf(report: LabReport): readonly string[] {
  const family = report.families.find((one) => one.family === OWN_FAMILY);
  const side = reportedSide(report);
  const own = family === undefined ? undefined : shownSetting(report, family);
  const pooled = own?.pooled[side];
  if (own === undefined || pooled === undefined) return [];
  return [costSentence(own.name, pooled), keptSentence(pooled), peersSentence(report, own, side)];
}

/** Returns the limits of the report's validity that follow from its own data. */
export function limitsOf(report: LabReport): string {
  const { sessions, split, policies } = report;
  const side = reportedSide(report);
  const needing = policies.find(({ name }) => name === raw.name)?.pooled.all;
  const counted = sessions.filter(({ calibration }) => calibration !== undefined).length;
  const groups = new Set(sessions.map(({ group }) => group)).size;
  const families = [...new Set(sessions.map(({ format }) => format))].length;
  const heavy = needing?.withoutHeaviest;
  return [
    'No model ran here. Recorded answers are fixed, so no figure is a solve rate, and a changed context might have ' +
      'changed every answer after it. A needed line is one that the model repeated. A text that it used without ' +
      'repeating it does not count, and a repeated habit counts as a need. A dropped text is put back at the price ' +
      'of one more call and of the text. Published measurements say that models often do not fetch such texts, so ' +
      'the true price is higher: worse work, not more tokens.',
    side === 'test'
      ? `Settings were chosen on ${split.train.length} sessions and are reported on ${split.test.length} others. ` +
        'Our rules and the constants beside the lifetimes were written by people who had seen recordings of both ' +
        'sides, so the test side is held out for lifetimes only.'
      : 'Settings were chosen on the sessions that they are reported on, so these figures are too favourable.',
    `${sessions.length} sessions of ${groups} projects and ${families} formats are few, and intervals over sessions ` +
      'of few projects are too narrow. ' +
      (heavy === undefined
        ? 'No session has over a fifth of the weight. '
        : `One session has ${percent(heavy.share)} of the weight; the tables give the figures without it. `) +
      `The size of system prompt and tools is known for ${counted} sessions; elsewhere it counts as nothing, which ` +
      'flatters every policy that drops text. Rows marked `bounded` leave out a part that needs a model, such as the ' +
      'words of a summary.',
  ].join('\n\n');
}
