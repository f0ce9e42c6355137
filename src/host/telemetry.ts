import type { Telemetry } from '../telemetry/telemetry.js';
import { type Environment, variable } from './environment.js';
import type { Logger } from './log.js';
import { ServerTelemetry } from './server-telemetry.js';

/** The enabled exports of OpenTelemetry. */
export interface ExportSettings {
  readonly traces: boolean;
  readonly metrics: boolean;
  /** Requested but unsupported exports, for the log. */
  readonly notices: readonly string[];
}

/** The variables of each signal. */
const EXPORTERS = {
  traces: {
    variable: 'OTEL_TRACES_EXPORTER',
    endpoint: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    protocol: 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL',
  },
  metrics: {
    variable: 'OTEL_METRICS_EXPORTER',
    endpoint: 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
    protocol: 'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL',
  },
} as const;

/**
 * Reads OpenTelemetry's own variables. A signal is on if its exporter is `otlp`, or if an endpoint
 * is set and its exporter is not `none`. By default all are off, as they are with
 * OTEL_SDK_DISABLED=true. The `console` exporter is not supported, because stdout belongs to the
 * protocol.
 */
export function exportSettings(env: Environment): ExportSettings {
  if (variable(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true')
    return { traces: false, metrics: false, notices: [] };
  const notices: string[] = [];
  const isOn = (signal: keyof typeof EXPORTERS): boolean => {
    const names = EXPORTERS[signal];
    const exporter = variable(env, names.variable)?.trim();
    const isNamed = [names.endpoint, 'OTEL_EXPORTER_OTLP_ENDPOINT'].some((name) => variable(env, name) !== undefined);
    if (exporter === 'none' || (exporter === undefined && !isNamed)) return false;
    const protocol = variable(env, names.protocol) ?? variable(env, 'OTEL_EXPORTER_OTLP_PROTOCOL') ?? 'http/protobuf';
    if (exporter !== undefined && exporter !== 'otlp')
      notices.push(`${names.variable}=${exporter} is not supported: no ${signal} are exported; set it to otlp or none`);
    else if (protocol !== 'http/protobuf')
      notices.push(
        `the OTLP protocol ${protocol} is not supported, so no ${signal} are exported; set ` +
          'OTEL_EXPORTER_OTLP_PROTOCOL to ' +
          'http/protobuf',
      );
    else return true;
    return false;
  };
  return { traces: isOn('traces'), metrics: isOn('metrics'), notices };
}

/** Options of a server's telemetry. */
export interface TelemetryOptions {
  readonly log: Logger;
  readonly env: Environment;
  /** The version of this program. */
  readonly version: string;
  /** Whether Prometheus may scrape metrics, regardless of exports. */
  readonly isScraped?: boolean;
}

/** A server's telemetry sink and its close function. */
export interface OpenTelemetry {
  readonly telemetry: Telemetry;
  /** Returns all metrics in Prometheus format; undefined if scraping is off. */
  readonly prometheus: (() => Promise<string>) | undefined;
  /** Sends pending data. Idempotent, never rejects. */
  close(): Promise<void>;
}

/** Opens a server's telemetry. Loads OpenTelemetry's packages only if an export is enabled. */
export async function openTelemetry({
  log,
  env,
  version,
  isScraped = false,
}: TelemetryOptions): Promise<OpenTelemetry> {
  const { traces, metrics, notices } = exportSettings(env);
  for (const notice of notices) log.warn(notice);
  if (!traces && !metrics && !isScraped)
    return { telemetry: new ServerTelemetry(log), prometheus: undefined, close: async () => undefined };
  const { openInstruments } = await import('./otel-instruments.js');
  const instruments = await openInstruments({
    traces,
    metrics,
    isScraped,
    version,
    env,
    onProblem: (message) => log.warn(message),
  });
  return {
    telemetry: new ServerTelemetry(log, instruments),
    prometheus: isScraped ? () => instruments.prometheus() : undefined,
    close: () => instruments.close(),
  };
}
