import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import {
  identifyProcess,
  identifySelf,
  isAlive,
  startFromPowerShell,
  startFromPs,
  startFromStat,
  UNKNOWN_START,
} from '../../../src/process/process-identity.js';

const stat = (name: string, state: string): string =>
  `42 (${name}) ${state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 98765 20 21`;

describe('the identity of a process', () => {
  test('reads the start after a name with spaces and parentheses', () => {
    expect(startFromStat(stat('java', 'S'))).toBe('98765');
    expect(startFromStat(stat('a) S 1 (b', 'R'))).toBe('98765');
  });

  test('treats a zombie process as dead', () => {
    expect(startFromStat(stat('java', 'Z'))).toBeUndefined();
    expect(startFromPs('Z+   Mon Jan  1 00:00:00 2024')).toBeUndefined();
  });

  test('reads the start from ps as text', () => {
    expect(startFromPs('Ss   Mon Jan  1 00:00:00 2024\n')).toBe('Mon Jan  1 00:00:00 2024');
    expect(startFromPs('')).toBeUndefined();
  });

  test('reads the start from PowerShell, and takes any other answer for an unknown start', () => {
    expect(startFromPowerShell('133769502471234567\r\n')).toBe('133769502471234567');
    for (const text of ['', 'Get-Process : Cannot find a process', '0'])
      expect(startFromPowerShell(text)).toBe(UNKNOWN_START);
  });

  test('is alive for this process, but not for its pid with another start', async () => {
    const self = await identifySelf();
    expect(self.pid).toBe(process.pid);
    expect(await isAlive(self)).toBe(true);
    expect(await isAlive({ ...self, started: `${self.started}0` })).toBe(false);
  });

  test('is alive until the process ends', async () => {
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
    const identity = await identifyProcess(child.pid ?? 0);
    expect(identity).toBeDefined();
    if (identity === undefined) return;
    expect(await isAlive(identity)).toBe(true);
    child.stdin.end();
    await once(child, 'exit');
    expect(await isAlive(identity)).toBe(false);
  });
});
