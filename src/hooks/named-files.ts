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

/** A file that a call names, with its current content. */
export interface NamedFile {
  /** The name in the call. */
  readonly name: string;
  readonly file: LocatedFile;
  readonly reading: SourceReading;
}

/** Maximum number of files that are read for one call. A hook has a fraction of a second. */
const MOST_FILES = 20;

/** Returns the words of a script that may be file names: operands, and targets of redirections. */
function scriptWords(script: string): readonly string[] {
  const commands = (shellSteps(script) ?? []).flatMap(({ pipeline = [] }) => pipeline);
  const words = commands.flatMap(({ words, redirects }) => [...words, ...redirects.map(({ target }) => target)]);
  return words.filter((word) => word !== undefined && word !== '' && !isOption(word)) as readonly string[];
}

/** Returns the paths that a call names. Some words of a shell command may not be files. */
function pathsOf({ tool, args }: HookedCall): readonly string[] {
  const { kind } = foreignTool(tool);
  if (kind === 'patch') return patchPaths(args);
  if (kind !== 'shell') return namedPaths(args);
  const script = scriptOf(args);
  return script === undefined ? [] : [...patchedPaths(script), ...scriptWords(script)];
}

/** Returns the names of files that a call certainly changes. A shell can also apply a patch. */
export function namesToChange({ tool, args }: HookedCall): ReadonlySet<string> {
  if (foreignTool(tool).kind !== 'shell') return new Set(pathsToChange(tool, args));
  const script = scriptOf(args) ?? '';
  return new Set(script.includes('*** Begin Patch') ? patchedPaths(script) : []);
}

/**
 * Reads the files that a call names. Skips folders, files that are out of reach, and names that
 * never were files. A deleted file counts.
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
