/** The oldest Node that runs this program, as package.json says it too. */
const OLDEST = { major: 20, minor: 19 } as const;

/** What a person is told where this Node is too old; undefined where it will do. `version` is like `process.versions.node`. */
export function tooOldNode(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor)) return undefined;
  return `palimpsest needs Node ${OLDEST.major}.${OLDEST.minor} or newer; this is Node ${version} (${process.execPath}).`;
}
