import type { ListedCounts } from './corpus.js';
import type { ReplayReport } from './replay-report.js';
import { corpusHash } from './run-experiment.js';

/** One recording of a corpus and what became of it. */
export interface CorpusResult {
  readonly name: string;
  readonly listed: ListedCounts | undefined;
  readonly report: ReplayReport | undefined;
  /** Why there is no report. */
  readonly failure: string | undefined;
  readonly ms: number;
}

/** How the corpus was replayed. */
export interface CorpusRun {
  readonly command: string;
  readonly commit: string;
  readonly date: string;
}

/** Why a count may differ from the listed one; told with every difference. */
function explanations({ listed, report }: CorpusResult): readonly string[] {
  if (listed === undefined || report === undefined) return [];
  const { recorded, losses } = report;
  const said: string[] = [];
  if (recorded.items !== listed.messages) {
    said.push(
      `items ${recorded.items} here, ${listed.messages} listed${recorded.copied > 0 ? ` (${recorded.copied} copied from a parent session)` : ''}`,
    );
  }
  if (recorded.calls !== listed.calls) said.push(`calls ${recorded.calls} here, ${listed.calls} listed`);
  if (recorded.read_files !== listed.reads) said.push(`reads ${recorded.read_files} here, ${listed.reads} listed`);
  return said.length === 0 ? [] : [...said, ...(losses.total > 0 ? [`losses ${JSON.stringify(losses.by_reason)}`] : [])];
}

function line(result: CorpusResult): string {
  const { name, listed, report, failure, ms } = result;
  if (report === undefined) return `| ${name} | | | | | | | | | | ${failure ?? 'not replayed'} |`;
  const { recorded, contexts, uses } = report;
  const against = (own: number, other: number | undefined): string =>
    other === undefined || other === own ? String(own) : `${own} (${other})`;
  const tokens = contexts.total.tokens;
  return `| ${[
    name,
    against(recorded.items, listed?.messages),
    against(recorded.calls, listed?.calls),
    against(recorded.read_files, listed?.reads),
    contexts.count,
    tokens?.p50 ?? '',
    tokens?.max ?? '',
    `${uses.edited.active}/${uses.edited.shown}/${uses.edited['one-step']}/${uses.edited.absent}`,
    `${recorded.changes.followed}/${recorded.changes.unknown}`,
    (ms / 1_000).toFixed(1),
    report.losses.total,
  ].join(' | ')} |`;
}

/** The summary over a replayed corpus for people. */
export function corpusMarkdown(
  run: CorpusRun,
  results: readonly CorpusResult[],
  others: readonly { readonly name: string; readonly reason: string }[],
): string {
  const reports = results.flatMap(({ report }) => (report === undefined ? [] : [report]));
  const differing = results.flatMap((result) => {
    const said = explanations(result);
    return said.length === 0 ? [] : [`- ${result.name}: ${said.join('; ')}.${result.listed?.notes === '' ? '' : ''}`];
  });
  const sum = (of: (report: ReplayReport) => number): number => reports.reduce((all, report) => all + of(report), 0);
  return [
    `# Replay of a corpus, ${run.date}`,
    '',
    `Command: \`${run.command}\`  `,
    `Commit: \`${run.commit}\`  `,
    `Corpus: ${reports.length} recordings, ${sum(({ sessions }) => sessions.length)} sessions, sha256 \`${corpusHash(reports)}\` (over the sorted hashes of their contents)`,
    '',
    `${sum(({ steps }) => steps)} steps, ${sum(({ contexts }) => contexts.count)} contexts, ${sum(({ objects }) => objects.files.created)} files, ${sum(({ objects }) => objects.toolcalls.created)} tool calls, ${sum(({ losses }) => losses.total)} losses.`,
    '',
    'Counts beside those of the list that comes with the corpus, in brackets where they differ. Edited: files that the agent edited while active / shown by a',
    'result / one step away / absent. Changes: followed / to an unknown text.',
    '',
    '| recording | items | calls | reads | contexts | tokens p50 | max | edited | changes | seconds | losses |',
    '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|',
    ...results.map(line),
    '',
    '## Differences',
    '',
    ...(differing.length === 0 ? ['None.'] : differing),
    '',
    '## Not recordings',
    '',
    ...(others.length === 0 ? ['None.'] : others.map(({ name, reason }) => `- ${name}: ${reason}`)),
    '',
  ].join('\n');
}

/** The summary as data: everything of each report but the single contexts and uses. */
export function corpusJson(run: CorpusRun, results: readonly CorpusResult[]): unknown {
  return {
    ...run,
    recordings: results.map(({ name, listed, report, failure, ms }) => {
      if (report === undefined) return { name, failure, ms };
      const { each: _contexts, ...contexts } = report.contexts;
      const { each: _uses, ...uses } = report.uses;
      return { name, listed, ms, report: { ...report, contexts, uses } };
    }),
  };
}
