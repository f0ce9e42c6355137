import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { stepId } from '../../../src/store/step-part.js';
import { askHere } from '../../support/ask-here.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';
import { executeForeignOn } from '../../support/xtdb.js';

/** The node is the suite's own, because other suites read every session meanwhile. */
describe('who in a database with a damaged session', () => {
  const name = `who${randomUUID().slice(0, 8)}`;
  let node: OwnNode;
  let made: ReviewedSessions;

  const who = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await askHere(['who', made.file, ...args, '--data', node.dataDir], {});
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };

  beforeAll(async () => {
    node = await ownNode();
    made = await reviewedSessions(name, { address: node.address });
  });
  afterAll(async () => {
    await made.close();
    await node.stop();
  });

  test('names the damaged session with the reason and answers for the others', async () => {
    expect(JSON.parse(await who('--json'))).toMatchObject({
      sessions: [{ session: `${name}-first` }, { session: `${name}-second` }],
      damaged: [],
    });
    await executeForeignOn(node.address, 'evict', stepId(made.second.id, 1));
    expect(JSON.parse(await who('--json'))).toMatchObject({
      sessions: [{ session: `${name}-first`, touched: [1, 2, 3] }],
      damaged: [{ session: `${name}-second`, why: expect.stringContaining('has no step 1') }],
    });
    const text = await who();
    expect(text).toContain(`session ${name}-first (`);
    expect(text).toMatch(new RegExp(`session ${name}-second \\(damaged\\)\\n +not read .*see palimpsest verify`));
  });
});
