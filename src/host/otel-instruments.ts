import { randomUUID } from 'node:crypto';
import {
  type Attributes,
  type Counter,
  DiagLogLevel,
  diag,
  type Histogram,
  type Meter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace as traces,
} from '@opentelemetry/api';
import type { MetricReader, ResourceMetrics } from '@opentelemetry/sdk-metrics';
import { withinLimit } from '../process/within-limit.js';
import { ACTIVITIES, type ActivityName, spanName } from '../telemetry/activities.js';
import type { FactName, Facts } from '../telemetry/facts.js';
import { type GaugeName, METRICS, type MeasureName, type MetricName, type MetricShape } from '../telemetry/metrics.js';
import type { Gauges } from '../telemetry/telemetry.js';
import type { TraceContext } from '../telemetry/trace.js';
import { ownMember } from '../values/own-member.js';
import { type Environment, variable } from './environment.js';
import type { BegunSpan, Instruments } from './server-telemetry.js';

/** Options of the SDK. */
export interface InstrumentOptions {
  readonly traces: boolean;
  readonly metrics: boolean;
  readonly isScraped: boolean;
  readonly version: string;
  /** OpenTelemetry's own variables. */
  readonly env: Environment;
  /** Receives one line about a failed export, at most once a minute. */
  readonly onProblem: (message: string) => void;
}

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;
/**
 * Maximum time for the last export at exit, including retries, so that an unreachable collector
 * does not delay the exit.
 */
const CLOSE_MS = 3_000;
const PROBLEM_EVERY_MS = 60_000;
const SAMPLED = 1;

/**
 * Parses the headers of a signal's exporter: `name=value`, comma-separated, percent-encoded. The
 * exporters cannot read them themselves, because this process has removed the variables from its
 * environment.
 */
function headersFrom(env: Environment, signal: 'TRACES' | 'METRICS'): Record<string, string> {
  const given = [variable(env, 'OTEL_EXPORTER_OTLP_HEADERS'), variable(env, `OTEL_EXPORTER_OTLP_${signal}_HEADERS`)];
  const pairs = given.flatMap((text) => text?.split(',') ?? []).map((pair) => pair.split(/=(.*)/s));
  return Object.fromEntries(
    pairs.flatMap(([name = '', value]) => (value === undefined ? [] : [[name.trim(), decoded(value.trim())]])),
  );
}

/** The maximum delay of a timer. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Parses a variable in milliseconds, a whole number above 0. Reports and ignores an invalid value.
 */
function millisecondsFrom(
  name: string,
  usual: number,
  { env, onProblem }: Pick<InstrumentOptions, 'env' | 'onProblem'>,
): number {
  const text = variable(env, name);
  if (text === undefined) return usual;
  const ms = Number(text);
  if (Number.isInteger(ms) && ms > 0 && ms <= LONGEST_MS) return ms;
  onProblem(`${name}=${JSON.stringify(text)} is not a whole number of milliseconds above 0: ${usual} is used`);
  return usual;
}

/** Builds the options of a signal's exporter. */
function exporterOptions(signal: 'TRACES' | 'METRICS', options: InstrumentOptions) {
  const asked = Math.min(
    millisecondsFrom('OTEL_EXPORTER_OTLP_TIMEOUT', CLOSE_MS, options),
    millisecondsFrom(`OTEL_EXPORTER_OTLP_${signal}_TIMEOUT`, CLOSE_MS, options),
  );
  return { headers: headersFrom(options.env, signal), timeoutMillis: Math.min(asked, CLOSE_MS) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Suffixes of metric names for Prometheus, by unit. The serializer adds `_total` to counters, but
 * no unit.
 */
const UNIT_ENDINGS: Readonly<Record<string, string>> = { s: '.seconds', By: '.bytes' };

function withUnits({ resource, scopeMetrics }: ResourceMetrics): ResourceMetrics {
  const named = <M extends ResourceMetrics['scopeMetrics'][number]['metrics'][number]>(metric: M): M => {
    const { name, unit } = metric.descriptor;
    return {
      ...metric,
      descriptor: { ...metric.descriptor, name: `${name}${ownMember(UNIT_ENDINGS, unit) ?? ''}`, unit: '' },
    };
  };
  return { resource, scopeMetrics: scopeMetrics.map(({ scope, metrics }) => ({ scope, metrics: metrics.map(named) })) };
}

/**
 * Reports the SDK's own diagnostics at a limited rate, so that an unreachable collector does not
 * fill the log.
 */
function reportProblems(onProblem: (message: string) => void): void {
  let last = Number.NEGATIVE_INFINITY;
  const report = (message: string): void => {
    if (performance.now() - last < PROBLEM_EVERY_MS) return;
    last = performance.now();
    onProblem(`telemetry could not be exported: ${message.slice(0, 300)}`);
  };
  const silent = (): void => undefined;
  diag.setLogger(
    { error: report, warn: report, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

/** Opens the SDK for the enabled signals. Loads only the modules for them. */
export async function openInstruments(options: InstrumentOptions): Promise<OtelInstruments> {
  const { env, version } = options;
  reportProblems(options.onProblem);
  // In a bundle, these packages have only a default export.
  const { resourceFromAttributes, envDetector, detectResources } = (await import('@opentelemetry/resources')).default;
  const own = resourceFromAttributes({
    'service.name': variable(env, 'OTEL_SERVICE_NAME') ?? 'palimpsest',
    'service.version': version,
    'service.instance.id': randomUUID(),
  });
  const told = detectResources({ detectors: [envDetector] });
  // The environment takes precedence. Within it, OTEL_SERVICE_NAME takes precedence over
  // OTEL_RESOURCE_ATTRIBUTES, as the specification says.
  const resource = own.merge(told);
  const closers: (() => Promise<void>)[] = [];
  let tracer: Tracer | undefined;
  if (options.traces) {
    const [{ default: sdk }, { default: exporters }] = await Promise.all([
      import('@opentelemetry/sdk-trace-base'),
      import('@opentelemetry/exporter-trace-otlp-proto'),
    ]);
    const exporter = new exporters.OTLPTraceExporter(exporterOptions('TRACES', options));
    const provider = new sdk.BasicTracerProvider({ resource, spanProcessors: [new sdk.BatchSpanProcessor(exporter)] });
    tracer = provider.getTracer('palimpsest', version);
    closers.push(() => provider.shutdown());
  }
  const readers: MetricReader[] = [];
  if (options.metrics) {
    const [{ default: sdk }, { default: exporters }] = await Promise.all([
      import('@opentelemetry/sdk-metrics'),
      import('@opentelemetry/exporter-metrics-otlp-proto'),
    ]);
    const exportIntervalMillis = millisecondsFrom('OTEL_METRIC_EXPORT_INTERVAL', 60_000, options);
    const exportTimeoutMillis = Math.min(
      millisecondsFrom('OTEL_METRIC_EXPORT_TIMEOUT', CLOSE_MS, options),
      exportIntervalMillis,
      CLOSE_MS,
    );
    readers.push(
      new sdk.PeriodicExportingMetricReader({
        exporter: new exporters.OTLPMetricExporter(exporterOptions('METRICS', options)),
        exportIntervalMillis,
        exportTimeoutMillis,
      }),
    );
  }
  let scrape: (() => Promise<string>) | undefined;
  if (options.isScraped) {
    const { PrometheusExporter, PrometheusSerializer } = (await import('@opentelemetry/exporter-prometheus')).default;
    const reader = new PrometheusExporter({ preventServerStart: true });
    readers.push(reader);
    const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
    scrape = async () => {
      const { resourceMetrics } = await reader.collect();
      return serializer.serialize(withUnits(resourceMetrics));
    };
  }
  let meter: Meter | undefined;
  if (readers.length > 0) {
    const { MeterProvider } = (await import('@opentelemetry/sdk-metrics')).default;
    const provider = new MeterProvider({ resource, readers });
    meter = provider.getMeter('palimpsest', version);
    closers.push(() => provider.shutdown());
  }
  return new OtelInstruments({ tracer, meter, scrape, closers });
}

interface Parts {
  readonly tracer: Tracer | undefined;
  readonly meter: Meter | undefined;
  readonly scrape: (() => Promise<string>) | undefined;
  readonly closers: readonly (() => Promise<void>)[];
}

/**
 * Exports a server's telemetry with OpenTelemetry's SDK. Registers nothing globally, so a program
 * that embeds this library keeps its own.
 */
export class OtelInstruments implements Instruments {
  readonly #parts: Parts;
  readonly #measures = new Map<MeasureName, Counter | Histogram>();
  #gauges: (() => Gauges) | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    const { meter } = parts;
    if (meter === undefined) return;
    for (const [name, shape] of Object.entries(METRICS) as [MetricName, MetricShape][]) this.#make(meter, name, shape);
  }

  begin(activity: ActivityName, facts: Facts, parent: TraceContext | undefined): BegunSpan | undefined {
    const { tracer } = this.#parts;
    if (tracer === undefined) return undefined;
    const above =
      parent === undefined
        ? ROOT_CONTEXT
        : traces.setSpanContext(ROOT_CONTEXT, {
            traceId: parent.traceId,
            spanId: parent.spanId,
            traceFlags: parent.sampled ? SAMPLED : 0,
            isRemote: true,
          });
    const span = tracer.startSpan(
      spanName(activity, facts),
      { kind: KINDS[ACTIVITIES[activity].kind], attributes: { ...facts } },
      above,
    );
    const { traceId, spanId, traceFlags } = span.spanContext();
    return {
      trace: { traceId, spanId, sampled: (traceFlags & SAMPLED) === SAMPLED },
      end: (known, name) => ended(span, known, name),
    };
  }

  add(measure: MeasureName, value: number, facts: Facts): void {
    const instrument = this.#measures.get(measure);
    if (instrument === undefined) return;
    const { labels }: MetricShape = METRICS[measure];
    const attributes = labelsOf(labels, facts);
    if ('record' in instrument) instrument.record(value, attributes);
    else instrument.add(value, attributes);
  }

  watch(gauges: () => Gauges): () => void {
    this.#gauges = gauges;
    return () => {
      if (this.#gauges === gauges) this.#gauges = undefined;
    };
  }

  prometheus(): Promise<string> {
    return this.#parts.scrape?.() ?? Promise.resolve('');
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const closed = Promise.allSettled(this.#parts.closers.map((close) => close()));
    await withinLimit<unknown>(closed, { ms: CLOSE_MS, keepsAlive: true }, () => undefined);
  }

  #make(meter: Meter, name: MetricName, { kind, unit, what, bounds }: MetricShape): void {
    const described = { unit, description: what };
    if (kind === 'gauge') {
      meter.createObservableGauge(name, described).addCallback((result) => {
        const value = this.#gauges?.()[name as GaugeName];
        if (value !== undefined) result.observe(value);
      });
    } else if (kind === 'counter') this.#measures.set(name as MeasureName, meter.createCounter(name, described));
    else {
      const advice = bounds === undefined ? {} : { advice: { explicitBucketBoundaries: [...bounds] } };
      this.#measures.set(name as MeasureName, meter.createHistogram(name, { ...described, ...advice }));
    }
  }
}

function ended(span: Span, facts: Facts, name: string): void {
  span.updateName(name);
  span.setAttributes({ ...facts });
  // Exports only a code, because messages contain paths and quoted input.
  if (facts['error.type'] !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

function labelsOf(labels: readonly FactName[], facts: Facts): Attributes {
  return Object.fromEntries(labels.flatMap((label) => (facts[label] === undefined ? [] : [[label, facts[label]]])));
}
