import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { startFixtureServer } from '../../conformance/fixture-server.js';
import { startServe } from '../../support/mcp-clients.js';

const suite = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')),
  'dist',
  'index.js',
);
const baseline = fileURLToPath(new URL('../../conformance/baseline.yml', import.meta.url));

function runSuite(
  url: string,
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly output: string }> {
  const env = { ...process.env, NODE_OPTIONS: '' };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [suite, 'server', '--url', url, '--suite', 'all', ...args],
      { env, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), output: `${stdout}${stderr}` });
      },
    );
  });
}

describe('the public conformance suite 0.1.13', () => {
  test('passes through the adapter and the HTTP server with its fixtures registered', async () => {
    const server = await startFixtureServer();
    try {
      const { code, output } = await runSuite(server.url);
      expect(output).toMatch(/Total: 44 passed, 0 failed/);
      expect(code).toBe(0);
    } finally {
      await server.close();
    }
  });

  test('fails on the product only for the reasons of the baseline', async () => {
    const server = await startServe(['--no-token']);
    try {
      const { code, output } = await runSuite(server.url, '--expected-failures', baseline);
      expect(output).toMatch(/Baseline check passed/);
      expect(code).toBe(0);
    } finally {
      await server.close();
    }
  });
});
