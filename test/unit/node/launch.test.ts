import { describe, expect, test } from '@jest/globals';
import {
  frontArguments,
  type LaunchPlan,
  parseFailedLine,
  parseLaunchPlan,
  parseReadyLine,
  parseStartingLine,
} from '../../../src/node/launch.js';
import { parseStatus } from '../../../src/node/probe-node.js';

const plan: LaunchPlan = {
  dataDir: '/data',
  profile: 'rocksdb',
  java: '/jdk/bin/java',
  javaMajor: 17,
  jars: ['/cache/front.jar', '/cache/lib/a.jar'],
  archive: '/cache/front.jsa',
  cached: '/cache',
  missing: null,
  configFile: '/pkg/xtdb/xtdb.edn',
  settingsFile: null,
  socketPath: '/data/run/xtdb.sock',
  tokenFile: null,
  idleExitSeconds: 60,
  heapMegabytes: 512,
};
const following = (args: readonly string[], flag: string): string | undefined => args[args.indexOf(flag) + 1];

describe('the command line of the JVM', () => {
  test('names data folder, socket, lock and its own temporary folder for the durable profile', () => {
    const args = frontArguments(plan);
    expect(following(args, '--data')).toBe('/data');
    expect(following(args, '--socket')).toBe('/data/run/xtdb.sock');
    expect(following(args, '--lock')).toBe('/data/node.lock');
    expect(following(args, '--idle-exit')).toBe('60');
    expect(args).toContain('-Djava.io.tmpdir=/data/tmp');
    expect(args).toContain('-Xmx512m');
    expect(args).toContain('-XX:+ExitOnOutOfMemoryError');
    expect(args).toContain('-XX:SharedArchiveFile=/cache/front.jsa');
    expect(args).toContain('-Xshare:auto');
  });

  test('passes an ahead-of-time cache to Java 25, and no archive if there is none', () => {
    const cached = frontArguments({ ...plan, javaMajor: 25, archive: '/cache/front.aot' });
    expect(cached).toContain('-XX:AOTCache=/cache/front.aot');
    expect(cached.filter((arg) => /SharedArchive|Xshare/.test(arg))).toEqual([]);
    const bare = frontArguments({ ...plan, archive: null });
    expect(bare.filter((arg) => /SharedArchive|Xshare|AOT/.test(arg))).toEqual([]);
  });

  test('delays the optimising compiler only if a database starts without an archive', () => {
    const late = (given: Partial<LaunchPlan>) =>
      frontArguments({ ...plan, ...given }).filter((arg) => /Tier4/.test(arg));
    expect(late({ archive: null })).toContain('-XX:Tier4InvocationThreshold=100000');
    expect(late({})).toEqual([]);
    expect(late({ archive: null, profile: 'postgres' })).toEqual([]);
  });

  test('has no data folder and only the first compiler for the memory profile', () => {
    const args = frontArguments({ ...plan, profile: 'memory' });
    expect(args).not.toContain('--data');
    expect(args).toContain('-XX:TieredStopAtLevel=1');
    expect(args).toContain('-XX:+UseSerialGC');
  });

  test('reads the location of a shared log from a file', () => {
    const args = frontArguments({ ...plan, profile: 'postgres', settingsFile: '/data/shared-log.json' });
    expect(following(args, '--settings')).toBe('/data/shared-log.json');
    expect(following(args, '--data')).toBe('/data');
    expect(frontArguments(plan)).not.toContain('--settings');
  });

  test('has no archive flag without an archive', () => {
    expect(frontArguments({ ...plan, archive: null }).join(' ')).not.toMatch(/Share/);
  });

  test('has a token file and any free port for TCP', () => {
    const args = frontArguments({ ...plan, socketPath: null, tokenFile: '/data/run/token' });
    expect(args).toContain('--stop-on-request');
    expect(frontArguments(plan)).not.toContain('--stop-on-request');
    expect(following(args, '--port')).toBe('0');
    expect(following(args, '--token-file')).toBe('/data/run/token');
    expect(args).not.toContain('--socket');
  });

  test('carries a plan unchanged, and refuses anything else', () => {
    expect(parseLaunchPlan(JSON.stringify(plan))).toEqual(plan);
    expect(() => parseLaunchPlan('{"dataDir":"/x"}')).toThrow(expect.objectContaining({ code: 'start-failed' }));
  });
});

describe('output of the node', () => {
  test('distinguishes the ready line from other output', () => {
    const line = '{"ready":true,"pid":7,"socket":"/s","port":null,"version":"1.24.3"}';
    expect(parseReadyLine(line)).toEqual({ ready: true, pid: 7, socket: '/s', port: null, version: '1.24.3' });
    expect(parseReadyLine('12:00 INFO ready')).toBeUndefined();
    expect(parseReadyLine('{"ready":false}')).toBeUndefined();
    expect(parseReadyLine('{"ready":true,')).toBeUndefined();
    expect(parseStartingLine('{"starting":true,"indexed":5,"of":10}')).toEqual({ indexed: 5, of: 10 });
    expect(parseStartingLine('{"starting":true,"indexed":-1,"of":10}')).toBeUndefined();
    expect(parseStartingLine(line)).toBeUndefined();
    expect(parseFailedLine('{"failed":true,"reason":"store: no room"}')).toBe('store: no room');
    expect(parseFailedLine(line)).toBeUndefined();
  });

  test('shows a dead indexer in the status, and does not accept HTML as a status', () => {
    expect(parseStatus('{"version":"1.24.3","ingesterFailed?":true}')).toEqual({
      version: '1.24.3',
      ingesterFailed: true,
      ingesterError: null,
      storeFailed: false,
    });
    expect(parseStatus('{"ingesterFailed?":true,"ingesterError":"log-ended: it ends"}')).toMatchObject({
      ingesterError: 'log-ended: it ends',
    });
    const stored = { ingesterFailed: false, storeFailed: true };
    expect(parseStatus('{"version":"1.24.3","ingesterFailed?":false,"storeFailed?":true}')).toMatchObject(stored);
    expect(parseStatus('<html></html>')).toBeUndefined();
  });
});
