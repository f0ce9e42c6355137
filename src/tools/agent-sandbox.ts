import { isWithin } from '../filesystem/access/mounts.js';
import { ownMember } from '../values/own-member.js';
import { type AgentSandbox, type ToolAnnotations, type ToolContext, ToolError } from './tool.js';

/** What a sandbox allows: nothing is changed, files of the workspace are, or it sets no limits. */
const ALLOWS: Readonly<Record<string, 'reading' | 'workspace' | 'all'>> = {
  'read-only': 'reading',
  'workspace-write': 'workspace',
  'danger-full-access': 'all',
  // Another sandbox around the program, and around this server as its child.
  'external-sandbox': 'all',
};

const allowed = ({ mode }: AgentSandbox): 'reading' | 'workspace' | 'all' | undefined => ownMember(ALLOWS, mode);

const named = ({ program, mode }: AgentSandbox): string => `the sandbox of ${program} (${mode})`;

/**
 * Refuses a tool that would do what the agent's own sandbox forbids: this server runs outside of
 * that sandbox. A tool that destroys is refused in a sandbox that allows reading alone, and in one
 * of which nothing is known. One that acts on an open world, as a shell does, is refused in every
 * sandbox with limits, because nothing here could hold it to them.
 * @throws {ToolError} `sandboxed`
 */
export function requireAllowed(
  tool: string,
  { destructiveHint, openWorldHint }: ToolAnnotations,
  sandbox: AgentSandbox | undefined,
): void {
  if (sandbox === undefined || destructiveHint !== true) return;
  const allows = allowed(sandbox);
  if (allows === 'all' || (allows === 'workspace' && !openWorldHint)) return;
  if (allows === 'workspace')
    throw new ToolError('sandboxed', `${tool} runs outside ${named(sandbox)}, which could not hold it.`, {
      next: `Run the command with the shell of ${sandbox.program} itself.`,
    });
  const why =
    allows === undefined
      ? 'which Palimpsest does not know, so nothing is changed in it'
      : 'in which nothing is changed';
  throw new ToolError('sandboxed', `${tool} is refused by ${named(sandbox)}, ${why}.`, {
    next: `Reading goes on. To have something changed, ask the user to let ${sandbox.program} write.`,
  });
}

/**
 * Refuses to change a file outside the workspace of the agent's own sandbox: the working folder of
 * the server, and the folders that the program names.
 * @throws {ToolError} `sandboxed`
 */
export async function requireInWorkspace(
  path: string,
  shown: string,
  { sandbox, client: { files } }: Pick<ToolContext, 'sandbox' | 'client'>,
): Promise<void> {
  if (sandbox === undefined || allowed(sandbox) !== 'workspace') return;
  const folders = [files.cwd, ...sandbox.workspaces];
  // A folder that holds a root lies outside the roots itself, and is compared as it is named.
  const located = await Promise.all(
    folders.map((folder) =>
      files.locate(folder, { mustExist: false }).then(
        ({ location }) => location.path,
        () => folder,
      ),
    ),
  );
  if (located.some((folder) => isWithin(path, folder))) return;
  throw new ToolError('sandboxed', `${shown} lies outside the workspace of ${named(sandbox)}.`, {
    next: `Change files in ${files.cwd} only, or ask the user to let ${sandbox.program} write there.`,
  });
}
