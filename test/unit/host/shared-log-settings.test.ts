import { resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { Environment } from '../../../src/host/environment.js';
import { type DatabaseFlags, readSettings } from '../../../src/host/settings.js';

const read = (env: Environment, flags: DatabaseFlags = {}) => readSettings(env, flags).node;
const postgres = { profile: 'postgres', log: 'postgresql://u@h/d' };
const kafka = { profile: 'kafka', log: 'k1:9092, k2:9093', documents: 'postgresql://u@h/d' };

describe('the location of a shared log', () => {
  test('comes from flags or variables, or from the data folder', () => {
    const found = read({}, postgres);
    expect(found).toMatchObject({
      profile: 'postgres',
      log: { profile: 'postgres', database: { name: 'd', user: 'u' } },
    });
    expect(found).not.toHaveProperty('environment');
    expect(read({ PALIMPSEST_PROFILE: 'postgres', PALIMPSEST_LOG: 'postgresql://u@h/d' })).toMatchObject({
      log: found.log,
    });
    expect(read({ PALIMPSEST_PROFILE: 'postgres' })).not.toHaveProperty('log');
    expect(read({}, kafka).log).toMatchObject({
      profile: 'kafka',
      kafka: { brokers: ['k1:9092', 'k2:9093'], topic: 'palimpsest-log', replication: 3, create: false },
      database: { name: 'd' },
    });
    const env = { PALIMPSEST_TOPIC: 't', PALIMPSEST_REPLICATION: '2', PALIMPSEST_KAFKA_PROPERTIES: '/k.properties' };
    expect(read(env, { ...kafka, createTopic: true }).log).toMatchObject({
      kafka: { topic: 't', replication: 2, create: true, propertiesFile: '/k.properties' },
    });
  });

  test('takes its password from a file, else a variable, else the URL in a variable, and logs none', () => {
    const url = 'postgresql://u:in-url@h/d';
    expect(
      read({ PALIMPSEST_DATABASE_PASSWORD: 'in-variable' }, postgres).environment?.PALIMPSEST_DATABASE_PASSWORD,
    ).toBe('in-variable');
    const both = read({
      PALIMPSEST_PROFILE: 'postgres',
      PALIMPSEST_LOG: url,
      PALIMPSEST_DATABASE_PASSWORD: 'in-variable',
    });
    expect(both.environment?.PALIMPSEST_DATABASE_PASSWORD).toBe('in-variable');
    const inUrl = read({ PALIMPSEST_PROFILE: 'postgres', PALIMPSEST_LOG: url });
    expect(inUrl.environment?.PALIMPSEST_DATABASE_PASSWORD).toBe('in-url');
    expect(inUrl.environment).toMatchObject({ PALIMPSEST_LOG: '' });
    expect(JSON.stringify(inUrl.log)).not.toContain('in-url');
    const file = read({ PALIMPSEST_DATABASE_PASSWORD: 'in-variable' }, { ...postgres, passwordFile: 'secret' });
    expect(file).not.toHaveProperty('environment');
    expect(file.log?.database.passwordFile).toBe(resolve('secret'));
    expect(read({ PALIMPSEST_DATABASE_PASSWORD_FILE: '/s' }, postgres).log?.database.passwordFile).toBe('/s');
  });

  test.each<[string, Environment, DatabaseFlags, RegExp]>([
    [
      'a password on the command line',
      {},
      { ...postgres, log: 'postgresql://u:s3cret@h/d' },
      /--log must not contain a password.*--password-file/,
    ],
    [
      'one in the documents',
      {},
      { ...kafka, documents: 'postgresql://u:s3cret@h/d' },
      /--documents must not contain a password/,
    ],
    ['a URL as brokers', {}, { ...kafka, log: 'postgresql://u:s3cret@h/d' }, /brokers of Kafka/],
    [
      'one whose password has a comma',
      {},
      { ...kafka, log: 'postgresql://u:my-s3cret,rest@h/d' },
      /one of them does not/,
    ],
    ['one with no @', {}, { ...kafka, log: 'k1:9092,postgresql://u:p,my-s3cret' }, /one of them does not/],
    ['brokers without a port', {}, { ...kafka, log: 'k1' }, /"k1"/],
    ['no documents', {}, { profile: 'kafka', log: 'k1:1' }, /--documents/],
    [
      'documents with postgres',
      {},
      { ...postgres, documents: 'postgresql://u@h/d' },
      /--documents requires --profile kafka/,
    ],
    ['a topic with postgres', {}, { ...postgres, topic: 't' }, /--topic requires --profile kafka/],
    ['a name that is not a topic', {}, { ...kafka, topic: 'a b' }, /"a b"/],
    ['a count that is none', { PALIMPSEST_REPLICATION: 'three' }, kafka, /"three"/],
    ['a log without a profile', {}, { log: 'postgresql://u@h/d' }, /--log requires --profile/],
    ['the same in a variable', { PALIMPSEST_LOG: 'postgresql://u:s3cret@h/d' }, {}, /PALIMPSEST_LOG requires/],
    ['a password file for no log', {}, { profile: 'postgres', passwordFile: '/s' }, /--password-file requires --log/],
    [
      'a relative file in a variable',
      { PALIMPSEST_DATABASE_PASSWORD_FILE: 's' },
      postgres,
      /PALIMPSEST_DATABASE_PASSWORD_FILE.*absolute/,
    ],
  ])('is refused with %s, without repeating a secret', (_, env, flags, message) => {
    expect(() => read(env, flags)).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringMatching(message) }),
    );
    expect(() => read(env, flags)).not.toThrow(/s3cret/);
  });
});
