import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { readRetention, retainAction } from '../../../src/erasure/retention.js';

let data: string;
let printed = '';

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'palimpsest-retain-'));
  jest.spyOn(console, 'log').mockImplementation((line) => {
    printed += String(line);
  });
});

afterEach(async () => {
  jest.restoreAllMocks();
  await rm(data, { recursive: true, force: true });
});

/** Runs `palimpsest retain --json` and returns its rules. */
async function retain(flags: { readonly rule?: readonly string[]; readonly none?: boolean } = {}): Promise<unknown> {
  printed = '';
  await retainAction({ ...flags, data, json: true });
  return JSON.parse(printed).rules;
}

test('sets, shows, replaces and removes all retention rules', async () => {
  expect(await retain()).toEqual([]);
  const set = await retain({ rule: ['ci-*=30', 'audit=always'] });
  expect(set).toEqual([
    { sessions: 'ci-*', keepDays: 30 },
    { sessions: 'audit', keepDays: null },
  ]);
  expect([await retain(), await readRetention(data)]).toEqual([set, set]);
  expect(await retain({ rule: ['*=365'] })).toEqual([{ sessions: '*', keepDays: 365 }]);
  expect(await retain({ none: true })).toEqual([]);
  expect([await retain(), await readRetention(data)]).toEqual([[], []]);
});

test('refuses a malformed rule, and a rule beside --none, and changes nothing', async () => {
  for (const flags of [{ rule: ['ci-*'] }, { rule: ['*ci=3'] }, { rule: ['a=0'] }, { rule: ['a=1'], none: true }])
    await expect(retain(flags)).rejects.toMatchObject({ code: 'usage' });
  expect(existsSync(join(data, 'erasures'))).toBe(false);
});
