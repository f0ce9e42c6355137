import { describe, expect, test } from '@jest/globals';
import { parse } from '../../../src/edn/parse.js';
import { clientFolder } from '../../../src/process/data-folder.js';
import { isListed, mayMove, parseNodeUrls } from '../../../src/xtdb/address.js';
import { healthOf } from '../../../src/xtdb/node-list.js';
import { readStatus } from '../../../src/xtdb/requests.js';

describe('the addresses of several nodes', () => {
  test('are separated by commas, except for a comma in a path', () => {
    expect(parseNodeUrls('unix:/a,b/s')).toEqual([{ kind: 'unix', socketPath: '/a,b/s' }]);
    const three = parseNodeUrls('unix:/a,b/s, http://h:1,https://p/db');
    expect(three).toEqual([
      { kind: 'unix', socketPath: '/a,b/s', isListed: true },
      { kind: 'url', origin: 'http://h:1', isListed: true },
      { kind: 'url', origin: 'https://p', prefix: '/db', isListed: true },
    ]);
    expect(three.every(isListed)).toBe(true);
    expect(() => parseNodeUrls('http://h:1,https://u:secret@p')).toThrow(
      expect.objectContaining({ code: 'bad-request' }),
    );
    expect(() => parseNodeUrls('http://h:1,https://u:secret@p')).not.toThrow(/secret/);
  });

  test('allow several nodes behind a single URL, but not behind a single socket', () => {
    expect(parseNodeUrls('http://h:1').map((address) => [isListed(address), mayMove(address)])).toEqual([
      [false, true],
    ]);
    expect(parseNodeUrls('unix:/s').map((address) => [isListed(address), mayMove(address)])).toEqual([[false, false]]);
  });

  test('have the same journal folder in any order', () => {
    expect(clientFolder('/d', 'unix:/a,unix:/b')).toBe(clientFolder('/d', 'unix:/b, unix:/a'));
    expect(clientFolder('/d', 'unix:/a,unix:/b')).not.toBe(clientFolder('/d', 'unix:/a'));
  });
});

describe('the state of a node', () => {
  const health = (text: string) => healthOf(readStatus(parse(text)));

  test('is ready, lagging far behind its log, or failed with its indexer', () => {
    expect(health('{:ingester-failed? false}')).toBe('ready');
    expect(health('{:ingester-failed? false :front/log {:submitted 12 :completed 10}}')).toBe('ready');
    expect(health('{:ingester-failed? false :front/log {:submitted 20000 :completed 10}}')).toBe('lagging');
    expect(health('{:ingester-failed? false :front/log {:submitted nil :completed nil}}')).toBe('ready');
    expect(health('{:ingester-failed? true :front/log {:submitted 12 :completed 12}}')).toBe('failed');
  });
});
