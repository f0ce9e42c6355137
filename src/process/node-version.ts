/** The oldest Node version that runs this program; must equal the one in package.json. */
const OLDEST = { major: 20, minor: 19 } as const;

/**
 * Returns a message for the user if this Node is too old, otherwise undefined. `version` is like
 * `process.versions.node`.
 */
export function tooOldNode(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor)) return undefined;
  const oldest = `${OLDEST.major}.${OLDEST.minor}`;
  return `palimpsest needs Node ${oldest} or newer; this is Node ${version} (${process.execPath}).`;
}
