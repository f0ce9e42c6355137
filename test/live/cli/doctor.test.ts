import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { temporaryRoot } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';

describe('palimpsest doctor', () => {
  test('checks for Java before a start fails without it', async () => {
    const { root, remove } = await temporaryRoot();
    const ask = (env: Readonly<Record<string, string | undefined>>, ...flags: readonly string[]) =>
      runCli(['doctor', '--data', join(root, 'data'), ...flags], { XTDB_URL: undefined, ...env });
    try {
      const none = await ask({ PATH: root, JAVA_HOME: undefined });
      expect(none.code).toBe(1);
      expect(none.stdout).toMatch(/^java {6}NOT FOUND: The node needs Java 17 or later and found none in the PATH/m);
      expect(none.stdout).toMatch(/^REPAIR {4}no-java: Java is not installed$/m);
      const json = JSON.parse((await ask({ PATH: root, JAVA_HOME: undefined }, '--json')).stdout);
      expect(json).toMatchObject({ healthy: false, java: null, findings: [{ code: 'no-java' }] });
      const found = await ask({});
      expect(found).toMatchObject({ code: 0, stdout: expect.stringMatching(/^java {6}\d+ at \S+java$/m) });
    } finally {
      await remove();
    }
  });
});
