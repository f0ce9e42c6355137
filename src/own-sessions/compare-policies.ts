import { fittedTable, wrapped } from '../cli/fitted-table.js';
import { progressLine } from '../cli/output.js';
import type { Settings } from '../host/settings.js';
import { parseLabConfig } from '../lab/laboratory/lab-config.js';
import { runLab } from '../lab/laboratory/run-lab.js';
import { openReplayDatabase } from '../lab/replay/replay-database.js';
import { allTokens, spentBy } from './counted-tokens.js';
import { type FoundSession, ownSessions } from './find-sessions.js';
import type { Shown } from './first-screen.js';

/** The cost of a context policy over the largest sessions, and what the policy keeps. */
export interface ComparedPolicy {
  readonly name: string;
  /** The cost divided by the cost of what the agent sent. */
  readonly cost: number;
  /** Share of the calls whose requests kept every line that the recorded answer used. */
  readonly callsKept: number;
}

/** The compared policies, and the number of sessions they were compared on. */
export interface PolicyComparison {
  readonly sessions: number;
  readonly policies: readonly ComparedPolicy[];
}

/**
 * Maximum number of sessions. The largest ones make up most of the bill, and each takes seconds.
 */
const MOST_SESSIONS = 3;

const CONFIG = parseLabConfig(
  {
    policies: [
      { policy: 'last-results', keep: 10 },
      { policy: 'clear-tool-uses', over: 100_000, keep: 3 },
      { policy: 'palimpsest', layout: 'epoch' },
    ],
  },
  'palimpsest costs --policies',
);

/** Compares context policies on the largest sessions by running the laboratory. */
export async function comparePolicies(
  sessions: readonly FoundSession[],
  { node }: Pick<Settings, 'node'>,
): Promise<PolicyComparison> {
  const size = (session: FoundSession): number => allTokens(spentBy(session));
  const largest = ownSessions(sessions)
    .filter(({ calls }) => calls >= CONFIG.least)
    .sort((a, b) => size(b) - size(a))
    .slice(0, MOST_SESSIONS);
  if (largest.length === 0) return { sessions: 0, policies: [] };
  const { dataDir: _shared, ...settings } = node;
  const progress = progressLine();
  const onProgress = (line: string): void => progress.show(line);
  try {
    const { report } = await runLab(
      largest.map(({ file }) => file.path),
      { config: CONFIG, open: () => openReplayDatabase(undefined, { ...settings, onProgress }), onProgress },
    );
    const policies = report.policies.flatMap(({ name, pooled: { all } }): readonly ComparedPolicy[] =>
      all === undefined ? [] : [{ name, cost: all.vsSent.value, callsKept: all.callsKept.value }],
    );
    return { sessions: report.sessions.length, policies };
  } finally {
    progress.end();
  }
}

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

/** Returns the lines that show a comparison and its limits. */
export function policyLines({ sessions, policies }: PolicyComparison, shown: Shown): readonly string[] {
  const said = (text: string): readonly string[] => wrapped(text, shown.width);
  if (policies.length === 0)
    return ['', ...said(`No session has ${CONFIG.least} model calls, so no policy was compared.`)];
  const limits =
    'Costs are those of prompts and answers, against what your agent sent. They come from recorded answers without ' +
    'a model: how a model would have answered otherwise is unknown. palimpsest lab explains them.';
  return [
    '',
    ...said(
      sessions === 1 ? 'Other policies on the largest session' : `Other policies on the ${sessions} largest sessions`,
    ).map(shown.colours.bold),
    ...fittedTable(
      [
        { heading: 'policy', share: 1, least: 20 },
        { heading: 'cost', align: 'right' },
        { heading: 'calls with every used line', align: 'right' },
      ],
      policies.map(({ name, cost, callsKept }) => [
        name === 'raw' ? 'raw: everything is sent' : name,
        percent(cost),
        percent(callsKept),
      ]),
      shown,
    ),
    ...wrapped(limits, shown.width, '# ').map(shown.colours.dim),
  ];
}
