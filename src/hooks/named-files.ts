import { posix } from 'node:path';
import type { FileAccess, LocatedFile } from '../client/file-access.js';
import { SourceError } from '../filesystem/access/errors.js';
import type { SourceReading } from '../filesystem/access/read-source.js';
import { patchedPaths } from '../foreign-tools/patch-envelope.js';
import { scriptOf } from '../foreign-tools/shell-call.js';
import { namedPaths } from '../foreign-tools/tool-arguments.js';
import { foreignTool } from '../foreign-tools/tool-table.js';
import { patchPaths, pathsToChange } from '../harness/observe-call.js';
import { isOption, shellSteps } from '../harness/tool-output/shell-syntax.js';
import type { HookedCall } from './agent-hooks.js';

/** A file that a call names, as it is now. */
export interface NamedFile {
  /** The name in the call. */
  readonly name: string;
  readonly file: LocatedFile;
  readonly reading: SourceReading;
}

/** Maximum number of files of one call that are read. A hook has a fraction of a second. */
const MOST_FILES = 20;

/** Returns the words of a script that may name files: operands and targets of redirections. */
function scriptWords(script: string): readonly string[] {
  const commands = (shellSteps(script) ?? []).flatMap(({ pipeline = [] }) => pipeline);
  const words = commands.flatMap(({ words, redirects }) => [...words, ...redirects.map(({ target }) => target)]);
  return words.filter((word) => word !== undefined && word !== '' && !isOption(word)) as readonly string[];
}

/** Returns the paths that a call names. Words of a shell command may turn out to be no files. */
function pathsOf({ tool, args }: HookedCall): readonly string[] {
  const { kind } = foreignTool(tool);
  if (kind === 'patch') return patchPaths(args);
  if (kind !== 'shell') return namedPaths(args);
  const script = scriptOf(args);
  return script === undefined ? [] : [...patchedPaths(script), ...scriptWords(script)];
}

/** Returns the names of the files that a call certainly changes. A shell can run a patch, too. */
export function namesToChange({ tool, args }: HookedCall): ReadonlySet<string> {
  if (foreignTool(tool).kind !== 'shell') return new Set(pathsToChange(tool, args));
  const script = scriptOf(args) ?? '';
  return new Set(script.includes('*** Begin Patch') ? patchedPaths(script) : []);
}

/**
 * Reads the files that a call names, as they are now. Skips folders, files out of reach and names
 * of no file. A file that is gone counts.
 */
export async function readNamedFiles(
  files: FileAccess,
  call: HookedCall,
  cwd: string | undefined,
): Promise<readonly NamedFile[]> {
  const folder = posix.resolve(files.cwd, cwd ?? '.');
  const isShell = foreignTool(call.tool).kind === 'shell';
  const names = [...new Set(pathsOf(call))].slice(0, MOST_FILES);
  const found = await Promise.all(
    names.map(async (name): Promise<readonly NamedFile[]> => {
      try {
        const file = await files.locate(posix.resolve(folder, name), { mustExist: isShell });
        if (!file.location.reachable) return [];
        const reading = await files.read(file.source);
        const isFile = reading.kind !== 'not-regular' && reading.kind !== 'unreachable';
        return isFile ? [{ name, file, reading }] : [];
      } catch (error) {
        if (error instanceof SourceError) return [];
        throw error;
      }
    }),
  );
  return found.flat();
}
