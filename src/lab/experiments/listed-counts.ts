import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReplayReport } from '../report/replay-report.js';

/** The counts of a recording, from the list that comes with a corpus. */
export interface ListedCounts {
  readonly bytes: number;
  readonly messages: number;
  readonly calls: number;
  readonly reads: number;
}

/** Reads the counts in a corpus's `PROVENANCE.tsv`, by file name. Empty if the file is missing. */
export async function readProvenance(folder: string): Promise<ReadonlyMap<string, ListedCounts>> {
  const text = await readFile(join(folder, 'PROVENANCE.tsv'), 'utf8').catch(() => '');
  const [head = '', ...rows] = text.split('\n').filter((line) => line !== '');
  const columns = head.split('\t');
  return new Map(
    rows.map((line) => {
      const cells = line.split('\t');
      const cell = (name: string): string => cells[columns.indexOf(name)] ?? '';
      const counts = {
        bytes: Number(cell('bytes')),
        messages: Number(cell('messages')),
        calls: Number(cell('tool_calls')),
        reads: Number(cell('reads')),
      };
      return [cell('file').replace(/\/$/, ''), counts] as const;
    }),
  );
}

type Recorded = Pick<ReplayReport, 'recording' | 'recorded' | 'sessions'>;
type Field = 'items' | 'calls' | 'reads';

/** A count of ours that differs from the listed count. */
interface Difference {
  readonly field: Field;
  readonly own: number;
  readonly listed: number;
}

/**
 * Explains a difference by a different version of the file, if our file has less than nine tenths
 * of the listed bytes.
 */
function otherFile({ recording }: Recorded, listed: ListedCounts): string | undefined {
  if (listed.bytes === 0 || recording.bytes >= listed.bytes * 0.9) return undefined;
  return `counted in a file of ${listed.bytes} bytes; the file here has ${recording.bytes}`;
}

/** Explains a difference by sub-agents. The list leaves them out, and we count them as sessions. */
function subAgents({ recorded, sessions }: Recorded, { field, own, listed }: Difference): string | undefined {
  const agents = sessions.filter(({ relation }) => relation === 'subagent').length;
  if (agents === 0 || recorded.main[field] !== listed) return undefined;
  return (
    `${listed} in the conversation itself, as listed, and ${own - listed} in ${agents} sub-agents, separate ` +
    'sessions here'
  );
}

/**
 * Explains a difference in reads: the list has other rules for reads by a shell and for files that
 * no call read.
 */
function reads({ recorded }: Recorded, { field, own, listed }: Difference): string | undefined {
  if (field !== 'reads') return undefined;
  const { shell_reads: shell, attached_files: attached } = recorded;
  const byTool = own - shell;
  if (listed === byTool)
    return `${byTool} by reading tools, as listed, and ${shell} by command lines that print a file`;
  if (listed === own + attached)
    return `${own} by calls, and ${attached} attached to a prompt: listed as reads, no calls here`;
  const whose = 'the list does not say which commands it counts';
  return (
    `${byTool} by reading tools and ${shell} by command lines that print a file; the list has ${listed - byTool} of ` +
    `the latter: ${whose}`
  );
}

/**
 * Compares our counts of a recording with the listed ones. Returns a line for each difference,
 * which names a reason whose numbers add up, or says `unexplained`.
 */
export function countDifferences(report: Recorded, listed: ListedCounts): readonly string[] {
  const { recorded } = report;
  const all: readonly Difference[] = [
    { field: 'items', own: recorded.items, listed: listed.messages },
    { field: 'calls', own: recorded.calls, listed: listed.calls },
    { field: 'reads', own: recorded.read_files, listed: listed.reads },
  ];
  return all
    .filter((one) => one.own !== one.listed)
    .map((one) => {
      const reason = otherFile(report, listed) ?? subAgents(report, one) ?? reads(report, one) ?? 'unexplained';
      return `${one.field} ${one.own}, listed ${one.listed}: ${reason}`;
    });
}
