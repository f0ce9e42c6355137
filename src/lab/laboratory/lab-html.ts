import { type Cell, grouped } from '../report/markdown.js';
import type { CallSeries, PolicyScore } from '../scorecard/score.js';
import type { LabPolicy, LabReport, LabSession } from './lab-report.js';
import { aboutReport, type LabTable, labTables } from './lab-tables.js';
import { MEASURES } from './measures.js';
import { escapedHtml, linePlot, type Mark, type PlotPoint, pointPlot } from './plots.js';
import { limitsOf, reportedSide } from './verdicts.js';

const STYLE = `
body{font:14px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:1240px;padding:0 1rem;color:#1d2330;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:12.5px}
td,th{padding:.25rem .55rem;border-bottom:1px solid #e3e6ee;text-align:right;white-space:nowrap}
td.text,th.text{text-align:left}th{background:#f5f6fa;position:sticky;top:0}
td.note{white-space:normal;min-width:14rem;text-align:left}
svg{margin:.3rem .6rem .3rem 0}svg text{font:11px system-ui,sans-serif;fill:#5a6274}
svg .title{font-weight:600;fill:#1d2330}svg .left{text-anchor:end;dominant-baseline:middle}
svg .below{text-anchor:middle}
svg .axis{text-anchor:end}svg .unit{display:none}svg .point{fill:#1d2330}
.grid{stroke:#eceef4}.leader{stroke:#d5d9e3;fill:none}.line{fill:none;stroke-width:1.4}
.interval{fill:none;stroke-width:1;opacity:.45}
.legend span{display:inline-block;margin-right:1rem}
.legend i{display:inline-block;width:1.1rem;height:.55rem;margin-right:.35rem}
details{margin:.4rem 0}summary{cursor:pointer}
`;

/** Colours for each kind of policy, in the order in which policies are compared. */
const COLOURS: Readonly<Record<LabPolicy['kind'], readonly string[]>> = {
  baseline: ['#8b93a5', '#5a6274'],
  peer: ['#d9822b', '#c23030', '#8f398f', '#9e6b3f', '#b83a84', '#6b4e9b', '#bf7326', '#a82a2a'],
  own: ['#0d8050', '#15b371', '#00998c', '#3f7f2f', '#5cb85c', '#087f5b', '#2b8a3e', '#12b886'],
  bound: ['#2965cc', '#48aff0', '#1f4b99'],
};

/** Returns each policy's colour and shape, which are the same in every plot. */
function marksOf(policies: readonly LabPolicy[]): ReadonlyMap<string, Mark> {
  const used = { baseline: 0, peer: 0, own: 0, bound: 0 };
  return new Map(
    policies.map(({ name, kind }) => {
      const colours = COLOURS[kind];
      const colour = colours[used[kind] % colours.length] ?? '#000';
      used[kind] += 1;
      return [name, { name, colour, hollow: kind === 'bound' }];
    }),
  );
}

function tableHtml({ heading, intro, head, rows, texts }: LabTable): string {
  const cell = (one: Cell, at: number): string => {
    const text = typeof one === 'number' ? grouped(one) : one;
    const kind = at < texts ? ' class="text"' : text.length > 60 ? ' class="note"' : '';
    return `<td${kind}>${escapedHtml(text)}</td>`;
  };
  return [
    `<h2>${escapedHtml(heading)}</h2>`,
    ...intro.map((line) => `<p>${escapedHtml(line.replaceAll('`', ''))}</p>`),
    '<div class="wide"><table><thead><tr>',
    ...head.map((name, at) => `<th${at < texts ? ' class="text"' : ''}>${escapedHtml(name)}</th>`),
    '</tr></thead><tbody>',
    ...rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`),
    '</tbody></table></div>',
  ].join('');
}

/** Returns the policies that the plots show: the published and the best setting of each family. */
function drawn({ policies, families }: LabReport): readonly LabPolicy[] {
  const names = new Set(families.flatMap(({ published, best }) => [published, best]));
  return policies.filter(({ name }) => names.has(name));
}

/** Plots cost against kept calls, over the sessions that the report's sentences describe. */
function frontierPlot(report: LabReport, marks: ReadonlyMap<string, Mark>): string {
  const side = reportedSide(report);
  const points = drawn(report).flatMap(({ name, pooled }): readonly PlotPoint[] => {
    const [mark, one] = [marks.get(name), pooled[side]];
    return one === undefined || mark === undefined ? [] : [{ ...mark, x: one.vsSent, y: one.callsKept }];
  });
  return pointPlot(
    {
      width: 1_200,
      height: 620,
      x: 'cost relative to what was sent',
      y: '',
      title: 'Calls that kept all needed lines, against cost',
      show: (share: number) => `${Math.round(100 * share)} %`,
    },
    points,
  );
}

const accumulated = (values: readonly number[]): readonly number[] => {
  let sum = 0;
  return values.map((value) => {
    sum += value;
    return sum;
  });
};

/** Plots the size, price and cache hits of each call of a session, under every policy. */
function sessionPlots({ name, calls, policies }: LabSession, marks: ReadonlyMap<string, Mark>): string {
  const scored = Object.entries(policies).flatMap(
    ([policy, { score }]): readonly { readonly mark: Mark; readonly score: PolicyScore }[] => {
      const mark = marks.get(policy);
      return score === undefined || mark === undefined ? [] : [{ mark, score }];
    },
  );
  const lines = (of: (series: CallSeries) => readonly number[]) =>
    scored.map(({ mark, score }) => ({ ...mark, values: of(score.series) }));
  const frame = { width: 395, height: 230, x: 'call', y: '' };
  return [
    `<details open><summary>${escapedHtml(name)}, ${calls} calls</summary>`,
    linePlot(
      { ...frame, title: 'tokens of the request' },
      lines(({ tokens }) => tokens),
    ),
    linePlot(
      { ...frame, title: 'cost so far' },
      lines(({ cost }) => accumulated(cost)),
    ),
    linePlot(
      { ...frame, title: 'same beginning as the previous call', show: (share) => `${Math.round(100 * share)} %` },
      lines(({ same }) => same),
    ),
    '</details>',
  ].join('');
}

/**
 * Returns the report as one HTML page with plots. It has no script, loads nothing, and contains no
 * recorded text.
 */
export function labHtml(report: LabReport): string {
  const marks = marksOf(drawn(report));
  const legend = [...marks.values()].map(
    ({ name, colour }) => `<span><i style="background:${colour}"></i>${escapedHtml(name)}</span>`,
  );
  const [pooled, ...tables] = labTables(report);
  return [
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
    `<title>Laboratory: context policies on recorded sessions</title><style>${STYLE}</style></head><body>`,
    '<h1>Laboratory: context policies on recorded sessions</h1>',
    `<p>${escapedHtml(aboutReport(report))}</p>`,
    '<h2>What this does not show</h2>',
    ...limitsOf(report)
      .split('\n\n')
      .map((text) => `<p>${escapedHtml(text)}</p>`),
    pooled === undefined ? '' : tableHtml(pooled),
    '<h2>Cost against what is kept</h2><p>Lines hold 95 of 100 resamplings of the sessions. ' +
      'Hollow points and dashed lines are bounds that know the future.</p>',
    frontierPlot(report, marks),
    ...tables.map(tableHtml),
    '<h2>Call by call</h2><p class="legend">',
    ...legend,
    '</p>',
    ...report.sessions.map((session) => sessionPlots(session, marks)),
    '<h2>Policies</h2><ul>',
    ...drawn(report).map(
      ({ name, about, source, fidelity }) =>
        `<li><b>${escapedHtml(name)}</b> (${fidelity}; ${escapedHtml(source)}): ${escapedHtml(about)}</li>`,
    ),
    '</ul><h2>Measures</h2><ul>',
    ...MEASURES.map(
      ({ name, says, cannot }) =>
        `<li><b>${escapedHtml(name)}</b>: ${escapedHtml(says.replaceAll('`', ''))} It cannot show: ` +
        `${escapedHtml(cannot)}</li>`,
    ),
    '</ul></body></html>\n',
  ].join('\n');
}
