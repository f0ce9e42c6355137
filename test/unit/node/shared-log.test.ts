import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { openDataFolder } from '../../../src/node/data-folder.js';
import {
  chooseLog,
  describeSharedLog,
  readSharedLog,
  type SharedLog,
  sharedLogFile,
  writeSharedLog,
} from '../../../src/node/shared-log.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const database = {
  hosts: [{ host: 'db', port: 5432 }],
  name: 'ctx',
  user: 'u',
  parameters: {},
  passwordFile: '/run/secrets/password',
  passwordVariable: 'PALIMPSEST_DATABASE_PASSWORD',
};
const postgres: SharedLog = { profile: 'postgres', database };
const kafka: SharedLog = {
  profile: 'kafka',
  database,
  kafka: { brokers: ['k1:9092', 'k2:9092'], topic: 'palimpsest-log', replication: 3, create: false },
};

describe('the log of a data folder', () => {
  test('is the requested one, else the folder’s, else its own database', () =>
    withTemporaryFolder(async (dir) => {
      const folder = await openDataFolder(join(dir, 'data'));
      expect(await chooseLog(folder, {})).toEqual({ profile: 'rocksdb', log: undefined });
      expect(await chooseLog(folder, { profile: 'postgres', log: postgres })).toEqual({
        profile: 'postgres',
        log: postgres,
      });
      await expect(chooseLog(folder, { profile: 'kafka' })).rejects.toMatchObject({
        code: 'log-missing',
        message: /--documents/,
      });
      await writeSharedLog(folder.dir, kafka);
      expect((await stat(sharedLogFile(folder.dir))).mode & 0o777).toBe(0o600);
      expect(await chooseLog(folder, {})).toEqual({ profile: 'kafka', log: kafka });
      expect(await chooseLog(folder, { profile: 'memory' })).toEqual({ profile: 'memory', log: undefined });
      await expect(chooseLog(folder, { profile: 'rocksdb' })).rejects.toMatchObject({
        code: 'profile-mismatch',
        message: /k1:9092/,
      });
    }));

  test('cannot be shared for a folder with its own database', () =>
    withTemporaryFolder(async (dir) => {
      const folder = await openDataFolder(join(dir, 'data'));
      await mkdir(join(folder.dir, 'golden'));
      await expect(chooseLog(folder, { profile: 'postgres', log: postgres })).rejects.toMatchObject({
        code: 'profile-mismatch',
      });
      expect(await chooseLog(folder, {})).toEqual({ profile: 'rocksdb', log: undefined });
    }));

  test('names a damaged file, unless the log is given again', () =>
    withTemporaryFolder(async (dir) => {
      const folder = await openDataFolder(join(dir, 'data'));
      await writeFile(sharedLogFile(folder.dir), '{');
      await expect(chooseLog(folder, {})).rejects.toMatchObject({ code: 'data-corrupt', message: /shared-log\.json/ });
      expect(await chooseLog(folder, { profile: 'postgres', log: postgres })).toMatchObject({ log: postgres });
      expect(await readSharedLog(dir)).toBeUndefined();
    }));

  test('names an unreadable file, and never falls back to its own database', () =>
    withTemporaryFolder(async (dir) => {
      const folder = await openDataFolder(join(dir, 'data'));
      // Even root cannot read a folder as a file.
      await mkdir(sharedLogFile(folder.dir));
      const unread = {
        name: 'NodeError',
        code: 'data-unwritable',
        message: expect.stringMatching(/shared-log\.json.*cannot be read.*--data/),
      };
      await expect(readSharedLog(folder.dir)).rejects.toMatchObject(unread);
      await expect(chooseLog(folder, {})).rejects.toMatchObject(unread);
      await expect(chooseLog(folder, { profile: 'rocksdb' })).rejects.toMatchObject(unread);
      await expect(chooseLog(folder, { profile: 'postgres', log: postgres })).rejects.toMatchObject(unread);
    }));

  test('is shown without the location of its password', () => {
    expect(describeSharedLog(postgres)).toBe('PostgreSQL u@db:5432/ctx');
    expect(describeSharedLog(kafka)).toBe(
      'Kafka k1:9092,k2:9092, topic palimpsest-log; documents in PostgreSQL u@db:5432/ctx',
    );
  });
});
