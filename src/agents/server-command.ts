import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Agent, Scope, ServerCommand, Surroundings } from './agent.js';
import { SettingsError } from './errors.js';
import { findProgram } from './installed.js';

/** This program as it was started. */
export interface ThisProgram {
  /** The folder of its package. */
  readonly packageFolder: string;
  /** The Node.js that runs it. */
  readonly node: string;
}

/** The data folder that a setup writes. */
export interface SetupData {
  readonly dataDir: string;
  /** Whether a server without flags and variables would use this folder. */
  readonly isDefault: boolean;
}

/** Parts of an argument that some agents would replace as variables. */
const REPLACED = /\$[{\w]|\{(?:env|file):/;

/**
 * Returns how an agent starts the server. A user's settings always contain the data folder, because
 * agents start servers without the user's variables. Several people share a project's settings, so
 * these contain the folder only if it is not the default.
 * @throws {SettingsError} unusable-folder – npm clears the program's folder, or agents would expand
 *   part of the data folder's name as a variable
 */
export async function serverCommand(
  agent: Agent,
  scope: Scope,
  given: { readonly at: Surroundings; readonly program: ThisProgram; readonly data: SetupData },
): Promise<(roots?: readonly string[]) => ServerCommand> {
  const { at, program, data } = given;
  if (/[\\/]_npx[\\/]/.test(program.packageFolder))
    throw new SettingsError(
      'unusable-folder',
      `palimpsest runs from ${program.packageFolder}, which npm may clear. Run npm install --global palimpsest first.`,
    );
  if (REPLACED.test(data.dataDir))
    throw new SettingsError(
      'unusable-folder',
      `Agents would expand a part of ${data.dataDir} as a variable. Name another data folder with --data.`,
    );
  const script = join(program.packageFolder, 'dist', 'cli.js');
  const named = await findProgram(['palimpsest'], at);
  const isNamed = named !== undefined && (await realpath(named)) === (await realpath(script).catch(() => script));
  // Desktop programs lack the shell's PATH, and Windows cannot start command files directly. They
  // get the path of Node.js and of the script.
  const byName = isNamed && !agent.isGraphical && at.platform !== 'win32';
  const [command, ...first] = byName ? ['palimpsest'] : [program.node, script];
  const dataArgs = scope === 'user' || !data.isDefault ? ['--data', data.dataDir] : [];
  return (roots = []) => ({
    command: command as string,
    args: [...first, 'mcp', ...roots.flatMap((root) => ['--root', root]), ...dataArgs, '--short-ids'],
  });
}
