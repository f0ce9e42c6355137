import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { access, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ATTEMPTS = 2;
/** Time limit of an installation. Even a slow download that makes progress takes less. */
const LIMIT_MS = 240_000;

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** Returns npm's own words about a failure, or the reason why npm did not run. */
function wordsOf(error: unknown): string {
  const {
    stdout = '',
    stderr = '',
    message = String(error),
  } = error as { readonly stdout?: string; readonly stderr?: string; message?: string };
  return [message.split('\n', 1)[0], stderr, stdout].join('\n').trim().slice(-4_000);
}

/** Installs a package. The folder gets its name only when the installation is complete. */
async function install(name: string, version: string, program: string, folder: string): Promise<void> {
  const making = `${folder}.${process.pid}.${randomUUID()}`;
  try {
    await mkdir(making, { recursive: true });
    await writeFile(join(making, 'package.json'), '{"private":true}\n');
    const options = { cwd: making, maxBuffer: 16 * 1024 * 1024, timeout: LIMIT_MS };
    // An agent may need another Node than ours and gets that one. Ignores the project's own
    // strictness about engines, which `npm run` passes on.
    const { stdout, stderr } = await run(
      'npm',
      ['install', '--no-engine-strict', '--no-audit', '--no-fund', `${name}@${version}`],
      options,
    );
    if (!(await exists(join(making, 'node_modules', '.bin', program)))) {
      throw Object.assign(new Error(`the package has no program ${program}`), { stdout, stderr });
    }
    // Another process may have been faster. A killed process may leave a folder without the
    // program.
    if (!(await exists(join(folder, 'node_modules', '.bin', program))))
      await rm(folder, { recursive: true, force: true });
    await rename(making, folder).catch(async (error: unknown) => {
      if (!(await exists(join(folder, 'node_modules', '.bin', program)))) throw error;
    });
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

/** Returns the program of an npm package in one version, and installs it on first use. */
async function installedProgram(name: string, version: string, program: string): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'palimpsest', 'agents');
  const folder = join(cache, `${name.replace(/[^a-z0-9-]+/g, '-').replace(/^-/, '')}-${version}`);
  const binary = join(folder, 'node_modules', '.bin', program);
  const failures: string[] = [];
  while (!(await exists(binary))) {
    if (failures.length === ATTEMPTS) {
      throw new Error(
        `${name}@${version} could not be installed into ${folder}; npm install ` +
          `said:\n${failures.join('\n--- once more ---\n')}`,
      );
    }
    await install(name, version, program, folder).catch((error: unknown) => failures.push(wordsOf(error)));
  }
  return binary;
}

/** Programs that suites run. `start.mjs` lists their packages. */
export type AgentProgram = 'claude' | 'codex' | 'opencode' | 'gemini' | 'pi' | 'mcpb' | 'node';

/** Returns the newest version of a program at the start of this run. */
export function newestVersion(program: AgentProgram): { readonly name: string; readonly version: string } {
  const versions = JSON.parse(process.env.PALIMPSEST_TEST_AGENTS ?? '{}');
  const found = versions[program];
  if (found === undefined) throw new Error(`no version of ${program} is known: run through npm run test:agents`);
  return found;
}

/**
 * Returns the newest version of a program. First use installs it into the user's cache folder,
 * because these packages take hundreds of megabytes and are not dependencies of the project.
 *
 * A failed installation is tried once more. The error then contains npm's words.
 */
export function newestAgent(program: AgentProgram): Promise<string> {
  const { name, version } = newestVersion(program);
  return installedProgram(name, version, program);
}
