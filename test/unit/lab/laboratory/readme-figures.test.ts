import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const read = (path: string): string => readFileSync(path, 'utf8').replaceAll(/\s+/g, ' ');

test('the README has the figures of the report on unseen sessions, and no better ones', () => {
  const report = read('docs/experiments/2026-11-28-laboratory.md');
  const [, sessions] = /## Unseen sessions (\d+) sessions/.exec(report) ?? [];
  const unseen = report.slice(report.indexOf('## Unseen sessions'), report.indexOf('## Test '));
  const [, row = ''] = /\| Palimpsest epoch \| default \|([^\n]*?)\| clairvoyant/.exec(unseen) ?? [];
  const [fitting = '', toSent = '', , kept = ''] = row.split('|');
  const [, fits] = /0\.(\d\d)/.exec(fitting) ?? [];
  const [, sent, low, high] = /0\.(\d\d) \[0\.(\d\d)–0\.(\d\d)\]/.exec(toSent) ?? [];
  const [, calls, callsLow, callsHigh] = /([\d.]+) % \[(\d+)–(\d+)\]/.exec(kept) ?? [];
  const readme = read('README.md');
  const cost = readme.slice(readme.indexOf('**Cost.**'), readme.indexOf('**Durability.**'));
  for (const claim of [
    `On ${sessions} unseen sessions`,
    `costs ${sent} % of what the agents sent (95 % interval ${low}–${high})`,
    `costs ${fits} % of sending everything`,
    `In ${calls} % of the model calls (${callsLow}–${callsHigh})`,
  ])
    expect(cost).toContain(claim);
  // The paragraph may contain no other percentage.
  expect(cost.match(/[\d.]+ %/g)).toEqual([`${sent} %`, '95 %', `${fits} %`, `${calls} %`]);
});
