import { renderedValue } from '../assembly/rendered-value.js';
import { SourceError } from '../filesystem/access/errors.js';
import { resolveFrom, shownPath } from '../filesystem/access/native-path.js';
import { quoted } from '../objects/errors.js';
import type { ObjectId } from '../objects/ids.js';
import { similarPaths as pathsLike } from '../values/similar-names.js';
import { escapedName, shownName } from './framing.js';
import { type ToolContext, ToolError, type ToolSession } from './tool.js';

type Call = Pick<ToolContext, 'client' | 'session'>;

/**
 * Returns display paths of the session's files whose names are most similar to a path. The path
 * itself and deleted files are left out.
 */
export function similarPaths(path: string, { client, session }: Call): readonly string[] {
  const known = [...session.state.sets.index].flatMap((id) => {
    const metadata = session.metadata(id);
    return metadata?.type === 'file' && metadata.state !== 'deleted' ? [metadata.displayPath] : [];
  });
  return pathsLike(shownPath(resolveFrom(client.files.cwd, path)), known);
}

const letters = (path: string): string => path.slice(path.lastIndexOf('/') + 1).normalize('NFC');

/**
 * Returns "Did you mean …?", or an empty text if there are no paths. A name that looks like the
 * wanted one but has another Unicode form is escaped.
 */
export function didYouMean(paths: readonly string[], wanted: string): string {
  if (paths.length === 0) return '';
  const shown = paths.map((path) =>
    letters(path) === letters(wanted) && !path.endsWith(wanted)
      ? `${escapedName(path)} (the same letters in another Unicode form)`
      : shownName(path),
  );
  return `Did you mean ${shown.join(' or ')}? `;
}

/** Lists the objects that an ambiguous prefix may mean, one per line, with id and kind. */
export function candidateLines(ids: readonly ObjectId[], session: ToolSession): string {
  const lines = ids.map((id) => {
    const metadata = session.metadata(id);
    if (metadata === undefined) return `  ${renderedValue(id)}`;
    const what =
      metadata.type === 'file'
        ? renderedValue(metadata.displayPath)
        : `${renderedValue(metadata.tool)} ${metadata.status}`;
    return `  ${renderedValue(id)} ${what}`;
  });
  return lines.join('\n');
}

/**
 * Converts a reference to a form that the session knows. A path, for example a relative one,
 * becomes the display path of its file.
 */
export async function knownReference(reference: string, { client, session }: Call): Promise<string> {
  if (session.resolve(reference).kind !== 'unknown') return reference;
  try {
    const { id } = await client.files.locate(reference, { mustExist: false });
    return session.state.has(id) ? id : reference;
  } catch (error) {
    if (error instanceof SourceError) return reference;
    throw error;
  }
}

/**
 * Returns the object that an agent names (decision D6).
 *
 * @throws {ToolError} `unknown-object`, `ambiguous` – no object matches, or several do
 */
export async function requireObject(reference: string, call: Call): Promise<ObjectId> {
  const { session } = call;
  const resolution = session.resolve(await knownReference(reference, call));
  switch (resolution.kind) {
    case 'found':
      return resolution.id;
    case 'infrastructure':
      throw new ToolError(
        'unknown-object',
        `${quoted(reference)} is part of the session itself, not a file or tool call.`,
        {
          next: 'Use context to see the session.',
        },
      );
    case 'ambiguous':
      throw new ToolError(
        'ambiguous',
        `${quoted(reference)} matches several objects:\n${candidateLines(resolution.candidates, session)}`,
        {
          next: 'Give more characters of the id.',
        },
      );
    case 'unknown':
      throw new ToolError('unknown-object', `no object of this session is called ${quoted(reference)}.`, {
        next:
          `${didYouMean(similarPaths(reference, call), reference)}Use context to list the known objects, or ` +
          'read with a path.',
      });
  }
}
