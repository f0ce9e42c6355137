import type { FactName, Facts } from './facts.js';
import type { HistogramName } from './metrics.js';

/** How telemetry shows a kind of work. */
interface ActivityShape {
  /** Prefix of the span's name. The values of the facts in `named` follow it. */
  readonly span: string;
  readonly named: readonly FactName[];
  readonly kind: 'server' | 'client' | 'internal';
  readonly duration: HistogramName | undefined;
  /** Whether it starts a new trace if it runs outside one. */
  readonly begins: boolean;
}

/** Every kind of work that telemetry observes. */
export const ACTIVITIES = {
  /** A tool call over MCP until its answer. */
  call: {
    span: 'tools/call',
    named: ['gen_ai.tool.name'],
    kind: 'server',
    duration: 'palimpsest.call.duration',
    begins: true,
  },
  /** A request to the HTTP interface for harnesses and reviewers. */
  request: {
    span: '',
    named: ['http.request.method', 'http.route'],
    kind: 'server',
    duration: 'http.server.request.duration',
    begins: true,
  },
  /** A model call, with the usage that a harness reported. */
  'model call': { span: 'chat', named: [], kind: 'internal', duration: undefined, begins: false },
  /** The assembly of a context. */
  assembly: {
    span: 'assemble context',
    named: [],
    kind: 'internal',
    duration: 'palimpsest.assembly.duration',
    begins: false,
  },
  /** Handing out a context to a harness: its assembly record is stored. */
  handout: { span: 'hand out context', named: [], kind: 'internal', duration: undefined, begins: false },
  /** Delivery of a write, from its acknowledgement to the database. It can outlast its call. */
  delivery: {
    span: 'deliver',
    named: ['palimpsest.write'],
    kind: 'internal',
    duration: 'palimpsest.delivery.duration',
    begins: true,
  },
  /** A request to the database. */
  query: {
    span: 'xtdb',
    named: ['db.operation.name'],
    kind: 'client',
    duration: 'db.client.operation.duration',
    begins: false,
  },
  /** Finding or starting a node. */
  'node start': {
    span: 'start node',
    named: [],
    kind: 'internal',
    duration: 'palimpsest.node.start.duration',
    begins: true,
  },
} as const satisfies Readonly<Record<string, ActivityShape>>;

export type ActivityName = keyof typeof ACTIVITIES;

/** Returns the name of an activity's span, given its facts. */
export function spanName(activity: ActivityName, facts: Facts): string {
  const { span, named }: ActivityShape = ACTIVITIES[activity];
  return [span, ...named.map((name) => facts[name])].filter((part) => part !== undefined && part !== '').join(' ');
}
