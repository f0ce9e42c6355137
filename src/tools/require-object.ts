import { renderedValue } from '../assembly/rendered-value.js';
import type { ContextSession } from '../client/session/context-session.js';
import { SourceError } from '../filesystem/access/errors.js';
import { quoted } from '../objects/errors.js';
import type { ObjectId } from '../objects/ids.js';
import { similarNames } from '../values/similar-names.js';
import { shownName } from './framing.js';
import { type ToolContext, ToolError } from './tool.js';

/** Display paths of the session's files that are most like a name. */
export function similarPaths(name: string, session: ContextSession): readonly string[] {
  const byName = new Map<string, string>();
  for (const id of session.state.sets.index) {
    const metadata = session.metadata(id);
    if (metadata?.type === 'file') byName.set(metadata.displayPath.slice(metadata.displayPath.lastIndexOf('/') + 1), metadata.displayPath);
  }
  const wanted = name.slice(name.lastIndexOf('/') + 1);
  return similarNames(wanted, byName.keys()).flatMap((near) => byName.get(near) ?? []);
}

/** "Did you mean …?", or nothing. */
export function didYouMean(names: readonly string[]): string {
  return names.length === 0 ? '' : `Did you mean ${names.map(shownName).join(' or ')}? `;
}

/** One line per candidate of an ambiguous prefix: its id and what it is. */
export function candidateLines(ids: readonly ObjectId[], session: ContextSession): string {
  const lines = ids.map((id) => {
    const metadata = session.metadata(id);
    if (metadata === undefined) return `  ${renderedValue(id)}`;
    const what = metadata.type === 'file' ? renderedValue(metadata.displayPath) : `${renderedValue(metadata.tool)} ${metadata.status}`;
    return `  ${renderedValue(id)} ${what}`;
  });
  return lines.join('\n');
}

/** A reference as the session knows it: a path written in another way, such as relative, becomes the display path of the file that it means. */
export async function knownReference(reference: string, { client, session }: Pick<ToolContext, 'client' | 'session'>): Promise<string> {
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
 * The object of the session that an agent names (decision D6).
 *
 * @throws {ToolError} `unknown-object`, `ambiguous` – for what names none or several
 */
export async function requireObject(reference: string, call: Pick<ToolContext, 'client' | 'session'>): Promise<ObjectId> {
  const { session } = call;
  const resolution = session.resolve(await knownReference(reference, call));
  switch (resolution.kind) {
    case 'found':
      return resolution.id;
    case 'infrastructure':
      throw new ToolError('unknown-object', `${quoted(reference)} is part of the session itself, not a file or tool call.`, {
        next: 'Use context to see the session.',
      });
    case 'ambiguous':
      throw new ToolError('ambiguous', `${quoted(reference)} fits several objects:\n${candidateLines(resolution.candidates, session)}`, {
        next: 'Give more characters of the id.',
      });
    case 'unknown':
      throw new ToolError('unknown-object', `no object of this session is called ${quoted(reference)}.`, {
        next: `${didYouMean(similarPaths(reference, session))}Use context to list the known objects, or read with a path.`,
      });
  }
}
