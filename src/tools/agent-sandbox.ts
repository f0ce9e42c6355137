import { isWithin } from '../filesystem/access/mounts.js';
import { ownMember } from '../values/own-member.js';
import { type AgentSandbox, type ToolAnnotations, type ToolContext, ToolError } from './tool.js';

/** The permissions of each kind of sandbox: reading, changes in the workspace, or everything. */
const ALLOWS: Readonly<Record<string, 'reading' | 'workspace' | 'all'>> = {
  'read-only': 'reading',
  'workspace-write': 'workspace',
  'danger-full-access': 'all',
  // Another sandbox already surrounds the program and its child, this server.
  'external-sandbox': 'all',
};

const allowed = ({ mode }: AgentSandbox): 'reading' | 'workspace' | 'all' | undefined => ownMember(ALLOWS, mode);

const named = ({ program, mode }: AgentSandbox): string => `the sandbox of ${program} (${mode})`;

/**
 * Rejects a tool call that the sandbox of the agent's program would forbid, because this server
 * runs outside that sandbox. Read-only and unknown sandboxes forbid destructive tools. Every
 * limited sandbox also forbids open-world tools such as a shell, because this server cannot enforce
 * its limits on them.
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
 * Rejects a change outside the workspace of the agent's sandbox. The workspace is the server's
 * working folder and the folders that the program names.
 * @throws {ToolError} `sandboxed`
 */
export async function requireInWorkspace(
  path: string,
  shown: string,
  { sandbox, client: { files } }: Pick<ToolContext, 'sandbox' | 'client'>,
): Promise<void> {
  if (sandbox === undefined || allowed(sandbox) !== 'workspace') return;
  const folders = [files.cwd, ...sandbox.workspaces];
  // A folder that contains a root is outside the roots, so it cannot be located. It is compared by
  // its given name.
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
