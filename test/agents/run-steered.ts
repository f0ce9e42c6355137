import { delimiter, dirname } from 'node:path';
import { expect } from '@jest/globals';
import { cliPath } from '../support/mcp-clients.js';
import type { CheckingUpstream } from './checked-model.js';
import { runProgram } from './run-program.js';

/** An agent behind a gateway that steers. */
export interface SteeredAgent {
  readonly name: 'claude' | 'codex';
  /** Its installed program. */
  readonly program: string;
  readonly project: string;
  readonly dataDir: string;
  /** The provider's name in the gateway's bases. */
  readonly provider: 'anthropic' | 'codex';
  readonly upstream: CheckingUpstream;
  readonly limitMs: number;
  readonly env: NodeJS.ProcessEnv;
}

/** Runs the agent by `palimpsest run --steer`, and returns its output if no request was refused. */
export async function runSteered(agent: SteeredAgent, args: readonly string[]): Promise<string> {
  const { name, program, project, dataDir, provider, upstream, limitMs, env } = agent;
  const flags = ['--steer', '--steer-limit', String(limitMs), '--data', dataDir];
  const base = ['--upstream', `${provider}=${upstream.url}`];
  const end = await runProgram(process.execPath, [cliPath, 'run', ...flags, ...base, name, ...args], {
    cwd: project,
    env: {
      ...process.env,
      ...env,
      PATH: `${dirname(program)}${delimiter}${process.env.PATH ?? ''}`,
      PALIMPSEST_PROFILE: process.env.PALIMPSEST_TEST_PROFILE ?? 'memory',
    },
    timeoutMs: 250_000,
  });
  // Codex reports its progress there.
  const stderr = name === 'codex' && end.code === 0 ? '' : end.stderr;
  expect({ code: end.code, refusals: upstream.refusals, stderr }).toEqual({ code: 0, refusals: [], stderr: '' });
  return end.stdout;
}
