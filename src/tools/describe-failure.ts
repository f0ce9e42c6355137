import { posix } from 'node:path';
import { PatternError, type PatternErrorCode, SourceError, type SourceErrorCode } from '../filesystem/access/errors.js';
import { listDirectory } from '../filesystem/access/list-directory.js';
import { DocumentError } from '../objects/errors.js';
import { SessionError } from '../session/errors.js';
import { defined } from '../values/defined.js';
import { similarNames } from '../values/similar-names.js';
import { messageOf } from '../values/thrown.js';
import { headerValue } from './framing.js';
import { didYouMean, similarPaths } from './require-object.js';
import { type ToolContext, ToolError } from './tool.js';

/** A failure and what to do next, in words for a model. */
interface Failure {
  readonly message: string;
  readonly next?: string;
}

const lookAgain = (error: SourceError): string =>
  `Nothing was done. Look at it first: read path=${headerValue(error.path)}`;

type Next = (error: SourceError, call: ToolContext) => Promise<string> | string;

/**
 * Returns the names in a missing path's folder that are most similar to the path's name. Paths are
 * written as the agent would write them.
 */
async function neighbours(path: string, call: ToolContext): Promise<readonly string[]> {
  const folder = posix.dirname(path);
  try {
    const { files } = call.client;
    const { location } = await files.locate(folder);
    const { entries } = await listDirectory(files.access.roots, location.path);
    const near = similarNames(
      posix.basename(path),
      entries.map(({ name }) => name),
    );
    if (near.length > 0) return near.map((name) => posix.join(folder, name));
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
  }
  return similarPaths(path, call);
}

/** Returns the first few allowed folders, with their agent-visible paths. */
function allowedFolders({ client }: ToolContext): readonly string[] {
  const { roots, mounts } = client.files.access;
  return roots.roots.slice(0, 5).map((root) => mounts.toDisplay(root, mounts.localFilesystemId));
}

const NEXT: Readonly<Record<SourceErrorCode, Next>> = {
  'not-found': async (error, call) =>
    `${didYouMean(await neighbours(error.path, call), error.path)}List the folder to see what is there: ls ` +
    `path=${headerValue(posix.dirname(error.path))}`,
  'outside-roots': (_error, call) => `Allowed: ${allowedFolders(call).join(', ')}`,
  'is-directory': (error) => `List it instead: ls path=${headerValue(error.path)}`,
  'not-regular': () => 'Only regular files can be used.',
  'not-text': () => 'Give well-formed text.',
  'no-permission': () => 'Use another file, or ask the user to change its permissions.',
  unreachable: () => 'Use a file below a folder that is mounted here.',
  'too-large': () => 'Use a smaller file.',
  'invalid-path': () => 'Give the path of a file or folder as ls shows it.',
  loop: () => 'Use the real path of the file.',
  exists: lookAgain,
  'changed-underneath': lookAgain,
  busy: () => 'Nothing was done. Try again.',
  io: () => 'Try again; if it happens again, tell the user.',
};

const MEND: Readonly<Record<PatternErrorCode, string>> = {
  'invalid-regex': 'Correct the pattern, or set literal=true to search for it as plain text.',
  'invalid-glob': 'Correct the glob, for example *.ts or src/**/*.{ts,js}.',
};

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError');
}

/** Describes a failure: the invalid value as it was given, and what to do next. */
export async function describeFailure(error: unknown, call: ToolContext): Promise<Failure> {
  if (error instanceof ToolError && error.cause instanceof SourceError) return describeFailure(error.cause, call);
  if (error instanceof ToolError) return { message: error.message, ...defined({ next: error.next }) };
  if (error instanceof SourceError) return { message: `${error.message}.`, next: await NEXT[error.code](error, call) };
  if (error instanceof PatternError) return { message: `${error.message}.`, next: MEND[error.code] };
  if (error instanceof DocumentError) return { message: `${error.message}.`, next: 'Give the value in another form.' };
  if (error instanceof SessionError && error.code === 'taken-over') {
    return {
      message: 'another process has taken this session over.',
      next: 'Call again to take it back and continue it.',
    };
  }
  if (error instanceof SessionError && error.code === 'not-kept') {
    return {
      message: `${error.message}.`,
      next: 'Inform the user, then call again to continue the session.',
    };
  }
  if (isAbort(error)) return { message: 'the call was cancelled before it was done.' };
  const message = messageOf(error);
  return { message: /[.!?]$/.test(message) ? message : `${message}.` };
}
