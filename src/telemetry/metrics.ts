import type { FactName } from './facts.js';

/** Describes a metric. */
export interface MetricShape {
  readonly kind: 'counter' | 'histogram' | 'gauge';
  /** The unit in UCUM, as in OpenTelemetry. Braces contain the name of the counted thing. */
  readonly unit: string;
  readonly what: string;
  /** Facts by which the metric is split into series. Each has few different values. */
  readonly labels: readonly FactName[];
  /** Upper bounds of the histogram's buckets. */
  readonly bounds?: readonly number[];
}

/** From 0.5 ms, the time of a read from the journal, to a minute, when clients time out. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const COUNTS = [1e3, 4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6];

/** All metrics of a process that serves agents. The node's front exports its own. */
export const METRICS = {
  'palimpsest.call.duration': {
    kind: 'histogram',
    unit: 's',
    what: 'Tool calls over MCP until they are answered',
    labels: ['gen_ai.tool.name', 'error.type'],
    bounds: SECONDS,
  },
  'http.server.request.duration': {
    kind: 'histogram',
    unit: 's',
    what: 'Requests of harnesses and reviewers',
    labels: ['http.request.method', 'http.route', 'http.response.status_code', 'error.type'],
    bounds: SECONDS,
  },
  'palimpsest.steps.acknowledged': {
    kind: 'counter',
    unit: '{step}',
    what: 'Messages and tool calls that were acknowledged',
    labels: [],
  },
  'palimpsest.steps.delivered': {
    kind: 'counter',
    unit: '{step}',
    what: 'Steps that the database has stored',
    labels: [],
  },
  'palimpsest.delivery.duration': {
    kind: 'histogram',
    unit: 's',
    what: 'From the acknowledgement of a write until the database has it',
    labels: ['palimpsest.write', 'error.type'],
    bounds: SECONDS,
  },
  'palimpsest.delivery.waiting': {
    kind: 'gauge',
    unit: '{write}',
    what: 'Writes on their way to the database',
    labels: [],
  },
  'palimpsest.delivery.oldest.age': {
    kind: 'gauge',
    unit: 's',
    what: 'Age of the oldest acknowledged record that the database does not have; 0 if there is none',
    labels: [],
  },
  'palimpsest.delivery.outage': {
    kind: 'gauge',
    unit: '1',
    what: '1 while the database accepts no writes',
    labels: [],
  },
  'palimpsest.journal.size': {
    kind: 'gauge',
    unit: 'By',
    what: 'Acknowledged records that wait in journals of this process',
    labels: [],
  },
  'palimpsest.sessions.open': {
    kind: 'gauge',
    unit: '{session}',
    what: 'Sessions that are open in this process',
    labels: [],
  },
  'palimpsest.assembly.duration': {
    kind: 'histogram',
    unit: 's',
    what: 'Putting a context together',
    labels: ['error.type'],
    bounds: SECONDS,
  },
  'palimpsest.context.characters': {
    kind: 'histogram',
    unit: '{character}',
    what: 'Size of the handed-out contexts',
    labels: [],
    bounds: COUNTS,
  },
  'palimpsest.context.tokens': {
    kind: 'histogram',
    unit: '{token}',
    what: 'Size of the requests with handed-out contexts, in tokens, as far as harnesses count them',
    labels: [],
    bounds: COUNTS,
  },
  'gen_ai.client.token.usage': {
    kind: 'histogram',
    unit: '{token}',
    what: 'Tokens of model calls, as harnesses report them',
    labels: ['gen_ai.operation.name', 'gen_ai.token.type'],
    bounds: COUNTS,
  },
  'db.client.operation.duration': {
    kind: 'histogram',
    unit: 's',
    what: 'Requests to the database',
    labels: ['db.system.name', 'db.operation.name', 'error.type'],
    bounds: SECONDS,
  },
  'palimpsest.node.start.duration': {
    kind: 'histogram',
    unit: 's',
    what: 'Finding or starting the node',
    labels: ['palimpsest.node.profile', 'error.type'],
    bounds: SECONDS,
  },
  'palimpsest.failures': {
    kind: 'counter',
    unit: '{failure}',
    what: 'Work that failed, by its code',
    labels: ['error.type'],
  },
} as const satisfies Readonly<Record<string, MetricShape>>;

type NamesOf<Kind extends MetricShape['kind']> = {
  [Name in keyof typeof METRICS]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never;
}[keyof typeof METRICS];

export type MetricName = keyof typeof METRICS;
/** A metric that is read on demand. */
export type GaugeName = NamesOf<'gauge'>;
/** A metric that records each value. */
export type HistogramName = NamesOf<'histogram'>;
/** A metric that code adds values to, as opposed to a gauge. */
export type MeasureName = NamesOf<'counter' | 'histogram'>;
