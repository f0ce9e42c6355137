import { coloursFor, reportFailure, standardOutput, writeJson, writeOutput } from '../cli/output.js';
import { readSettings } from '../host/settings.js';
import { sinceTime } from '../review/ask/since-time.js';
import { defined } from '../values/defined.js';
import { comparePolicies, policyLines } from './compare-policies.js';
import { addUse, type ContextUse, nothingUsed } from './context-use.js';
import { costsLines, limitsOf } from './costs-lines.js';
import { type FoundSession, lastUse } from './find-sessions.js';
import { homeFolder, searchMachine } from './search-machine.js';
import type { SessionIndex } from './session-index.js';
import { type CostKey, type CostRow, type Costs, sumCosts } from './sum-costs.js';

/** Flags of `palimpsest costs`. */
export interface CostsFlags {
  readonly by: CostKey;
  readonly since?: string;
  readonly data?: string;
  readonly policies?: boolean;
  readonly json?: boolean;
  /** False with `--no-pager`. */
  readonly pager?: boolean;
}

/** Adds up the known context use of sessions. */
function usedBy(sessions: readonly FoundSession[], index: SessionIndex): ContextUse {
  const use = nothingUsed();
  for (const { file } of sessions) {
    const known = index.knownUse(file);
    if (known !== undefined) addUse(use, known);
  }
  return use;
}

const rowAnswer = ({ key, sessions, calls, fresh, cacheRead, cacheWrite, output, dollars, unpriced }: CostRow) => ({
  key,
  sessions,
  calls,
  input: fresh,
  cache_read: cacheRead,
  cache_write: cacheWrite,
  output,
  dollars,
  unpriced_calls: unpriced,
});

function costsAnswer(costs: Costs, use: ContextUse, by: CostKey): object {
  const { rows, total, lost, uncounted } = costs;
  return {
    by,
    rows: rows.map(rowAnswer),
    total: rowAnswer(total),
    uncounted_calls: uncounted,
    lost_cache: lost,
    results: { tokens: use.tokens, unused: use.unused, sent: use.sent, sent_unused: use.sentUnused, tools: use.tools },
    notes: limitsOf(costs),
  };
}

/**
 * Returns the sessions that were used since a time. Context use is only known for whole sessions.
 */
const usedSince = (sessions: readonly FoundSession[], since: number | undefined): readonly FoundSession[] =>
  since === undefined ? sessions : sessions.filter((session) => lastUse(session) >= since);

/** Runs `palimpsest costs`. */
export async function costsAction(flags: CostsFlags): Promise<void> {
  await reportFailure(flags, async () => {
    const { by } = flags;
    const since = flags.since === undefined ? undefined : sinceTime(flags.since, new Date()).getTime();
    const settings = readSettings(process.env, flags);
    const { dataDir } = settings.node;
    const { sessions, unread, index } = await searchMachine(process.env, dataDir, { withUse: true });
    const costs = sumCosts(sessions, { by, since });
    const use = usedBy(usedSince(sessions, since), index);
    const compared = flags.policies === true ? await comparePolicies(usedSince(sessions, since), settings) : undefined;
    if (flags.json === true) return writeJson({ ...costsAnswer(costs, use, by), ...defined({ compared }) });
    const target = standardOutput(flags);
    const colours = coloursFor(target);
    const home = homeFolder(process.env);
    const files = unread.length === 0 ? [] : [`# ${unread.length} files are not sessions; palimpsest names them.`];
    const lines = costsLines({ costs, use, by, since, home }, { colours, width: target.width });
    const others = compared === undefined ? [] : policyLines(compared, { colours, width: target.width });
    await writeOutput([...lines, ...others, ...files.map(colours.dim)], target);
  });
}
