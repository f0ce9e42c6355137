import { ACTIVITIES, type ActivityName, spanName } from '../telemetry/activities.js';
import type { Facts } from '../telemetry/facts.js';
import type { MeasureName } from '../telemetry/metrics.js';
import type { Gauges, Telemetry, Tell, Watched } from '../telemetry/telemetry.js';
import { currentTrace, type TraceContext, traceBelow, withinTrace } from '../telemetry/trace.js';
import { codeOf } from '../values/thrown.js';
import type { Logger, LogLevel } from './log.js';

/** A span that has begun. */
export interface BegunSpan {
  readonly trace: TraceContext;
  /** Ends it, with all that is known by then and the name that follows from it. */
  end(facts: Facts, name: string): void;
}

/** What takes spans and figures to the outside: OpenTelemetry's SDK, loaded only where something is to leave the process. */
export interface Instruments {
  begin(activity: ActivityName, facts: Facts, parent: TraceContext | undefined): BegunSpan | undefined;
  add(measure: MeasureName, value: number, facts: Facts): void;
  watch(gauges: () => Gauges): () => void;
  /** All metrics as Prometheus reads them. */
  prometheus(): Promise<string>;
  /** Sends what has not left yet, within a limit. */
  close(): Promise<void>;
}

/** Which activities leave a line in the log when they end, at which level, and what it says. */
const LOGGED: Readonly<
  Partial<Record<ActivityName, { readonly level: Exclude<LogLevel, 'silent'>; readonly says: string }>>
> = {
  call: { level: 'debug', says: 'call' },
  request: { level: 'debug', says: 'request' },
  handout: { level: 'debug', says: 'handed out' },
  delivery: { level: 'debug', says: 'delivered' },
  'node start': { level: 'info', says: 'node' },
};

/** The names that facts have in lines of the log. */
const LINE_NAMES: Readonly<Partial<Record<keyof Facts, string>>> = {
  'gen_ai.tool.name': 'tool',
  'gen_ai.tool.call.id': 'call',
  'gen_ai.conversation.id': 'session',
  'http.request.method': 'method',
  'http.route': 'route',
  'http.response.status_code': 'status',
  'error.type': 'code',
  'palimpsest.write': 'write',
  'palimpsest.step': 'step',
  'palimpsest.transaction.id': 'tx',
  'palimpsest.transaction.writes': 'writes',
  'palimpsest.context.characters': 'chars',
  'palimpsest.node.profile': 'profile',
};

function lineOf(facts: Facts): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(facts).flatMap(([name, value]) =>
      name in LINE_NAMES ? [[LINE_NAMES[name as keyof Facts], value]] : [],
    ),
  );
}

/** Why something failed, as a code: what others throw may have none that could be told. */
function failureCode(thrown: unknown): string {
  const code = codeOf(thrown) ?? (thrown instanceof Error ? thrown.name : undefined);
  return code !== undefined && /^[\w.-]{1,60}$/.test(code) ? code : 'error';
}

/**
 * What a server tells of its work: lines in its log, each with the trace of the call that it belongs to, and spans and metrics where instruments are given.
 */
export class ServerTelemetry implements Telemetry {
  readonly #log: Logger;
  readonly #instruments: Instruments | undefined;
  /** Whether a trace is begun where no caller sent one. Nobody would see it otherwise, and following it through every `await` takes a tenth of the time of a small read. */
  readonly #beginsTraces: boolean;

  constructor(log: Logger, instruments?: Instruments) {
    this.#log = log;
    this.#instruments = instruments;
    this.#beginsTraces = instruments !== undefined || log.isLevelEnabled('debug');
  }

  async observe<T>({ activity, facts: known = {}, parent }: Watched, work: (tell: Tell) => Promise<T>): Promise<T> {
    const above = parent ?? currentTrace();
    if (above === undefined && !this.#isHeard(activity)) return work(() => undefined);
    const span = this.#instruments?.begin(activity, known, above);
    const { begins } = ACTIVITIES[activity];
    const trace = span?.trace ?? (begins && (this.#beginsTraces || above !== undefined) ? traceBelow(above) : above);
    const begun = { activity, known, span };
    if (trace !== undefined) return withinTrace(trace, () => this.#watched(begun, work));
    return begins ? this.#watched(begun, work) : work(() => undefined);
  }

  async #watched<T>(
    {
      activity,
      known,
      span,
    }: { readonly activity: ActivityName; readonly known: Facts; readonly span: BegunSpan | undefined },
    work: (tell: Tell) => Promise<T>,
  ): Promise<T> {
    const started = performance.now();
    let facts = known;
    try {
      return await work((more) => {
        facts = { ...facts, ...more };
      });
    } catch (error) {
      facts = { ...facts, 'error.type': failureCode(error) };
      throw error;
    } finally {
      this.#ended(activity, { facts, span, ms: performance.now() - started });
    }
  }

  add(measure: MeasureName, value: number, facts: Facts = {}): void {
    this.#instruments?.add(measure, value, facts);
  }

  watch(gauges: () => Gauges): () => void {
    return this.#instruments?.watch(gauges) ?? (() => undefined);
  }

  /** Whether anybody would be told of an activity. */
  #isHeard(activity: ActivityName): boolean {
    const logged = LOGGED[activity];
    return this.#instruments !== undefined || (logged !== undefined && this.#log.isLevelEnabled(logged.level));
  }

  #ended(
    activity: ActivityName,
    { facts, span, ms }: { readonly facts: Facts; readonly span: BegunSpan | undefined; readonly ms: number },
  ): void {
    const { duration } = ACTIVITIES[activity];
    span?.end(facts, spanName(activity, facts));
    if (duration !== undefined) this.add(duration, ms / 1_000, facts);
    const code = facts['error.type'];
    if (code !== undefined) this.add('palimpsest.failures', 1, { 'error.type': code });
    const logged = LOGGED[activity];
    if (logged !== undefined && this.#log.isLevelEnabled(logged.level))
      this.#log[logged.level](
        { ...lineOf(facts), ms: Math.round(ms) },
        code === undefined ? logged.says : `${logged.says}: failed`,
      );
  }
}
