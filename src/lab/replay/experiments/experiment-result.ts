import type { ReplayReport } from '../report/replay-report.js';

/** One replay of an experiment, in figures: nothing in it is of the recording's text, of its paths or of who made it. */
export interface ExperimentResult {
  /** Format and the first digits of the hash. */
  readonly recording: string;
  readonly format: string;
  readonly parameters: string;
  readonly digest: string;
  readonly complete: boolean;
  readonly sessions: number;
  readonly turns: number;
  readonly steps: number;
  readonly calls: number;
  readonly contexts: number;
  readonly tokens: ReplayReport['contexts']['total']['tokens'];
  readonly bytes: ReplayReport['contexts']['total']['bytes'];
  /** Sums over all contexts: tokens, bytes where none were counted. */
  readonly sections: Readonly<Record<string, number>>;
  readonly objects: ReplayReport['objects'];
  readonly uses: { readonly edited: ReplayReport['uses']['edited']; readonly quoted: ReplayReport['uses']['quoted'] };
  readonly losses: ReplayReport['losses']['by_reason'];
}

/** What an experiment keeps of the report of a replay. */
export function experimentResult(report: ReplayReport): ExperimentResult {
  const { recording, variant, digest, complete, sessions, turns, steps, recorded, contexts, objects, uses, losses } = report;
  const format = recording.formats.join('+');
  return {
    recording: `${format} ${recording.sha256.slice(0, 8)}`,
    format,
    parameters: variant,
    digest,
    complete,
    sessions: sessions.length,
    turns,
    steps,
    calls: recorded.calls,
    contexts: contexts.count,
    tokens: contexts.total.tokens,
    bytes: contexts.total.bytes,
    sections: Object.fromEntries(Object.entries(contexts.sections).map(([name, { tokens, bytes }]) => [name, (tokens ?? bytes).sum])),
    objects,
    uses: { edited: uses.edited, quoted: uses.quoted },
    losses: losses.by_reason,
  };
}
