import { table } from '../report/markdown.js';
import type { LabReport } from './lab-report.js';
import { aboutReport, labTables } from './lab-tables.js';
import { MEASURES } from './measures.js';
import { limitsOf } from './verdicts.js';

/** Returns the report as Markdown without recorded text. */
export function labMarkdown(report: LabReport): string {
  const tables = labTables(report).flatMap(({ heading, intro, head, rows, texts }) => [
    `## ${heading}`,
    '',
    ...intro.flatMap((line) => [line, '']),
    ...table(head, rows, texts),
    '',
  ]);
  return [
    '# Laboratory: context policies on recorded sessions',
    '',
    aboutReport(report),
    '',
    '## What this does not show',
    '',
    limitsOf(report),
    '',
    ...tables,
    '## Policies',
    '',
    ...report.policies
      .filter(({ name }) => report.families.some(({ published }) => published === name))
      .map(({ name, about, source, fidelity }) => `- **${name}** (${fidelity}; ${source}): ${about}`),
    '',
    '## Measures',
    '',
    ...MEASURES.map(({ name, says, cannot }) => `- **${name}**: ${says} It cannot show: ${cannot}`),
    '',
  ].join('\n');
}
