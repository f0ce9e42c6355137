import type { FactName, Facts } from './facts.js';
import type { HistogramName } from './metrics.js';

/** How a kind of work is shown. */
interface ActivityShape {
  /** The name of its span begins with this; the facts of `named` follow it. */
  readonly span: string;
  readonly named: readonly FactName[];
  readonly kind: 'server' | 'client' | 'internal';
  readonly duration: HistogramName | undefined;
  /** Whether it begins a trace where there is none. */
  readonly begins: boolean;
}

/** Every kind of work that is watched. */
export const ACTIVITIES = {
  /** A tool call over MCP, until it is answered. */
  call: { span: 'tools/call', named: ['gen_ai.tool.name'], kind: 'server', duration: 'palimpsest.call.duration', begins: true },
  /** A request to the interface for harnesses and reviewers. */
  request: {
    span: '',
    named: ['http.request.method', 'http.route'],
    kind: 'server',
    duration: 'http.server.request.duration',
    begins: true,
  },
  /** A call of a model, as a harness reported what it took. */
  'model call': { span: 'chat', named: [], kind: 'internal', duration: undefined, begins: false },
  /** A context that is put together. */
  assembly: { span: 'assemble context', named: [], kind: 'internal', duration: 'palimpsest.assembly.duration', begins: false },
  /** A context that is handed out: its record is kept. */
  handout: { span: 'hand out context', named: [], kind: 'internal', duration: undefined, begins: false },
  /** From acknowledgement until the database has it: ends after the call that it belongs to. */
  delivery: { span: 'deliver', named: ['palimpsest.write'], kind: 'internal', duration: 'palimpsest.delivery.duration', begins: true },
  /** A request to the database. */
  query: { span: 'xtdb', named: ['db.operation.name'], kind: 'client', duration: 'db.client.operation.duration', begins: false },
  /** A node that is found or started. */
  'node start': { span: 'start node', named: [], kind: 'internal', duration: 'palimpsest.node.start.duration', begins: true },
} as const satisfies Readonly<Record<string, ActivityShape>>;

/** The name of a kind of work. */
export type ActivityName = keyof typeof ACTIVITIES;

/** What the span of an activity is called, by what is known of it. */
export function spanName(activity: ActivityName, facts: Facts): string {
  const { span, named }: ActivityShape = ACTIVITIES[activity];
  return [span, ...named.map((name) => facts[name])].filter((part) => part !== undefined && part !== '').join(' ');
}
