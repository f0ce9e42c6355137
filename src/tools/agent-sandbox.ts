import { isWithin } from '../filesystem/access/mounts.js';
import { ownMember } from '../values/own-member.js';
import { type AgentSandbox, type ToolAnnotations, type ToolContext, ToolError } from './tool.js';

/** The permissions of each sandbox: reading only, changes in the workspace, or everything. */
const ALLOWS: Readonly<Record<string, 'reading' | 'workspace' | 'all'>> = {
  'read-only': 'reading',
  'workspace-write': 'workspace',
  'danger-full-access': 'all',
  // Another sandbox surrounds the program and this server, which is its child.
  'external-sandbox': 'all',
};

const allowed = ({ mode }: AgentSandbox): 'reading' | 'workspace' | 'all' | undefined => ownMember(ALLOWS, mode);

const named = ({ program, mode }: AgentSandbox): string => `the sandbox of ${program} (${mode})`;

/**
 * Rejects a tool call that the agent's own sandbox forbids, because this server runs outside that
 * sandbox. Destructive tools are rejected in read-only and unknown sandboxes. Open-world tools,
 * such as a shell, are rejected in every limited sandbox, because this server cannot enforce its
 * limits.
 * @throws {ToolError} `sandboxed`
 */
export function requireAllowed(
  tool: string,
  { destructiveHint, openWorldHint }: ToolAnnotations,
  sandbox: AgentSandbox,
): void {
  if (destructiveHint !== true) return;
  const allows = allowed(sandbox);
  if (allows === 'all' || (allows === 'workspace' && !openWorldHint)) return;
  if (allows === 'workspace')
    throw new ToolError('sandboxed', `${tool} runs outside ${named(sandbox)}, which cannot restrict it.`, {
      next: `Run the command with the shell of ${sandbox.program} itself.`,
    });
  const why =
    allows === undefined ? 'which Palimpsest does not know, so it allows no changes' : 'which allows no changes';
  throw new ToolError('sandboxed', `${tool} is refused by ${named(sandbox)}, ${why}.`, {
    next: `Reading is allowed. To change something, ask the user to let ${sandbox.program} write.`,
  });
}

/**
 * Rejects changing a file outside the workspace of the agent's own sandbox: the server's working
 * folder and the folders that the program names.
 * @throws {ToolError} `sandboxed`
 */
export async function requireInWorkspace(
  path: string,
  shown: string,
  { sandbox, client: { files } }: Pick<ToolContext, 'sandbox' | 'client'>,
): Promise<void> {
  if (sandbox === undefined || allowed(sandbox) !== 'workspace') return;
  const folders = [files.cwd, ...sandbox.workspaces];
  // A folder that contains a root lies outside the roots itself, so its name is compared as given.
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
