import { coloursFor, columns, printLines, reportFailure, standardOutput, writeJson } from '../cli/output.js';
import { gatewayFolder } from '../gateway/gateway-log.js';
import { GatewayLogReader, type SentRequest } from '../gateway/read-log.js';
import { dataFolder } from '../host/environment.js';
import { DOLLAR_PRICES_AS_OF, dollarsOf } from '../review/money/dollar-prices.js';

/** The two groups of sessions of a steering gateway. */
export type Arm = 'steered' | 'control';

/** The sums over the model calls of one session. */
export interface ArmSession {
  readonly arm: Arm;
  readonly calls: number;
  /** Number of prompt tokens. */
  readonly tokens: number;
  readonly cached: number;
  /** The cost; undefined if the price of a model is unknown. */
  readonly dollars: number | undefined;
}

/** A figure with its 95 % interval, computed by resampling sessions. */
interface Interval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** One figure in both arms. */
interface Compared {
  readonly steered: number;
  readonly control: number;
  /** The steered figure divided by the control arm's. Undefined if there are too few sessions. */
  readonly ratio: Interval | undefined;
}

/** The compared figures, with their names for people. */
const MEASURES = {
  tokensPerCall: 'prompt tokens a call',
  cached: 'prompt read from the cache',
  dollarsPerCall: 'dollars a call',
  dollarsPerSession: 'dollars a session',
  callsPerSession: 'calls a session',
} as const;

/** The name of a compared figure. */
type Measure = keyof typeof MEASURES;

/** The comparison of both arms. */
interface Savings {
  readonly sessions: Readonly<Record<Arm, number>>;
  readonly measures: Readonly<Record<Measure, Compared>>;
}

/** Minimum number of sessions in each arm. With fewer, the interval would mean nothing. */
const LEAST_SESSIONS = 10;
const RESAMPLES = 2_000;

const sum = (all: readonly ArmSession[], of: (one: ArmSession) => number): number =>
  all.reduce((total, one) => total + of(one), 0);
const dollars = ({ dollars: known }: ArmSession): number => known ?? 0;
const calls = (one: ArmSession): number => one.calls;

const FIGURES: Readonly<Record<Measure, (all: readonly ArmSession[]) => number>> = {
  tokensPerCall: (all) => sum(all, ({ tokens }) => tokens) / sum(all, calls),
  cached: (all) => sum(all, ({ cached }) => cached) / sum(all, ({ tokens }) => tokens),
  dollarsPerCall: (all) => sum(all, dollars) / sum(all, calls),
  dollarsPerSession: (all) => sum(all, dollars) / all.length,
  callsPerSession: (all) => sum(all, calls) / all.length,
};

/**
 * Yields pseudorandom numbers from 0 to 1 (mulberry32). They are equal in every run, so reports are
 * reproducible.
 */
function* uniform(): Generator<number, never> {
  for (let state = 1; ; ) {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    yield ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

function resampled<T>(all: readonly T[], random: Generator<number, never>): readonly T[] {
  return all.map(() => all[Math.floor(random.next().value * all.length)] as T);
}

function compared(
  figure: (all: readonly ArmSession[]) => number,
  steered: readonly ArmSession[],
  control: readonly ArmSession[],
): Compared {
  const values = { steered: figure(steered), control: figure(control) };
  if (Math.min(steered.length, control.length) < LEAST_SESSIONS) return { ...values, ratio: undefined };
  const random = uniform();
  const ratios = Array.from(
    { length: RESAMPLES },
    () => figure(resampled(steered, random)) / figure(resampled(control, random)),
  ).sort((a, b) => a - b);
  const at = (share: number): number => ratios[Math.floor(share * (RESAMPLES - 1))] as number;
  return { ...values, ratio: { value: values.steered / values.control, low: at(0.025), high: at(0.975) } };
}

/** Compares the sessions of both arms. */
export function compareArms(all: readonly ArmSession[]): Savings {
  const [steered, control] = [all.filter(({ arm }) => arm === 'steered'), all.filter(({ arm }) => arm === 'control')];
  const names = Object.keys(FIGURES) as Measure[];
  return {
    sessions: { steered: steered.length, control: control.length },
    measures: Object.fromEntries(
      names.map((name) => [name, compared(FIGURES[name], steered, control)]),
    ) as Savings['measures'],
  };
}

/** Adds a logged request to its session. Ignores a request without the provider's usage. */
export function addRequest(
  sessions: Map<string, ArmSession>,
  { session, steer, answer, at, model }: SentRequest,
): void {
  const usage = answer?.usage;
  if (session === undefined || steer === undefined || usage === undefined) return;
  const { input: fresh = 0, cacheRead = 0, cacheWrite = 0, cacheWriteHour, output = 0 } = usage;
  const key = `${session.agent} ${session.native}`;
  const before = sessions.get(key);
  const price = dollarsOf(answer?.model ?? model ?? '', {
    fresh,
    cacheRead,
    cacheWrite,
    cacheWriteHour,
    output,
    at,
  });
  sessions.set(key, {
    // A session with at least one steered request counts as steered.
    arm: before?.arm === 'steered' ? 'steered' : steer.arm,
    calls: (before?.calls ?? 0) + 1,
    tokens: (before?.tokens ?? 0) + fresh + cacheRead + cacheWrite,
    cached: (before?.cached ?? 0) + cacheRead,
    dollars: price === undefined ? before?.dollars : (before?.dollars ?? 0) + price,
  });
}

/** Reads the sessions of both arms from the gateway's log. */
async function armSessions(dataDir: string): Promise<readonly ArmSession[]> {
  const sessions = new Map<string, ArmSession>();
  for await (const request of new GatewayLogReader(gatewayFolder(dataDir)).more()) addRequest(sessions, request);
  return [...sessions.values()];
}

/** Flags of `palimpsest report savings`. */
export interface SavingsFlags {
  readonly data?: string;
  readonly json?: boolean;
}

const shown = (name: Measure, value: number): string => {
  if (Number.isNaN(value)) return '-';
  if (name === 'cached') return `${(100 * value).toFixed(1)} %`;
  return name === 'callsPerSession' ? value.toFixed(1) : name === 'tokensPerCall' ? value.toFixed(0) : value.toFixed(4);
};

const ratioOf = ({ ratio }: Compared): string =>
  ratio === undefined ? '' : `${ratio.value.toFixed(2)} (${ratio.low.toFixed(2)} to ${ratio.high.toFixed(2)})`;

/** Compares the sessions that a gateway steered with those of the control arm. */
export function savingsAction({ data, json = false }: SavingsFlags): Promise<void> {
  return reportFailure({ json }, async () => {
    const { sessions, measures } = compareArms(await armSessions(data ?? dataFolder(process.env)));
    const isEnough = Math.min(sessions.steered, sessions.control) >= LEAST_SESSIONS;
    if (json) return writeJson({ sessions, enough: isEnough, prices_as_of: DOLLAR_PRICES_AS_OF, measures });
    const names = Object.keys(MEASURES) as Measure[];
    printLines([
      `${sessions.steered} steered sessions, ${sessions.control} in the control arm`,
      ...columns(
        ['', 'steered', 'control', 'ratio (95 % interval over sessions)'],
        names.map((name) => {
          const one = measures[name];
          return [MEASURES[name], shown(name, one.steered), shown(name, one.control), ratioOf(one)];
        }),
        coloursFor(standardOutput({})),
      ),
      `Dollars are list prices of ${DOLLAR_PRICES_AS_OF}. The two arms did different work, and that also changes ` +
        'the ratio.',
      ...(isEnough
        ? []
        : [
            `Too few sessions for a comparison: each arm needs ${LEAST_SESSIONS}. ` +
              'palimpsest run --steer --control 0.1 claude leaves a tenth of the sessions unchanged.',
          ]),
    ]);
  });
}
