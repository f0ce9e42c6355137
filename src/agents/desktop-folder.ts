import { join } from 'node:path';
import { type Environment, variable } from '../host/environment.js';

/** The environment, home folder and platform of a user. */
interface DesktopUser {
  readonly env: Environment;
  readonly home: string;
  readonly platform: NodeJS.Platform;
}

/** Returns the folder in which a desktop application keeps its user's settings. */
export function desktopFolder({ env, home, platform }: DesktopUser, application: string): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', application);
  if (platform === 'win32') return join(variable(env, 'APPDATA') ?? join(home, 'AppData', 'Roaming'), application);
  return join(variable(env, 'XDG_CONFIG_HOME') ?? join(home, '.config'), application);
}
