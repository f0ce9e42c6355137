import { ACTIVITIES, type ActivityName, spanName } from '../telemetry/activities.js';
import type { Facts } from '../telemetry/facts.js';
import type { MeasureName } from '../telemetry/metrics.js';
import type { Gauges, Telemetry, Tell, Watched } from '../telemetry/telemetry.js';
import { currentTrace, type TraceContext, traceBelow, withinTrace } from '../telemetry/trace.js';
import { codeOf } from '../values/thrown.js';
import type { Logger, LogLevel } from './log.js';

/** A started span. */
export interface BegunSpan {
  readonly trace: TraceContext;
  /** Ends the span with its facts and the name that follows from them. */
  end(facts: Facts, name: string): void;
}

/** Exports spans and metrics with OpenTelemetry's SDK, which is loaded only for an export. */
export interface Instruments {
  begin(activity: ActivityName, facts: Facts, parent: TraceContext | undefined): BegunSpan | undefined;
  add(measure: MeasureName, value: number, facts: Facts): void;
  watch(gauges: () => Gauges): () => void;
  /** Returns all metrics in Prometheus format. */
  prometheus(): Promise<string>;
  /** Sends pending data, within a time limit. */
  close(): Promise<void>;
}

/** The activities that log a line when they end, with its level and text. */
const LOGGED: Readonly<
  Partial<Record<ActivityName, { readonly level: Exclude<LogLevel, 'silent'>; readonly says: string }>>
> = {
  call: { level: 'debug', says: 'call' },
  request: { level: 'debug', says: 'request' },
  handout: { level: 'debug', says: 'handed out' },
  delivery: { level: 'debug', says: 'delivered' },
  'node start': { level: 'info', says: 'node' },
};

/** The names of facts in log lines. */
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

/**
 * Returns the error code of a failure. Errors of other libraries may have no code that is safe to
 * export.
 */
function failureCode(thrown: unknown): string {
  const code = codeOf(thrown) ?? (thrown instanceof Error ? thrown.name : undefined);
  return code !== undefined && /^[\w.-]{1,60}$/.test(code) ? code : 'error';
}

/**
 * A server's telemetry: log lines, each with the trace of its call, and spans and metrics if
 * instruments are given.
 */
export class ServerTelemetry implements Telemetry {
  readonly #log: Logger;
  readonly #instruments: Instruments | undefined;
  /**
   * Whether to start a trace if the caller sent none. Without an exporter it would be unused, and
   * tracking it through every `await` takes a tenth of the time of a small read.
   */
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

  /** Whether any output receives an activity. */
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
